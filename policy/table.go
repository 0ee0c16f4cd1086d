package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Table is a file of calls with the decision that the policy should make about each. It may bring a policy of its own and
// describe its tools: then it needs no hub.
type Table struct {
	Settings *Settings // nil: the table has no policy of its own
	Calls    []TestCall

	tools map[tool.Name]*describedTool
}

// TestCall is one call of a table, with the decision to expect.
type TestCall struct {
	Name    string // for people; "" is the place
	Place   string // file:line:column
	Tool    tool.Name
	Mode    Mode // "": that of the policy
	Request Request

	Want   tool.Behavior
	Rule   string // the rule, grant or mode that decides, as records name it; "" where any may
	Source string // "" where any may

	targets bool // the table has Request.Targets; otherwise they are looked up
}

// describedTool is a tool as a table describes it.
type describedTool struct {
	tool  *tool.Tool
	facts *facts.Facts
}

// ParseTable reads a table in YAML or JSON. file is its name in faults.
func ParseTable(file string, data []byte) (*Table, error) {
	r := &reader{file: file}
	t := &Table{tools: make(map[tool.Name]*describedTool)}
	if root := r.tree(data); root != nil {
		r.fields(root, "", nil,
			field{"policy", func(value *node, key string) { t.Settings = r.settings(value, key) }},
			field{"tools", func(value *node, key string) {
				if value.Kind != textfile.Mapping {
					r.must(value, key, "a mapping", "write a canonical name as each key")
				}
				for _, m := range value.Members {
					name := tool.Name(m.Key)
					t.tools[name] = r.describedTool(name, m.Value, join(key, m.Key))
				}
			}},
			each(r, "calls", &t.Calls, r.call))
		if len(r.faults) == 0 && len(t.Calls) == 0 {
			r.fault(root, "", "the table has no calls", "write calls:, a list of a call and what is wanted each")
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return t, nil
}

func (r *reader) settings(n *node, key string) *Settings {
	s := &Settings{}
	r.fields(n, key, nil,
		field{"mode", func(value *node, key string) { s.Mode = r.mode(value, key) }},
		field{"rules", func(value *node, key string) { r.sets(s, value, key) }},
		field{"grants", func(value *node, key string) {
			s.Grants = &Grants{session: map[tool.Name][]*Grant{}}
			var list []Grant
			each(r, "", &list, r.grant).read(value, key)
			s.Grants.setAlways(list)
		}})
	return s
}

// sets reads rules by source; a list alone is the user's.
func (r *reader) sets(s *Settings, n *node, key string) {
	if n.Kind == textfile.List {
		s.Sets = append(s.Sets, Set{User, r.rules(n, key)})
		return
	}
	var known []field
	for _, source := range Sources() {
		known = append(known, field{string(source), func(value *node, key string) {
			s.Sets = append(s.Sets, Set{source, r.rules(value, key)})
		}})
	}
	r.fields(n, key, nil, known...)
}

func (r *reader) mode(n *node, key string) Mode {
	m := Mode(r.word(n, key))
	if !m.isValid() {
		r.fault(n, key, fmt.Sprintf("%q is no mode", string(m)), "write default, client, read_only, plan or accept_all")
	}
	return m
}

// describedTool reads the description of a tool. Missing facts are taken for the worst, as of any tool.
func (r *reader) describedTool(name tool.Name, n *node, key string) *describedTool {
	server := name.Source()
	if server == tool.SourceMCP {
		server, _, _ = strings.Cut(strings.TrimPrefix(string(name), "mcp."), ".")
	}
	s := &describedTool{tool: &tool.Tool{Name: name, Server: server, Native: string(name[strings.LastIndexByte(string(name), '.')+1:])}}
	f := &facts.Facts{Tool: name, Server: server, Trusted: name.Source() != tool.SourceMCP,
		Risk: facts.Fact[string]{Value: facts.RiskMedium, Origin: facts.Configured}}
	r.fields(n, key, nil,
		r.fact("read_only", &f.ReadOnly),
		r.bool("trusted", &f.Trusted),
		r.fact("destructive", &f.Destructive),
		r.fact("network", &f.Network),
		r.fact("filesystem", &f.Filesystem),
		r.fact("command", &f.Command),
		r.fact("open_world", &f.OpenWorld),
		r.texts("tags", &f.Tags),
		text(r, "risk", &f.Risk.Value),
		text(r, "schema", &s.tool.SchemaDigest))
	for tag, holds := range map[string]bool{"readonly": f.ReadOnly.Value, "write": !f.ReadOnly.Value, "network": f.Network.Value,
		"filesystem": f.Filesystem.Value, "command": f.Command.Value} {
		if holds {
			f.Tags = append(f.Tags, tag)
		}
	}
	slices.Sort(f.Tags)
	f.Tags = slices.Compact(f.Tags)
	s.facts = f
	return s
}

func (r *reader) call(n *node, key string) TestCall {
	c := TestCall{Place: fmt.Sprintf("%s:%d:%d", r.file, n.Line, n.Column)}
	q := &c.Request
	q.Actor = tool.Actor{Name: "local", Door: "http"}
	r.fields(n, key, nil,
		text(r, "name", &c.Name),
		text(r, "call", &c.Tool),
		field{"args", func(value *node, _ string) { q.Input = jsonOf(value) }},
		field{"meta", func(value *node, _ string) { q.Meta = jsonOf(value) }},
		field{"targets", func(value *node, key string) {
			c.targets = true
			each(r, "", &q.Targets, r.target).read(value, key)
		}},
		each(r, "limits", &q.Findings, r.finding),
		text(r, "as", &q.Actor.Name),
		text(r, "door", &q.Actor.Door),
		text(r, "session", &q.Actor.Session),
		text(r, "client", &q.Actor.Client.Name),
		text(r, "profile", &q.Profile),
		text(r, "cwd", &q.CWD),
		r.time("at", &q.Now),
		field{"mode", func(value *node, key string) { c.Mode = r.mode(value, key) }},
		r.behavior("want", &c.Want),
		text(r, "rule", &c.Rule),
		text(r, "source", &c.Source))
	if c.Tool == "" {
		r.fault(n, key, "the entry names no tool", "write call: and a canonical name")
	}
	if c.Want == "" {
		r.fault(n, key, "the entry does not say what is wanted", "write want: allow, ask, deny or passthrough")
	}
	if q.Now.IsZero() {
		q.Now = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC) // a Monday at noon, so that a table says the same every day
	}
	return c
}

func (r *reader) behavior(name string, into *tool.Behavior) field {
	return field{name, func(n *node, key string) {
		*into = tool.Behavior(r.word(n, key))
		switch *into {
		case tool.Allow, tool.Ask, tool.Deny, tool.Passthrough:
			return
		}
		r.fault(n, key, fmt.Sprintf("%q is no behavior", string(*into)), "write allow, ask, deny or passthrough")
	}}
}

func (r *reader) target(n *node, key string) target.Target {
	var t target.Target
	var notes []string
	r.fields(n, key, nil,
		text(r, "kind", &t.Kind),
		text(r, "argument", &t.Argument),
		text(r, "resolved", &t.Resolved),
		text(r, "host", &t.Host),
		text(r, "executable", &t.Executable),
		r.bool("write", &t.Write),
		r.bool("remote", &t.Remote),
		r.texts("notes", &notes),
		text(r, "fault", &t.Fault))
	t.Given = t.Resolved
	for _, note := range notes {
		t.Notes = append(t.Notes, target.Note(note))
	}
	return t
}

// finding reads a finding against a target: by default that it is a sensitive path.
func (r *reader) finding(n *node, key string) target.Finding {
	f := target.Finding{Code: target.Sensitive}
	r.fields(n, key, nil,
		r.behavior("then", &f.Behavior),
		text(r, "code", &f.Code),
		text(r, "target", &f.Blocked),
		text(r, "message", &f.Reason))
	f.Target.Resolved = f.Blocked
	return f
}

// Lookup fills in what a hub knows of a call: the tool, its facts, the targets of the arguments, and the findings of the limits
// against them. A tool that does not exist is an error.
type Lookup func(name tool.Name, r *Request) error

// TestResult is the result of one call of a table.
type TestResult struct {
	Call     TestCall                `json:"-"`
	Name     string                  `json:"name"`
	Place    string                  `json:"place"`
	Want     tool.Behavior           `json:"want"`
	Passed   bool                    `json:"passed"`
	Problem  string                  `json:"problem,omitempty"` // what is not as wanted; "" where all is
	Decision tool.PermissionDecision `json:"decision"`
}

// Complete reports whether the table has a policy of its own and describes all of its tools: then it runs without a hub.
func (t *Table) Complete() bool {
	undescribed := func(c TestCall) bool { return t.tools[c.Tool] == nil }
	return t.Settings != nil && !slices.ContainsFunc(t.Calls, undescribed)
}

// Run decides about every call of the table, by the table's own policy or else by e. lookup knows the tools that the table does
// not describe. It may be nil where the table describes all tools, and e may be nil where the table has a policy.
func (t *Table) Run(e *Engine, lookup Lookup) ([]TestResult, error) {
	if t.Settings != nil {
		own, err := Compile(*t.Settings)
		if err != nil {
			return nil, err
		}
		e = own
	}
	if e == nil {
		return nil, errors.New("run table: there is no policy: write policy: in the table, or configure one")
	}
	base := e.current.Load()
	results := make([]TestResult, 0, len(t.Calls))
	for _, c := range t.Calls {
		results = append(results, t.run(base, c, lookup))
	}
	return results, nil
}

func (t *Table) run(s *compiledPolicy, c TestCall, lookup Lookup) TestResult {
	result := TestResult{Call: c, Name: c.Name, Place: c.Place, Want: c.Want}
	if result.Name == "" {
		result.Name = string(c.Tool) + " " + string(c.Request.Input)
	}
	r := c.Request
	if own := t.tools[c.Tool]; own != nil {
		r.Tool, r.Facts = own.tool, own.facts
	} else if lookup == nil {
		result.Problem = fmt.Sprintf("the tool %q is unknown: describe it under tools:", string(c.Tool))
		return result
	} else if err := lookup(c.Tool, &r); err != nil {
		result.Problem = err.Error()
		return result
	}
	if c.targets {
		r.Targets = c.Request.Targets
	}
	if len(c.Request.Findings) > 0 {
		r.Findings = c.Request.Findings
	}
	if c.Mode != "" {
		other := *s
		other.settings.Mode = c.Mode
		s = &other
	}
	d := s.decide(&r)
	result.Decision = d
	by := ""
	if len(d.RuleRefs) > 0 {
		by = d.RuleRefs[0]
	}
	switch {
	case d.Behavior != c.Want:
		result.Problem = fmt.Sprintf("want %s, got %s by %s", c.Want, d.Behavior, strings.TrimSpace(d.Source+" "+by))
	case c.Rule != "" && c.Rule != by:
		result.Problem = fmt.Sprintf("%s as wanted, but by %s and not %s", c.Want, strings.TrimSpace(d.Source+" "+by), c.Rule)
	case c.Source != "" && c.Source != d.Source:
		result.Problem = fmt.Sprintf("%s as wanted, but from %s and not %s", c.Want, d.Source, c.Source)
	}
	result.Passed = result.Problem == ""
	return result
}

// WriteResults writes the results for people: the calls that failed, with the reason, and the number that passed. It returns
// the number that failed.
func WriteResults(w io.Writer, results []TestResult) (failed int, err error) {
	var b strings.Builder
	for _, r := range results {
		if r.Passed {
			continue
		}
		failed++
		fmt.Fprintf(&b, "FAIL %s: %s: %s\n", r.Place, plainText(r.Name), plainText(r.Problem))
		if message, ok := r.Decision.Reason["message"].(string); ok {
			fmt.Fprintf(&b, "     %s\n", plainText(message))
		}
	}
	fmt.Fprintf(&b, "%d of %d calls as wanted\n", len(results)-failed, len(results))
	_, err = io.WriteString(w, b.String())
	return failed, err
}

// WriteResultsJSON writes one JSON object for each call.
func WriteResultsJSON(w io.Writer, results []TestResult) error {
	encoder := json.NewEncoder(w)
	for _, r := range results {
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

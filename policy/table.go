package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Table is a file of calls with the decision that the policy should make about each. It may bring a
// policy of its own and describe its tools: then it needs no hub.
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
	t := &Table{tools: make(map[tool.Name]*describedTool)}
	err := readText(file, data,
		shape.Key("policy", "", shape.Func[*Settings](readSettings), &t.Settings),
		shape.Key("tools", "", shape.Func[map[tool.Name]*describedTool](readTools), &t.tools),
		shape.Must(shape.Key("calls", "a list of a call and what is wanted each", shape.Func[[]TestCall](readCalls),
			&t.Calls)))
	if err != nil {
		return nil, err
	}
	return t, nil
}

func readSettings(r *shape.Reader, n *textfile.Node) (*Settings, bool) {
	s := &Settings{}
	var grants shape.Located[[]Grant]
	sound := shape.ReadFields(r, n,
		shape.Key("mode", "", shape.OneOf(Modes()...), &s.Mode),
		shape.Key("rules", "", shape.Func[[]Set](readSets), &s.Sets),
		shape.KeyAt("grants", "", shape.List[Grant]{Of: shape.Func[Grant](readGrant)}, &grants))
	if grants.Present {
		s.Grants = &Grants{session: map[tool.Name][]*Grant{}}
		s.Grants.setAlways(grants.Value)
	}
	return s, sound
}

// readSets reads rules by source; a list alone is the user's.
func readSets(r *shape.Reader, n *textfile.Node) (sets []Set, sound bool) {
	if n.Kind == textfile.List {
		rules, sound := Rules{}.Read(r, n)
		return []Set{{User, shape.Values(rules)}}, sound
	}
	var keys []shape.Field
	read := make([]shape.Located[[]shape.Located[Rule]], len(Sources()))
	for i, source := range Sources() {
		keys = append(keys, shape.KeyAt(string(source), "", Rules{}, &read[i]))
	}
	sound = shape.ReadFields(r, n, keys...)
	for i, source := range Sources() {
		if read[i].Present {
			sets = append(sets, Set{source, shape.Values(read[i].Value)})
		}
	}
	return sets, sound
}

func readTools(r *shape.Reader, n *textfile.Node) (map[tool.Name]*describedTool, bool) {
	all := make(map[tool.Name]*describedTool)
	members, sound := r.Members(n)
	for _, m := range members {
		leave := r.Enter(m.Key)
		all[tool.Name(m.Key)] = readTool(r, tool.Name(m.Key), m.Value)
		leave()
	}
	return all, sound
}

// readTool reads the description of a tool. Missing facts are taken for the worst, as of any tool.
func readTool(r *shape.Reader, name tool.Name, n *textfile.Node) *describedTool {
	server := name.Source()
	if server == tool.SourceMCP {
		server, _, _ = strings.Cut(strings.TrimPrefix(string(name), "mcp."), ".")
	}
	s := &describedTool{tool: &tool.Tool{Name: name, Server: server,
		Native: string(name[strings.LastIndexByte(string(name), '.')+1:])}}
	f := &facts.Facts{Tool: name, Server: server, Trusted: name.Source() != tool.SourceMCP,
		Risk: facts.Fact[string]{Value: facts.RiskMedium, Origin: facts.Configured}}
	shape.ReadFields(r, n,
		fact("read_only", &f.ReadOnly),
		boolean("trusted", &f.Trusted),
		fact("destructive", &f.Destructive),
		fact("network", &f.Network),
		fact("filesystem", &f.Filesystem),
		fact("command", &f.Command),
		fact("open_world", &f.OpenWorld),
		texts("tags", &f.Tags),
		text("risk", &f.Risk.Value),
		text("schema", &s.tool.SchemaDigest))
	for tag, holds := range map[string]bool{"readonly": f.ReadOnly.Value, "write": !f.ReadOnly.Value,
		"network":    f.Network.Value,
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

func readCalls(r *shape.Reader, n *textfile.Node) ([]TestCall, bool) {
	calls, sound := shape.List[TestCall]{Of: shape.Func[TestCall](readCall)}.Read(r, n)
	if sound && len(calls) == 0 {
		r.Fault(n.Position, "the table has no calls", "write a list of a call and what is wanted each")
	}
	return calls, sound
}

func readCall(r *shape.Reader, n *textfile.Node) (TestCall, bool) {
	c := TestCall{Place: r.Place(n.Position)}
	q := &c.Request
	q.Actor = tool.Actor{Name: "local", Door: "http"}
	var targets shape.Located[[]target.Target]
	sound := shape.ReadFields(r, n,
		text("name", &c.Name),
		shape.Must(shape.Key("call", "a canonical name", shape.As[tool.Name]{}, &c.Tool)),
		raw("args", &q.Input),
		raw("meta", &q.Meta),
		shape.KeyAt("targets", "", shape.List[target.Target]{Of: shape.Func[target.Target](readTarget)}, &targets),
		each("limits", &q.Findings, readFinding),
		text("as", &q.Actor.Name),
		text("door", &q.Actor.Door),
		text("session", &q.Actor.Session),
		text("client", &q.Actor.Client.Name),
		text("profile", &q.Profile),
		text("cwd", &q.CWD),
		instant("at", &q.Now),
		shape.Key("mode", "", shape.OneOf(Modes()...), &c.Mode),
		shape.Must(shape.Key("want", "allow, ask, deny or passthrough", behavior(), &c.Want)),
		text("rule", &c.Rule),
		text("source", &c.Source))
	q.Targets, c.targets = targets.Value, targets.Present
	if q.Now.IsZero() {
		// a Monday at noon, so that a table says the same every day
		q.Now = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	}
	return c, sound
}

func readTarget(r *shape.Reader, n *textfile.Node) (t target.Target, sound bool) {
	var notes []string
	sound = shape.ReadFields(r, n,
		text("kind", &t.Kind),
		text("argument", &t.Argument),
		text("resolved", &t.Resolved),
		text("host", &t.Host),
		text("executable", &t.Executable),
		boolean("write", &t.Write),
		boolean("remote", &t.Remote),
		texts("notes", &notes),
		text("fault", &t.Fault))
	t.Given = t.Resolved
	for _, note := range notes {
		t.Notes = append(t.Notes, target.Note(note))
	}
	return t, sound
}

// readFinding reads a finding against a target: by default that it is a sensitive path.
func readFinding(r *shape.Reader, n *textfile.Node) (target.Finding, bool) {
	f := target.Finding{Code: target.Sensitive}
	sound := shape.ReadFields(r, n,
		shape.Key("then", "", behavior(), &f.Behavior),
		text("code", &f.Code),
		text("target", &f.Blocked),
		text("message", &f.Reason))
	f.Target.Resolved = f.Blocked
	return f, sound
}

// Lookup fills in what a hub knows of a call: the tool, its facts, the targets of the arguments,
// and the findings of the limits against them. A tool that does not exist is an error.
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

// Complete reports whether the table has a policy of its own and describes all of its tools: then
// it runs without a hub.
func (t *Table) Complete() bool {
	undescribed := func(c TestCall) bool { return t.tools[c.Tool] == nil }
	return t.Settings != nil && !slices.ContainsFunc(t.Calls, undescribed)
}

// Run decides about every call of the table, by the table's own policy or else by e. lookup knows
// the tools that the table does not describe. It may be nil where the table describes all tools,
// and e may be nil where the table has a policy.
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
	results := make([]TestResult, 0, len(t.Calls))
	for _, c := range t.Calls {
		results = append(results, t.run(e, c, lookup))
	}
	return results, nil
}

func (t *Table) run(e *Engine, c TestCall, lookup Lookup) TestResult {
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
		other := *e
		other.settings.Mode = c.Mode
		e = &other
	}
	d := e.Decide(r)
	result.Decision = d
	by := ""
	if len(d.RuleRefs) > 0 {
		by = d.RuleRefs[0]
	}
	switch {
	case d.Behavior != c.Want:
		result.Problem = fmt.Sprintf("want %s, got %s by %s", c.Want, d.Behavior, strings.TrimSpace(d.Source+" "+by))
	case c.Rule != "" && c.Rule != by:
		result.Problem = fmt.Sprintf("%s as wanted, but by %s and not %s", c.Want, strings.TrimSpace(d.Source+" "+by),
			c.Rule)
	case c.Source != "" && c.Source != d.Source:
		result.Problem = fmt.Sprintf("%s as wanted, but from %s and not %s", c.Want, d.Source, c.Source)
	}
	result.Passed = result.Problem == ""
	return result
}

// WriteResults writes the results for people: the calls that failed, with the reason, and the
// number that passed. It returns the number that failed.
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

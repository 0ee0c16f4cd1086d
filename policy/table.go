package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Table is a file of calls and what the policy should say of each. It may bring a policy of its own, and say what tools
// are: then it needs no hub to be run.
type Table struct {
	Settings *Settings // nil: the table has no policy of its own
	Calls    []TestCall

	tools map[tool.Name]*stated
}

// TestCall is one call of a table and what is expected.
type TestCall struct {
	Name    string // for people; "" is the place
	Place   string // file:line:column
	Tool    tool.Name
	Mode    Mode // "": that of the policy
	Request Request

	Want   tool.Behavior
	Rule   string // the rule, grant or mode that decides, as records name it; "" where any may
	Source string // "" where any may

	targets bool // Request.Targets is what the table says; otherwise they are looked up
}

// stated is what a table says of a tool.
type stated struct {
	tool  *tool.Tool
	facts *facts.Facts
}

// ParseTable reads a table in YAML or JSON. file is its name in faults.
func ParseTable(file string, data []byte) (*Table, error) {
	r := &reader{file: file}
	t := &Table{tools: make(map[tool.Name]*stated)}
	if root := r.tree(data); root != nil {
		r.fields(root, "", []string{"policy", "tools", "calls"}, func(name, key string, value *node) {
			switch name {
			case "policy":
				t.Settings = r.settings(value, key)
			case "tools":
				if value.Kind != textfile.Mapping {
					r.must(value, key, "a mapping", "write a canonical name as each key")
				}
				for _, m := range value.Members {
					name := tool.Name(m.Key)
					t.tools[name] = r.stated(name, m.Value, join(key, m.Key))
				}
			case "calls":
				r.list(value, key, func(_ int, key string, value *node) { t.Calls = append(t.Calls, r.call(value, key)) })
			}
		})
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
	r.fields(n, key, []string{"mode", "rules", "grants"}, func(name, key string, value *node) {
		switch name {
		case "mode":
			s.Mode = r.mode(value, key)
		case "rules":
			r.sets(s, value, key)
		case "grants":
			s.Grants = &Grants{session: map[tool.Name][]*Grant{}}
			var list []Grant
			r.list(value, key, func(_ int, key string, value *node) { list = append(list, r.grant(value, key)) })
			s.Grants.setAlways(list)
		}
	})
	return s
}

// sets reads rules by source; a list alone is the user's.
func (r *reader) sets(s *Settings, n *node, key string) {
	if n.Kind == textfile.List {
		s.Sets = append(s.Sets, Set{User, r.rules(n, key)})
		return
	}
	known := make([]string, 0, len(Sources()))
	for _, source := range Sources() {
		known = append(known, string(source))
	}
	r.fields(n, key, known, func(name, key string, value *node) {
		s.Sets = append(s.Sets, Set{Source(name), r.rules(value, key)})
	})
}

func (r *reader) mode(n *node, key string) Mode {
	m := Mode(r.word(n, key))
	if !m.isValid() {
		r.fault(n, key, fmt.Sprintf("%q is no mode", string(m)), "write default, client, read_only, plan or accept_all")
	}
	return m
}

// stated reads what a table says of a tool. What it does not say is taken for the worst, as of any tool.
func (r *reader) stated(name tool.Name, n *node, key string) *stated {
	server := name.Source()
	if server == tool.SourceMCP {
		server, _, _ = strings.Cut(strings.TrimPrefix(string(name), "mcp."), ".")
	}
	s := &stated{tool: &tool.Tool{Name: name, Server: server, Native: string(name[strings.LastIndexByte(string(name), '.')+1:])}}
	f := &facts.Facts{Tool: name, Server: server, Trusted: name.Source() != tool.SourceMCP,
		Risk: facts.Fact[string]{Value: facts.RiskMedium, Origin: facts.Configured}}
	yes := func(value *node, key string) facts.Fact[bool] {
		return facts.Fact[bool]{Value: r.truth(value, key), Origin: facts.Configured, Why: "the table says so"}
	}
	known := []string{"read_only", "trusted", "destructive", "network", "filesystem", "command", "open_world", "tags", "risk", "schema"}
	r.fields(n, key, known, func(name, key string, value *node) {
		switch name {
		case "read_only":
			f.ReadOnly = yes(value, key)
		case "trusted":
			f.Trusted = r.truth(value, key)
		case "destructive":
			f.Destructive = yes(value, key)
		case "network":
			f.Network = yes(value, key)
		case "filesystem":
			f.Filesystem = yes(value, key)
		case "command":
			f.Command = yes(value, key)
		case "open_world":
			f.OpenWorld = yes(value, key)
		case "tags":
			f.Tags = r.words(value, key)
		case "risk":
			f.Risk.Value = r.word(value, key)
		case "schema":
			s.tool.SchemaDigest = r.word(value, key)
		}
	})
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

func callKeys() []string {
	return []string{"name", "call", "args", "meta", "targets", "limits", "as", "door", "session", "client", "profile", "cwd", "at",
		"mode", "want", "rule", "source"}
}

func (r *reader) call(n *node, key string) TestCall {
	c := TestCall{Place: fmt.Sprintf("%s:%d:%d", r.file, n.Line, n.Column)}
	q := &c.Request
	q.Actor = tool.Actor{Name: "local", Door: "http"}
	r.fields(n, key, callKeys(), func(name, key string, value *node) {
		switch name {
		case "name":
			c.Name = r.word(value, key)
		case "call":
			c.Tool = tool.Name(r.word(value, key))
		case "args":
			q.Input = jsonOf(value)
		case "meta":
			q.Meta = jsonOf(value)
		case "targets":
			c.targets = true
			r.list(value, key, func(_ int, key string, value *node) { q.Targets = append(q.Targets, r.target(value, key)) })
		case "limits":
			r.list(value, key, func(_ int, key string, value *node) { q.Findings = append(q.Findings, r.finding(value, key)) })
		case "as":
			q.Actor.Name = r.word(value, key)
		case "door":
			q.Actor.Door = r.word(value, key)
		case "session":
			q.Actor.Session = r.word(value, key)
		case "client":
			q.Actor.Client.Name = r.word(value, key)
		case "profile":
			q.Profile = r.word(value, key)
		case "cwd":
			q.CWD = r.word(value, key)
		case "at":
			q.Now = r.instant(value, key)
		case "mode":
			c.Mode = r.mode(value, key)
		case "want":
			c.Want = r.behavior(value, key)
		case "rule":
			c.Rule = r.word(value, key)
		case "source":
			c.Source = r.word(value, key)
		}
	})
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

func (r *reader) behavior(n *node, key string) tool.Behavior {
	b := tool.Behavior(r.word(n, key))
	switch b {
	case tool.Allow, tool.Ask, tool.Deny, tool.Passthrough:
		return b
	}
	r.fault(n, key, fmt.Sprintf("%q is no behavior", string(b)), "write allow, ask, deny or passthrough")
	return b
}

func (r *reader) target(n *node, key string) target.Target {
	var t target.Target
	known := []string{"kind", "argument", "resolved", "host", "executable", "write", "remote", "notes", "fault"}
	r.fields(n, key, known, func(name, key string, value *node) {
		switch name {
		case "kind":
			t.Kind = target.Kind(r.word(value, key))
		case "argument":
			t.Argument = r.word(value, key)
		case "resolved":
			t.Resolved = r.word(value, key)
			t.Given = t.Resolved
		case "host":
			t.Host = r.word(value, key)
		case "executable":
			t.Executable = r.word(value, key)
		case "write":
			t.Write = r.truth(value, key)
		case "remote":
			t.Remote = r.truth(value, key)
		case "notes":
			for _, word := range r.words(value, key) {
				t.Notes = append(t.Notes, target.Note(word))
			}
		case "fault":
			t.Fault = r.word(value, key)
		}
	})
	return t
}

// finding reads what a limit holds against a target: a sensitive path, where the table does not say otherwise.
func (r *reader) finding(n *node, key string) target.Finding {
	f := target.Finding{Code: target.Sensitive}
	r.fields(n, key, []string{"then", "code", "target", "message"}, func(name, key string, value *node) {
		switch name {
		case "then":
			f.Behavior = r.behavior(value, key)
		case "target":
			f.Blocked = r.word(value, key)
			f.Target.Resolved = f.Blocked
		case "code":
			f.Code = r.word(value, key)
		case "message":
			f.Reason = r.word(value, key)
		}
	})
	return f
}

// Lookup says what a hub knows of a call that a table asks about: the tool, its facts, what the arguments are aimed at and
// what the limits say of that. It fills in r. A tool that does not exist is an error.
type Lookup func(name tool.Name, r *Request) error

// TestResult is what came of one call of a table.
type TestResult struct {
	Call     TestCall                `json:"-"`
	Name     string                  `json:"name"`
	Place    string                  `json:"place"`
	Want     tool.Behavior           `json:"want"`
	Passed   bool                    `json:"passed"`
	Problem  string                  `json:"problem,omitempty"` // what is not as wanted; "" where all is
	Decision tool.PermissionDecision `json:"decision"`
}

// Complete reports whether the table has a policy of its own and describes every tool that it asks about: then no hub is
// needed to run it.
func (t *Table) Complete() bool {
	for i := range t.Calls {
		if t.tools[t.Calls[i].Tool] == nil {
			return false
		}
	}
	return t.Settings != nil
}

package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// configuredHook is one element of hooks.
type configuredHook struct {
	hook.Config
	headers []shape.Entry[string]
}

// hooksShape is the list of hooks. Clients keep a mapping under the same key: it is theirs, and ignored.
type hooksShape struct {
	shape.List[shape.Located[configuredHook]]
}

func hooksOf() hooksShape {
	return hooksShape{shape.ListAt(shape.Object[configuredHook]{Fields: hookKeys,
		Meant: map[string]string{"tool": "match", "tools": "match", "if": "when", "condition": "when",
			"events": "event",
			"http":   "url", "exec": "command", "run": "command", "patch": "rewrite"},
		Gone:  gone("remove it: a hook that writes nothing to stdout changes nothing", "observes"),
		Extra: shape.Schema{"type": "object", "required": []string{"event"}}})}
}

// Read warns of a client's own hooks and does not use them.
func (s hooksShape) Read(r *shape.Reader, n *textfile.Node) ([]shape.Located[configuredHook], bool) {
	if n.Kind == textfile.Mapping {
		r.Warn(n.Position, "these hooks are the client's, which runs them itself", "write a list for hooks of the hub")
		return nil, true
	}
	return s.List.Read(r, n)
}

func hookKeys(h *configuredHook) []shape.Field {
	words, texts := shape.Words{}, shape.List[string]{Of: shape.Text{Expand: true, Check: noNUL}}
	return []shape.Field{
		shape.Key("name", "Its name in records and messages (default: hook- and its number).", shape.Text{}, &h.Name),
		shape.Must(shape.Key("event",
			"When it runs; several as a list.", hookEvents{}, &h.Events)),
		shape.Key("match", `Tools, as globs over canonical names: "mcp.github.*" (default all).`, words, &h.Rule.Match),
		shape.Key("matcher",
			"Or a matcher of Claude Code: names like mcp__server__tool with | or a comma between them, or a "+
				"regular expression.",
			shape.Text{Empty: true}, &h.Matcher),
		shape.Key("tags", "Tools with one of these tags, as tools show prints them.", words, &h.Rule.Tags),
		shape.Key("server", "Tools of these servers or toolsets, as globs.", words, &h.Rule.Server),
		shape.Key("profile", "Calls through these profiles, as globs.", words, &h.Rule.Profile),
		shape.Key("actor",
			`Calls of these callers: names of tokens, as globs; "local" without authentication; of tools call the user's name.`,
			words, &h.Rule.Actor),
		shape.Key("when", "A CEL expression over the call that must be true, as in rules.", shape.Text{}, &h.Rule.When),
		shape.Key("command",
			"A program and its arguments, which no shell reads. It gets the call as JSON on stdin, and answers "+
				"with JSON on stdout. Exit code 2 blocks.", texts, &h.Command),
		shape.Key("shell", "Or a text for sh -c.", shape.Text{Check: noNUL}, &h.Shell),
		shape.Key("env", "Names of variables that the command gets, besides PATH, HOME, TMPDIR and a few more.",
			shape.List[string]{Of: shape.Text{Check: variableKey}}, &h.Env),
		shape.Key("url", "Or an address that the call is posted to as JSON. Its answer is the hook's.",
			shape.Text{Expand: true, Check: webURL}, &h.URL),
		shape.Key("headers", "HTTP headers for the address.",
			shape.Mapping[string]{Of: shape.Text{Expand: true, Empty: true, Scalar: true, Check: headerValue},
				Key: headerName}, &h.headers),
		shape.Key("require", "Or a CEL expression that must be true; otherwise the call is stopped.", shape.Text{},
			&h.Require),
		shape.Key("reason", "What the model is told where require is not true.", shape.Text{}, &h.Reason),
		shape.Key("rewrite", "Or a JSON Patch of the arguments; after the call of the result.",
			shape.List[hook.Operation]{Of: shape.Object[hook.Operation]{Fields: operationKeys,
				Gone: gone("write add and remove in place of move and copy", "from")}}, &h.Rewrite),
		shape.Key("redact",
			"Or regular expressions: what they match in texts of the arguments, or of the result, becomes "+
				"[redacted].",
			shape.List[string]{Of: shape.Text{}}, &h.Redact),
		shape.Key("add_context", "Or a text for the model, beside the result.", shape.Text{}, &h.AddContext),
		shape.Key("timeout", "How long it may run (default 1m).",
			shape.Duration{Min: time.Millisecond, Max: hook.MaxTimeout}, &h.Timeout),
		shape.Key("fail",
			`What happens where the hook fails: "closed" ends the call, "open" goes on (default closed before the call, open `+
				`after it).`,
			shape.OneOf(hook.FailClosed, hook.FailOpen), &h.Fail),
	}
}

// hookEvents is one event or a list of events.
type hookEvents struct{}

func (hookEvents) Read(r *shape.Reader, n *textfile.Node) ([]hook.Event, bool) {
	if n.Kind == textfile.List {
		return hookEvents{}.list().Read(r, n)
	}
	e, ok := shape.OneOf(hook.Events()...).Read(r, n)
	return []hook.Event{e}, ok
}

func (hookEvents) list() shape.List[hook.Event] {
	return shape.List[hook.Event]{Of: shape.OneOf(hook.Events()...)}
}

func (e hookEvents) Schema() shape.Schema {
	return shape.Schema{"anyOf": []shape.Schema{shape.OneOf(hook.Events()...).Schema(), e.list().Schema()}}
}

func operationKeys(o *hook.Operation) []shape.Field {
	return []shape.Field{
		shape.Must(shape.Key("op", "add, remove, replace or test.",
			shape.OneOf("add", "remove", "replace", "test"), &o.Op)),
		shape.Must(shape.Key("path", `Where, as a JSON pointer: "/title".`, shape.Text{}, &o.Path)),
		shape.Key("value", "The value, of any type.", anyValue{}, &o.Value),
		shape.Key("cel", "Or a CEL expression for the value, over the same variables as when.", shape.Text{}, &o.CEL),
	}
}

// anyValue is any value of the file, as JSON.
type anyValue struct{}

func (anyValue) Read(_ *shape.Reader, n *textfile.Node) (json.RawMessage, bool) {
	return policy.JSONOf(n), true
}

func (anyValue) Schema() shape.Schema { return shape.Schema{} }

// hooks makes the hooks of the file, and reports what is wrong with them.
func (r *reader) hooks(given []shape.Located[configuredHook]) []hook.Config {
	if len(given) == 0 {
		return nil
	}
	configs := make([]hook.Config, len(given))
	for i, g := range given {
		c := g.Value.Config
		c.Headers, c.Place = shape.AsMap(g.Value.headers), r.Place(g.Position)
		configs[i] = c
		if len(c.Command) > 0 && filepath.Base(c.Command[0]) != c.Command[0] { // a path, not a name to be looked for
			file := c.Command[0]
			if !filepath.IsAbs(file) {
				file = filepath.Join(r.vars.workspace, file)
			}
			if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
				r.Warn(g.Position, "there is no file "+shape.Quote(file),
					"put it there, or write its path from the directory of the config")
			}
		}
	}
	_, problems := hook.New(configs, hook.Options{})
	for _, p := range problems {
		if g := given[p.Hook]; g.OK {
			shape.FaultWithin(r.Reader, g, p.Key, p.Message, p.Hint)
		}
	}
	return configs
}

// useOfHook says what a hook starts or reaches.
func useOfHook(h *hook.Config, node *textfile.Node) string {
	switch {
	case len(h.Command) > 0:
		return "runs " + shownNodes(node.Member("command").Items)
	case h.Shell != "":
		return "runs sh -c " + strconv.Quote(h.Shell)
	case h.URL != "":
		return "sends calls to " + shownNodes([]*textfile.Node{node.Member("url")})
	}
	return ""
}

package hook

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// Config is one hook as it is configured. It is exactly one of Command, Shell, URL, Require,
// Rewrite, Redact and AddContext.
type Config struct {
	Name   string  // unique; "" becomes hook-<number>
	Events []Event // at least one
	Rule   policy.Rule

	// Matcher is a matcher of Claude Code over names like mcp__server__tool: an exact name, several
	// with | between them, or a regular expression. "" and "*" are all.
	Matcher string

	Command []string // program and arguments; no shell reads them
	Shell   string   // a text for sh -c
	Env     []string // names of variables of the hub that a command gets besides the usual ones
	URL     string   // an address that the call is posted to
	Headers map[string]string

	Require    string      // a CEL expression that must be true
	Reason     string      // what the model is told where it is not
	Rewrite    []Operation // a JSON Patch of the arguments; after the call of the result
	Redact     []string    // regular expressions; what they match in texts is replaced
	AddContext string      // a text for the model

	Timeout time.Duration // default 60 s, at most 10 min
	Fail    string        // "closed" or "open"; "" is closed before the call and open after it

	Place string // file:line:column, for people
}

// Operation is one operation of a JSON Patch (RFC 6902). CEL, where it is not "", makes the value.
type Operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
	CEL   string          `json:"-"`
}

// The words for Config.Fail.
const (
	FailClosed = "closed"
	FailOpen   = "open"
)

const (
	// DefaultTimeout is how long a hook may run that does not say. Claude Code's is the same.
	DefaultTimeout = time.Minute
	// MaxTimeout is the longest time that a hook may be given.
	MaxTimeout = 10 * time.Minute

	// places is how many commands and requests of hooks run at the same time. Others wait for their
	// turn. Hooks of calls that hooks make have as many of their own, see Set.turnsFor.
	places = 48
	// ownPlaces bounds the places of one caller. So slow hooks of one caller leave places for the hooks of others.
	ownPlaces = 32
	// maxOutput bounds what a hook answers, in bytes.
	maxOutput = 1 << 20
)

// Problem is one thing that is wrong with a hook.
type Problem struct {
	Hook int // index in the list
	policy.Problem
}

// Options are what hooks need of the program.
type Options struct {
	Runner Runner // of commands; nil: hooks that are commands fail
	Dir    string // where commands run
}

// checker compiles one hook and collects what is wrong with it.
type checker struct {
	compiler *policy.Compiler
	options  *Options
	index    int
	problems *[]Problem
}

func (c *checker) fault(key, message, hint string) {
	*c.problems = append(*c.problems, Problem{c.index, policy.Problem{Rule: c.index, Key: key, Message: message,
		Hint: hint}})
}

var hookName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// compile makes h ready to run, and checks what takes more than one of its values to see.
func (c *checker) compile(h Config) *compiled {
	if h.Name == "" {
		h.Name = fmt.Sprintf("hook-%d", c.index+1)
	}
	if !hookName.MatchString(h.Name) {
		c.fault("name", fmt.Sprintf("%q is no name for a hook", h.Name),
			"write letters, digits, dots, dashes and underscores, at most 64")
	}
	if len(h.Events) == 0 {
		c.fault("event", "the hook does not say when it runs", "write event: pre_tool_use, or another event")
	}
	if h.Timeout == 0 {
		h.Timeout = DefaultTimeout
	}
	m, problems := c.compiler.Matcher(h.Rule)
	for _, p := range problems {
		c.fault(p.Key, p.Message, p.Hint)
	}
	var once []Event
	for _, e := range h.Events {
		if !slices.Contains(once, e) { // it runs once, however often it says when
			once = append(once, e)
		}
	}
	h.Events = once
	out := &compiled{Config: h, matcher: m, names: c.names(h.Matcher)}
	c.implement(out)
	out.says = out.matching()
	return out
}

// matching is the hook's name and kind, and the keys of the config that say which calls it is for.
// The text of a condition may hold secrets of the environment: it is not for records.
func (h *compiled) matching() map[string]any {
	says := map[string]any{"hook": h.Name, "kind": h.kind}
	for key, words := range map[string][]string{"match": h.Rule.Match, "tags": h.Rule.Tags, "server": h.Rule.Server,
		"profile": h.Rule.Profile,
		"actor":   h.Rule.Actor} {
		if len(words) > 0 {
			says[key] = words
		}
	}
	if h.Matcher != "" {
		says["matcher"] = h.Matcher
	}
	if h.Rule.When != "" {
		says["when"] = true
	}
	return says
}

// plainNames matches a list of names: "Only letters, digits, _, -, spaces, , and |: exact string,
// or list of exact strings separated by | or , with optional surrounding whitespace" (Claude Code,
// hooks reference).
var plainNames = regexp.MustCompile(`^[A-Za-z0-9_|, -]+$`)

// names compiles a matcher of Claude Code; nil for all names.
func (c *checker) names(text string) *regexp.Regexp {
	if text == "" || text == "*" {
		return nil
	}
	if plainNames.MatchString(text) { // it names tools, and is no expression
		names := strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == ',' })
		for i, name := range names {
			names[i] = strings.TrimSpace(name)
		}
		text = `^(?:` + strings.Join(names, "|") + `)$`
	}
	p, err := regexp.Compile(text)
	if err != nil {
		c.fault("matcher", "this is no regular expression of RE2",
			"write names like mcp__server__tool, an expression, or use match")
	}
	return p
}

// implement finds the one implementation of h.
func (c *checker) implement(h *compiled) {
	var said []string
	is := func(name string, hook Hook) {
		said = append(said, name)
		h.kind, h.hook = name, hook
	}
	program := command{argv: h.Command, env: h.Env, runner: c.options.Runner, dir: c.options.Dir}
	if len(h.Command) > 0 {
		is("command", &program)
	}
	if h.Shell != "" {
		program.argv = []string{"sh", "-c", h.Shell}
		is("shell", &program)
	}
	if h.URL != "" {
		is("url", &endpoint{h.URL, h.Headers})
	}
	if h.Require != "" {
		is("require", c.require(h))
	}
	if len(h.Rewrite) > 0 {
		is("rewrite", c.rewrite(h))
	}
	if len(h.Redact) > 0 {
		is("redact", c.redact(h))
	}
	if h.AddContext != "" {
		is("add_context", addContext{h.AddContext})
	}
	switch {
	case len(said) == 0:
		c.fault("", "the hook does nothing", "write command, shell, url, require, rewrite, redact or add_context")
	case len(said) > 1:
		c.fault(said[1], fmt.Sprintf("the hook is %s already", said[0]), "write two hooks")
	}
	for _, e := range h.Events {
		if input, result, _ := usable(e); !input && !result && slices.Contains([]string{"rewrite", "redact"}, h.kind) {
			c.fault("event", fmt.Sprintf("%s has no effect at %s", h.kind, e), "remove that event")
		}
	}
	if h.AddContext != "" && slices.Contains(h.Events, ResultPersistence) {
		c.fault("event", "add_context has no effect at result_persistence, where the caller has its result",
			"remove that event")
	}
	if h.Reason != "" && h.Require == "" {
		c.fault("reason", "only require has a reason of its own",
			"remove it: other hooks give their reasons when they run")
	}
}

// closed reports whether a failure of the hook at e ends the call.
func (h *Config) closed(e Event) bool {
	if h.Fail == "" {
		return e.Before()
	}
	return h.Fail == FailClosed
}

// failing is what a failure of the hook does at its events: closed, open, or both.
func (h *Config) failing() []string {
	var all []string
	for _, e := range h.Events {
		word := FailOpen
		if h.closed(e) {
			word = FailClosed
		}
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}

// Usable reports whether an output means something at e.
func usable(e Event) (input, result bool, behaviors []tool.Behavior) {
	switch e {
	case PreToolUse, PermissionRequest:
		return true, false, []tool.Behavior{tool.Allow, tool.Ask, tool.Deny}
	case PermissionDecision:
		return false, false, []tool.Behavior{tool.Deny}
	}
	return false, true, nil
}

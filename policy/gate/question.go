package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Bounds of what a person is shown, in bytes.
const (
	maxShownArguments = 400
	maxShownDoes      = 120
	maxShownWords     = 300
	maxShownTarget    = 300
	maxShownTargets   = 10

	// Of the line that shortens the arguments: what an argument that leads somewhere shows, what any other shows, and all of them.
	maxBriefAim   = 100
	maxBriefValue = 40
	maxBrief      = 160
)

// MaxAims is how many targets of one call are worth a look at the file system for people.
const MaxAims = 32

// Choices are the answers that may be given where d asks.
func Choices(d *tool.PermissionDecision) []policy.Choice {
	choices := []policy.Choice{policy.AllowOnce}
	for _, suggested := range d.SuggestedUpdates {
		if s, ok := suggested.(policy.SuggestedGrant); ok {
			choices = append(choices, s.Choice)
		}
	}
	out := make([]policy.Choice, 0, len(policy.Choices()))
	for _, c := range policy.Choices() { // in their usual order
		if c == policy.DenyOnce || slices.Contains(choices, c) {
			out = append(out, c)
		}
	}
	return out
}

// Mask returns the arguments of a call of the tool that f is about as they may be shown and recorded: what the facts call
// sensitive is replaced, what is named like a secret where the schema knows no such name, and what is secret in addresses.
// Everything else stays as the caller wrote it, repeated keys among it; arguments without a secret are returned as they are.
// Nil facts know no schema.
func Mask(arguments json.RawMessage, f *facts.Facts) json.RawMessage {
	m := masking{command: f == nil || runs(f)}
	m.addressed = bytes.ContainsAny(arguments, `@=\`) && m.addresses(arguments)
	if f != nil {
		m.schema, _ = rawjson.Get(f.Schema(), "properties")
		for _, p := range f.Sensitive {
			m.sensitive = append(m.sensitive, strings.Split(strings.TrimPrefix(p, "/"), "/"))
		}
	}
	if len(m.sensitive) == 0 && !m.addressed && !m.undeclared(arguments, true) {
		return arguments
	}
	return m.mask(arguments, m.sensitive, true)
}

const masked = `"` + target.Mask + `"`

// masking is one Mask.
type masking struct {
	sensitive [][]string // steps of pointers
	schema    []byte     // the properties of the schema
	addressed bool       // addresses with secrets are somewhere
	command   bool       // any text may be a command
}

// runs reports whether arguments of the tool may be commands or programs.
func runs(f *facts.Facts) bool {
	return f.Command.Value || slices.ContainsFunc(f.Arguments, func(a facts.Argument) bool {
		return a.Kind == facts.ArgumentCommand || a.Kind == facts.ArgumentCode
	})
}

// addresses reports whether value holds an address with a secret anywhere, as a key, too.
func (m *masking) addresses(value []byte) (found bool) {
	if len(value) == 0 {
		return false
	}
	switch value[0] {
	case '{':
		_ = rawjson.Members(value, func(member rawjson.Member) bool {
			name := member.Name()
			found = target.Masked(name, m.command) != name || m.addresses(member.Value)
			return !found
		})
	case '[':
		_ = rawjson.Elements(value, func(v []byte) bool {
			found = m.addresses(v)
			return !found
		})
	case '"':
		text, _ := rawjson.String(value)
		return target.Masked(text, m.command) != text
	}
	return found
}

// secret reports whether the member called name of an object holds a secret that the facts cannot know of. The facts have
// judged the properties of the schema itself; further down, what is not among the sensitive may be unknown to them.
func (m *masking) secret(name string, top bool) bool {
	if !facts.Secret(name) {
		return false
	}
	if top {
		if _, declared := rawjson.Get(m.schema, name); declared {
			return false
		}
	}
	return true
}

// undeclared reports whether value holds such a member anywhere.
func (m *masking) undeclared(value []byte, top bool) (found bool) {
	if len(value) == 0 {
		return false
	}
	switch value[0] {
	case '{':
		_ = rawjson.Members(value, func(member rawjson.Member) bool {
			found = m.secret(member.Name(), top) || m.undeclared(member.Value, false)
			return !found
		})
	case '[':
		_ = rawjson.Elements(value, func(v []byte) bool {
			found = m.undeclared(v, false)
			return !found
		})
	}
	return found
}

// mask is value with the secrets below it replaced. paths are those of the facts that lead through it.
func (m *masking) mask(value []byte, paths [][]string, top bool) []byte {
	if len(paths) == 0 && !m.addressed && !m.undeclared(value, top) {
		return value
	}
	out, first := []byte{}, true
	next := func() {
		if !first {
			out = append(out, ',')
		}
		first = false
	}
	below := func(name string) (rest [][]string, hit bool) {
		for _, p := range paths {
			step := strings.ReplaceAll(strings.ReplaceAll(p[0], "~1", "/"), "~0", "~")
			if p[0] != "*" && !strings.EqualFold(step, name) {
				continue
			}
			if len(p) == 1 {
				return nil, true
			}
			rest = append(rest, p[1:])
		}
		return rest, false
	}
	add := func(name string, v []byte, key bool) {
		rest, hit := below(name)
		if hit || key && m.secret(name, top) {
			out = append(out, masked...)
			return
		}
		out = append(out, m.mask(v, rest, false)...)
	}
	switch {
	case rawjson.IsObject(value):
		out = append(out, '{')
		_ = rawjson.Members(value, func(member rawjson.Member) bool {
			next()
			out = append(append(out, rawjson.Quote(target.Masked(member.Name(), m.command))...), ':')
			add(member.Name(), member.Value, true)
			return true
		})
		return append(out, '}')
	case len(value) > 0 && value[0] == '[':
		out = append(out, '[')
		_ = rawjson.Elements(value, func(v []byte) bool {
			next()
			add("*", v, false)
			return true
		})
		return append(out, ']')
	case m.addressed && len(value) > 0 && value[0] == '"':
		text, _ := rawjson.String(value)
		if shown := target.Masked(text, m.command); shown != text {
			return rawjson.Quote(shown)
		}
	}
	return value
}

// Message is the question of the decision d about r, in plain text. Some clients show its beginning and some its end, so the
// first three lines are short and say what matters most (the tool and its server, the arguments, and why a person is asked), and
// a usual question fits a terminal of 24 lines together with its answers. All the rest is shown by the queue.
//
// What the hub says stands at the beginning of a line; what a stranger wrote stands in one line behind it, quoted, cut, and
// with everything invisible made visible, so that none of it can be taken for the hub's words.
func Message(r *policy.Request, d *tool.PermissionDecision) string {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "%s: %s\n", label, text) }
	fmt.Fprintf(&b, "mcp-toolhub asks: may %s (server %s) run?\n", Name(r.Tool.Name), Plain(r.Tool.Server, maxShownWords))
	arguments := Mask(r.Input, r.Facts)
	brief, whole := shortened(arguments, r.Targets)
	line("Arguments", brief)
	if message, ok := d.Reason["message"].(string); ok {
		line("Why", Plain(message, maxShownWords))
	}
	if f := r.Facts; f != nil {
		effect := "it may change things"
		if f.ReadOnly.Value {
			effect = "it only reads"
		}
		if f.Destructive.Value {
			effect = "it may remove or replace what is there"
		}
		line("Risk", f.Risk.Value+"; "+effect+" ("+string(f.ReadOnly.Origin)+")")
	}
	if suggested := Suggested(r, d); suggested != "" {
		line("Suggested", suggested)
	}
	for _, t := range r.Targets[:min(len(r.Targets), maxShownTargets)] {
		t.Twins()
		line("Aimed at", Aim(&t))
	}
	if more := len(r.Targets) - maxShownTargets; more > 0 {
		line("Aimed at", fmt.Sprintf("%d more", more))
	}
	if r.CWD != "" {
		line("Runs in", Plain(r.CWD, maxShownTarget))
	}
	if len(r.Env) > 0 {
		line("Gets of the environment", Plain(strings.Join(r.Env, " "), maxShownWords))
	}
	if !whole {
		line("All arguments", Plain(string(arguments), maxShownArguments))
	}
	switch does := quoted(r.Tool.Description, maxShownDoes); {
	case r.Tool.Description == "":
	case r.Tool.Name.Source() == tool.SourceMCP:
		line("The server's own words, which nobody has checked", does)
	default:
		line("What it does", does)
	}
	if c := Remembered(d); c != "" {
		line("An answer that is remembered covers", c)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shortened is masked arguments on one short line: those that lead to targets first, then the others, each of them cut. whole
// reports whether nothing is missing.
func shortened(arguments json.RawMessage, targets []target.Target) (brief string, whole bool) {
	aimed := func(name string) bool {
		return slices.ContainsFunc(targets, func(t target.Target) bool {
			first, _, _ := strings.Cut(strings.TrimPrefix(t.Argument, "/"), "/")
			return strings.NewReplacer("~1", "/", "~0", "~").Replace(first) == name
		})
	}
	var aims, others []string
	whole = true
	_ = rawjson.Members(arguments, func(m rawjson.Member) bool {
		list, limit := &others, maxBriefValue
		if aimed(m.Name()) {
			list, limit = &aims, maxBriefAim
		}
		part := briefName(m.Name()) + ": " + briefValue(m.Value, limit)
		whole = whole && !strings.Contains(part, cutMark)
		*list = append(*list, part)
		return true
	})
	all := append(aims, others...)
	if len(all) == 0 {
		return "none", true
	}
	brief = all[0]
	for i, part := range all[1:] {
		if len(brief)+len(part) > maxBrief {
			return brief + fmt.Sprintf(" … (%d more, see below)", len(all)-1-i), false
		}
		brief += ", " + part
	}
	return brief, whole
}

// briefName is the name of an argument: between quotes where it holds more than names usually do.
func briefName(name string) string {
	odd := strings.ContainsFunc(name, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' && c != '-'
	})
	if odd || name == "" || len(name) > maxBriefValue {
		return quoted(name, maxBriefValue)
	}
	return name
}

// briefValue is the value of an argument. A text is read first, so that its escapes hide nothing.
func briefValue(value []byte, limit int) string {
	if text, ok := rawjson.String(value); ok {
		return quoted(text, limit)
	}
	return Plain(string(value), limit)
}

// Does is what a tool does, in the words of its origin: one line between quotes, cut; "" where that says nothing.
func Does(t *tool.Tool) string {
	if t.Description == "" {
		return ""
	}
	return quoted(t.Description, maxShownWords)
}

// Name is the name of a tool for people: between quotes where it holds more than names usually do, because the server has
// chosen it.
func Name(name tool.Name) string {
	odd := strings.ContainsFunc(string(name), func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("._-/", c)
	})
	if !odd && len(name) <= maxShownWords {
		return string(name)
	}
	return quoted(string(name), maxShownWords)
}

// Aim is one target for people.
func Aim(t *target.Target) string {
	text := string(t.Kind) + " " + quoted(target.Masked(t.Resolved, t.Kind == target.Command), maxShownTarget)
	if t.Write {
		text += " (may write)"
	}
	if t.Has(target.CaseTwin) || t.Has(target.UnicodeTwin) {
		text += " (is not there; a name is that looks almost the same)"
	}
	if t.Fault != "" {
		text += " (" + Plain(t.Fault, maxShownTarget) + ")"
	}
	return text
}

// Remembered is what an answer to the question of d covers where it is remembered, for people; "" where none is.
func Remembered(d *tool.PermissionDecision) string {
	for _, suggested := range d.SuggestedUpdates {
		if s, ok := suggested.(policy.SuggestedGrant); ok && s.Choice == policy.AllowSession {
			return Covers(&s)
		}
	}
	return ""
}

// Covers is what an answer that is remembered as s holds for, for people.
func Covers(s *policy.SuggestedGrant) string {
	switch {
	case s.Exact != "":
		return "this tool with exactly these arguments"
	case len(s.Targets) == 0:
		return "this tool, which is aimed at nothing outside"
	}
	var parts []string
	for _, scope := range s.Targets[:min(len(s.Targets), maxShownTargets)] {
		part := string(scope.Kind)
		switch scope.Kind {
		case target.Path:
			part += " " + quoted(target.Masked(scope.Under, false), maxShownTarget) + " and what is beneath it"
		case target.URL:
			part += " on host " + quoted(scope.Host, maxShownTarget)
		case target.Command:
			part += " " + quoted(scope.Executable, maxShownTarget)
			if scope.As != "" {
				part += ", called " + quoted(scope.As, maxShownTarget) + ","
			}
			part += " in " + quoted(scope.CWD, maxShownTarget)
		case target.Resource:
			part += " " + quoted(target.Masked(scope.Resource, false), maxShownTarget)
		}
		parts = append(parts, part)
	}
	if more := len(s.Targets) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return "this tool, aimed at " + strings.Join(parts, "; ")
}

// quoted is one line of a stranger's text between quotes, which it cannot end itself.
func quoted(text string, limit int) string {
	return `"` + Plain(strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(text), limit) + `"`
}

// cutMark ends a text that was cut.
const cutMark = " bytes more)"

// Plain is one line of a stranger's text, cut after limit bytes: what does not print, and what would change the direction of
// the line, stands as its code point.
func Plain(text string, limit int) string {
	var b strings.Builder
	escaped := false // c belongs to the backslash before it
	for i, c := range text {
		if b.Len() >= limit && !escaped {
			fmt.Fprintf(&b, "… (%d"+cutMark, len(text)-i)
			break
		}
		escaped = c == '\\' && !escaped
		switch {
		case c == utf8.RuneError, c != ' ' && !unicode.IsPrint(c), isBlank(c):
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// isBlank reports whether c is a letter, mark or symbol that shows nothing.
func isBlank(c rune) bool {
	switch c {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0:
		return true
	}
	return unicode.Is(unicode.Variation_Selector, c)
}

// Form is the requestedSchema of an elicitation for one of the choices, in their order. It has nothing but that one choice,
// because there are clients that cannot submit an optional text that is empty; and it has no default, because there are
// clients that fill defaults in without showing them. revision is the client's: a list of words with titles is written
// differently from 2025-11-25 on.
func Form(choices []policy.Choice, revision string) json.RawMessage {
	titles := map[policy.Choice]string{policy.AllowOnce: "Allow once", policy.AllowSession: "Allow for this session",
		policy.AllowAlways: "Always allow in this scope", policy.DenyOnce: "Deny once", policy.DenyAlways: "Always deny in this scope"}
	answer := map[string]any{"type": "string", "title": "Answer"}
	names, options := make([]string, len(choices)), make([]map[string]string, len(choices))
	for i, c := range choices {
		names[i], options[i] = titles[c], map[string]string{"const": string(c), "title": titles[c]}
	}
	if revision >= "2025-11-25" {
		answer["oneOf"] = options
	} else {
		answer["enum"], answer["enumNames"] = choices, names
	}
	form, err := json.Marshal(map[string]any{"type": "object", "required": []string{"answer"}, "properties": map[string]any{"answer": answer}})
	if err != nil {
		return nil // cannot be: nothing in it but strings
	}
	return form
}

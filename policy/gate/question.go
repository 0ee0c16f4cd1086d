package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Bounds of what a person is shown, in bytes.
const (
	maxShownArguments = 2 << 10
	maxShownWords     = 300
	maxShownTarget    = 300
	maxShownTargets   = 10
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

// Mask returns the arguments as they may be shown: what the tool's facts call sensitive is replaced. Everything else stays
// as the caller wrote it, repeated keys among it.
func Mask(arguments json.RawMessage, sensitive []string) json.RawMessage {
	if len(sensitive) == 0 {
		return arguments
	}
	paths := make([][]string, len(sensitive))
	for i, p := range sensitive {
		paths[i] = strings.Split(strings.TrimPrefix(p, "/"), "/")
	}
	return mask(arguments, paths)
}

const masked = `"[masked]"`

func mask(value []byte, paths [][]string) []byte {
	if len(paths) == 0 {
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
	add := func(name string, v []byte) {
		rest, hit := below(name)
		if hit {
			out = append(out, masked...)
			return
		}
		out = append(out, mask(v, rest)...)
	}
	switch {
	case rawjson.IsObject(value):
		out = append(out, '{')
		_ = rawjson.Members(value, func(m rawjson.Member) bool {
			next()
			out = append(append(out, rawjson.Quote(m.Name())...), ':')
			add(m.Name(), m.Value)
			return true
		})
		return append(out, '}')
	case len(value) > 0 && value[0] == '[':
		out = append(out, '[')
		_ = rawjson.Elements(value, func(v []byte) bool {
			next()
			add("*", v)
			return true
		})
		return append(out, ']')
	}
	return value
}

// Message is the question of the decision d about r, in plain text. What the hub says stands at the beginning of a line;
// what a stranger wrote stands in one line behind it, quoted, cut, and with everything invisible made visible, so that none
// of it can be taken for the hub's words.
func Message(r *policy.Request, d *tool.PermissionDecision) string {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "%s: %s\n", label, text) }
	b.WriteString("mcp-toolhub asks: may this call run?\n")
	line("Tool", Plain(string(r.Tool.Name), maxShownWords))
	line("Server", Plain(r.Tool.Server, maxShownWords))
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
	if message, ok := d.Reason["message"].(string); ok {
		line("Why you are asked", Plain(message, maxShownWords))
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
	var sensitive []string
	if r.Facts != nil {
		sensitive = r.Facts.Sensitive
	}
	line("Arguments", Plain(string(Mask(r.Input, sensitive)), maxShownArguments))
	if client := r.Actor.Client.Name; client != "" {
		line("Asked for by", Plain(r.Actor.Ref(), maxShownWords)+", a program that calls itself "+quoted(client))
	}
	if r.Tool.Description != "" {
		line("The server's own words, which nobody has checked", quoted(r.Tool.Description))
	}
	for _, suggested := range d.SuggestedUpdates {
		if s, ok := suggested.(policy.SuggestedGrant); ok && s.Choice == policy.AllowSession {
			line("An answer that is remembered covers", covers(&s))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Aim is one target for people.
func Aim(t *target.Target) string {
	text := string(t.Kind) + " " + Plain(t.Resolved, maxShownTarget)
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

func covers(s *policy.SuggestedGrant) string {
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
			part += " " + Plain(scope.Under, maxShownTarget) + " and what is beneath it"
		case target.URL:
			part += " on host " + Plain(scope.Host, maxShownTarget)
		case target.Command:
			part += " " + Plain(scope.Executable, maxShownTarget) + " in " + Plain(scope.CWD, maxShownTarget)
		case target.Resource:
			part += " " + Plain(scope.Resource, maxShownTarget)
		}
		parts = append(parts, part)
	}
	if more := len(s.Targets) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return "this tool, aimed at " + strings.Join(parts, "; ")
}

func quoted(text string) string {
	return `"` + strings.ReplaceAll(Plain(text, maxShownWords), `"`, `\"`) + `"`
}

// Plain is one line of a stranger's text, cut after limit bytes: what does not print, and what would change the direction of
// the line, stands as its code point.
func Plain(text string, limit int) string {
	var b strings.Builder
	for i, c := range text {
		if b.Len() >= limit {
			fmt.Fprintf(&b, "… (%d bytes more)", len(text)-i)
			break
		}
		switch {
		case c == utf8.RuneError, c != ' ' && !unicode.IsPrint(c):
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// Form is the requestedSchema of an elicitation for one of the choices. revision is the client's: a list of words with
// titles is written differently from 2025-11-25 on.
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
	form, err := json.Marshal(map[string]any{"type": "object", "required": []string{"answer"}, "properties": map[string]any{
		"answer":  answer,
		"message": map[string]any{"type": "string", "title": "A sentence to the model (optional)", "maxLength": 1000}}})
	if err != nil {
		return nil // cannot be: nothing in it but strings
	}
	return form
}

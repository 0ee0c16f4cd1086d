package gate

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/sensitive"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Mask replaces the secrets in the arguments of a call, for people who are asked about it: all that package sensitive finds, and what
// MaskNamed replaces.
func Mask(arguments json.RawMessage, f *facts.Facts) json.RawMessage {
	var at []string
	if f != nil {
		at = f.Sensitive
	}
	arguments, _ = sensitive.New(nil).Learn(arguments, at...)
	return MaskNamed(arguments, f)
}

// maskText replaces the secrets in a text for people.
func maskText(text string) string {
	text, _ = sensitive.New(nil).Text(text)
	return text
}

// MaskNamed replaces what the tool's facts and the names of arguments call secret: arguments that f calls sensitive, undeclared ones
// that are named like a secret, and secrets in addresses. Everything else stays as the caller wrote it, repeated keys too, but for white
// space, and arguments without a secret are returned unchanged. With nil facts all arguments are undeclared.
func MaskNamed(arguments json.RawMessage, f *facts.Facts) json.RawMessage {
	m := masking{command: f == nil || runs(f), addressed: bytes.ContainsAny(arguments, `@=\`)}
	if f != nil {
		m.schema, _ = rawjson.Get(f.Schema(), "properties")
		for _, p := range f.Sensitive {
			m.sensitive = append(m.sensitive, strings.Split(strings.TrimPrefix(p, "/"), "/"))
		}
	}
	if len(m.sensitive) == 0 && !m.holds(arguments, true) {
		return arguments
	}
	return m.mask(arguments, m.sensitive, true)
}

const masked = `"` + target.Mask + `"`

// masking is one Mask.
type masking struct {
	sensitive [][]string // steps of pointers
	schema    []byte     // the properties of the schema
	addressed bool       // there may be addresses with secrets
	command   bool       // any text may be a command
}

// runs reports whether arguments of the tool may be commands or programs.
func runs(f *facts.Facts) bool {
	return f.Command.Value || slices.ContainsFunc(f.Arguments, func(a facts.Argument) bool {
		return a.Kind == facts.ArgumentCommand || a.Kind == facts.ArgumentCode
	})
}

// secret reports whether a member holds a secret by its name that the facts do not know. The facts know the properties of the
// schema's top level; deeper members may be unknown to them.
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

// holds reports whether value holds such a member anywhere, or an address with a secret, as a key, too.
func (m *masking) holds(value []byte, top bool) (found bool) {
	if !rawjson.IsObject(value) {
		if m.addressed && len(value) > 0 && value[0] == '"' {
			text, _ := rawjson.String(value)
			return target.Masked(text, m.command) != text
		}
		_ = rawjson.Elements(value, func(v []byte) bool {
			found = m.holds(v, false)
			return !found
		})
		return found
	}
	_ = rawjson.Members(value, func(member rawjson.Member) bool {
		if member.IsPlain() && !m.addressed {
			found = m.secret(string(member.Key), top) // the usual case, which allocates nothing
		} else {
			name := member.Name()
			found = m.secret(name, top) || target.Masked(name, m.command) != name
		}
		found = found || m.holds(member.Value, false)
		return !found
	})
	return found
}

// mask replaces the secrets in value. paths are the sensitive ones of the facts that lead through value.
func (m *masking) mask(value []byte, paths [][]string, top bool) []byte {
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
			if text, _ := rawjson.String(v); !sensitive.IsMark(text) {
				v = []byte(masked)
			}
			out = append(out, v...)
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
	case len(value) > 0 && value[0] == '"':
		text, _ := rawjson.String(value)
		if shown := target.Masked(text, m.command); shown != text {
			return rawjson.Quote(shown)
		}
	}
	return value
}

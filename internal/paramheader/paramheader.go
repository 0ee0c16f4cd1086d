// Package paramheader repeats arguments of a tools/call in HTTP headers. On protocol 2026-07-28 a
// property of a tool's input schema with the keyword x-mcp-header is repeated in Mcp-Param-NAME, so
// that gateways can route by it. The package serves both sides: it makes such headers and checks
// them.
package paramheader

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Keyword marks a property whose argument is repeated in a header.
const Keyword = "x-mcp-header"

// Prefix begins the names of such headers.
const Prefix = "Mcp-Param-"

// Binding says which argument is repeated in which header.
type Binding struct {
	Path   []string // of property names, from the arguments object down
	Header string   // without Prefix
}

// maxDepth bounds how deep properties are searched.
const maxDepth = 16

// Of returns the bindings of an input schema.
func Of(schema json.RawMessage) (all []Binding) {
	if !bytes.Contains(schema, []byte(Keyword)) {
		return nil
	}
	Each(schema, nil, func(path []string, _, keyword json.RawMessage) {
		if header, ok := rawjson.String(keyword); ok && IsToken(header) {
			all = append(all, Binding{Path: path, Header: header})
		}
	})
	return all
}

// Each calls visit for each property that has the keyword, with its path. The schema stands at the
// path at. Properties of properties count, too, down to maxDepth.
func Each(schema json.RawMessage, at []string, visit func(path []string, property, keyword json.RawMessage)) {
	properties, ok := rawjson.Get(schema, "properties")
	if !ok || len(at) >= maxDepth {
		return
	}
	_ = rawjson.Members(properties, func(m rawjson.Member) bool {
		if !rawjson.IsObject(m.Value) {
			return true
		}
		path := append(at[:len(at):len(at)], m.Name())
		if keyword, ok := rawjson.Get(m.Value, Keyword); ok {
			visit(path, m.Value, keyword)
		}
		Each(m.Value, path, visit)
		return true
	})
}

// Headers returns the headers of a call with these arguments, with their full names.
func Headers(bindings []Binding, arguments json.RawMessage) map[string]string {
	if len(bindings) == 0 {
		return nil
	}
	out := make(map[string]string, len(bindings))
	for _, b := range bindings {
		value, ok := b.argument(arguments)
		if text, can := valueText(value); ok && can {
			out[Prefix+b.Header] = Encode(text)
		}
	}
	return out
}

func (b Binding) argument(arguments json.RawMessage) ([]byte, bool) {
	value, ok := []byte(arguments), true
	for _, name := range b.Path {
		if value, ok = rawjson.Get(value, name); !ok {
			return nil, false
		}
	}
	return value, !rawjson.IsNull(value)
}

// Mismatch says where the headers of a call differ from its arguments; "" where they agree.
func Mismatch(bindings []Binding, arguments json.RawMessage, h http.Header) string {
	for _, b := range bindings {
		name, parameter := Prefix+b.Header, strings.Join(b.Path, ".")
		given := h.Values(name)
		value, has := b.argument(arguments)
		text, can := valueText(value)
		switch {
		case len(given) > 1:
			return "header " + name + " occurs twice"
		case !has && len(given) == 1:
			return fmt.Sprintf("header %s stands for parameter %q, which the body does not have", name, parameter)
		case has && can && len(given) == 0:
			return fmt.Sprintf("header %s is missing, which repeats parameter %q", name, parameter)
		case has && !can && len(given) == 1:
			return fmt.Sprintf("header %s stands for parameter %q, which is no string, boolean or integer in the body",
				name, parameter)
		case has && can && !same(given[0], text, value):
			return fmt.Sprintf("header %s does not match parameter %q of the body", name, parameter)
		}
	}
	return ""
}

// same reports whether a header's value stands for an argument. Integers are the same where their values are.
func same(header, text string, value []byte) bool {
	decoded, ok := Decode(header)
	if !ok {
		return false
	}
	if value[0] == '"' || decoded == text {
		return decoded == text
	}
	other, ok := integer(decoded)
	return ok && strconv.FormatInt(other, 10) == text
}

// valueText returns the text of a string, boolean or integer: no other value may travel as a header.
func valueText(value []byte) (string, bool) {
	if text, ok := rawjson.String(value); ok {
		return text, true
	}
	if s := string(value); s == "true" || s == "false" {
		return s, true
	}
	n, ok := integer(string(value))
	return strconv.FormatInt(n, 10), ok
}

// integer reads a number that every receiver reads alike.
func integer(text string) (int64, bool) {
	const maxSafe = 1<<53 - 1
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > maxSafe {
		return 0, false
	}
	return int64(n), true
}

const before, after = "=?base64?", "?="

// Encode returns text as a header can hold it: as it is where it is printable ASCII without outer
// blanks, otherwise in the protocol's base64 form.
func Encode(text string) string {
	plain := text == strings.Trim(text, " \t") && !(strings.HasPrefix(text, before) && strings.HasSuffix(text, after))
	for i := 0; plain && i < len(text); i++ {
		plain = text[i] >= 0x20 && text[i] <= 0x7e
	}
	if plain {
		return text
	}
	return before + base64.StdEncoding.EncodeToString([]byte(text)) + after
}

// Decode undoes Encode. ok is false for a base64 form that is none.
func Decode(header string) (text string, ok bool) {
	inner, ok := strings.CutPrefix(header, before)
	if !ok {
		return header, true
	}
	if inner, ok = strings.CutSuffix(inner, after); !ok {
		return header, true
	}
	decoded, err := base64.StdEncoding.DecodeString(inner)
	return string(decoded), err == nil
}

// IsToken reports whether name can be a header's name, or part of one: RFC 9110's token.
func IsToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		switch {
		case '0' <= r && r <= '9', 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z':
			return false
		}
		return r == 0 || r >= 0x80 || !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

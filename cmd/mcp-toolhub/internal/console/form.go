package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// field is an argument in a form that is a text, a number, or one of a few values. Its texts are the server's.
type field struct {
	ID          string // of the element on the page
	Name        string // of the value in the form
	Label       string
	Description string
	Kind        kind
	Hint        string // how to write the value; "" where that is plain
	Choices     []choice
	Required    bool
	Value       string

	key string // in the object
}

// kind says how a field is filled in.
type kind string

const (
	kindText   kind = "text"
	kindSecret kind = "secret" // a text that the page never shows
	kindNumber kind = "number"
	kindChoice kind = "choice"
)

// choice is one of the values that an argument may have.
type choice struct{ Value, Label string } // Value is JSON

// Rows counts the lines that the field has at first.
func (f field) Rows() int { return min(1+strings.Count(f.Value, "\n"), 8) }

// Bounds of a form. What it does not have is written as JSON.
const (
	maxFields  = 60
	maxChoices = 100
	maxSteps   = 8 // from a schema to the one that it stands for
)

// shape holds the parts of a schema that the form understands. Everything else is left to the check of the call.
type shape struct {
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Default     json.RawMessage   `json:"default"`
	Format      string            `json:"format"`
	WriteOnly   bool              `json:"writeOnly"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	AnyOf       []json.RawMessage `json:"anyOf"`
}

// shapeOf reads a schema within root: the one that it stands for, where it refers to one, or is another one or null.
func shapeOf(root, schema json.RawMessage) (s shape) {
	if json.Unmarshal(schema, &s) != nil {
		return shape{}
	}
	for range maxSteps {
		others := slices.DeleteFunc(slices.Clone(s.AnyOf),
			func(one json.RawMessage) bool { return rawjson.Text(one, "type") == "null" })
		next := json.RawMessage(nil)
		if steps, ok := strings.CutPrefix(s.Ref, "#/"); ok {
			next = root
			for step := range strings.SplitSeq(steps, "/") {
				next, _ = rawjson.Get(next, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
			}
		} else if len(others) == 1 && s.Type == nil {
			next = others[0]
		}
		var to shape
		if next == nil || json.Unmarshal(next, &to) != nil {
			break
		}
		to.Title, to.Description = cmp.Or(s.Title, to.Title), cmp.Or(s.Description, to.Description)
		if s.Default != nil {
			to.Default = s.Default
		}
		s = to
	}
	return s
}

// single is the one type that values have besides null; "" where they may have several.
func (s shape) single() string {
	types, several := s.Type.([]any)
	if !several {
		types = []any{s.Type}
	}
	types = slices.DeleteFunc(slices.Clone(types), func(t any) bool { return t == "null" })
	if len(types) != 1 {
		return ""
	}
	one, _ := types[0].(string)
	return one
}

// unquoted is a value as people write it: a text without quotes, where nobody can take it for another value.
func unquoted(value json.RawMessage) string {
	if text, ok := rawjson.String(value); ok && text != "" && !json.Valid([]byte(text)) {
		return text
	}
	return string(value)
}

// fieldsOf makes the fields of the arguments that a tool's schema names, with the values given, or
// with their defaults. rest are the names of arguments that have no field: they are written as
// JSON.
func fieldsOf(t *Tool, given url.Values) (fields []field, rest []string) {
	object := shapeOf(t.InputSchema, t.InputSchema)
	_ = rawjson.Members(object.Properties, func(p rawjson.Member) bool {
		s, name := shapeOf(t.InputSchema, p.Value), p.Name()
		f := field{key: name, ID: "f" + strconv.Itoa(len(fields)+1), Name: "argument." + name, Label: name,
			Description: s.Description, Required: slices.Contains(object.Required, name)}
		if s.Title != "" && s.Title != name {
			f.Label = s.Title + " (" + name + ")"
		}
		secret := slices.Contains(t.Secret, "/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
		switch f.choose(s, secret); {
		case f.Kind == "" || len(fields) == maxFields:
			rest = append(rest, name)
			return len(rest) < maxFields
		case given != nil:
			f.Value = given.Get(f.Name)
		case f.Kind == kindSecret || rawjson.IsNull(s.Default):
		case f.Kind == kindText:
			f.Value, _ = rawjson.String(s.Default)
		default:
			f.Value = string(compacted(s.Default))
		}
		fields = append(fields, f)
		return true
	})
	return fields, rest
}

// choose says how the field is filled in. It leaves the kind of what is no field empty.
func (f *field) choose(s shape, secret bool) {
	values, kind := s.Enum, s.single()
	if kind == "boolean" {
		values = []json.RawMessage{[]byte("true"), []byte("false")}
	}
	switch {
	case len(values) > 0 && len(values) <= maxChoices:
		f.Kind = kindChoice
		for _, v := range values {
			f.Choices = append(f.Choices, choice{string(compacted(v)), unquoted(v)})
		}
	case kind == "string" && (secret || s.WriteOnly || s.Format == "password"):
		f.Kind = kindSecret
	case kind == "string":
		f.Kind = kindText
		f.Hint = map[string]string{"date-time": "such as 2026-01-31T12:00:00Z", "date": "such as 2026-01-31",
			"email": "an e-mail address", "uri": "an address with https:// or the like"}[s.Format]
	case kind == "number":
		f.Kind = kindNumber
	case kind == "integer":
		f.Kind, f.Hint = kindNumber, "a whole number"
	}
}

// value is the JSON value that stands in the field; nil where it is empty, unless it is a text that the tool requires.
func (f *field) value() (json.RawMessage, error) {
	text := strings.ReplaceAll(f.Value, "\r\n", "\n")
	if f.Kind == kindText || f.Kind == kindSecret {
		if text == "" && !f.Required {
			return nil, nil
		}
		return rawjson.Quote(text), nil
	}
	switch text = strings.TrimSpace(text); {
	case text == "":
		return nil, nil
	case json.Valid([]byte(text)):
		return []byte(text), nil
	case f.Kind == kindNumber:
		return nil, fmt.Errorf("%q is no number", f.key)
	}
	return nil, fmt.Errorf("%q has none of its values", f.key)
}

// argumentsOf puts a call's arguments together from a form: those of the fields, and the members of
// the JSON object, which count where both have one.
func argumentsOf(t *Tool, form url.Values) (json.RawMessage, error) {
	box := []byte(strings.TrimSpace(form.Get("json")))
	if len(box) == 0 {
		box = []byte("{}")
	}
	if !json.Valid(box) || box[0] != '{' {
		return nil, errors.New("the further arguments are no JSON object: write one, or leave that field empty")
	}
	if form == nil {
		form = url.Values{}
	}
	object := []byte("{")
	fields, _ := fieldsOf(t, form)
	for _, f := range fields {
		value, err := f.value()
		if err != nil {
			return nil, err
		}
		if _, given := rawjson.Get(box, f.key); value != nil && !given {
			name := rawjson.Quote(f.key)
			object = rawjson.AppendMember(object, string(name[1:len(name)-1]), value)
		}
	}
	_ = rawjson.Members(box, func(m rawjson.Member) bool {
		object = rawjson.AppendMember(object, string(m.Key), m.Value)
		return true
	})
	return append(object, '}'), nil
}

// compacted is JSON without white space.
func compacted(text []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

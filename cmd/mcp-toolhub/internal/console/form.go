package console

import (
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
	Label       string // the argument's name
	Description string
	Kind        kind
	Choices     []json.RawMessage
	Required    bool
	Value       string
}

// kind says how a field is filled in.
type kind string

const (
	kindText   kind = "text"
	kindSecret kind = "secret" // a text that the page never shows
	kindNumber kind = "number"
	kindChoice kind = "choice"
)

// Rows counts the lines that the field has at first.
func (f field) Rows() int { return min(1+strings.Count(f.Value, "\n"), 8) }

// Bounds of a form. An argument without a field is written as JSON.
const (
	maxFields  = 60
	maxChoices = 100
)

// property holds the parts of a property's schema that the form understands. Everything else is left
// to the check of the call.
type property struct {
	Type        string            `json:"type"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Format      string            `json:"format"`
	WriteOnly   bool              `json:"writeOnly"`
}

// fieldsOf makes the fields of the arguments that a tool's schema names, with the values given. rest
// are the names of arguments that have no field: they are written as JSON.
func fieldsOf(t *Tool, given url.Values) (fields []field, rest []string) {
	var object struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if json.Unmarshal(t.InputSchema, &object) != nil {
		return nil, nil
	}
	_ = rawjson.Members(object.Properties, func(m rawjson.Member) bool {
		var p property
		name := m.Name()
		f := field{ID: "f" + strconv.Itoa(len(fields)+1), Name: "argument." + name, Label: name,
			Required: slices.Contains(object.Required, name), Value: given.Get("argument." + name)}
		if json.Unmarshal(m.Value, &p) == nil {
			secret := slices.Contains(t.Secret, "/"+rawjson.PointerToken(name))
			f.Description, f.Choices, f.Kind = p.Description, p.choices(), p.kind(secret)
		}
		if f.Kind == "" || len(fields) == maxFields {
			rest = append(rest, name)
			return len(rest) < maxFields
		}
		fields = append(fields, f)
		return true
	})
	return fields, rest
}

// choices are the values of a property that has a few.
func (p *property) choices() []json.RawMessage {
	if p.Type == "boolean" {
		return []json.RawMessage{[]byte("true"), []byte("false")}
	}
	return p.Enum
}

// kind says how the property is filled in: "" for one that is no field.
func (p *property) kind(secret bool) kind {
	switch n := len(p.choices()); {
	case n > 0 && n <= maxChoices:
		return kindChoice
	case p.Type == "string" && (secret || p.WriteOnly || p.Format == "password"):
		return kindSecret
	case p.Type == "string":
		return kindText
	case p.Type == "number", p.Type == "integer":
		return kindNumber
	}
	return ""
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
		return nil, fmt.Errorf("%q is no number", f.Label)
	}
	return nil, fmt.Errorf("%q has none of its values", f.Label)
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
	object := []byte("{")
	fields, _ := fieldsOf(t, form)
	for _, f := range fields {
		value, err := f.value()
		if err != nil {
			return nil, err
		}
		if _, given := rawjson.Get(box, f.Label); value != nil && !given {
			name := rawjson.Quote(f.Label)
			object = rawjson.AppendMember(object, string(name[1:len(name)-1]), value)
		}
	}
	_ = rawjson.Members(box, func(m rawjson.Member) bool {
		object = rawjson.AppendMember(object, string(m.Key), m.Value)
		return true
	})
	return append(object, '}'), nil
}

package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// field is one argument in a form. Its texts are the server's.
type field struct {
	Name, Label, Description string
	Kind                     string   // text, secret, number, choice or json
	Choices                  []string // JSON values
	Required                 bool
	Value                    string
}

// Bounds of a form. What it does not have is written as JSON.
const (
	maxFields  = 60
	maxChoices = 100
)

// fieldName is the name in the form of an argument's field.
func fieldName(argument string) string { return "argument." + argument }

// fieldsOf makes the fields of the arguments that a schema names, with the values given. Every other schema has none.
func fieldsOf(schema json.RawMessage, given url.Values) (fields []field) {
	properties, _ := rawjson.Get(schema, "properties")
	var required []string
	if all, ok := rawjson.Get(schema, "required"); ok {
		_ = json.Unmarshal(all, &required)
	}
	_ = rawjson.Members(properties, func(m rawjson.Member) bool {
		f := fieldOf(m.Name(), m.Value)
		f.Required = slices.Contains(required, m.Name())
		if given != nil {
			f.Value = given.Get(fieldName(f.Name))
		}
		fields = append(fields, f)
		return len(fields) < maxFields
	})
	return fields
}

// fieldOf makes the field of one argument.
func fieldOf(name string, schema []byte) field {
	var s struct {
		Type        any               `json:"type"`
		Title       string            `json:"title"`
		Description string            `json:"description"`
		Enum        []json.RawMessage `json:"enum"`
		Default     json.RawMessage   `json:"default"`
		Format      string            `json:"format"`
		WriteOnly   bool              `json:"writeOnly"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return field{Name: name, Label: name, Kind: "json"}
	}
	f := field{Name: name, Label: name, Description: s.Description, Kind: "json", Value: string(s.Default)}
	if s.Title != "" && s.Title != name {
		f.Label = s.Title + " (" + name + ")"
	}
	switch {
	case len(s.Enum) > 0 && len(s.Enum) <= maxChoices:
		f.Kind = "choice"
		for _, value := range s.Enum {
			f.Choices = append(f.Choices, string(value))
		}
	case s.Type == "boolean":
		f.Kind, f.Choices = "choice", []string{"true", "false"}
	case s.Type == "string":
		f.Kind, f.Value = "text", ""
		_ = json.Unmarshal(s.Default, &f.Value)
		if s.WriteOnly || s.Format == "password" {
			f.Kind, f.Value = "secret", ""
		}
	case s.Type == "number" || s.Type == "integer":
		f.Kind = "number"
	}
	return f
}

// argumentsOf puts a call's arguments together from a form: those of the fields, or the JSON that is written in their place. A field
// that is empty is left out, unless it is a text that the tool requires.
func argumentsOf(schema json.RawMessage, form url.Values) (json.RawMessage, error) {
	if text := strings.TrimSpace(form.Get("json")); text != "" {
		if !json.Valid([]byte(text)) || text[0] != '{' {
			return nil, fmt.Errorf("the arguments are no JSON object: write one, or leave that field empty")
		}
		return json.RawMessage(text), nil
	}
	var out []byte
	for _, f := range fieldsOf(schema, form) {
		value := strings.ReplaceAll(f.Value, "\r\n", "\n")
		isText := f.Kind == "text" || f.Kind == "secret"
		if value == "" && !(f.Required && isText) {
			continue
		}
		if isText {
			value = string(rawjson.Quote(value))
		} else if !json.Valid([]byte(value)) {
			return nil, fmt.Errorf("%q is not JSON: write a number, true, false, a text in double quotes, a list or an object", f.Name)
		}
		out = append(append(append(append(out, ','), rawjson.Quote(f.Name)...), ':'), value...)
	}
	if out == nil {
		return json.RawMessage(`{}`), nil
	}
	out[0] = '{'
	return append(out, '}'), nil
}

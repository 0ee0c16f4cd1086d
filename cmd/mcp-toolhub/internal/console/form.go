package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// field is one argument in a form, or a member of one. Its texts are the server's.
type field struct {
	ID          string // of the element on the page
	Name        string // of the value in the form; of a member the names on the way to it, as in a JSON pointer
	Label       string
	Description string
	Kind        kind
	Hint        string   // how to write the value; "" where that is plain
	Choices     []choice // of a choice, and of the entries of a list
	Required    bool
	Value       string
	Fields      []field // of a group

	key    string // in the object
	quoted bool   // the entries of the list are texts
}

// kind says how a field is filled in.
type kind string

const (
	kindText   kind = "text"
	kindSecret kind = "secret" // a text that the page never shows
	kindNumber kind = "number"
	kindChoice kind = "choice"
	kindList   kind = "list" // an entry a line, or a JSON array
	kindJSON   kind = "json"
	kindGroup  kind = "group" // an object with fields of its own
)

// choice is one of the values that an argument may have.
type choice struct{ Value, Label string } // Value is JSON

// Rows counts the lines that the field has at first.
func (f field) Rows() int {
	least := map[kind]int{kindList: 2, kindJSON: 3}[f.Kind]
	return min(max(1, least, 1+strings.Count(f.Value, "\n")), 8)
}

// Bounds of a form. What it does not have is written as JSON.
const (
	maxFields  = 60
	maxChoices = 100
	maxDeep    = 4 // groups in groups
	maxSteps   = 8 // from a schema to the one that it stands for
	maxSample  = 300
)

// fieldName is the name in the form of an argument's field.
func fieldName(argument string) string {
	return "argument." + strings.NewReplacer("~", "~0", "/", "~1").Replace(argument)
}

// fieldsOf makes the fields of the arguments that a tool's schema names, with the values given. Every other schema has none.
func fieldsOf(t *Tool, given url.Values) []field {
	m := formMaker{root: t.InputSchema, secret: t.Secret, given: given}
	s, _ := m.shapeOf(t.InputSchema)
	return m.fields(s, "", s.Default, true, 0)
}

// sampleOf shows how a tool's arguments may look; "" where the schema does not say it.
func sampleOf(t *Tool) string {
	m := formMaker{root: t.InputSchema}
	s, _ := m.shapeOf(t.InputSchema)
	if text := m.samples(s); text != "{}" {
		return text
	}
	return ""
}

// formMaker makes the fields of one form.
type formMaker struct {
	root   json.RawMessage
	secret []string   // JSON pointers of arguments
	given  url.Values // nil: the schema's defaults stand there
	made   int
}

// pointer is the JSON pointer of the argument.
func (f field) pointer() string { return "/" + strings.TrimPrefix(f.Name, "argument.") }

// shape holds the parts of a schema that the form understands. Everything else is left to the check of the call.
type shape struct {
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Const       json.RawMessage   `json:"const"`
	Default     json.RawMessage   `json:"default"`
	Examples    []json.RawMessage `json:"examples"`
	Format      string            `json:"format"`
	WriteOnly   bool              `json:"writeOnly"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	Items       json.RawMessage   `json:"items"`
	AllOf       []json.RawMessage `json:"allOf"`
	AnyOf       []json.RawMessage `json:"anyOf"`
	OneOf       []json.RawMessage `json:"oneOf"`
}

// shapeOf reads a schema: the one that it stands for, where it refers to one, or is another one or null. ok is false for what is none.
func (m *formMaker) shapeOf(schema json.RawMessage) (s shape, ok bool) {
	ok = json.Unmarshal(schema, &s) == nil
	for range maxSteps {
		var next json.RawMessage
		switch others := s.alternatives(); {
		case strings.HasPrefix(s.Ref, "#"):
			next = m.at(s.Ref[1:])
		case len(s.AllOf) == 1 && s.Type == nil:
			next = s.AllOf[0]
		case len(others) == 1 && s.Type == nil:
			next = others[0]
		}
		var to shape
		if next == nil || json.Unmarshal(next, &to) != nil {
			break
		}
		if s.Title != "" {
			to.Title = s.Title
		}
		if s.Description != "" {
			to.Description = s.Description
		}
		if s.Default != nil {
			to.Default = s.Default
		}
		s = to
	}
	return s, ok
}

// at is the schema at a pointer of the whole one; nil for none.
func (m *formMaker) at(pointer string) json.RawMessage {
	at := m.root
	for i, step := range strings.Split(pointer, "/") {
		if i == 0 {
			continue
		}
		at, _ = rawjson.Get(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
	}
	return at
}

// alternatives are the schemas of which the value fits one, but for null.
func (s shape) alternatives() (all []json.RawMessage) {
	for _, one := range append(slices.Clone(s.OneOf), s.AnyOf...) {
		if rawjson.Text(one, "type") != "null" {
			all = append(all, one)
		}
	}
	return all
}

// single is the one type that values have besides null; "" where they may have several.
func (s shape) single() string {
	one := ""
	switch t := s.Type.(type) {
	case string:
		one = t
	case []any:
		for _, each := range t {
			name, _ := each.(string)
			if one != "" && name != "null" {
				return ""
			}
			if name != "null" {
				one = name
			}
		}
	}
	return one
}

// choices are the values of a schema that names them all.
func (s shape) choices() (all []choice) {
	values := s.Enum
	if s.Const != nil {
		values = []json.RawMessage{s.Const}
	}
	if s.single() == "boolean" {
		values = []json.RawMessage{[]byte("true"), []byte("false")}
	}
	for _, v := range values {
		all = append(all, choice{string(compacted(v)), unquoted(v)})
	}
	if values == nil {
		for _, one := range s.alternatives() {
			var c shape
			if json.Unmarshal(one, &c) != nil || c.Const == nil {
				return nil
			}
			label := unquoted(c.Const)
			if c.Title != "" && c.Title != label {
				label = c.Title + " (" + label + ")"
			}
			all = append(all, choice{string(compacted(c.Const)), label})
		}
	}
	if len(all) > maxChoices {
		return nil
	}
	return all
}

// unquoted is a value as people write it: a text without quotes, where nobody can take it for another value.
func unquoted(value json.RawMessage) string {
	if text, ok := rawjson.String(value); ok && text != "" && !json.Valid([]byte(text)) {
		return text
	}
	return string(value)
}

// fields makes the fields of an object's members. sent says that the object is sent whatever stands in them.
func (m *formMaker) fields(object shape, path string, preset json.RawMessage, sent bool, deep int) (all []field) {
	_ = rawjson.Members(object.Properties, func(p rawjson.Member) bool {
		name := p.Name()
		f := field{key: name, Name: fieldName(name), Required: slices.Contains(object.Required, name)}
		if path != "" {
			f.Name = path + "/" + strings.TrimPrefix(f.Name, "argument.")
		}
		value, _ := rawjson.Get(preset, name)
		m.fill(&f, p.Value, value, sent, deep)
		all = append(all, f)
		return m.made < maxFields
	})
	return all
}

// fill makes a field of a schema. preset is its value in the default of what it is a member of.
func (m *formMaker) fill(f *field, schema, preset json.RawMessage, sent bool, deep int) {
	m.made++
	f.ID = "f" + strconv.Itoa(m.made)
	s, ok := m.shapeOf(schema)
	if !ok {
		s = shape{}
	}
	if f.Label, f.Description = f.key, s.Description; s.Title != "" && s.Title != f.key {
		f.Label = s.Title + " (" + f.key + ")"
	}
	if preset == nil {
		preset = s.Default
	}
	m.choose(f, s)
	if f.Kind == kindGroup {
		if deep < maxDeep {
			f.Fields = m.fields(s, f.Name, preset, sent && (f.Required || preset != nil), deep+1)
			return
		}
		f.Kind, f.Hint = kindJSON, "JSON"
	}
	switch {
	case m.given != nil:
		f.Value = m.given.Get(f.Name)
	case preset == nil || rawjson.IsNull(preset) || f.Kind == kindSecret:
	case !sent: // what is left out has its default
		f.Hint = strings.TrimPrefix(f.Hint+"; left out, it is "+unquoted(preset), "; ")
	default:
		f.Value = f.show(preset)
	}
}

// choose says how the field is filled in.
func (m *formMaker) choose(f *field, s shape) {
	f.Kind = kindJSON
	kind := s.single()
	if f.Choices = s.choices(); len(f.Choices) > 0 {
		f.Kind = kindChoice
		return
	}
	switch {
	case kind == "string" && (s.WriteOnly || s.Format == "password" || slices.Contains(m.secret, f.pointer())):
		f.Kind = kindSecret
	case kind == "string":
		f.Kind = kindText
		f.Hint = map[string]string{"date-time": "such as 2026-01-31T12:00:00Z", "date": "such as 2026-01-31", "email": "an e-mail address",
			"uri": "an address with https:// or the like"}[s.Format]
	case kind == "number":
		f.Kind = kindNumber
	case kind == "integer":
		f.Kind, f.Hint = kindNumber, "a whole number"
	case len(s.alternatives()) == 0 && (kind == "object" || kind == "") && hasMembers(s.Properties):
		f.Kind = kindGroup
		return
	case kind == "array":
		items, ok := m.shapeOf(s.Items)
		f.Choices = items.choices()
		f.quoted = items.single() == "string"
		if of := items.single(); ok && (len(f.Choices) > 0 || slices.Contains([]string{"string", "number", "integer"}, of)) {
			f.Kind, f.Hint = kindList, "one a line"
			for i, c := range f.Choices {
				f.Hint += map[bool]string{true: ": ", false: ", "}[i == 0] + c.Label
			}
			return
		}
	}
	if f.Kind == kindJSON {
		f.Hint = "JSON"
		if text := m.samples(s); text != "" {
			f.Hint += ", such as " + text
		}
	}
}

// samples shows how a value may look, in each of the ways that there are; "" where that is not known, or too long.
func (m *formMaker) samples(s shape) string {
	texts := []string{string(m.sampleOf(s, 0))}
	if ways := s.alternatives(); len(ways) > 1 && len(s.Examples) == 0 {
		texts = nil
		for _, way := range ways {
			texts = append(texts, string(m.sample(way, 0)))
		}
	}
	text := strings.Join(slices.Compact(texts), " or ")
	if text == "null" || len(text) > maxSample {
		return ""
	}
	return text
}

// sample is a value that fits a schema more or less.
func (m *formMaker) sample(schema json.RawMessage, deep int) []byte {
	s, _ := m.shapeOf(schema)
	return m.sampleOf(s, deep)
}

func (m *formMaker) sampleOf(s shape, deep int) []byte {
	choices, kind := s.choices(), s.single()
	switch {
	case deep > maxDeep:
	case len(s.Examples) > 0:
		return s.Examples[0]
	case s.Default != nil && !rawjson.IsNull(s.Default):
		return s.Default
	case len(choices) > 0:
		return []byte(choices[0].Value)
	case kind == "string":
		return []byte(`"text"`)
	case kind == "number" || kind == "integer":
		return []byte("1")
	case kind == "array":
		if s.Items == nil {
			return []byte("[]")
		}
		return slices.Concat([]byte("["), m.sample(s.Items, deep+1), []byte("]"))
	case len(s.alternatives()) > 0:
		return m.sample(s.alternatives()[0], deep+1)
	case kind == "object" || s.Properties != nil:
		out := []byte("{")
		_ = rawjson.Members(s.Properties, func(p rawjson.Member) bool {
			if len(s.Required) == 0 || slices.Contains(s.Required, p.Name()) {
				out = rawjson.AppendMember(out, string(p.Key), m.sample(p.Value, deep+1))
			}
			return len(out) < maxSample
		})
		return append(out, '}')
	}
	return []byte("null")
}

// show is a JSON value as the field has it.
func (f *field) show(value json.RawMessage) string {
	switch f.Kind {
	case kindText:
		text, _ := rawjson.String(value)
		return text
	case kindList:
		var lines []string
		plain := rawjson.Elements(value, func(entry []byte) bool {
			lines = append(lines, f.entry(entry))
			return true
		}) == nil
		text := strings.Join(lines, "\n")
		if back, err := f.list(text); plain && err == nil && rawjson.Same(back, compacted(value)) {
			return text
		}
	case kindChoice:
		return string(compacted(value))
	}
	return string(value)
}

// entry is an entry of a list as a line.
func (f *field) entry(value []byte) string {
	if text, ok := rawjson.String(value); ok && f.quoted {
		return text
	}
	return unquoted(value)
}

// list is the JSON array of a list's lines.
func (f *field) list(text string) ([]byte, error) {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "[") && json.Valid([]byte(text)) {
		return []byte(text), nil
	}
	out := []byte("[")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		value := []byte(line)
		if at := slices.IndexFunc(f.Choices, func(c choice) bool { return c.Label == line }); at >= 0 {
			value = []byte(f.Choices[at].Value)
		} else if f.quoted {
			value = rawjson.Quote(line)
		} else if !json.Valid(value) {
			return nil, fmt.Errorf("%q of %q is none of the entries that it may have: write one a line, or a JSON array", line, f.key)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, value...)
	}
	return append(out, ']'), nil
}

// value is the JSON value that stands in the field; nil where it is empty.
func (f *field) value() (json.RawMessage, error) {
	text := strings.ReplaceAll(f.Value, "\r\n", "\n")
	switch f.Kind {
	case kindGroup:
		value, filled, err := objectOf(f.Fields)
		if !filled {
			value = nil
		}
		return value, err
	case kindText, kindSecret:
		if text == "" {
			return nil, nil
		}
		return rawjson.Quote(text), nil
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	switch {
	case f.Kind == kindList:
		return f.list(text)
	case json.Valid([]byte(text)):
		return []byte(text), nil
	case f.Kind == kindNumber:
		return nil, fmt.Errorf("%q is no number", f.key)
	}
	return nil, fmt.Errorf("%q is not JSON: write a number, true, false, a text in double quotes, a list or an object", f.key)
}

// empty returns the value of a required field that was left empty; nil where there is none.
func (f *field) empty() json.RawMessage {
	switch f.Kind {
	case kindText, kindSecret:
		return []byte(`""`)
	case kindList:
		return []byte("[]")
	case kindGroup:
		value, _, _ := objectOf(f.Fields)
		return value
	}
	return nil
}

// objectOf puts an object together. filled reports whether something stands in one of the fields.
func objectOf(fields []field) (object json.RawMessage, filled bool, err error) {
	object = []byte("{")
	for i := range fields {
		f := &fields[i]
		value, err := f.value()
		if err != nil {
			return nil, false, err
		}
		filled = filled || value != nil
		if value == nil && f.Required {
			value = f.empty()
		}
		if value != nil {
			name := rawjson.Quote(f.key)
			object = rawjson.AppendMember(object, string(name[1:len(name)-1]), value)
		}
	}
	return append(object, '}'), filled, nil
}

// hasMembers reports whether an object is not empty.
func hasMembers(object []byte) (some bool) {
	_ = rawjson.Members(object, func(rawjson.Member) bool {
		some = true
		return false
	})
	return some
}

// argumentsOf puts a call's arguments together from a form: those of the fields, or the JSON that is written in their place. A field
// that is empty is left out, unless it is a text, a list or a group that the tool requires.
func argumentsOf(t *Tool, form url.Values) (json.RawMessage, error) {
	if text := strings.TrimSpace(form.Get("json")); text != "" {
		if !json.Valid([]byte(text)) || text[0] != '{' {
			return nil, fmt.Errorf("the arguments are no JSON object: write one, or leave that field empty")
		}
		return json.RawMessage(text), nil
	}
	if form == nil {
		form = url.Values{}
	}
	object, _, err := objectOf(fieldsOf(t, form))
	return object, err
}

// withoutSecrets is a form whose secrets are not filled in.
func withoutSecrets(t *Tool, form url.Values) url.Values {
	out := maps.Clone(form)
	var drop func([]field)
	drop = func(fields []field) {
		for _, f := range fields {
			if f.Kind == kindSecret {
				out.Del(f.Name)
			}
			drop(f.Fields)
		}
	}
	drop(fieldsOf(t, form))
	return out
}

// compacted is JSON without white space.
func compacted(text []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

const formSchema = `{"type":"object","required":["text","n"],"properties":{"text":{"type":"string"},"n":{"type":"integer","default":3},"flag":{"type":"boolean"},
	"kind":{"enum":["a",1,null,"1"]},"deep":{"type":"object","default":{"x":[1]}},"any":{},"both":{"type":["string","null"]},"word":{"type":"string","format":"password","default":"x"},
	"broken":7,"said":{"type":"string","default":"hello"}}}`

// outline is what fields are: "name:kind=value", with "!" where required, and the names of what is written as JSON.
func outline(schema string) string {
	var out []string
	fields, rest := fieldsOf(&Tool{InputSchema: json.RawMessage(schema)}, nil)
	for _, f := range fields {
		text := strings.TrimPrefix(f.Name, "argument.") + ":" + string(f.Kind) + "=" + f.Value
		if f.Required {
			text += "!"
		}
		out = append(out, text)
	}
	return strings.Join(append(out, rest...), " ")
}

// TestFieldsOfSchemas: each argument that is a text, a number or one of a few values has a field,
// in the schema's order. Others are written as JSON.
func TestFieldsOfSchemas(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		formSchema: `text:text=! n:number=! flag:choice= kind:choice= word:secret= said:text= deep any both broken`,
		``:         "", `{}`: "", `{"properties":[]}`: "", `{"properties":{},"required":7}`: "", `true`: "",
		`{"properties"`: "",
	} {
		if got := outline(schema); got != want {
			t.Errorf("%s has %s and not %s", schema, got, want)
		}
	}
	for schema, want := range map[string]string{
		`"a":{"type":"object","properties":{"b":{"type":"string"}}}`:                `a`,
		`"a":{"type":"array","items":{"type":"string"}}`:                            `a`,
		`"a":{"$ref":"#/$defs/C"}`:                                                  `a`,
		`"a":{"anyOf":[{"type":"string"},{"type":"null"}]}`:                         `a`,
		`"a":{"type":"integer","default":9007199254740993}`:                         `a:number=`,
		`"a":{"enum":[` + strings.Repeat(`1,`, maxChoices) + `2],"type":"integer"}`: `a:number=`,
	} {
		text := fmt.Sprintf(`{"type":"object","properties":{%s},"$defs":{"C":{"enum":["x","y"]},"Self":{"$ref":"#/$defs/Self"}}}`, schema)
		if got := outline(text); got != want {
			t.Errorf("%s\n has %s\nand not %s", schema, got, want)
		}
	}
	var many strings.Builder
	for i := range 500 {
		many.WriteString(`,"a` + strings.Repeat("b", i) + `":{"type":"string"}`)
	}
	if fields, rest := fieldsOf(&Tool{InputSchema: json.RawMessage(`{"properties":{` + many.String()[1:] + `}}`)},
		nil); len(fields) != maxFields ||
		len(rest) != maxFields {
		t.Errorf("%d fields, %d others", len(fields), len(rest))
	}
	tool := &Tool{Secret: []string{"/a~1b"},
		InputSchema: json.RawMessage(`{"properties":{"a/b":{"type":"string","default":"x","title":"Key"},"c":{"enum":["red","1",1]}}}`)}
	fields, _ := fieldsOf(tool, nil)
	if fields[0].Kind != kindSecret || fields[0].Value != "" || fields[0].Label != "a/b" ||
		fmt.Sprintf("%s", fields[1].Choices) != `["red" "1" 1]` {
		t.Errorf("%+v", fields)
	}
}

// TestArgumentsOfForms: numbers stay as they are written, texts are quoted, what is empty is left out, and JSON counts.
func TestArgumentsOfForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ form, want string }{
		{``, `{"text":""}`},
		{`argument.text=a%0D%0Ab&argument.n=12345678901234567890&argument.flag=true&argument.kind=null`,
			`{"text":"a\nb","n":12345678901234567890,"flag":true,"kind":null}`},
		{`json={"deep":{"a":1},"any":"x"}&argument.word=p`, `{"text":"","word":"p","deep":{"a":1},"any":"x"}`},
		{`argument.n=three`, `"n" is no number`},
		{`argument.flag=yes`, `"flag" has none of its values`},
		{`json={"z":1e3, "te\u0078t":null}&argument.n=3`, `{"n":3,"z":1e3,"te\u0078t":null}`},
		{`json=[1]`, `no JSON object`},
		{`json={"a":1}}`, `no JSON object`},
		{`argument.other=1&argument.n= `, `{"text":""}`},
		{`argument.text=<b>%22'&csrf=SECRET`, `{"text":"<b>\"'"}`},
	} {
		values, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		got, err := argumentsOf(&Tool{InputSchema: json.RawMessage(formSchema)}, values)
		if err != nil && strings.Contains(err.Error(), c.want) {
			continue
		}
		if err != nil || string(got) != c.want || !json.Valid(got) {
			t.Errorf("%s: %s, %v", c.form, got, err)
		}
	}
}

// FuzzForms: whatever a server's schema says, what the form shows at first is sent as an object, or refused.
func FuzzForms(f *testing.F) {
	f.Add(formSchema, "argument.n", "7")
	f.Add(`{"properties":{"a":{"type":"array","items":{"enum":["x","1"]},"default":["[1]"]},"o":{"properties":{"p/q":{"$ref":"#"}}}}}`, "json", "{\"p/q\": [}")
	f.Add(`{"$ref":"#/$defs/A","$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}],"properties":{"":{"enum":[1]}}}}}`, "argument.", "1")
	f.Fuzz(func(t *testing.T, schema, name, value string) {
		tool := &Tool{InputSchema: json.RawMessage(schema)}
		form := url.Values{name: {value}}
		fields, _ := fieldsOf(tool, nil)
		for _, each := range fields {
			if each.Value != "" {
				form.Set(each.Name, each.Value)
			}
		}
		if got, err := argumentsOf(tool, form); err == nil && (!json.Valid(got) || got[0] != '{') &&
			json.Valid([]byte(schema)) {
			t.Errorf("%s", got)
		}
	})
}

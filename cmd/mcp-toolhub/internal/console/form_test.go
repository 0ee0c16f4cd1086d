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

// outline is what fields are: "name:kind=value", with "!" where required, and members in braces.
func outline(fields []field) string {
	var out []string
	for _, f := range fields {
		text := strings.TrimPrefix(f.Name, "argument.") + ":" + string(f.Kind) + "=" + f.Value
		if f.Required {
			text += "!"
		}
		if f.Fields != nil {
			text += "{" + outline(f.Fields) + "}"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// TestFieldsOfSchemas: each argument has a field of a kind that fits, in the schema's order.
func TestFieldsOfSchemas(t *testing.T) {
	t.Parallel()
	got := outline(fieldsOf(&Tool{InputSchema: json.RawMessage(formSchema)}, nil))
	const want = `text:text=! n:number=3! flag:choice= kind:choice= deep:json={"x":[1]} any:json= both:text= word:secret= broken:json= said:text=hello`
	if got != want {
		t.Errorf("%s\nand not\n%s", got, want)
	}
	for _, schema := range []string{``, `{}`, `{"properties":[]}`, `{"properties":{},"required":7}`, `true`, `{"properties"`} {
		if fields := fieldsOf(&Tool{InputSchema: json.RawMessage(schema)}, nil); len(fields) != 0 {
			t.Errorf("%s has fields: %v", schema, fields)
		}
	}
	var many strings.Builder
	for i := range 500 {
		many.WriteString(`,"a` + strings.Repeat("b", i) + `":{}`)
	}
	if n := len(fieldsOf(&Tool{InputSchema: json.RawMessage(`{"properties":{` + many.String()[1:] + `}}`)}, nil)); n != maxFields {
		t.Errorf("%d fields", n)
	}
}

// TestFieldsOfNestedSchemas: an object has fields of its own, a list has a line for each entry, and what stands for another schema is
// filled in like that one. What no field fits is written as JSON, with a sample.
func TestFieldsOfNestedSchemas(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`"a":{"type":"object","required":["b"],"properties":{"b":{"type":"string"},"c/d":{"type":"object","properties":{"e~":{"type":"boolean"}}}}}`: `a:group={a/b:text=! a/c~1d:group={a/c~1d/e~0:choice=}}`,
		`"a":{"type":"object","properties":{"b":{"type":"integer","default":7}}}`:                                                                    `a:group={a/b:number=}`,
		`"a":{"type":"object","default":{"b":9007199254740993},"properties":{"b":{"type":"integer","default":7}}}`:                                   `a:group={a/b:number=9007199254740993}`,
		`"a":{"type":"array","items":{"type":"string"},"default":["x y","z"]}`:                                                                       "a:list=x y\nz",
		`"a":{"type":"array","items":{"type":"string"},"default":["x\ny"," z"]}`:                                                                     `a:list=["x\ny"," z"]`,
		`"a":{"type":"array","items":{"enum":["red",2]},"default":["red",2]}`:                                                                        "a:list=red\n2",
		`"a":{"type":"array","items":{"type":"object"}}`:                                                                                             `a:json=`,
		`"a":{"$ref":"#/$defs/C","default":"x"}`:                                                                                                     `a:choice="x"`,
		`"a":{"allOf":[{"$ref":"#/$defs/C"}]}`:                                                                                                       `a:choice=`,
		`"a":{"$ref":"#/$defs/Loop"}`:                                                                                                                `a:group={a/l:group={a/l/l:group={a/l/l/l:group={a/l/l/l/l:json=}}}}`,
		`"a":{"$ref":"#/$defs/Self"}`:                                                                                                                `a:json=`,
		`"a":{"$ref":"https://example.com/x"}`:                                                                                                       `a:json=`,
		`"a":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}`:                                                                           `a:text=`,
		`"a":{"oneOf":[{"const":"p","title":"First"},{"const":2}]}`:                                                                                  `a:choice=`,
		`"a":{"oneOf":[{"type":"object","properties":{"m":{"type":"string"}}},{"type":"integer"}]}`:                                                  `a:json=`,
	} {
		text := fmt.Sprintf(`{"type":"object","properties":{%s},"$defs":{"C":{"enum":["x","y"]},"Self":{"$ref":"#/$defs/Self"},
			"Loop":{"type":"object","properties":{"l":{"$ref":"#/$defs/Loop"}}}}}`, schema)
		if got := outline(fieldsOf(&Tool{InputSchema: json.RawMessage(text)}, nil)); got != want {
			t.Errorf("%s\n has %s\nand not %s", schema, got, want)
		}
	}
	tool := &Tool{Secret: []string{"/o/key"}, InputSchema: json.RawMessage(`{"properties":{"o":{"type":"object","properties":{"key":{"type":"string","default":"x"},
		"size":{"type":"integer","default":3}}},"u":{"anyOf":[{"type":"object","required":["m"],"properties":{"m":{"type":"string"},"n":{}}},{"type":"array","items":{"type":"integer"}}]},
		"one":{"oneOf":[{"const":"p","title":"First"},{"const":"2"}]},"many":{"type":"array","items":{"enum":["red","1",1]}}}}`)}
	fields := fieldsOf(tool, nil)
	if o := fields[0].Fields; o[0].Kind != kindSecret || o[0].Value != "" || o[1].Hint != "a whole number; left out, it is 3" {
		t.Errorf("members: %+v", o)
	}
	if h := fields[1].Hint; h != `JSON, such as {"m":"text"} or [1]` {
		t.Errorf("a sample: %s", h)
	}
	if c := fmt.Sprint(fields[2].Choices); c != `[{"p" First (p)} {"2" "2"}]` {
		t.Errorf("choices: %s", c)
	}
	if h := fields[3].Hint; h != `one a line: red, "1", 1` {
		t.Errorf("entries: %s", h)
	}
	if s := sampleOf(tool); s != `{"o":{"key":"x","size":3},"u":{"m":"text"},"one":"p","many":["red"]}` || !json.Valid([]byte(s)) {
		t.Errorf("a sample of all: %s", s)
	}
}

// TestArgumentsOfForms: numbers stay as they are written, texts are quoted, and what is empty is left out.
func TestArgumentsOfForms(t *testing.T) {
	t.Parallel()
	const nested = `{"required":["need","all"],"properties":{"need":{"type":"object","required":["t"],"properties":{"t":{"type":"string"},"n":{"type":"integer"}}},
		"may":{"type":"object","required":["t"],"properties":{"t":{"type":"string"},"a b/c":{"type":"number"}}},"all":{"type":"array","items":{"type":"string"}},
		"some":{"type":"array","items":{"enum":["red","1",1]}},"sizes":{"type":"array","items":{"type":"integer"}}}}`
	for _, c := range []struct{ schema, form, want string }{
		{formSchema, ``, `{"text":""}`},
		{formSchema, `argument.text=a%0D%0Ab&argument.n=12345678901234567890&argument.flag=true&argument.kind=null`, `{"text":"a\nb","n":12345678901234567890,"flag":true,"kind":null}`},
		{formSchema, `argument.deep={"a":1}&argument.any="x"&argument.word=p`, `{"text":"","deep":{"a":1},"any":"x","word":"p"}`},
		{formSchema, `argument.n=three`, `"n" is no number`},
		{formSchema, `argument.flag=yes`, `"flag" is not JSON`},
		{formSchema, `json={"z":1}&argument.n=three`, `{"z":1}`},
		{formSchema, `json=[1]`, `no JSON object`},
		{formSchema, `json={"a":1}}`, `no JSON object`},
		{formSchema, `argument.other=1&argument.n= `, `{"text":""}`},
		{formSchema, `argument.text=<b>%22'&csrf=SECRET`, `{"text":"<b>\"'"}`},
		{nested, ``, `{"need":{"t":""},"all":[]}`},
		{nested, `argument.need/n=9007199254740993&argument.may/t=x&argument.all=a%0D%0A b`, `{"need":{"t":"","n":9007199254740993},"may":{"t":"x"},"all":["a","b"]}`},
		{nested, `argument.may/a%20b~1c=1e3`, `{"need":{"t":""},"may":{"t":"","a b/c":1e3},"all":[]}`},
		{nested, `argument.all=["a\nb","c"]&argument.some=red%0A1%0A"1"&argument.sizes=1%0A%0A2`, `{"need":{"t":""},"all":["a\nb","c"],"some":["red",1,"1"],"sizes":[1,2]}`},
		{nested, `argument.sizes=1%0Atwo`, `"two" of "sizes" is none of the entries`},
	} {
		values, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		got, err := argumentsOf(&Tool{InputSchema: json.RawMessage(c.schema)}, values)
		if err != nil && strings.Contains(err.Error(), c.want) {
			continue
		}
		if err != nil || string(got) != c.want || !json.Valid(got) {
			t.Errorf("%s: %s, %v", c.form, got, err)
		}
	}
	tool := &Tool{InputSchema: json.RawMessage(formSchema)}
	given := url.Values{"argument.text": {"a"}, "argument.word": {"hunter2"}}
	if got, err := argumentsOf(tool, withoutSecrets(tool, given)); err != nil || string(got) != `{"text":"a"}` || given.Get("argument.word") == "" {
		t.Errorf("without secrets: %s, %v, %v", got, err, given)
	}
}

// FuzzForms: whatever a server's schema says, what the form shows at first is sent as an object, or refused.
func FuzzForms(f *testing.F) {
	f.Add(formSchema, "argument.n", "7")
	f.Add(`{"properties":{"a":{"type":"array","items":{"enum":["x","1"]},"default":["[1]"]},"o":{"properties":{"p/q":{"$ref":"#"}}}}}`, "argument.o/p~1q", "[")
	f.Add(`{"$ref":"#/$defs/A","$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}],"properties":{"":{"const":1}}}}}`, "argument.", "1")
	f.Fuzz(func(t *testing.T, schema, name, value string) {
		tool := &Tool{InputSchema: json.RawMessage(schema)}
		_ = sampleOf(tool)
		form := url.Values{name: {value}}
		var fill func([]field)
		fill = func(fields []field) {
			for _, each := range fields {
				if each.Fields == nil && each.Value != "" {
					form.Set(each.Name, each.Value)
				}
				fill(each.Fields)
			}
		}
		fill(fieldsOf(tool, nil))
		if got, err := argumentsOf(tool, withoutSecrets(tool, form)); err == nil && (!json.Valid(got) || got[0] != '{') && json.Valid([]byte(schema)) {
			t.Errorf("%s", got)
		}
	})
}

package console

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

const formSchema = `{"type":"object","required":["text","n"],"properties":{"text":{"type":"string"},"n":{"type":"integer","default":3},"flag":{"type":"boolean"},
	"kind":{"enum":["a",1,null]},"deep":{"type":"object","default":{"x":[1]}},"any":{},"both":{"type":["string","null"]},"word":{"type":"string","format":"password","default":"x"},
	"broken":7,"said":{"type":"string","default":"hello"}}}`

// TestFieldsOfSchemas: each argument has a field of a kind that fits, in the schema's order.
func TestFieldsOfSchemas(t *testing.T) {
	t.Parallel()
	got := ""
	for _, f := range fieldsOf(json.RawMessage(formSchema), nil) {
		got += f.Name + ":" + f.Kind + "=" + f.Value
		if f.Required {
			got += "!"
		}
		got += " "
	}
	const want = `text:text=! n:number=3! flag:choice= kind:choice= deep:json={"x":[1]} any:json= both:json= word:secret= broken:json= said:text=hello `
	if got != want {
		t.Errorf("%s\nand not\n%s", got, want)
	}
	for _, schema := range []string{``, `{}`, `{"properties":[]}`, `{"properties":{},"required":7}`, `true`, `{"properties"`} {
		if fields := fieldsOf(json.RawMessage(schema), nil); len(fields) != 0 {
			t.Errorf("%s has fields: %v", schema, fields)
		}
	}
	var many strings.Builder
	for i := range 500 {
		many.WriteString(`,"a` + strings.Repeat("b", i) + `":{}`)
	}
	if n := len(fieldsOf(json.RawMessage(`{"properties":{`+many.String()[1:]+`}}`), nil)); n != maxFields {
		t.Errorf("%d fields", n)
	}
}

// TestArgumentsOfForms: numbers stay as they are written, texts are quoted, and what is empty is left out.
func TestArgumentsOfForms(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		``: `{"text":""}`,
		`argument.text=a%0D%0Ab&argument.n=12345678901234567890&argument.flag=true&argument.kind=null`: `{"text":"a\nb","n":12345678901234567890,"flag":true,"kind":null}`,
		`argument.deep={"a":1}&argument.any="x"&argument.word=p`:                                       `{"text":"","deep":{"a":1},"any":"x","word":"p"}`,
		`argument.n=three`:                  `"n" is not JSON`,
		`argument.flag=yes`:                 `"flag" is not JSON`,
		`json={"z":1}&argument.n=three`:     `{"z":1}`,
		`json=[1]`:                          `no JSON object`,
		`json={"a":1}}`:                     `no JSON object`,
		`argument.other=1&argument.n= `:     `"n" is not JSON`,
		`argument.text=<b>%22'&csrf=SECRET`: `{"text":"<b>\"'"}`,
	} {
		values, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		got, err := argumentsOf(json.RawMessage(formSchema), values)
		if err != nil && strings.Contains(err.Error(), want) {
			continue
		}
		if err != nil || string(got) != want || !json.Valid(got) {
			t.Errorf("%s: %s, %v", form, got, err)
		}
	}
}

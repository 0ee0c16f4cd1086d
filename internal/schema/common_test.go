package schema

import "testing"

// checkCommon holds that a schema that is said to be common compiles, and that all of it is applied.
func checkCommon(t *testing.T, raw []byte) {
	t.Helper()
	if common(raw) == nil {
		return
	}
	c, err := compile(raw)
	if err != nil {
		t.Fatalf("%s is said to be common: %v", raw, err)
	}
	if len(c.broken)+len(c.ignored) > 0 {
		t.Fatalf("%s is said to be common: %q", raw, c.ignored)
	}
}

// parts of schemas, right and wrong, as single members.
var schemaParts = []string{
	`"type":"object"`, `"type":["string","null"]`, `"type":["string","string"]`, `"type":[]`, `"type":"text"`, `"type":["object",null]`, `"type":{}`,
	`"title":"x"`, `"title":1`, `"description":null`, `"default":[{"enum":[]}]`, `"default":1e400`, `"const":{"$ref":"#/nowhere"}`, `"const":null`,
	`"properties":{"enum":{"type":"string"},"b":true}`, `"properties":{"a":[]}`, `"properties":[]`, `"properties":{"$ref":{}}`,
	`"properties":{"id":{"$id":"x"}}`, `"items":{}`, `"items":[{}]`, `"items":true`, `"items":1`, `"additionalProperties":false`,
	`"additionalProperties":{"type":"integer"}`, `"additionalProperties":"no"`, `"propertyNames":{"maxLength":3}`, `"propertyNames":{"type":"string"}`, `"x-y":"z"`, `"x-y":[{"enum":[]}]`, `"examples":[{"enum":[]}]`, `"enum":[1,2]`,
	`"enum":[1,1.0]`, `"enum":["a",null,true]`, `"enum":["a","a"]`, `"enum":[0,-0]`, `"const":1`, `"deprecated":true`, `"not":{}`, `"not":[]`,
	`"anyOf":[]`, `"anyOf":[{},true]`, `"anyOf":{}`, `"oneOf":[{"type":"null"}]`, `"allOf":[{"minimum":1}]`, `"enum":[]`, `"enum":[1,1,"a",{}]`,
	`"enum":{}`, `"required":[]`, `"required":["a","b"]`, `"required":["a","a"]`, `"required":["\u0061","a"]`, `"required":[1]`, `"required":"a"`,
	`"minimum":1`, `"minimum":-1.5e3`, `"minimum":"1"`, `"minimum":1e99999`, `"exclusiveMinimum":true`, `"exclusiveMaximum":5`, `"minLength":0`,
	`"minLength":-1`, `"minLength":1.5`, `"minLength":1e2`, `"maxLength":99999999999999999999`, `"maxItems":3`, `"maxProperties":"3"`,
	`"uniqueItems":true`, `"uniqueItems":1`, `"uniqueItems":null`, `"readOnly":false`, `"writeOnly":{}`, `"format":"uuid"`, `"format":"regex"`,
	`"format":7`, `"contentEncoding":"base64"`, `"$schema":"http://json-schema.org/draft-07/schema#"`,
	`"$schema":"https://json-schema.org/draft/2020-12/schema"`, `"$schema":"http://json-schema.org/draft-04/schema#"`, `"$schema":7`,
	`"$ref":"#"`, `"pattern":"("`, `"pattern":"a"`, `"patternProperties":{"(":{}}`, `"dependencies":7`, `"nullable":true`, `"\u0074ype":7`,
	`"examples":7`, `"id":7`, `"$id":7`, `"deprecated":7`, `"multipleOf":0`, `"if":7`, `"definitions":7`, `"$defs":7`, `"contains":7`,
}

func TestCommonSchemasCompile(t *testing.T) {
	known := 0
	check := func(raw string) {
		checkCommon(t, []byte(raw))
		if common([]byte(raw)) != nil {
			known++
		}
	}
	for _, a := range schemaParts {
		for _, b := range schemaParts {
			check("{" + a + "," + b + "}")
			check("{" + b + `,"properties":{"p":{` + a + "}}}")
			check(`{"anyOf":[{},{"items":{` + a + "}}]," + b + "}")
			check(`{"$schema":"http://json-schema.org/draft-07/schema#","additionalProperties":{` + a + "}," + b + "}")
		}
	}
	if known < 1500 {
		t.Errorf("only %d schemas are said to be common", known)
	}
	for _, raw := range []string{benchSchema, `{}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"title":"A"}}}`} {
		if common([]byte(raw)) == nil {
			t.Errorf("%s is not said to be common", raw)
		}
	}
}

func FuzzCommon(f *testing.F) {
	for _, part := range schemaParts {
		f.Add([]byte("{" + part + "}"))
	}
	f.Add([]byte(benchSchema))
	f.Fuzz(checkCommon)
}

func BenchmarkCommon(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if common([]byte(benchSchema)) == nil {
			b.Fatal("not common")
		}
	}
}

package schema

import (
	"fmt"
	"testing"
	"time"
)

func FuzzCompileValidate(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":"integer","minimum":1}},"required":["a"]}`, `{"a":0}`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`, `{}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{},false],"additionalItems":false}`, `[1,2,3]`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}`, `{"a":{"a":1}}`},
		{`{"$dynamicAnchor":"n","properties":{"c":{"$dynamicRef":"#n"}},"unevaluatedProperties":false}`, `{"c":{"d":1}}`},
		{`{"properties":{"p":{"not":{"pattern":"(?=a)"}}},"patternProperties":{"^(?!x)":{"multipleOf":0.01}}}`, `{"p":1e5}`},
		{`{"$schema":"https://json-schema.org/draft/2020-12/meta/validation","enum":[1e5,{}],"uniqueItems":true}`, `[1,1.0]`},
		{`{"$id":"urn:x","oneOf":[{"$anchor":"y"},{"$ref":"#y"}],"if":true,"then":{"contains":{},"minContains":2}}`, `["\ud800"]`},
		{`{"type":"object","title":"t","properties":{"a":{"anyOf":[{"type":"string","enum":["x",1]},{"type":"null"}],"default":null},` +
			`"b":{"type":"array","items":{"type":"object","additionalProperties":{"type":"number"}}}},"required":["a","b"],` +
			`"additionalProperties":false}`, `{"a":"x","b":[{"c":1}]}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, raw, args []byte) {
		watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("hangs: Compile(%q), Validate(%q)", raw, args)) })
		defer watchdog.Stop()
		s, err := Compile(raw)
		if err != nil {
			if IsPlain(raw) {
				t.Fatalf("plain, and does not compile: %v", err)
			}
			if s != nil || err.Error() == "" {
				t.Fatal("a failure with a schema, or without a reason")
			}
			return
		}
		if invalid := s.Validate(args); invalid != nil &&
			(len(invalid.Problems) == 0 || len(invalid.Problems) > maxProblems) {
			t.Fatalf("not a proper refusal: %v", invalid)
		}
	})
}

const benchSchema = `{"type":"object","properties":{"owner":{"type":"string","description":"Repository owner"},` +
	`"repo":{"type":"string"},"state":{"type":"string","enum":["open","closed","all"]},"labels":{"type":"array","items":{"type":"string"}},` +
	`"page":{"type":"integer","minimum":1},"perPage":{"type":"integer","minimum":1,"maximum":100}},"required":["owner","repo"],` +
	`"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}`

func BenchmarkValidate(b *testing.B) {
	s, err := Compile([]byte(benchSchema))
	if err != nil {
		b.Fatal(err)
	}
	args := []byte(`{"owner":"octocat","repo":"hello-world","state":"open","labels":["bug"],"perPage":30}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidateInvalid(b *testing.B) {
	s, err := Compile([]byte(benchSchema))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if s.Validate([]byte(`{"owner":"octocat","state":"opn","perPage":3000}`)) == nil {
			b.Fatal("accepted")
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile([]byte(benchSchema)); err != nil {
			b.Fatal(err)
		}
	}
}

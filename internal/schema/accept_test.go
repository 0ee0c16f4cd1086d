package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzChecker: what the checker says is valid, the library says is valid.
func FuzzChecker(f *testing.F) {
	for _, schema := range checkedSchemas() {
		for _, args := range checkedArguments() {
			f.Add([]byte(schema), []byte(args))
		}
	}
	f.Fuzz(func(t *testing.T, raw, args []byte) {
		s, err := Compile(raw)
		if err != nil || len(args) == 0 || !s.accepts(args) {
			return
		}
		if err := s.decide(args); err != nil {
			t.Fatalf("schema %q, arguments %q: the checker accepts them, the library says %v", raw, args, err)
		}
	})
}

func checkedSchemas() []string {
	return []string{
		benchSchema,
		`{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":9007199254740991},"b":{"type":"number","exclusiveMinimum":0}},"required":["a"]}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"type":"number","minimum":1,"exclusiveMinimum":true}}}`,
		`{"properties":{"s":{"type":"string","minLength":2,"maxLength":3},"e":{"enum":["a","é",1,1.5,true,null,{}]},"c":{"const":"x"}},"additionalProperties":false}`,
		`{"properties":{"l":{"type":"array","items":{"type":["string","null"]},"minItems":1,"maxItems":2}},"additionalProperties":{"type":"boolean"}}`,
		`{"properties":{"o":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null},"p":{"type":"string","pattern":"^[a-z]+$"}},"required":["o","z"]}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}},"b":{"type":"integer"}},"maxProperties":2}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/b","type":"string"}},"definitions":{"b":{"type":"integer","format":"int32"}}}`,
		`{"properties":{"a":{"allOf":[{"type":"string"},{"maxLength":2}]},"f":{"format":"date-time"},"n":false},"propertyNames":{"type":"string"}}`,
		`{"properties":{"a":{"type":"array","items":[{"type":"string"}]},"u":{"uniqueItems":true}},"patternProperties":{"^x":{}}}`,
		`{"properties":{"a":{"maximum":9007199254740992},"b":{"minimum":9007199254740993}}}`, `true`, `{}`,
		`{"properties":{"a":{"type":"integer"}},"properties":{"a":{"type":"string"},"a":{"type":"boolean"}},"required":["b"],"required":["a"]}`,
		`{"anyOf":[{"type":"object"}],"anyOf":[{"type":"array"}]}`, `{"type":["object","null"],"type":"array","items":{"type":"string"},"items":true}`,
		`{"type":"object","properties":{"�":{"type":"integer"}},"required":["�"]}`,
	}
}

func checkedArguments() []string {
	return []string{
		`{}`, ` {"a" : 1 , "a":"x"} `, `{"a":1.0,"b":0}`, `{"a":1e2}`, `{"a":-0}`, `{"a":9007199254740992,"b":1e-400}`, `{"a":9007199254740991}`,
		`{"s":"ab","e":"a","c":"x"}`, `{"s":"ééé"}`, `{"s":"😀"}`, `{"s":"\ud83d\ude00"}`, `{"s":"\ud800"}`, `{"s":"a\nb"}`, `{"e":1.0}`, `{"e":{}}`,
		`{"e":"\u0061"}`, `{"l":["a",null],"x":true}`, `{"l":[]}`, `{"o":null,"z":1,"p":"ab"}`, `{"\u0061":"x"}`, "{\"a\xff\":1}", "{\"\xff\":1}",
		"{\"\xff\":\"x\",\"\xfe\":1}", `{"a":01}`, `{"a":1,}`, `{"a":1} x`, `{"f":"never"}`, `{"n":1}`, `[1]`, `{"a":"😀b"}`, `{"b":0.1,"a":1}`,
		strings.Repeat(`[`, 70) + strings.Repeat(`]`, 70), `{"a":` + strings.Repeat("1", 5000) + `}`, `{"a":9007199254740993,"b":9007199254740992}`,
		`{"owner":"a","repo":"b","labels":["c"],"page":1}`,
	}
}

// TestCheckerAllocatesNothing: usual arguments are checked without memory.
func TestCheckerAllocatesNothing(t *testing.T) {
	s, err := Compile([]byte(benchSchema))
	if err != nil {
		t.Fatal(err)
	}
	args := []byte(`{"owner":"octocat","repo":"hello-world","state":"open","labels":["bug"],"perPage":30}`)
	if n := testing.AllocsPerRun(100, func() { _ = s.Validate(args) }); n != 0 || !s.accepts(args) {
		t.Errorf("%v allocations, accepted %v", n, s.accepts(args))
	}
}

// TestCheckerIsBounded: what the library would refuse as too much work, the checker does not accept.
func TestCheckerIsBounded(t *testing.T) {
	t.Parallel()
	enum := strings.TrimSuffix(strings.Repeat(`12345,`, 2000), ",")
	for name, c := range map[string]struct{ schema, args string }{
		"a long enum of numbers": {`{"items":{"enum":[` + enum + `,1]}}`, `[` + strings.Repeat("1,", 20_000) + `1]`},
		"references that multiply": {`{"$ref":"#/$defs/a0","$defs":{` + func() (defs string) {
			for i := range 20 {
				defs += fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
			}
			return defs
		}() + `"a20":{"type":"object"}}}`, `{}`},
	} {
		s, err := Compile([]byte(c.schema))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.accepts([]byte(c.args)) || s.decide([]byte(c.args)) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestCheckerKnowsRealSchemas: the checker knows nearly all schemas of the recorded servers.
func TestCheckerKnowsRealSchemas(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../shared/catalog/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no recorded catalogs in ../shared/catalog beside the repository")
	}
	known, all := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var recorded struct {
			Pages []struct {
				Tools []struct {
					Name        string
					InputSchema json.RawMessage
				}
			} `json:"tools/list"`
		}
		if err := json.Unmarshal(text, &recorded); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, page := range recorded.Pages {
			for _, tool := range page.Tools {
				s, err := Compile(tool.InputSchema)
				if err != nil {
					continue
				}
				all++
				if s.common != nil {
					known++
				} else {
					t.Logf("%s %s", filepath.Base(file), tool.Name)
				}
			}
		}
	}
	t.Logf("%d of %d", known, all)
	if known*100 < all*90 {
		t.Errorf("the checker knows %d of %d schemas", known, all)
	}
}

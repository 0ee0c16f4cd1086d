package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCompile(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat(`{"not":`, n) + "{}" + strings.Repeat("}", n) }
	many := func(n int, member string) string {
		var b strings.Builder
		b.WriteString(`{"properties":{`)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"p%d":%s`, i, member)
		}
		return b.String() + "}}"
	}
	for _, test := range []struct {
		name, raw string
		draft     string // of success
		fault     string // part of the error
	}{
		{"empty object", `{}`, "2020", ""},
		{"boolean", `true`, "2020", ""},
		{"2020-12", `{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{}]}`, "2020", ""},
		{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object"}`, "2019", ""},
		{"draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}]}`, "7", ""},
		{"draft-06", `{"$schema":"http://json-schema.org/draft-06/schema#"}`, "6", ""},
		{"draft-04", `{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, "4", ""},
		{"draft-07 without saying so", `{"items":[{"type":"string"}]}`, "7", ""},
		{"draft-04 without saying so", `{"minimum":1,"exclusiveMinimum":true}`, "4", ""},
		{"no schema in any draft", `{"type":"strnig"}`, "", `no valid JSON Schema: "/type" must have one of the allowed forms: it must be an array, got a string, or it must be one of "array"`},
		{"property that is no schema", `{"properties":{"a":"string"}}`, "", `"/properties/a"`},
		{"unknown dialect", `{"$schema":"https://example.com/my-dialect"}`, "", "no known dialect"},
		{"remote reference", `{"$ref":"https://example.com/x.json"}`, "", "never fetched"},
		{"file reference", `{"$ref":"file:///etc/passwd"}`, "", "never fetched"},
		{"relative reference", `{"properties":{"a":{"$ref":"other.json#/x"}}}`, "", "never fetched"},
		{"remote below an id", `{"$id":"https://example.com/s","$ref":"t"}`, "", "never fetched"},
		{"dangling reference", `{"$ref":"#/$defs/none"}`, "", "not found"},
		{"dangling anchor", `{"$ref":"#none"}`, "", "not found"},
		{"recursive", `{"properties":{"child":{"$ref":"#"}}}`, "2020", ""},
		{"endless", `{"$ref":"#"}`, "", "refers to itself without end"},
		{"endless by two", `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#"}]}}}`, "", "without end"},
		{"not JSON", `{"type":`, "", "not valid JSON"},
		{"two values", `{} {}`, "", "not valid JSON"},
		{"nothing", ``, "", "not valid JSON"},
		{"number", `7`, "", "neither an object nor a boolean"},
		{"null", `null`, "", "neither an object nor a boolean"},
		{"at the depth", deep(MaxDepth - 1), "2020", ""},
		{"too deep", deep(20_000), "", "levels deep"},
		{"deep brackets", strings.Repeat("[", 500_000), "", "levels deep"},
		{"too large", `{"description":"` + strings.Repeat("x", MaxBytes) + `"}`, "", "bytes"},
		{"too many subschemas", many(maxSchemas+1, "true"), "", "subschemas"},
		{"too many values", `{"enum":[` + strings.Repeat("1,", maxValues) + `1]}`, "", "values"},
		{"too many references", many(2000, `{"$ref":"#/x"}`), "", "references"},
		{"escaped references", many(2000, `{"\u0024ref":"#/x"}`), "", "references"},
		{"huge number", `{"minimum":1e999999}`, "", "number"},
		{"number beyond a float", `{"minimum":1e400}`, "", "number"},
		{"nested recursive anchor", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$defs":{"a":{"$recursiveAnchor":true}}}`, "", "$recursiveAnchor"},
		{"meta-schema", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, "2020", ""},
		{"dynamic", `{"$dynamicAnchor":"n","properties":{"c":{"$dynamicRef":"#n"}}}`, "2020", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile(json.RawMessage(test.raw))
			if test.fault != "" {
				if err == nil || !strings.Contains(err.Error(), test.fault) {
					t.Fatalf("Compile: %v; want an error with %q", err, test.fault)
				}
				if strings.Contains(err.Error(), base) || len(err.Error()) > 600 {
					t.Errorf("error is not for people: %s", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(s.root.DraftVersion) != test.draft {
				t.Errorf("draft %d, want %s", s.root.DraftVersion, test.draft)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, schema, args string
		want               []string // "path: message" of each problem; none is valid
	}{
		{"valid", `{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":1}`, nil},
		{"nothing is an empty object", `{"type":"object"}`, ``, nil},
		{"whole number with a fraction part", `{"properties":{"a":{"type":"integer"}}}`, `{"a":1.0}`, nil},
		{"required", `{"required":["b","a"]}`, `{}`, []string{`: must have the properties "a", "b"`}},
		{"nested required", `{"properties":{"a/b":{"required":["c"]}}}`, `{"a/b":{}}`, []string{`/a~1b: must have the property "c"`}},
		{"additional", `{"properties":{"a":{},"b":{}},"additionalProperties":false}`, `{"z":1,"y":2}`,
			[]string{`: must not have the properties "y", "z"; it may have only "a", "b"`}},
		{"type", `{"properties":{"n":{"type":"integer"}}}`, `{"n":"SECRET"}`,
			[]string{`/n: must be an integer, got a string; send the value itself, not text that holds it`}},
		{"fraction", `{"properties":{"n":{"type":"integer"}}}`, `{"n":1.5}`, []string{`/n: must be an integer, got a number that is not whole`}},
		{"types", `{"properties":{"n":{"type":["string","null"]}}}`, `{"n":[]}`, []string{`/n: must be null or a string, got an array`}},
		{"enum", `{"properties":{"n":{"enum":["open","closed",3]}}}`, `{"n":"SECRET"}`, []string{`/n: must be one of "open", "closed", 3`}},
		{"const", `{"properties":{"n":{"const":"x"}}}`, `{"n":"SECRET"}`, []string{`/n: must be "x"`}},
		{"range", `{"properties":{"a":{"minimum":1},"b":{"maximum":2.5},"c":{"exclusiveMinimum":0},"d":{"exclusiveMaximum":9},"e":{"multipleOf":0.1}}}`,
			`{"a":0,"b":3,"c":0,"d":9,"e":0.55}`, []string{`/a: must be at least 1`, `/b: must be at most 2.5`,
				`/c: must be greater than 0`, `/d: must be less than 9`, `/e: must be a multiple of 0.1`}},
		{"big integers are exact", `{"properties":{"n":{"maximum":9007199254740993}}}`, `{"n":9007199254740994}`,
			[]string{`/n: must be at most 9007199254740993`}},
		{"big integers are equal only if they are", `{"properties":{"n":{"const":9007199254740993}}}`, `{"n":9007199254740992}`,
			[]string{`/n: must be 9007199254740993`}},
		{"lengths", `{"properties":{"a":{"minLength":2},"b":{"maxLength":1},"c":{"minItems":1},"d":{"maxItems":1},"e":{"uniqueItems":true},"f":{"minProperties":1},"g":{"maxProperties":0}}}`,
			`{"a":"S","b":"SECRET","c":[],"d":[1,2],"e":[1,1],"f":{},"g":{"x":1}}`, []string{`/a: must have at least 2 characters`,
				`/b: must have at most 1 character`, `/c: must have at least 1 item`, `/d: must have at most 1 item`,
				`/e: must not repeat an item: items 0 and 1 are equal`, `/f: must have at least 1 property`, `/g: must have at most 0 properties`}},
		{"pattern", `{"properties":{"n":{"pattern":"^a+$"}}}`, `{"n":"SECRET"}`, []string{`/n: must match the pattern "^a+$"`}},
		{"format is an annotation", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"n":{"format":"email"},"r":{"format":"regex"}}}`,
			`{"n":"no","r":"("}`, nil},
		{"property names", `{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, []string{`: must not have a property named "ab"`}},
		{"false", `{"properties":{"n":false}}`, `{"n":1}`, []string{`/n: is not accepted; leave it out`}},
		{"dependent", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []string{`: must have the property "b" where it has "a"`}},
		{"draft-07 dependency", `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]}}`, `{"a":1}`,
			[]string{`: must have the property "b" where it has "a"`}},
		{"choice of types", `{"properties":{"n":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"n":7}`,
			[]string{`/n: must be null or a string, got a number`}},
		{"choice that was meant", `{"properties":{"n":{"oneOf":[{"properties":{"k":{"const":"a"}},"required":["x"]},{"properties":{"k":{"const":"b"}},"required":["y"]}]}}}`,
			`{"n":{"k":"b"}}`, []string{`/n: must have the property "y"`}},
		{"choice that cannot be told", `{"properties":{"n":{"oneOf":[{"required":["x"]},{"required":["y"]}]}}}`, `{"n":{}}`,
			[]string{`/n: must have one of the allowed forms: it must have the property "x", or it must have the property "y"`}},
		{"two of one", `{"properties":{"n":{"oneOf":[{},{"type":"string"}]}}}`, `{"n":"SECRET"}`,
			[]string{`/n: must have exactly one of the allowed forms, but fits forms 1 and 2 of "oneOf"`}},
		{"not", `{"properties":{"n":{"not":{"type":"string"}}}}`, `{"n":"SECRET"}`, []string{`/n: has a form that the schema rules out ("not")`}},
		{"contains", `{"properties":{"n":{"contains":{"const":1}}}}`, `{"n":[2]}`,
			[]string{`/n: must contain an item of the form that "contains" asks for`}},
		{"unevaluated", `{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, []string{`/b: is not accepted; leave it out`}},
		{"reference", `{"properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"boolean"}}}`, `{"n":[{"n":"SECRET"}]}`,
			[]string{`/n: must be a boolean, got an array`}},
		{"array item", `{"properties":{"l":{"items":{"required":["n"]}}}}`, `{"l":[{"n":1},{}]}`, []string{`/l/1: must have the property "n"`}},
		{"Rust's largest length", `{"properties":{"n":{"maxLength":18446744073709551615}}}`, `{"n":"x"}`, nil},
		{"not JSON", `{}`, `{"a":SECRET}`, []string{`: are not valid JSON; send a JSON object`}},
		{"huge number", `{"properties":{"n":{"maximum":1}}}`, `{"n":1e9999999}`,
			[]string{`: hold a number of more than 4096 digits or an exponent beyond 1024; send a smaller number or a string`}},
		{"recursive meta-schema", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"properties":{"a":{"type":7}}}`,
			[]string{`/properties/a/type: must have one of the allowed forms: it must be an array, got a number, or it must be one of ` +
				`"array", "boolean", "integer", "null", "number", "object", "string"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := problems(t, test.schema, test.args)
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// problems are what the schema finds in args, as "path: message"; the error says no value of theirs.
func problems(t *testing.T, schema, args string) (all []string) {
	t.Helper()
	s, err := Compile(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	invalid := s.Validate(json.RawMessage(args))
	if invalid == nil {
		return nil
	}
	if len(invalid.Problems) == 0 {
		t.Fatal("Validate: no problems; want one at least")
	}
	if strings.Contains(invalid.Error(), "SECRET") {
		t.Errorf("the error repeats a value: %s", invalid)
	}
	for _, p := range invalid.Problems {
		all = append(all, p.Path+": "+p.Message)
	}
	return all
}

func TestInvalidError(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(`{"type":"object","required":["owner"],"properties":{"list":{"items":{"properties":{"limit":{"type":"integer"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	invalid := s.Validate(json.RawMessage(`{"list":[{},{"limit":"ten"}]}`))
	want := `the arguments must have the property "owner"; argument "list[1].limit" must be an integer, got a string; ` +
		`send the value itself, not text that holds it. Correct the arguments and call the tool again.`
	if invalid == nil || invalid.Error() != want {
		t.Fatalf("got  %v\nwant %s", invalid, want)
	}
	if invalid.Problems[1].SchemaPath != "#/properties/list/items/properties/limit/type" {
		t.Errorf("schema path %q", invalid.Problems[1].SchemaPath)
	}

	var args strings.Builder
	for i := range 30 {
		fmt.Fprintf(&args, `,{"limit":"x%d"}`, i)
	}
	invalid = s.Validate(json.RawMessage(`{"owner":1,"list":[` + args.String()[1:] + `]}`))
	if invalid == nil || len(invalid.Problems) != maxProblems || invalid.Omitted != 20 {
		t.Errorf("problems are not capped: %v", invalid)
	}
}

func TestIgnoredPatterns(t *testing.T) {
	t.Parallel()
	const ahead = `^(?=.*[0-9]).+$`
	for _, test := range []struct {
		name, schema, args string
		valid              bool
		ignored, broken    int
	}{
		{"lookahead", `{"properties":{"p":{"type":"string","pattern":"` + ahead + `"}}}`, `{"p":"none"}`, true, 1, 0},
		{"the rest still counts", `{"properties":{"p":{"type":"string","pattern":"` + ahead + `"}}}`, `{"p":1}`, false, 1, 0},
		{"negated", `{"properties":{"p":{"not":{"pattern":"` + ahead + `"}}}}`, `{"p":"none"}`, true, 1, 0},
		{"condition", `{"properties":{"p":{"if":{"pattern":"` + ahead + `"},"then":false,"else":true}}}`, `{"p":"none"}`, true, 1, 0},
		{"exactly one", `{"properties":{"p":{"oneOf":[{"pattern":"` + ahead + `"},{"type":"string"}]}}}`, `{"p":"none"}`, true, 1, 0},
		{"one or the other", `{"properties":{"p":{"oneOf":[{"pattern":"` + ahead + `"},{"type":"string"}],"type":"string"}}}`, `{"p":1}`, false, 1, 0},
		{"member names", `{"patternProperties":{"` + ahead + `":false},"additionalProperties":false}`, `{"p":1}`, true, 1, 0},
		{"behind a reference", `{"properties":{"p":{"not":{"$ref":"#/$defs/d"}}},"$defs":{"d":{"pattern":"` + ahead + `"}}}`, `{"p":"x"}`, true, 1, 0},
		{"upper count", `{"properties":{"p":{"contains":{"pattern":"` + ahead + `"},"maxContains":1}}}`, `{"p":["a","b"]}`, true, 1, 0},
		{"back reference", `{"properties":{"p":{"pattern":"(a)\\1"}}}`, `{"p":"ab"}`, true, 1, 0},
		{"code point", `{"properties":{"p":{"pattern":"^[\\u00e0-\\u00ff]+$"}}}`, `{"p":"é"}`, true, 0, 0},
		{"code point refused", `{"properties":{"p":{"pattern":"^[\\u00e0-\\u00ff]+$"}}}`, `{"p":"e"}`, false, 0, 0},
		{"no expression at all", `{"properties":{"p":{"pattern":"(a"}}}`, `{"p":"x"}`, true, 1, 1},
		{"costly", `{"properties":{"p":{"pattern":"` + strings.Repeat("x{1000}", 100) + `"}}}`, `{"p":"x"}`, true, 1, 0},
		{"empty enum", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"p":{"type":"string","enum":[]}}}`, `{"p":"x"}`, true, 1, 1},
		{"the rest of an empty enum", `{"properties":{"p":{"type":"string","enum":[]}}}`, `{"p":1}`, false, 1, 1},
		{"empty enum that is data", `{"properties":{"p":{"const":{"enum":[]}}}}`, `{"p":{}}`, false, 0, 0},
		{"long", `{"properties":{"p":{"pattern":"` + strings.Repeat("x", maxPatternBytes+1) + `"}}}`, `{"p":"y"}`, true, 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(json.RawMessage(test.args)); (err == nil) != test.valid {
				t.Errorf("Validate: %v; want valid %t", err, test.valid)
			}
			if len(s.Ignored()) != test.ignored || len(s.Broken()) != test.broken {
				t.Errorf("ignored %q, broken %q", s.Ignored(), s.Broken())
			}
		})
	}
}

// TestEveryFormatIsAnAnnotation fails when the library learns a format that formats does not name.
func TestEveryFormatIsAnAnnotation(t *testing.T) {
	t.Parallel()
	for _, name := range append(formats(), "regex", "anything") {
		s, err := Compile(json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"n":{"format":"` + name + `"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(json.RawMessage(`{"n":" \u0000(:/% "}`)); err != nil {
			t.Errorf("format %q is asserted: %v", name, err)
		}
	}
}

// hostile schemas and arguments whose naive validation would not end.
func TestValidationIsBounded(t *testing.T) {
	t.Parallel()
	doubling := func(n int) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
		for i := range n {
			fmt.Fprintf(&b, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
		}
		fmt.Fprintf(&b, `"a%d":{}}}`, n)
		return b.String()
	}
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "{}" + strings.Repeat("}", n) }
	outer := `{"$id":"https://x.test/o","$ref":"i","$defs":{"i":{"$id":"i","$dynamicRef":"#n","$defs":{"n":{"$dynamicAnchor":"n"}}},` +
		`"big":{"$dynamicAnchor":"n",` + strings.TrimPrefix(strings.ReplaceAll(doubling(40), "#/$defs/a", "#/$defs/big/$defs/a"), "{") + `}}`
	for _, test := range []struct {
		name, schema, args string
		valid              bool
	}{
		{"doubling references", doubling(40), `{}`, false},
		{"doubling a little", doubling(10), `{}`, true},
		{"doubling behind a dynamic reference", outer, `{}`, false},
		{"doubling with the arguments", `{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, nested(60), false},
		{"a plain tree is fine", `{"properties":{"a":{"$ref":"#"}}}`, nested(900), true},
		{"deep arguments", `{"properties":{"a":{"$ref":"#"}}}`, nested(20_000), false},
		{"deep beyond the decoder", `{}`, strings.Repeat("[", 1_000_000), false},
		{"large arguments", `{"properties":{"l":{"items":{"type":"integer"}}}}`, `{"l":[1` + strings.Repeat(",1", 300_000) + `]}`, true},
		{"costly pattern on a long text", `{"properties":{"s":{"pattern":"(a|b){1,900}c"}}}`, `{"s":"` + strings.Repeat("ab", 500_000) + `"}`, false},
		{"large enum of numbers", `{"properties":{"l":{"items":{"enum":[` + strings.Repeat("1e308,", 5000) + `2]}}}}`, `{"l":[1` + strings.Repeat(",1e1000", 5_000) + `]}`, false},
		{"large enum of texts", `{"properties":{"l":{"items":{"enum":[` + strings.Repeat(`"a",`, 5000) + `"b"]}}}}`, `{"l":["b"` + strings.Repeat(`,"b"`, 900) + `]}`, true},
		{"unique at every level", `{"uniqueItems":true,"items":{"$ref":"#"}}`, strings.Repeat("[[1],", 400) + "1" + strings.Repeat("]", 400), true},
		{"many expensive numbers", `{"properties":{"l":{"items":{"type":"integer"}}}}`, `{"l":[1e1000` + strings.Repeat(",1e1000", 20_000) + `]}`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			s, err := Compile(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(json.RawMessage(test.args)); (err == nil) != test.valid {
				t.Errorf("Validate: %v; want valid %t", err, test.valid)
			}
			if took := time.Since(began); took > 2*time.Minute { // generous: the machine may be busy, the naive way takes for ever
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestCompileIsBounded compiles what is worst within the bounds.
func TestCompileIsBounded(t *testing.T) {
	t.Parallel()
	var refs, ids, flat, patterns strings.Builder
	for i := range 900 {
		fmt.Fprintf(&refs, `,"p%d":{"$ref":"#/x/%d"}`, i, i)
		fmt.Fprintf(&ids, `,"p%d":{"$id":"i%d"}`, i, i)
	}
	for i := range maxSchemas - 10 {
		fmt.Fprintf(&flat, `,"p%d":true`, i)
	}
	for i := range 400 {
		fmt.Fprintf(&patterns, `,"p%d":{"pattern":"^(.{1,900}%d)$"}`, i, i)
	}
	for name, raw := range map[string]string{
		"references":  `{"x":[` + strings.Repeat("{},", 900) + `{}],"properties":{` + refs.String()[1:] + `}}`,
		"identifiers": `{"properties":{` + ids.String()[1:] + `}}`,
		"flat":        `{"properties":{` + flat.String()[1:] + `}}`,
		"patterns":    `{"properties":{` + patterns.String()[1:] + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			if _, err := Compile(json.RawMessage(raw)); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes in %v", len(raw), time.Since(began))
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}

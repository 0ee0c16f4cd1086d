package paramheader

import (
	"encoding/json"
	"net/http"
	"testing"
)

func TestEncode(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain text":      "plain text",
		"":                "",
		" lead":           "=?base64?IGxlYWQ=?=",
		"é":               "=?base64?w6k=?=",
		"a\nb":            "=?base64?YQpi?=",
		"=?base64?eA==?=": "=?base64?PT9iYXNlNjQ/ZUE9PT89?=",
	} {
		if got := Encode(in); got != want {
			t.Errorf("Encode(%q) = %q, want %q", in, got, want)
		}
		if back, ok := Decode(want); back != in || !ok {
			t.Errorf("Decode(%q) = %q, %v", want, back, ok)
		}
	}
	if _, ok := Decode("=?base64?!?="); ok {
		t.Error("broken base64 is decoded")
	}
	for in, want := range map[string]string{`1`: "1", `-7.0`: "-7", `1e3`: "1000", `true`: "true", `"x"`: "x",
		`1.5`: "", `null`: "", `{}`: "", `9007199254740993`: ""} {
		if got, ok := valueText([]byte(in)); ok != (want != "") || ok && got != want {
			t.Errorf("valueText(%s) = %q, %v", in, got, ok)
		}
	}
}

const schema = `{"properties":{"region":{"type":"string","x-mcp-header":"Region"},"in":{"type":"object","properties":{` +
	`"n":{"type":"integer","x-mcp-header":"N"},"bad":{"x-mcp-header":"a b"}}},"free":{"type":"string"}}}`

func TestMismatch(t *testing.T) {
	t.Parallel()
	bindings := Of(json.RawMessage(schema))
	if len(bindings) != 2 {
		t.Fatalf("bindings %v", bindings)
	}
	for _, c := range []struct {
		arguments string
		headers   []string
		ok        bool
	}{
		{`{}`, nil, true},
		{``, nil, true},
		{`{"region":"eu","in":{"n":7}}`, []string{"Region", "eu", "N", "7"}, true},
		{`{"region":"eu","in":{"n":7}}`, []string{"region", "=?base64?ZXU=?=", "n", "7.0"}, true},
		{`{"region":"é"}`, []string{"Region", "=?base64?w6k=?="}, true},
		{`{"region":""}`, []string{"Region", ""}, true},
		{`{"region":null}`, nil, true},
		{`{"region":["eu"]}`, nil, true}, // the schema's business
		{`{"region":"eu"}`, []string{"Other", "x", "Region", "eu"}, true},
		{`{"region":"eu"}`, nil, false},
		{`{"region":"eu"}`, []string{"Region", "us"}, false},
		{`{"region":"7"}`, []string{"Region", "7.0"}, false},
		{`{"region":"eu"}`, []string{"Region", "=?base64?!?="}, false},
		{`{"region":"eu"}`, []string{"Region", "eu", "Region", "eu"}, false},
		{`{"region":null}`, []string{"Region", "null"}, false},
		{`{}`, []string{"Region", "eu"}, false},
		{`{"in":{"n":1.5}}`, []string{"N", "1.5"}, false},
		{`{"in":{"n":7}}`, []string{"N", "8"}, false},
		{`{"in":{"n":7}}`, []string{"N", "x"}, false},
		{`{"in":7}`, []string{"N", "7"}, false},
	} {
		h := make(http.Header)
		for i := 0; i+1 < len(c.headers); i += 2 {
			h.Add(Prefix+c.headers[i], c.headers[i+1])
		}
		if got := Mismatch(bindings, json.RawMessage(c.arguments), h); (got == "") != c.ok {
			t.Errorf("%s with %v: %q", c.arguments, h, got)
		}
	}
}

// FuzzHeaders: what is sent agrees with what is checked, whatever the arguments.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{`{"region":"eu","in":{"n":7}}`, `{"region":1e3}`, `{"in":{"n":-0.0}}`, `[]`, `{"region":"\u00e9\n"}`} {
		f.Add(s)
	}
	bindings := Of(json.RawMessage(schema))
	f.Fuzz(func(t *testing.T, arguments string) {
		if !json.Valid([]byte(arguments)) {
			return
		}
		h := make(http.Header)
		for name, value := range Headers(bindings, json.RawMessage(arguments)) {
			h.Set(name, value)
		}
		if got := Mismatch(bindings, json.RawMessage(arguments), h); got != "" {
			t.Errorf("%s with its own headers %v: %s", arguments, h, got)
		}
	})
}

package persist

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// appendLine adds v to dst as a line.
func appendLine(dst []byte, v any) ([]byte, error) {
	out, err := appendChecked(dst, v)
	if err != nil {
		return out, err
	}
	return endLine(out, len(dst)), nil
}

// standard is what appendLine must write.
func standard(r any) (string, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	return text.String(), err
}

// fill sets v at random, to its zero value about every third time.
func fill(random *rand.Rand, v reflect.Value) {
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	if random.IntN(3) == 0 {
		return
	}
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte(pick(`{}`, ` { "a" : [ 1 , 2.50e+3 , "x y\n<\u2028" ] }`+"\n",
			`null`, `"\/"`, `[true,false]`, "\"\u2028\"")))
		if random.IntN(100) == 0 {
			v.SetBytes([]byte(pick(`{`, ` `, `01`, "\"\n\"", `[1,]`, `{} x`)))
		}
		return
	case time.Time:
		zone := time.FixedZone("", 60*(random.IntN(1400)-700)) // whole minutes: a zone of less is written as +00:00 and read as Z
		v.Set(reflect.ValueOf(time.Unix(random.Int64N(4e9), random.Int64N(1e9)/1000*1000).In(zone)))
		return
	case map[string]any:
		v.Set(reflect.ValueOf(map[string]any{"z": 1, "a<": "<&>", "\u2029\x01": nil, "f": 1e21, "g": 0.1, "b": true,
			"i": int64(-7), "m": map[string]any{"y": []any{"<", 2}, "x": nil}, "j": json.Number("1.0")}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(pick("plain", "<a href=\"x\">&amp;</a>", "tab\tline\nreturn\rback\\\b\f\x00\x1f\x7f",
			"\u2028 \u2029 é 漢 😀 \ufffd",
			"bad \xff\xc3", "\xe2\x80", strings.Repeat("long ", 50)))
	case reflect.Interface:
		v.Set(reflect.ValueOf([]any{"<&>", 7, map[string]any{"b": "<", "a": nil}, struct {
			Tool string `json:"tool"`
		}{"mcp.a.b"}}[random.IntN(4)]))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(random.Int64() - random.Int64())
	case reflect.Float64:
		v.SetFloat([]float64{0, 50, 33.333333333333336, 1e-9, 1e21}[random.IntN(5)])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(random, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), random.IntN(4), 4))
		for i := range v.Len() {
			fill(random, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(random, v.Field(i))
		}
	default:
		panic("fill: " + v.Type().String() + " has no case: add one")
	}
}

func FuzzStringIsThatOfEncodingJSON(f *testing.F) {
	f.Add("a\x00\"\\<>&\u2028\u2029\ufffd\xff")
	f.Fuzz(func(t *testing.T, text string) {
		want, err := standard(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := appendLine(nil, text); string(got) != want || err != nil {
			t.Fatalf("%q: got %s, want %s, %v", text, got, want, err)
		}
	})
}

// FuzzRawTexts: whatever a raw text holds, a line is JSON, and one line.
func FuzzRawTexts(f *testing.F) {
	for _, text := range []string{``, ` `, `0`, `-`, `01`, `1.5e`, `"`, `"a`, `"\`, `"\u12`, "\"\t\"", `{ }`, "{\n}", "[1,\r\n2]", `{"a":}`, `[1,]`, `{} {}`, `nul`, "\ufeff{}",
		"\x00", strings.Repeat("[", 5000) + "\n" + strings.Repeat("]", 5000), strings.Repeat("[", 1_000_000)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := appendLine([]byte("before\n"), map[string]any{"a": json.RawMessage(text)})
		if json.Valid(text) && len(text) < 9000 && err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil && string(got) != "before\n" || err == nil && (!json.Valid(got[7:]) || bytes.Count(got, []byte("\n")) != 2 || got[len(got)-1] != '\n') {
			t.Fatalf("%q: got %q, %v", text, got, err)
		}
	})
}

// BenchmarkEncode encodes the two lines of an ordinary call, and what goes before them.
func BenchmarkEncode(b *testing.B) {
	var first, last []byte
	b.ReportAllocs()
	for b.Loop() {
		c, end := OrdinaryCall()
		first, _, _ = c.line(nil)
		FinishCall(c)
		last, _, _ = c.line(end)
	}
	b.SetBytes(int64(len(first) + len(last)))
}

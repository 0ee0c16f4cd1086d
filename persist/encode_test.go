package persist

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// standard is what appendRecord must write.
func standard(r any) (string, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	return text.String(), err
}

// otherRecord is a kind of record that appendRecord does not know.
type otherRecord struct {
	tool.Head
	Text string `json:"text"`
}

func (otherRecord) RecordObject() tool.Object { return "other" }

// TestEncodingIsThatOfEncodingJSON fills records of every kind at random, by reflection, so that it also covers fields
// that are added later.
func TestEncodingIsThatOfEncodingJSON(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, kind := range append(tool.RecordKinds(), tool.RecordKind{Type: otherRecord{}}) {
		refused := 0
		for round := range 2000 {
			value := reflect.New(reflect.TypeOf(kind.Type))
			for i := range value.Elem().NumField() {
				if round > 0 { // the first one has no field set
					fill(random, value.Elem().Field(i))
				}
			}
			want, wantErr := standard(value.Interface())
			for _, r := range []tool.Record{value.Interface().(tool.Record), value.Elem().Interface().(tool.Record)} {
				got, err := appendRecord([]byte("before\n"), r)
				if (err != nil) != (wantErr != nil) {
					t.Fatalf("%T %+v\nerror %v, encoding/json has %v", r, r, err, wantErr)
				}
				if string(got) != "before\n"+want {
					t.Fatalf("%T\ngot  %q\nwant %q", r, got, want)
				}
			}
			if wantErr != nil {
				refused++
			}
		}
		if refused > 1000 {
			t.Errorf("%T: %d of 2000 are refused: too few are compared", kind, refused)
		}
	}
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
		zone := time.FixedZone("", random.IntN(86_000)-43_000)
		v.Set(reflect.ValueOf(time.Unix(random.Int64N(4e9), random.Int64N(1e9)/1000*1000).In(zone)))
		if random.IntN(200) == 0 {
			v.Set(reflect.ValueOf(time.Date(10_000+random.IntN(2), 1, 1, 0, 0, 0, 0, time.UTC)))
		}
		return
	case map[string]any:
		v.Set(reflect.ValueOf(map[string]any{"z": 1, "a<": "<&>", "\u2029\x01": nil, "f": 1e21, "g": 0.1, "b": true,
			"i": int64(-7), "m": map[string]any{"y": []any{"<", 2}, "x": nil}, "n": 12 * time.Second, "j": json.Number("1.0")}))
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

func FuzzCompactIsThatOfEncodingJSON(f *testing.F) {
	for _, text := range []string{``, ` `, `0`, `-0`, `-`, `01`, `1.`, `1.5e`, `1e+5`, `1E-05`, `12345678901234567890.10`,
		`"`, `"a`, `"\`,
		`"\u12`, `"\u12aF"`, `"\x"`, "\"\t\"", "\"\x7f\xff\"", `{}`, `{ }`, `{"a":}`, `{"a" : 1 , "b":[ ] }`,
		`{a:1}`, `{"a":1,}`, `[1,]`,
		`[,1]`, `[1 2]`, `[[[]]]`, `{} {}`, `nul`, `true`, `falsey`, "\ufeff{}",
		"\u00a0{}", "[\v]", `{"a":1}` + "\x00", "\x00", `[}`, `{]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want bytes.Buffer
		err := json.Compact(&want, text)
		got, ok := appendCompact([]byte("before"), text)
		if ok != (err == nil) {
			t.Fatalf("%q: ok is %v, json.Compact says %v", text, ok, err)
		}
		if ok && string(got) != "before"+want.String() || !ok && string(got) != "before" {
			t.Fatalf("%q: got %q, want %q", text, got, want.String())
		}
	})
}

func FuzzStringIsThatOfEncodingJSON(f *testing.F) {
	f.Add("a\x00\"\\<>&\u2028\u2029\ufffd\xff")
	f.Fuzz(func(t *testing.T, text string) {
		want, err := standard(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendString(nil, text)) + "\n"; got != want {
			t.Fatalf("%q: got %s, want %s", text, got, want)
		}
	})
}

const maxNesting = 10_000 // the bound of encoding/json

func TestCompactBoundsNesting(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]bool{maxNesting: true, maxNesting + 1: false, 1_000_000: false} {
		text := []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
		_, ok := appendCompact(nil, text)
		if std := json.Compact(new(bytes.Buffer), text) == nil; ok != want || std != want {
			t.Errorf("depth %d: %v, encoding/json %v, want %v", depth, ok, std, want)
		}
	}
}

// BenchmarkEncode encodes the two lines of an ordinary call, and what goes before them.
func BenchmarkEncode(b *testing.B) {
	var line []byte
	b.ReportAllocs()
	for b.Loop() {
		c, end := OrdinaryCall()
		line, _ = c.line(line[:0], nil)
		FinishCall(c)
		line, _ = c.line(line, end)
	}
	b.SetBytes(int64(len(line)))
}

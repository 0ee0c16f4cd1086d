package rawjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestAppendMember(t *testing.T) {
	t.Parallel()
	got := AppendMember(AppendMember([]byte(`{"x":{`), `a\u0062`, []byte(`[{}]`)), "c", []byte(`1.0`))
	if want := `{"x":{"a\u0062":[{}],"c":1.0`; string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSetAndDelete(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, key, value, set, deleted string }{
		{"empty", `{}`, "a", `1`, `{"a":1}`, `{}`},
		{"spaces", "{ }", "a", `1`, `{ "a":1}`, `{ }`},
		{"only", `{"a":2}`, "a", `1`, `{"a":1}`, `{}`},
		{"first", `{"a":2,"b":3}`, "a", `1`, `{"a":1,"b":3}`, `{"b":3}`},
		{"middle", `{"x":0,"a":[1,2],"b":3}`, "a", `1`, `{"x":0,"a":1,"b":3}`, `{"x":0,"b":3}`},
		{"last", `{"x":"a,b","a":{"a":1}}`, "a", `1`, `{"x":"a,b","a":1}`, `{"x":"a,b"}`},
		{"absent", `{"x":12345678901234567890}`, "a", `"y"`, `{"x":12345678901234567890,"a":"y"}`, `{"x":12345678901234567890}`},
		{"twice", `{"a":1,"x":0,"a":2}`, "a", `3`, `{"a":3,"x":0}`, `{"x":0}`},
		{"thrice", `{"a":1,"a":2,"a":9}`, "a", `3`, `{"a":3}`, `{}`},
		{"escaped key", `{"\u0061":1,"b":2}`, "a", `3`, `{"\u0061":3,"b":2}`, `{"b":2}`},
		{"white space", "{\n \"a\" : 1 ,\n \"b\" : 2 }\n", "b", `3`, "{\n \"a\" : 1 ,\n \"b\" : 3 }\n", "{\n \"a\" : 1  }\n"},
		{"quote in value", `{"s":"\"}{\\","a":1}`, "a", `2`, `{"s":"\"}{\\","a":2}`, `{"s":"\"}{\\"}`},
	} {
		set, err := Set([]byte(c.in), c.key, []byte(c.value))
		if err != nil || string(set) != c.set {
			t.Errorf("%s: Set = %s, %v; want %s", c.name, set, err, c.set)
		}
		deleted, _, err := Delete([]byte(c.in), c.key)
		if err != nil || string(deleted) != c.deleted {
			t.Errorf("%s: Delete = %s, %v; want %s", c.name, deleted, err, c.deleted)
		}
	}
}

func TestGetTakesTheLastTwin(t *testing.T) {
	t.Parallel()
	if v, ok := Get([]byte(`{"a":1,"a":2}`), "a"); !ok || string(v) != "2" {
		t.Errorf("Get = %s, %v; want 2, as encoding/json decodes it", v, ok)
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	if Valid([]byte(deep)) {
		t.Error("a text 20,000 deep is taken as valid")
	}
	if d := Depth([]byte(`{"a":["}]",{}]}`)); d != 3 {
		t.Errorf("Depth = %d, want 3", d)
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	got, err := Line([]byte("{\n  \"b\": 1.0e5, \"a\": \"\\u003c<\"\r\n}"))
	if want := `{"b":1.0e5,"a":"\u003c<"}`; err != nil || string(got) != want {
		t.Errorf("Line = %s, %v; want %s", got, err, want)
	}
	same := []byte(`{"a": 1}`)
	if got, _ := Line(same); &got[0] != &same[0] {
		t.Error("Line copied a text without line breaks")
	}
}

// FuzzMembers holds the package against encoding/json: same members, and each change changes that member only.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{}`, "{\"\xff\":null}", `{"a":1,"b":[{"a":2}],"a":"\\\""}`, `{"\u0061":null}`, ` { "x" : -1e9 } `,
		`[1,{"a":[]},"]"]`, `"\""`, `{"a":`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = Members(text, func(Member) bool { return true })
		_ = Elements(text, func([]byte) bool { return true })
		_, _ = Set(text, "a", []byte("1"))
		_, _, _ = Delete(text, "a")
		if !Valid(text) {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || want == nil {
			return
		}
		got := make(map[string]json.RawMessage)
		if err := Members(text, func(m Member) bool { got[m.Name()] = m.Value; return true }); err != nil {
			t.Fatalf("Members(%q): %v", text, err)
		}
		if !reflect.DeepEqual(compacted(got), compacted(want)) {
			t.Fatalf("Members(%q) = %s, want %s", text, got, want)
		}
		for name := range want {
			checkChange(t, text, want, name)
		}
		checkChange(t, text, want, "absent\n")
	})
}

func checkChange(t *testing.T, text []byte, members map[string]json.RawMessage, name string) {
	t.Helper()
	for _, deleting := range []bool{true, false} {
		want := make(map[string]json.RawMessage)
		for k, v := range members {
			want[k] = v
		}
		var out []byte
		var err error
		if deleting {
			delete(want, name)
			out, _, err = Delete(text, name)
		} else {
			want[name] = json.RawMessage(`[7]`)
			out, err = Set(text, name, []byte(`[7]`))
		}
		var got map[string]json.RawMessage
		if err != nil || json.Unmarshal(out, &got) != nil || !reflect.DeepEqual(compacted(got), compacted(want)) {
			t.Fatalf("change %q (delete %v) of %q = %q, %v", name, deleting, text, out, err)
		}
	}
}

func compacted(m map[string]json.RawMessage) map[string]string {
	out := make(map[string]string)
	for k, v := range m {
		var b bytes.Buffer
		_ = json.Compact(&b, v)
		out[k] = b.String()
	}
	return out
}

func TestPaths(t *testing.T) {
	t.Parallel()
	object := []byte(`{"a":{"b":"x","c":1},"d":2}`)
	if got, err := SetIn(object, []byte("3"), "a", "b"); err != nil || string(got) != `{"a":{"b":3,"c":1},"d":2}` {
		t.Errorf("%s %v", got, err)
	}
	if got, err := SetIn(object, []byte("3"), "d", "b"); err == nil {
		t.Errorf("%s", got)
	}
	if text, ok := GetString([]byte(`{"a":"x","b":1}`), "a"); text != "x" || !ok {
		t.Errorf("%q %v", text, ok)
	}
	if got, none := GetObject(object, "a"), GetObject(object, "d"); string(got) != `{"b":"x","c":1}` || string(none) != "{}" {
		t.Errorf("%s %s", got, none)
	}
	if text, ok := GetString([]byte(`{"a":"x","b":1}`), "b"); ok {
		t.Errorf("%q", text)
	}
}

// FuzzQuoteIsEncode compares the quoting of plain texts with the encoder.
func FuzzQuoteIsEncode(f *testing.F) {
	for _, text := range []string{"", "tools/call", `a"b\c`, "<&>", "\x7f", "\x1f", "é\u2028", "\xff", "~ !"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, err := Encode(text)
		if got := AppendQuote([]byte("x"), text); err != nil || string(got) != "x"+string(want) {
			t.Errorf("%q is quoted as %s, want x%s, %v", text, got, want, err)
		}
	})
}

// TestLargeTextsAreQuotedAsSmallOnes: what is quoted in parts is cut within no character.
func TestLargeTextsAreQuotedAsSmallOnes(t *testing.T) {
	t.Parallel()
	for shift := range 8 {
		for _, odd := range []string{"", "é\u2028\"\\", "\xff\xc3", "\xc3\xa9\x80\x80\x80\x80", "\U0001F600", "\n"} {
			text := strings.Repeat("a", (64<<10)-shift) + odd + strings.Repeat("日本\n\U0001F600", 3*(64<<10)/8)
			want, err := Encode(text)
			if got := AppendQuote([]byte("x"), text); err != nil || string(got) != "x"+string(want) {
				t.Errorf("%d bytes before the cut stands %q: it is quoted otherwise, %v", shift, odd, err)
			}
		}
	}
}

package rawjson

import (
	"bytes"
	"strings"
	"testing"
)

func skim(text string, piece int) *Skim {
	s := &Skim{}
	for len(text) > 0 {
		n := min(piece, len(text))
		part := []byte(text[:n])
		s.Add(part)
		clear(part) // the caller's buffer holds something else by now
		text = text[n:]
	}
	return s
}

func TestSkim(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for _, c := range []struct{ text, id, method string }{
		{`{"jsonrpc":"2.0","id":"a-1","result":{"id":"inner","text":"` + long + `"}}`, `"a-1"`, ""},
		{`{"result":{"id":"inner","text":"` + long + `"},"id": 17 ,"jsonrpc":"2.0"}`, `17`, ""},
		{`{"result":["]}\"id\":5,\\",{"id":6},"` + long + `"],"id":"b"}`, `"b"`, ""},
		{` { "` + long + `" : 1 , "id" : "c" , "method" : "tools/call", "params":{}}`, `"c"`, `"tools/call"`},
		{`{"\u0069d":"escaped","x":"` + long + `"}`, `"escaped"`, ""},
		{`{"id":"` + long + `","method":"m"}`, "", `"m"`},
		{`{"x":"` + long + `","id":"cut`, "", ""},
		{`{"x":1} {"id":"another"}`, "", ""},
		{`[{"id":"in a batch"}]`, "", ""},
		{`nonsense`, "", ""}, {``, "", ""}, {`]]]}{"id":1`, "", ""},
	} {
		for _, piece := range []int{1, 7, 4096, 1 << 20} {
			s := skim(c.text, piece)
			id, _ := s.Get("id")
			method, _ := s.Get("method")
			if string(id) != c.id || string(method) != c.method {
				t.Errorf("%.60s in pieces of %d: id %s, method %s, want %s, %s", c.text, piece, id, method, c.id, c.method)
			}
		}
	}
}

// FuzzSkim: of a well-formed object it knows what Get knows, and nothing makes it keep much.
func FuzzSkim(f *testing.F) {
	f.Add([]byte(`{"a":1,"id":"x"}`), 3)
	f.Add([]byte(`{"id":[1,{"id":2}],"\u0069d":"\"}"}`), 1)
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		s := skim(string(text), max(piece, 1))
		if len(s.members) > maxSkimmedMembers || len(s.key) > maxSkimmed || len(s.value) > maxSkimmed {
			t.Fatalf("%d members, %d and %d bytes", len(s.members), len(s.key), len(s.value))
		}
		if len(text) > maxSkimmed || !Valid(text) || !IsObject(text) || bytes.ContainsAny(text, " \t\r\n") {
			return
		}
		n := 0
		_ = Members(text, func(Member) bool { n++; return true })
		if n > maxSkimmedMembers {
			return
		}
		_ = Members(text, func(m Member) bool {
			want, _ := Get(text, m.Name())
			if got, ok := s.Get(m.Name()); !ok || !bytes.Equal(got, want) {
				t.Errorf("%s: member %q is %s, want %s", text, m.Name(), got, want)
			}
			return true
		})
	})
}

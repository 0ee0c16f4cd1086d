package rawjson

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNotUTF8SaysWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": -1, "plain": -1, "Straße 日本 🙂 \ufffd": -1, "\xff": 0, "a\xc3": 1, "ab\xc3(": 2, "日\xed\xa0\x80": 3, "\xef\xbf\xbd\xf5": 3,
		`a lone surrogate that is escaped: \ud800`: -1, strings.Repeat("ü", 500) + "\x80" + strings.Repeat("z", 100): 1000,
	} {
		if got := NotUTF8([]byte(text)); got != want {
			t.Errorf("%.40q: %d, want %d", text, got, want)
		}
	}
}

// FuzzUTF8InPieces holds a check of pieces, wherever they are cut, against one of the whole.
func FuzzUTF8InPieces(f *testing.F) {
	for step := range byte(5) {
		f.Add([]byte(`{"a":"Straße 日本語 🙂"}`), step)
		f.Add([]byte("🙂\xf0\x9f\x99"), step)
	}
	f.Add(bytes.Repeat([]byte("é\xff"), 40), byte(33))
	f.Fuzz(func(t *testing.T, text []byte, step byte) {
		u := utf8Check{}
		for at := 0; at < len(text); {
			at = min(at+int(step)+1, len(text))
			u.add(text[:at])
		}
		text = text[:len(text)-min(int(step/2), len(text))] // the rest was the next line's
		if u.finish(text) != utf8.Valid(text) {
			t.Fatalf("%q in steps of %d: bad is %v", text, step, u.bad)
		}
	})
}

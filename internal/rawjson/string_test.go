package rawjson

import (
	"bytes"
	"strings"
	"testing"
)

// places are the indexes of text, from i on, where the inside of a string may be left and taken up again, read byte by
// byte: up to its end or to what is wrong.
func places(text []byte, i int) []bool {
	found := make([]bool, len(text)+1)
	found[i] = true
	for i < len(text) && text[i] != '"' && text[i] >= 0x20 {
		if text[i] != '\\' {
			i++
		} else if next, ok := checkEscape(text, i+1); ok {
			for i += 2; i < next; i++ {
				found[i] = true // digits that were seen can be taken for ordinary text
			}
		} else {
			break
		}
		found[i] = true
	}
	return found
}

// checkSkips holds each way to skip blocks against places, at some indexes of text.
func checkSkips(t *testing.T, text []byte) {
	t.Helper()
	for i := 0; i < len(text) && i < 70; i += 1 + i {
		right := places(text, i)
		for name, skip := range skips() {
			if to := skip(text, i); !right[to] {
				t.Fatalf("%s: %.300q from %d to %d", name, text, i, to)
			}
		}
	}
}

// stringTexts have what needs a look at every place of a block and of two.
func stringTexts() [][]byte {
	var texts [][]byte
	for _, part := range []string{`"`, `\"`, `\\`, `\\"`, `\\\"`, `\\\\\\\\`, `\x`, `\u00e9`, `\u00g9`, `\u12`, `\\u12`, "\x1f", "\n",
		"\\\n", "\x80\xff", `\ud83d\ude00\n`, `/`, `\/`} {
		for n := range 130 {
			texts = append(texts, []byte(strings.Repeat("x", n)+part+strings.Repeat("y", 140-n)))
			texts = append(texts, []byte(strings.Repeat(`\`, n)+part+strings.Repeat("y", 140-n)))
			texts = append(texts, []byte(strings.Repeat(`\n`, n/2)+strings.Repeat("x", n%2)+part+strings.Repeat(part, 20)+strings.Repeat(`z`, 70)))
		}
		texts = append(texts, bytes.Repeat([]byte(part), 300))
	}
	for c := range 256 { // each byte, as it is and escaped
		texts = append(texts, append(bytes.Repeat([]byte{'x'}, 40), append([]byte{byte(c)}, bytes.Repeat([]byte{'y'}, 200)...)...))
		texts = append(texts, append(bytes.Repeat([]byte{'x'}, 40), append([]byte{'\\', byte(c)}, bytes.Repeat([]byte{'y'}, 200)...)...))
	}
	return texts
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for _, text := range stringTexts() {
		checkSkips(t, text)
		sameAsStandard(t, append(append([]byte(`["`), text...), `"]`...))
	}
	for _, escape := range []string{`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`} {
		long := []byte(strings.Repeat("plain text "+escape, 100))
		for name, skip := range skips() { // or nothing would be gained
			if to := skip(long, 0); to < len(long)-64 {
				t.Errorf("%s: %s stops at %d of %d", escape, name, to, len(long))
			}
		}
	}
}

func FuzzString(f *testing.F) {
	f.Add([]byte(`a\n\\"b`), uint(3), uint(60))
	f.Add([]byte(`\u00e9\\\"`), uint(40), uint(1))
	f.Fuzz(func(t *testing.T, text []byte, times, before uint) {
		text = bytes.Repeat(text, 1+int(times%(1+4000/uint(len(text)+1))))
		text = append(bytes.Repeat([]byte{'x'}, int(before%130)), text...)
		checkSkips(t, text)
		sameAsStandard(t, append(append([]byte(`["`), text...), `"]`...))
		sameAsStandard(t, append(append([]byte(`{"`), text...), `":"and the value is a long one, longer than a block of 64 bytes is"}`...))
	})
}

package rawjson

import (
	"bytes"
	"strings"
	"testing"
)

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
		sameAsStandard(t, append(append([]byte(`["`), text...), `"]`...))
	}
}

func FuzzString(f *testing.F) {
	f.Add([]byte(`a\n\\"b`), uint(3), uint(60))
	f.Add([]byte(`\u00e9\\\"`), uint(40), uint(1))
	f.Fuzz(func(t *testing.T, text []byte, times, before uint) {
		text = bytes.Repeat(text, 1+int(times%(1+4000/uint(len(text)+1))))
		text = append(bytes.Repeat([]byte{'x'}, int(before%130)), text...)
		sameAsStandard(t, append(append([]byte(`["`), text...), `"]`...))
		sameAsStandard(t, append(append([]byte(`{"`), text...), `":"and the value is a long one, longer than a block of 64 bytes is"}`...))
	})
}

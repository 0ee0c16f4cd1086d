package rawjson

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// validTexts are texts around each rule of the grammar.
func validTexts() []string {
	texts := []string{
		``, ` `, `{}`, ` { } `, `[]`, `[ ]`, `[1]`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, `{]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`,
		`{"a":1 "b":2}`, `{"a":1,"b":[{"c":null}],"d":{"e":{}}}`, `{a:1}`, `{"a":{"b":[[],[[]]]}}`, `[[1],[2,[3]]]`, `[[1],[2,[3]]`,
		`0`, `-0`, `00`, `01`, `-`, `+1`, `1.`, `.1`, `1.5`, `1e5`, `1E+5`, `1e-5`, `1e`, `1e+`, `1.e1`, `-1.0e-10`, `12a`, `0x1`,
		`true`, `false`, `null`, `tru`, `nulll`, `True`, `true false`, `{} {}`, `{}x`, "\ufeff{}", "{}\x00", "[1]\n\t\r ", "\v1",
		`"`, `""`, `"a`, `"\"`, `"\\"`, `"\x"`, `"\/\b\f\n\r\t\""`, `"\u12"`, `"\u12G4"`, `"\uD834\udd1e"`, `"\u00zz"`, `"\u123`,
		"\"\x1f\"", "\"\x7f\x80\xff\"", "\"\n\"", "\"é\u2028😀\"", "[\"\x00\"]", `{"\u0061":1}`, "{\"\x01\":1}", `"a"b`, `"\u00@0"`,
		strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth),
		strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1),
		strings.Repeat(`{"a":`, MaxDepth) + "1" + strings.Repeat("}", MaxDepth),
		strings.Repeat(`[{"a":`, MaxDepth/2) + `""` + strings.Repeat("}]", MaxDepth/2),
		strings.Repeat(`[{"a":`, MaxDepth/2) + `[]` + strings.Repeat("}]", MaxDepth/2),
	}
	// Every special byte at every place of a block, and bytes next to them that are ordinary.
	for n := range 72 {
		for _, c := range []string{`"`, `\`, `\n`, `\\`, "\x00", "\x1f", " ", "!", "#", "[", "]", "\x7f", "\x80", "\xa2", "\xdc", "\xff"} {
			texts = append(texts, `["`+strings.Repeat("x", n)+c+strings.Repeat("é", 20)+`"]`)
		}
	}
	return texts
}

// sameAsStandard fails unless Valid says of text what encoding/json and the bound on the depth say.
func sameAsStandard(t *testing.T, text []byte) {
	t.Helper()
	if got, want := Valid(text), json.Valid(text) && Depth(text) <= MaxDepth; got != want {
		t.Errorf("Valid(%.200q) = %v, want %v", text, got, want)
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	for _, text := range validTexts() {
		sameAsStandard(t, []byte(text))
		for i := range min(len(text), 200) {
			sameAsStandard(t, []byte(text[:i]))
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, text := range validTexts() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		sameAsStandard(t, text)
		// A text that is mostly valid reaches further into the grammar.
		sameAsStandard(t, append(append([]byte(`{"k":[`), text...), `]}`...))
		sameAsStandard(t, append(append([]byte(`["`), text...), `"]`...))
	})
}

// mixedText is a string whose escapes come without a pattern, as they do in files.
func mixedText(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	text := []byte(`{"text":"`)
	for len(text) < size {
		for range r.IntN(40) {
			text = append(text, byte('a'+r.IntN(26)))
		}
		text = append(text, []string{`\n`, `\"`, `\n\t\t`, `\\`, `é`, `\u00e9`}[r.IntN(6)]...)
	}
	return append(text, `"}`...)
}

func BenchmarkValid(b *testing.B) {
	small := []byte(`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello","times":3},` +
		`"_meta":{"progressToken":"p-17"}}}`)
	large := append(append([]byte(`{"text":"`), bytes.Repeat([]byte("All work and no play. "), 1<<19)...), `"}`...)
	const line = `func lookup(name string) (*entry, error) {\n\treturn find(\"entries\", name) // größer\n`
	escapes := append(append([]byte(`{"text":"`), bytes.Repeat([]byte(line), 1<<17)...), `"}`...)
	for name, text := range map[string][]byte{"small": small, "large": large, "escapes": escapes, "mixed": mixedText(10 << 20)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !Valid(text) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

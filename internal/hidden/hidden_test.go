package hidden

import (
	"strings"
	"testing"
)

func TestHidden(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain\ttext\r\nand more\n":               "plain\ttext\r\nand more\n",
		"⚠️ careful, 1️⃣ first 👩‍💻 می\u200cخواهم": "⚠️ careful, 1️⃣ first 👩‍💻 می\u200cخواهم",
		"a\u202eb\u200bc":                         `a\u{202e}b\u{200b}c`,
		"x\U000e0049\U000e0067":                   `x\u{e0049}\u{e0067}`,
		"\x1b[31mred\u009b0m":                     `\u{1b}[31mred\u{9b}0m`,
		"over\rwritten":                           `over\u{d}written`,
		"😀\ufe0f\ufe01\ufe02":                     "😀\ufe0f" + `\u{fe01}\u{fe02}`,
		"a\u200db":                                `a\u{200d}b`,
		"":                                        "",
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if (Escape(text) == text) != (len(Find(text)) == 0) || len(Find(Strip(text))) != 0 {
			t.Errorf("%q: found %q, stripped %q", text, Find(text), Strip(text))
		}
	}
	if got := Names(Find("\u202e\u202e\u200b")); got != "U+202E, U+200B" {
		t.Errorf("names %q", got)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\x9b31m")
	f.Fuzz(func(t *testing.T, s string) {
		if got := Line(s); strings.ContainsAny(got, "\x1b\x07\n\r\x00\u009b") {
			t.Fatalf("Line(%q) = %q", s, got)
		}
	})
}

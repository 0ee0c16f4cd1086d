// Package hidden knows the characters of a text that a person does not see, or that change how
// others are shown: they can carry words for a model that its person never reads. It finds them,
// takes them out, and makes them visible.
package hidden

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Is reports whether r is such a character: a control, a zero-width or bidirectional mark, a tag, a
// variation selector, a filler, or one of private use.
func Is(r rune) bool {
	if r < 0x7f {
		return r < 0x20
	}
	return r == 0x2800 || // braille blank: a letter without dots
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp,
			unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Find returns the hidden characters of text, each once, in the order in which they come. Line breaks, tabs and what
// writing needs (the selector of an emoji, the joiner between two) are none.
func Find(text string) []rune {
	var found []rune
	replace(text, func(r rune) string {
		if !slices.Contains(found, r) {
			found = append(found, r)
		}
		return ""
	})
	return found
}

// Strip is text without hidden characters.
func Strip(text string) string { return replace(text, func(rune) string { return "" }) }

// Escape is text with hidden characters made visible: U+202E becomes \u{202e}. Nothing that a terminal obeys is left.
func Escape(text string) string {
	return replace(text, func(r rune) string { return fmt.Sprintf(`\u{%x}`, r) })
}

// EscapeJSON is Escape for a text of JSON: the escapes are JSON's, so that it means the same.
func EscapeJSON(text string) string {
	return replace(text, func(r rune) string {
		var b strings.Builder
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
		return b.String()
	})
}

// ansi matches terminal control sequences: CSI, OSC, and two-byte escapes.
var ansi = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")

// Line returns text on one line, without terminal sequences and without control, formatting and invalid characters.
func Line(text string) string {
	if strings.IndexByte(text, 0x1b) >= 0 {
		text = ansi.ReplaceAllString(text, "")
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text))
}

// Cut cuts text to at most n bytes at a character's boundary, and marks the cut.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// Names are the names of characters, for people: "U+202E, U+200B".
func Names(found []rune) string {
	const most = 5
	var names []string
	for _, r := range found[:min(len(found), most)] {
		names = append(names, fmt.Sprintf("%U", r))
	}
	if over := len(found) - most; over > 0 {
		names = append(names, fmt.Sprintf("and %d more", over))
	}
	return strings.Join(names, ", ")
}

// replace is text with by in the place of each hidden character.
func replace(text string, by func(rune) string) string {
	if !strings.ContainsFunc(text, Is) {
		return text
	}
	var b strings.Builder
	before := rune(0) // the visible character right before; 0 where that is none
	for i, r := range text {
		switch {
		case !Is(r):
			before = r
			b.WriteRune(r)
		case r == '\n' || r == '\t' || r == '\r' && strings.HasPrefix(text[i+1:], "\n") ||
			isNeeded(r, before, text[i+utf8.RuneLen(r):]):
			before = 0
			b.WriteRune(r)
		default:
			before = 0
			b.WriteString(by(r))
		}
	}
	return b.String()
}

// isNeeded reports whether r belongs to its visible neighbours as people write them.
func isNeeded(r, before rune, rest string) bool {
	switch r {
	case 0xFE0E, 0xFE0F: // how a symbol is drawn
		return before > 0x7f || strings.ContainsRune("#*0123456789", before) && before != 0
	case 0x200C, 0x200D: // between letters of many scripts, and in emoji
		next, _ := utf8.DecodeRuneInString(rest)
		return (before > 0x7f || before == 0) && next > 0x7f && !Is(next) && rest != ""
	}
	return false
}

package namespace

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
)

// findHidden returns the first character of name that a person would not see, or that changes how its neighbours are
// shown: controls, zero-width and bidirectional marks, tags, variation selectors, fillers, private use, broken UTF-8.
func findHidden(name string) (r rune, found bool) {
	for i, r := range name {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(name[i:]); size == 1 {
				return r, true
			}
		}
		if hidden.Is(r) {
			return r, true
		}
	}
	return 0, false
}

// foldLook maps names that look alike to one text: compatibility forms, letter case, invisible characters, and Cyrillic
// and Greek letters drawn like Latin ones. Separators stay apart from each other.
func foldLook(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToLower(name)
	}
	var b strings.Builder
	for _, r := range norm.NFKC.String(name) {
		if !hidden.Is(r) {
			b.WriteRune(cmp.Or(latinTwin(r), latinTwin(unicode.ToLower(r)), unicode.ToLower(r)))
		}
	}
	return norm.NFC.String(b.String())
}

// foldSeparators maps each run of separators in a folded name to one underscore, so that names which differ in
// punctuation only become equal.
func foldSeparators(folded string) string {
	var b strings.Builder
	b.Grow(len(folded))
	gap := false
	for _, r := range folded {
		if strings.ContainsRune(".-_/\\:,;|+~@ \t\r\n\v\f", r) || r >= utf8.RuneSelf &&
			(unicode.IsSpace(r) || unicode.In(r, unicode.Pd, unicode.Pc)) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(r)
	}
	return b.String()
}

// latinTwin returns the lower-case ASCII character that r is drawn like, in common fonts; 0 where there is none.
// Compatibility forms such as full-width letters are not here: NFKC has replaced them before.
func latinTwin(r rune) rune {
	for _, t := range [...]struct {
		latin rune
		looks string
	}{
		{'a', "аАαΑɑᴀ"}, {'b', "ВвΒЬьʙ"}, {'c', "сСϲϹᴄ"}, {'d', "ԁԀɗᴅ"}, {'e', "еЕΕєҽᴇ"},
		{'f', "ƒꞙϝϜ"}, {'g', "ɡԍԌɢ"}, {'h', "һҺНнΗհʜ"}, {'i', "іІιΙıɩɪ"}, {'j', "јЈϳͿᴊ"},
		{'k', "кКκΚᴋ"}, {'l', "ӏӀʟ"}, {'m', "мМΜᴍ"}, {'n', "ηΝոɴ"}, {'o', "оОοΟσօᴏ"},
		{'p', "рРρΡᴘ"}, {'q', "ԛԚզ"}, {'r', "гɾʀ"}, {'s', "ѕЅꜱ"}, {'t', "тТτΤᴛ"},
		{'u', "υսʋᴜ"}, {'v', "νѵѴᴠ"}, {'w', "ԝԜѡωᴡ"}, {'x', "хХχΧ"}, {'y', "уУүҮγΥʏ"},
		{'z', "Ζᴢ"}, {'3', "зЗӡӠ"}, {'-', "‐‑‒–—―−˗⁃➖"}, {'_', "‿⁀ˍ"}, {'/', "⁄∕⧸"}, {'.', "․·‧∙⋅・。"},
		{':', "։׃∶ː"}, {' ',
			"\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"},
	} {
		if strings.ContainsRune(t.looks, r) {
			return t.latin
		}
	}
	return 0
}

package search

import (
	"strings"
	"unicode"
)

// word is one word of a text. Words written in camelCase come whole, followed by their parts.
type word struct {
	text  string // lower case
	parts int    // of a whole camelCase word: how many of the words behind it are its parts
	part  bool   // of the whole word before it
}

// Bounds on what one text adds to the index or to a query: strangers write them.
const (
	maxWordRunes = 40
	maxTextBytes = 8 << 10
)

// words cuts a text into words: at everything that is no letter or digit and where camelCase says so. Han, kana and
// Hangul, written without spaces, come as overlapping pairs. Numbers are left out: they are values, not subjects.
func words(text string, into []word) []word {
	if len(text) > maxTextBytes {
		text = text[:maxTextBytes]
	}
	start, kind := -1, other
	for i, r := range text {
		k := kindOf(r)
		if k == kind && k != other {
			continue
		}
		if start >= 0 {
			into = cut(text[start:i], kind, into)
			start = -1
		}
		kind = k
		if k != other {
			start = i
		}
	}
	if start >= 0 {
		into = cut(text[start:], kind, into)
	}
	return into
}

type runeKind uint8

const (
	other runeKind = iota
	letters
	unspaced // of a script that is written without spaces
)

func kindOf(r rune) runeKind {
	switch {
	case r < 0x80:
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return letters
		}
		return other
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		return unspaced
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
		return letters
	}
	return other
}

// cut adds the words of a run of one kind.
func cut(run string, kind runeKind, into []word) []word {
	if kind == unspaced {
		runes := []rune(run)
		if len(runes) == 1 {
			return append(into, word{text: run})
		}
		for i := range len(runes) - 1 {
			into = append(into, word{text: string(runes[i : i+2])})
		}
		return into
	}
	if len(run) > 4*maxWordRunes {
		return into // no word: an encoded value
	}
	humps := camel(run)
	whole := strings.ToLower(run)
	if len(humps) == 1 {
		if isNumber(whole) || len([]rune(whole)) > maxWordRunes {
			return into
		}
		return append(into, word{text: whole})
	}
	at := len(into)
	if len(whole) <= maxWordRunes {
		into = append(into, word{text: whole})
	}
	for _, h := range humps {
		if h = strings.ToLower(h); !isNumber(h) {
			into = append(into, word{text: h, part: len(whole) <= maxWordRunes})
		}
	}
	if len(whole) <= maxWordRunes {
		into[at].parts = len(into) - at - 1
	}
	return into
}

// camel cuts where a capital follows a small letter or digit, and before the last capital of several that a small
// letter follows: HTTPServer is HTTP and Server.
func camel(run string) []string {
	var parts []string
	runes := []rune(run)
	start := 0
	for i := 1; i < len(runes); i++ {
		up := unicode.IsUpper(runes[i])
		after := up && !unicode.IsUpper(runes[i-1])
		last := up && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]) && !pluralAcronym(runes, i)
		if after || last {
			parts = append(parts, string(runes[start:i]))
			start = i
		}
	}
	return append(parts, string(runes[start:]))
}

// pluralAcronym reports whether the small letter behind capital i only makes a plural: URLs, IDs.
func pluralAcronym(runes []rune, i int) bool {
	return i+1 < len(runes) && runes[i+1] == 's' && (i+2 == len(runes) || unicode.IsUpper(runes[i+2]))
}

func isNumber(w string) bool {
	for _, r := range w {
		if !unicode.IsDigit(r) {
			return false
		}
	}
	return true
}

// fold is a name without case and separators: what is the same to people who write names down.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

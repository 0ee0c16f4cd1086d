package search

import (
	"strings"
	"unicode"
)

// word is one word of a text. Words written in camelCase come whole, followed by their parts.
type word struct {
	text  string // lower case
	parts int    // of a whole camelCase word: how many of the words behind it are its parts
}

// Bounds on what one text adds to the index or to a query: strangers write them.
const (
	maxWordBytes = 48
	maxTextBytes = 8 << 10
)

// words cuts a text into words: at everything that is no letter or digit and, in identifiers, where
// camelCase says so. Scripts that are written without spaces (Han, kana, Hangul, Thai and its kin)
// come as overlapping pairs. Numbers are values, not subjects, and are left out but for those in
// identifiers and of three and more digits, which may be a name.
func words(text string, identifier bool) []word { return appendWords(nil, text, identifier) }

// appendWords appends the words of a text.
func appendWords(into []word, text string, identifier bool) []word {
	if len(text) > maxTextBytes {
		text = text[:maxTextBytes]
	}
	start, kind := 0, other
	for i, r := range text {
		k := kindOf(r)
		if k == kind {
			continue
		}
		if kind != other {
			into = cut(text[start:i], kind, into, identifier)
		}
		start, kind = i, k
	}
	if kind != other {
		into = cut(text[start:], kind, into, identifier)
	}
	return into
}

type runeKind uint8

const (
	other runeKind = iota
	letters
	unspaced // of a script that is written without spaces
)

const (
	unspacedFrom = 0x0E00 // where the first of these scripts begins

	// kanaMarks are of kana, and of no script: what makes a vowel long (サーバー), and the marks of narrow kana.
	kanaMarks = "\u30FC\uFF70\uFF9E\uFF9F"
)

func kindOf(r rune) runeKind {
	switch {
	case r < 0x80:
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return letters
		}
		return other
	case r >= unspacedFrom && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || strings.ContainsRune(kanaMarks, r)):
		return unspaced
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
		return letters
	}
	return other
}

// cut adds the words of a run of one kind.
func cut(run string, kind runeKind, into []word, identifier bool) []word {
	if kind == unspaced {
		return cutUnspaced([]rune(run), into)
	}
	if len(run) > 4*maxWordBytes {
		return into // no word: an encoded value
	}
	whole := strings.ToLower(run)
	humps := []string{run}
	if identifier {
		humps = camel(run)
	}
	if len(humps) == 1 {
		if len(whole) > maxWordBytes || isNumber(whole) && !identifier && len(whole) < 3 {
			return into
		}
		return append(into, word{text: whole})
	}
	at := len(into)
	if len(whole) <= maxWordBytes {
		into = append(into, word{text: whole})
	}
	for _, h := range humps {
		if h = strings.ToLower(h); len(h) <= maxWordBytes {
			into = append(into, word{text: h})
		}
	}
	if len(whole) <= maxWordBytes {
		into[at].parts = len(into) - at - 1
	}
	return into
}

func cutUnspaced(runes []rune, into []word) []word {
	if len(runes) == 1 {
		return append(into, word{text: string(runes)})
	}
	for i := range len(runes) - 1 {
		into = append(into, word{text: string(runes[i : i+2])})
	}
	return into
}

// camel cuts where a capital follows a small letter or digit, and before the last capital of several that a small
// letter follows: HTTPServer is HTTP and Server.
func camel(run string) []string {
	if !strings.ContainsFunc(run, unicode.IsUpper) {
		return []string{run}
	}
	var parts []string
	runes := []rune(run)
	start := 0
	for i := 1; i < len(runes); i++ {
		up := unicode.IsUpper(runes[i])
		after := up && !unicode.IsUpper(runes[i-1])
		last := up && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]) &&
			!pluralAcronym(runes, i)
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
	return !strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsDigit(r) })
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

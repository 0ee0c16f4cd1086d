package search

import "strings"

// stem maps the inflections of an English word to one form: "listing", "lists" and "listed" are one. It is deliberately
// light: what it misses the synonyms may know, and a wrong merge cannot be undone. Words with other letters than a to z
// are left alone.
func stem(w string) string {
	if len(w) < 4 {
		return w
	}
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return w
		}
	}
	w = derived(inflected(plural(w)))
	if len(w) > 3 && strings.HasSuffix(w, "e") {
		w = w[:len(w)-1]
	}
	if n := len(w); n > 3 && w[n-1] == 'y' && !isVowel(w[n-2]) {
		w = w[:n-1] + "i"
	}
	return w
}

func plural(w string) string {
	switch {
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"),
		strings.HasSuffix(w, "shes"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ies"):
		if len(w) > 4 {
			return w[:len(w)-3] + "y"
		}
		return w[:len(w)-1]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
		return w
	case strings.HasSuffix(w, "s"):
		return w[:len(w)-1]
	}
	return w
}

func inflected(w string) string {
	var base string
	switch {
	case strings.HasSuffix(w, "eed"):
		return w
	case strings.HasSuffix(w, "ied") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ed"):
		base = w[:len(w)-2]
	case strings.HasSuffix(w, "ing"):
		base = w[:len(w)-3]
	case strings.HasSuffix(w, "ly") && len(w) > 5:
		return w[:len(w)-2]
	default:
		return w
	}
	if len(base) < 3 || !hasVowel(base) {
		return w
	}
	n := len(base)
	switch {
	case base[n-1] == base[n-2] && strings.IndexByte("bdgmnprt", base[n-1]) >= 0:
		return base[:n-1]
	case strings.HasSuffix(base, "at"), strings.HasSuffix(base, "bl"), strings.HasSuffix(base, "iz"):
		return base + "e"
	}
	return base
}

// derived takes off the endings that make nouns of verbs where enough is left to tell words apart.
func derived(w string) string {
	for _, rule := range [...]struct {
		from, to string
		least    int // letters that must be left
	}{
		{"ization", "ize", 3}, {"isation", "ize", 3}, {"ational", "ate", 3}, {"fulness", "ful", 3},
		{"ation", "ate", 3}, {"ition", "it", 3}, {"ication", "ic", 3}, {"ction", "ct", 2}, {"ption", "pt", 2},
		{"rtion", "rt", 3},
		{"ution", "ute", 3}, {"ement", "e", 4}, {"ment", "", 4}, {"ness", "", 4}, {"ator", "ate", 3},
		{"ability", "able", 3},
		{"ally", "al", 4}, {"ise", "ize", 4},
	} {
		if base, ok := strings.CutSuffix(w, rule.from); ok && len(base) >= rule.least {
			return base + rule.to
		}
	}
	return w
}

func isVowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }

func hasVowel(w string) bool { return strings.ContainsAny(w, "aeiouy") }

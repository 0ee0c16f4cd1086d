// Package glob is the one pattern language of the hub's names: * is any run of characters, dots
// included, ? is one character, everything else stands for itself. Profiles, rules and overrides
// share it, so that a pattern means the same wherever an operator writes it.
package glob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Check returns the fault of a pattern.
func Check(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("the pattern is empty: write a name, or * for all")
	case strings.TrimSpace(pattern) != pattern:
		return fmt.Errorf("the pattern %q begins or ends in white space: remove it", pattern)
	case strings.ContainsAny(pattern, "[]{}\\"):
		return fmt.Errorf("the pattern %q holds one of []{}\\, which mean nothing here: use * and ? only", pattern)
	}
	for _, r := range pattern {
		if !unicode.IsGraphic(r) || r == utf8.RuneError {
			return fmt.Errorf("the pattern %+q holds the invisible character %U: remove it", pattern, r)
		}
	}
	return nil
}

// HasWildcard reports whether pattern can match more than one name.
func HasWildcard(pattern string) bool { return strings.ContainsAny(pattern, "*?") }

// Match reports whether pattern matches all of name. It allocates nothing and takes time in
// proportion to the product of the lengths at worst, so no pattern can stall the hub.
func Match(pattern, name string) bool {
	i := 0
	for i < len(pattern) && pattern[i] != '*' && pattern[i] != '?' {
		if i == len(name) || pattern[i] != name[i] { // most patterns are about another tool: be done with them soon
			return false
		}
		i++
	}
	j := i
	star, resume := -1, 0
	for j < len(name) {
		n, nameSize := decode(name[j:])
		p, patternSize := decode(pattern[i:])
		switch {
		case patternSize > 0 && p == '*':
			star, resume = i, j
			i++
		case patternSize > 0 && (p == '?' || p == n):
			i += patternSize
			j += nameSize
		case star >= 0:
			_, size := decode(name[resume:])
			resume += size
			i, j = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// decode returns the first character of text and its size, 0 where there is none.
func decode(text string) (rune, int) {
	if text != "" && text[0] < utf8.RuneSelf {
		return rune(text[0]), 1
	}
	r, size := utf8.DecodeRuneInString(text)
	return r, size
}

// MatchAny reports whether one of patterns matches name.
func MatchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Match(p, name) })
}

// CanBegin reports whether pattern matches any name that begins with prefix.
func CanBegin(pattern, prefix string) bool {
	p := []rune(pattern)
	at := map[int]bool{0: true} // how much of pattern may be used up
	for _, r := range prefix {
		next := make(map[int]bool)
		for i := range at {
			for ; i < len(p) && p[i] == '*'; i++ {
				next[i] = true // the star takes r
			}
			if i < len(p) && (p[i] == '?' || p[i] == r) {
				next[i+1] = true
			}
		}
		at = next
	}
	return len(at) > 0
}

package namespace

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// checkGlob reports what is wrong with a pattern of a profile.
func checkGlob(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("the pattern is empty: write a name, or * for all")
	case strings.TrimSpace(pattern) != pattern:
		return fmt.Errorf("the pattern %q begins or ends in white space: remove it", pattern)
	case strings.ContainsAny(pattern, "[]{}\\"):
		return fmt.Errorf("the pattern %q holds one of []{}\\, which mean nothing here: use * and ? only", pattern)
	}
	if r, found := hidden(pattern); found {
		return fmt.Errorf("the pattern %+q holds the invisible character %U: remove it", pattern, r)
	}
	return nil
}

func hasWildcard(pattern string) bool { return strings.ContainsAny(pattern, "*?") }

// canBegin reports whether pattern matches any name that begins with prefix.
func canBegin(pattern, prefix string) bool {
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

func matchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if tool.MatchGlob(p, name) {
			return true
		}
	}
	return false
}

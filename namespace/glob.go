package namespace

import (
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
)

// checkGlob reports what is wrong with a pattern of a profile.
func checkGlob(pattern string) error {
	if err := glob.Check(pattern); err != nil {
		return err
	}
	if r, found := hidden(pattern); found {
		return fmt.Errorf("the pattern %+q holds the invisible character %U: remove it", pattern, r)
	}
	return nil
}

func hasWildcard(pattern string) bool { return glob.HasWildcard(pattern) }

func matchGlob(pattern, name string) bool { return glob.Match(pattern, name) }

func canBegin(pattern, prefix string) bool { return glob.CanBegin(pattern, prefix) }

func matchAny(patterns []string, name string) bool { return glob.MatchAny(patterns, name) }

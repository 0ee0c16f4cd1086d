//go:build e2e

package namespace

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func TestRandomNamesDiffer(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(alphabet string, most int) string {
		var b strings.Builder
		letters := []rune(alphabet)
		for range 1 + rng.IntN(most) {
			b.WriteRune(letters[rng.IntN(len(letters))])
		}
		return b.String()
	}
	owners := map[string]tool.Name{}
	for range 50_000 {
		name := tool.MCPName(pick("ab_", 4), pick("aB_-.é", 5))
		if rng.IntN(20) == 0 {
			name = tool.MCPName(pick("ab", 60), strings.Repeat("x", 40)+pick("ab", 8))
		}
		id, ok := parseName(name)
		if !ok {
			continue
		}
		for _, shown := range []string{id.safe(), id.short()} {
			if owner, taken := owners[shown]; taken && owner != name {
				t.Fatalf("%q and %q are both shown as %q", owner, name, shown)
			}
			if !safePattern.MatchString(shown) {
				t.Fatalf("%q is shown as %q", name, shown)
			}
			owners[shown] = name
		}
	}
}

package parallel_test

import (
	"slices"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/parallel"
)

// TestDo: each is done once, few as well as many.
func TestDo(t *testing.T) {
	for _, n := range []int{0, 1, 199, 400, 1001, 12345} {
		done := make([]int, 2*n)
		parallel.Do(n, parallel.Few, func(i int) { done[i]++ })
		parallel.Do(n, 1, func(i int) { done[n+i]++ })
		if slices.ContainsFunc(done, func(times int) bool { return times != 1 }) {
			t.Errorf("of %d not each was done once", n)
		}
	}
}

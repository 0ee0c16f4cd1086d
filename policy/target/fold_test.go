package target

import (
	"math/rand/v2"
	"testing"
)

// TestSameFold: the quick comparison says what folding both says.
func TestSameFold(t *testing.T) {
	t.Parallel()
	letters := []rune("aAbBkK\u212aſsSéÉe\u0301\u200dıIiß.")
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		out := make([]rune, random.IntN(4))
		for i := range out {
			out[i] = letters[random.IntN(len(letters))]
		}
		return string(out)
	}
	same := 0
	for range 200_000 {
		a, b := word(), word()
		want := foldName(a) == foldName(b)
		if got := sameFold([]byte(a), foldName(b)); got != want {
			t.Fatalf("%+q and %+q: %t, want %t", a, b, got, want)
		}
		if want && a != b {
			same++
		}
	}
	if same < 100 {
		t.Errorf("only %d pairs that differ in spelling alone: the test says little", same)
	}
}

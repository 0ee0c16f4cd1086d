package facts

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestSecretLooksAtTheLastWordFirst: whether a name is that of a secret is said without splitting it, and the same is said.
func TestSecretLooksAtTheLastWordFirst(t *testing.T) {
	pieces := []string{"api", "Key", "key", "KEY", "token", "Token", "connection", "string", "_", "-", "page", "id", "ä", "2", "password",
		"access", strings.Repeat("x", 60), " "}
	d := rand.New(rand.NewPCG(1, 2))
	secrets := 0
	for range 20_000 {
		name := ""
		for range d.IntN(5) {
			name += pieces[d.IntN(len(pieces))]
		}
		p := property{name: name, words: split(name)}
		want := len(p.words) > 0 && p.secret(p.words[len(p.words)-1])
		if got := Secret(name); got != want {
			t.Fatalf("Secret(%q) = %v, want %v", name, got, want)
		}
		if want {
			secrets++
		}
	}
	if secrets < 1000 {
		t.Errorf("%d names of secrets among all", secrets)
	}
	if n := testing.AllocsPerRun(100, func() { Secret("some_usualName") }); n > 0 {
		t.Errorf("a name that is none takes %v allocations", n)
	}
}

package search

import (
	"cmp"
	"slices"
	"strings"
)

// Names returns the IDs, sorted, of the tools whose name, ID, alias, or server and name together
// equal name but for case and separators. scope is as in Query.
func (x *Index) Names(name string, scope *Scope) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.in(scope)
	var out []string
	for _, at := range x.named(fold(name)) {
		if p.has(at) {
			out = append(out, x.docs[at].src.ID)
		}
	}
	slices.Sort(out)
	return out
}

// minLikeness is the least likeness of a name that is offered in place of another.
const minLikeness = 0.4

// maxNameLetters bounds a name for which others are looked for: no tool's is longer.
const maxNameLetters = 256

// name is a folded name of tools.
type name struct {
	docs  []uint32
	grams uint32 // how many there are
	seal  seal
}

// seal says which pieces a text cannot have: each that it has sets one bit. Most names are unlike
// the one that is asked for, and this shows at once.
type seal [4]uint64

func (s *seal) set(g gram) { h := g.hash(); s[h>>6&3] |= 1 << (h & 63) }

func (s *seal) has(h uint32) bool { return s[h>>6&3]&(1<<(h&63)) != 0 }

func (g gram) hash() uint32 {
	h := uint32(g[0])*0x9E3779B1 ^ uint32(g[1])*0x85EBCA77 ^ uint32(g[2])*0xC2B2AE3D
	return (h ^ h>>15) * 0x2C1B3C6D >> 24
}

// newName returns a name without tools.
func newName(folded string) *name {
	n := &name{}
	for g := range pieces(folded) {
		n.grams++
		n.seal.set(g)
	}
	return n
}

// pieces yields the pieces of a text in their order.
func pieces(folded string) func(func(gram) bool) {
	return func(yield func(gram) bool) {
		g := gram{'^', '^', '^'}
		for _, r := range folded {
			if g = (gram{g[1], g[2], r}); !yield(g) {
				return
			}
		}
		yield(gram{g[1], g[2], '$'})
	}
}

// Nearest returns the IDs of at most n tools whose names are most like name, the most alike first.
// scope is as in Query.
func (x *Index) Nearest(name string, n int, scope *Scope) []string {
	folded := fold(name[:min(len(name), maxTextBytes)])
	if len(folded) > maxNameLetters {
		return nil
	}
	want := wanted{has: make(map[gram]bool)}
	for _, g := range grams(folded) {
		want.has[g] = true
		want.hashes = append(want.hashes, g.hash())
	}
	type near struct {
		id       string
		likeness float64
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.in(scope)
	var all []near
	for folded, of := range x.names {
		if !want.mayBe(of) {
			continue
		}
		likeness := want.likeness(folded)
		if likeness < minLikeness {
			continue
		}
		for _, at := range of.docs {
			if p.has(at) {
				all = append(all, near{x.docs[at].src.ID, likeness})
			}
		}
	}
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.likeness, a.likeness),
			strings.Compare(a.id, b.id))
	})
	var out []string
	for _, c := range all {
		if len(out) < n && !slices.Contains(out, c.id) {
			out = append(out, c.id)
		}
	}
	return out
}

// wanted is a name, as its pieces.
type wanted struct {
	has    map[gram]bool
	hashes []uint32
}

// mayBe reports whether a name may be alike enough: no more pieces than the seal shows are in both.
func (w *wanted) mayBe(n *name) bool {
	need := minLikeness * float64(len(w.hashes)+int(n.grams))
	if 2*float64(len(w.hashes)) < need {
		return false
	}
	both := 0
	for _, h := range w.hashes {
		if n.seal.has(h) {
			both++
		}
	}
	return 2*float64(both) >= need
}

// likeness returns the share of their pieces that two names have in common.
func (w *wanted) likeness(folded string) float64 {
	both, n := make(map[gram]bool, len(w.has)), 0
	for g := range pieces(folded) {
		n++
		if w.has[g] {
			both[g] = true
		}
	}
	return 2 * float64(len(both)) / float64(len(w.has)+n)
}

package search

import (
	"cmp"
	"slices"
	"strings"
)

// Names returns the IDs, sorted, of the tools whose name, ID, or server and name together
// equal name but for case and separators. scope is as in Query.
func (x *Index) Names(name string, scope *Scope) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.in(scope)
	var out []string
	for _, at := range x.names[fold(name)] {
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
	wanted := make(map[gram]bool)
	for g := range pieces(folded) {
		wanted[g] = true
	}
	type near struct {
		id       string
		likeness float64
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.in(scope)
	var all []near
	for folded, docs := range x.names {
		alike := shareOf(wanted, folded)
		if alike < minLikeness {
			continue
		}
		for _, at := range docs {
			if p.has(at) {
				all = append(all, near{x.docs[at].src.ID, alike})
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

// shareOf returns the share of their pieces that two names have in common.
func shareOf(wanted map[gram]bool, folded string) float64 {
	both, n := make(map[gram]bool, len(wanted)), 0
	for g := range pieces(folded) {
		n++
		if wanted[g] {
			both[g] = true
		}
	}
	return 2 * float64(len(both)) / float64(len(wanted)+n)
}

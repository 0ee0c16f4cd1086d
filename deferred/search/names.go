package search

import (
	"cmp"
	"slices"
	"strings"
)

// Names are the IDs of the tools that name names, in order of ID: their own name, ID, an alias, or server and name
// together, whatever its case and separators. scope is as in Query.
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

// minLikeness is how much of two names must be the same for one to be offered in place of the other.
const minLikeness = 0.4

// Nearest are the IDs of at most n tools whose names are most like name, the most alike first. scope is as in Query.
func (x *Index) Nearest(name string, n int, scope *Scope) []string {
	if len(name) > maxTextBytes {
		return nil
	}
	want := make(map[gram]bool)
	for _, g := range grams(fold(name)) {
		want[g] = true
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
		likeness := resemblance(want, folded)
		if likeness < minLikeness {
			continue
		}
		for _, at := range docs {
			if p.has(at) {
				all = append(all, near{x.docs[at].src.ID, likeness})
			}
		}
	}
	slices.SortFunc(all, func(a, b near) int { return cmp.Or(cmp.Compare(b.likeness, a.likeness), strings.Compare(a.id, b.id)) })
	var out []string
	for _, c := range all {
		if len(out) == n {
			break
		}
		if !slices.Contains(out, c.id) {
			out = append(out, c.id)
		}
	}
	return out
}

// resemblance is the share of their pieces that two names have in common.
func resemblance(want map[gram]bool, folded string) float64 {
	if d := len(folded) + 1 - len(want); d > 2*len(want) {
		return 0 // far longer
	}
	both, n := 0, 0
	g := gram{'^', '^', '^'}
	next := func(r rune) {
		g = gram{g[1], g[2], r}
		n++
		if want[g] {
			both++
		}
	}
	for _, r := range folded {
		next(r)
	}
	next('$')
	return 2 * float64(min(both, len(want))) / float64(len(want)+n)
}

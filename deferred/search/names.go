package search

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
)

// Names are the IDs of the tools that name names, in order of ID: their own name, ID, an alias, or server and name
// together, whatever its case and separators.
func (x *Index) Names(name string, within func(id string) bool) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []string
	for _, at := range x.names[fold(name)] {
		if id := x.docs[at].src.ID; within == nil || within(id) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// Nearest are the IDs of at most n tools whose names are most like name, the most alike first.
func (x *Index) Nearest(name string, n int, within func(id string) bool) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	want := trigrams(fold(name))
	type near struct {
		id    string
		alike float64
	}
	var all []near
	for folded, docs := range x.names {
		alike := overlap(want, trigrams(folded))
		if alike < 0.3 {
			continue
		}
		for _, at := range docs {
			all = append(all, near{x.docs[at].src.ID, alike})
		}
	}
	slices.SortFunc(all, func(a, b near) int { return cmp.Or(cmp.Compare(b.alike, a.alike), strings.Compare(a.id, b.id)) })
	var out []string
	for _, c := range all {
		if len(out) == n {
			break
		}
		if !slices.Contains(out, c.id) && (within == nil || within(c.id)) {
			out = append(out, c.id)
		}
	}
	return out
}

// trigrams are a word's three-letter pieces, its ends marked.
func trigrams(w string) map[string]bool {
	runes := []rune("^" + w + "$")
	out := make(map[string]bool)
	for i := 0; i+3 <= len(runes); i++ {
		out[string(runes[i:i+3])] = true
	}
	return out
}

// overlap is the share of two sets that they have in common (Dice).
func overlap(a, b map[string]bool) float64 {
	if len(a)+len(b) == 0 {
		return 0
	}
	both := 0
	for g := range a {
		if b[g] {
			both++
		}
	}
	return 2 * float64(both) / float64(len(a)+len(b))
}

// Regexp finds tools by a pattern over name, title and description.
func (x *Index) Regexp(ctx context.Context, re *regexp.Regexp, q Query) Answer {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t := &tally{make([]float64, len(x.docs)), make([]fieldSet, len(x.docs))}
	for at := range x.docs {
		if x.docs[at].shard == nil || ctx.Err() != nil {
			continue
		}
		d := x.docs[at].src
		for f, text := range map[field]string{fieldName: d.Name, fieldTitle: d.Title, fieldDescription: d.Description} {
			if text != "" && re.MatchString(text) {
				t.score[at] += x.rank.fields[f].weight
				t.fields[at] |= 1 << f
			}
		}
	}
	return x.answer(t, q)
}

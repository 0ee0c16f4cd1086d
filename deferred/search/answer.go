package search

import (
	"context"
	"slices"
	"strings"
)

// found is one tool with its score.
type found struct {
	doc    *doc
	score  float64
	fields fieldSet
}

// concept is one thing that a query asks for, in all the words for it; the best of them counts.
type concept struct {
	weight float64
	words  []variant
}

type variant struct {
	term   uint32
	weight float64
}

// maxConcepts bounds the work of one query.
const maxConcepts = 48

func (x *Index) search(ctx context.Context, q Query) Answer {
	if ctx.Err() != nil || x.live == 0 {
		return Answer{}
	}
	scores := x.score(x.concepts(q.Text))
	x.boostNames(q.Text, scores)
	return x.answer(scores, q)
}

// concepts reads a query.
func (x *Index) concepts(text string) []concept {
	all := words(text, nil)
	content := slices.DeleteFunc(slices.Clone(all), func(w word) bool { return x.lexicon.stops[w.text] })
	if len(content) == 0 {
		content = all
	}
	var out []concept
	seen := make(map[string]bool)
	for _, w := range content {
		s := stem(w.text)
		if seen[s] || len(out) == maxConcepts {
			continue
		}
		seen[s] = true
		c := concept{weight: 1}
		if id, ok := x.terms[s]; ok {
			c.words = append(c.words, variant{id, 1})
		}
		for _, other := range x.lexicon.synonyms[s] {
			if id, ok := x.terms[other[0]]; ok && len(other) == 1 {
				c.words = append(c.words, variant{id, x.rank.synonym})
			}
		}
		if len(c.words) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// tally is the score of every document.
type tally struct {
	score  []float64
	fields []fieldSet
}

func (x *Index) score(concepts []concept) *tally {
	t := &tally{make([]float64, len(x.docs)), make([]fieldSet, len(x.docs))}
	servers := make([]float64, len(x.slots))
	serverFields := make([]fieldSet, len(x.slots))
	best := make([]float64, max(len(x.docs), len(x.slots)))
	for _, c := range concepts {
		x.addConcept(c, func(e *entry) []posting { return e.docs }, x.live, best, t.score, t.fields)
		x.addConcept(c, func(e *entry) []posting { return e.servers }, len(x.servers), best, servers, serverFields)
	}
	for i := range x.docs {
		if sh := x.docs[i].shard; sh != nil && servers[sh.slot] > 0 {
			t.score[i] += x.rank.prior * servers[sh.slot]
			t.fields[i] |= serverFields[sh.slot]
		}
	}
	return t
}

// addConcept adds one concept's best word to the scores. best is zero, before and after.
func (x *Index) addConcept(c concept, list func(*entry) []posting, n int, best, score []float64, fields []fieldSet) {
	for _, v := range c.words {
		postings := list(&x.entries[v.term])
		w := c.weight * v.weight * idf(len(postings), n)
		for _, p := range postings {
			best[p.at] = max(best[p.at], w*float64(p.tf)/(x.rank.k1+float64(p.tf)))
			fields[p.at] |= p.fields
		}
	}
	for _, v := range c.words {
		for _, p := range list(&x.entries[v.term]) {
			score[p.at] += best[p.at]
			best[p.at] = 0
		}
	}
}

// boostNames puts the tools first whose very name the query is.
func (x *Index) boostNames(text string, t *tally) {
	for _, at := range x.names[fold(text)] {
		t.score[at] += 1000
		t.fields[at] |= 1 << fieldName
	}
}

// answer picks the hits.
func (x *Index) answer(t *tally, q Query) Answer {
	var all []found
	for at, score := range t.score {
		if score <= 0 || x.docs[at].shard == nil {
			continue
		}
		if len(q.Servers) > 0 && !slices.Contains(q.Servers, x.docs[at].shard.Name) {
			continue
		}
		all = append(all, found{&x.docs[at], score, t.fields[at]})
	}
	slices.SortFunc(all, byScore)
	if q.Within != nil {
		all = slices.DeleteFunc(all, func(f found) bool { return !q.Within(f.doc.src.ID) })
	}
	var a Answer
	for _, f := range all[:min(len(all), q.limit())] {
		a.Hits = append(a.Hits, Hit{ID: f.doc.src.ID, Score: f.score, Fields: f.fields.names()})
	}
	a.Neighbours = x.neighbours(all[:len(a.Hits)], q)
	return a
}

// neighbours are other tools of the first two servers among the hits, in order of ID.
func (x *Index) neighbours(hits []found, q Query) []string {
	var shards []*shard
	taken := make(map[string]bool)
	for _, f := range hits {
		taken[f.doc.src.ID] = true
		if len(shards) < 2 && !slices.Contains(shards, f.doc.shard) {
			shards = append(shards, f.doc.shard)
		}
	}
	var out []string
	for _, sh := range shards {
		var ids []string
		for _, at := range sh.docs {
			if id := x.docs[at].src.ID; !taken[id] && (q.Within == nil || q.Within(id)) {
				ids = append(ids, id)
			}
		}
		slices.SortFunc(ids, strings.Compare)
		out = append(out, ids...)
	}
	return out[:min(len(out), maxNeighbours)]
}

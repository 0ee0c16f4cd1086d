package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Ingredient is a part of the ranking that can be left out, to measure what it adds.
type Ingredient string

// field is a part of what describes a tool or its server.
type field uint8

const (
	fieldName field = iota
	fieldTitle
	fieldHint
	fieldAlias
	fieldSummary // the description's first sentence
	fieldDescription
	fieldProperty
	fieldPropertyText
	fieldEnum
	fieldServer
	fieldServerTitle
	fieldServerText
	numFields
)

// fieldSet is a set of fields.
type fieldSet uint16

// names are the fields' names as hits have them, the most telling first.
func (s fieldSet) names() []string {
	all := [numFields]string{"name", "title", "search_hint", "alias", "description", "description", "parameter", "parameter", "parameter",
		"server", "server", "server"}
	var out []string
	for f := range numFields {
		if s&(1<<f) != 0 && !slices.Contains(out, all[f]) {
			out = append(out, all[f])
		}
	}
	return out
}

// fieldWeight is how a word counts in a field: its weight where the field is pivot words long, less where it is longer,
// by share. Pivots are fixed, not averages, so that adding a server changes no other server's index.
type fieldWeight struct{ weight, pivot, share float64 }

// ranking is every number of the ranking.
type ranking struct {
	without map[Ingredient]bool
	fields  [numFields]fieldWeight
	k1      float64 // how soon repeating a word stops counting
	prior   float64 // what the server's own words count beside the tool's
	synonym float64 // what another word for it counts
}

func newRanking(without []Ingredient) ranking {
	r := ranking{
		without: make(map[Ingredient]bool), k1: 1.2, prior: 0.5, synonym: 0.4,
		fields: [numFields]fieldWeight{
			fieldName: {4, 3, 0.3}, fieldTitle: {3, 4, 0.3}, fieldHint: {3, 6, 0.3}, fieldAlias: {3, 3, 0.3},
			fieldSummary: {1.5, 12, 0.5}, fieldDescription: {1, 30, 0.7},
			fieldProperty: {0.6, 8, 0.6}, fieldPropertyText: {0.3, 40, 0.7}, fieldEnum: {0.3, 10, 0.7},
			fieldServer: {3, 2, 0.3}, fieldServerTitle: {2, 2, 0.3}, fieldServerText: {1, 20, 0.5},
		},
	}
	for _, w := range without {
		r.without[w] = true
	}
	return r
}

// analysis is what the index holds of one document.
type analysis struct {
	terms []weighedTerm
	names []string // folded
}

type weighedTerm struct {
	text   string
	tf     float32
	fields fieldSet
}

// gather collects terms over fields.
type gather struct {
	rank    *ranking
	lexicon lexicon
	terms   map[string]*weighedTerm
	order   []*weighedTerm
}

func (g *gather) add(f field, text string) {
	if text == "" {
		return
	}
	all := words(text, nil)
	if len(all) == 0 {
		return
	}
	w := g.rank.fields[f]
	tf := float32(w.weight / (1 - w.share + w.share*math.Max(1, float64(len(all))/w.pivot)))
	for _, one := range all {
		g.count(stem(one.text), f, tf)
	}
}

func (g *gather) count(term string, f field, tf float32) {
	t := g.terms[term]
	if t == nil {
		t = &weighedTerm{text: term}
		g.terms[term] = t
		g.order = append(g.order, t)
	}
	t.tf += tf
	t.fields |= 1 << f
}

func (g *gather) result() []weighedTerm {
	out := make([]weighedTerm, len(g.order))
	for i, t := range g.order {
		out[i] = *t
	}
	return out
}

func (r *ranking) gather(l lexicon) *gather {
	return &gather{rank: r, lexicon: l, terms: make(map[string]*weighedTerm)}
}

// document analyses one tool.
func (r *ranking) document(d *Document, s *Server, l lexicon) analysis {
	g := r.gather(l)
	g.add(fieldName, d.Name)
	g.add(fieldTitle, d.Title)
	g.add(fieldHint, d.Hint)
	g.add(fieldAlias, strings.Join(d.Aliases, " "))
	first, rest := firstSentence(d.Description)
	g.add(fieldSummary, first)
	g.add(fieldDescription, rest)
	p := schemaWords(d.Schema)
	g.add(fieldProperty, p.names)
	g.add(fieldPropertyText, p.texts)
	g.add(fieldEnum, p.enums)
	names := []string{fold(d.Name), fold(d.ID), fold(s.Name + d.Name)}
	for _, a := range d.Aliases {
		names = append(names, fold(a))
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
	return analysis{terms: g.result(), names: names}
}

// server analyses what a server says of itself.
func (r *ranking) server(s *Server, l lexicon) []weighedTerm {
	g := r.gather(l)
	g.add(fieldServer, s.Name)
	g.add(fieldServerTitle, s.Title)
	g.add(fieldServerText, s.Description)
	return g.result()
}

// firstSentence cuts a description behind its first sentence, or its first line.
func firstSentence(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	end := len(text)
	for _, mark := range []string{"\n", ". ", "。", "! ", "? "} {
		if i := strings.Index(text, mark); i > 0 && i < end {
			end = i
		}
	}
	return text[:end], text[end:]
}

// byScore orders what was found: best first, ties by ID.
func byScore(a, b found) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.doc.src.ID, b.doc.src.ID))
}

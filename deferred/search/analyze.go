package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// analysis holds the indexed values of one document. Terms are numbers of gather.texts.
type analysis struct {
	terms []weighedTerm
	name  []uint32 // stems of the name
	names []string // folded
	does  actions
}

// weighedTerm is a term with its frequency over all fields. Terms are stems; with "=" before them, words as they were
// written; with a space inside, pairs of stems.
type weighedTerm struct {
	term   uint32
	tf     float32
	fields fieldSet
	again  fieldSet // where it comes more than once
}

// repeated is the share that the second occurrence of a word in a field counts; further ones count nothing.
const repeated = 0.5

// gather collects the terms of one server's texts, which say the same words again and again.
type gather struct {
	rank    *ranking
	lexicon *lexicon
	texts   []string          // of all terms
	numbers map[string]uint32 // of texts
	forms   map[string]forms  // by word

	// of one document
	words []word
	seen  []uint32 // by term: where it is in out, from 1; 0 where it is not
	out   []weighedTerm
}

// forms are the terms of one word.
type forms struct {
	stem, exact uint32
	stops       bool
}

func newGather(r *ranking, l *lexicon) *gather {
	return &gather{rank: r, lexicon: l, numbers: make(map[string]uint32, 256), forms: make(map[string]forms, 256)}
}

// number returns the number of a term.
func (g *gather) number(text string) uint32 {
	n, ok := g.numbers[text]
	if !ok {
		n = uint32(len(g.texts))
		g.numbers[text], g.texts, g.seen = n, append(g.texts, text), append(g.seen, 0)
	}
	return n
}

func (g *gather) formsOf(word string) forms {
	f, ok := g.forms[word]
	if !ok {
		f = forms{g.number(stem(word)), g.number("=" + word), g.lexicon.stops[word]}
		g.forms[word] = f
	}
	return f
}

// take returns what was gathered; the next text begins anew.
func (g *gather) take() []weighedTerm {
	out := slices.Clone(g.out)
	for _, t := range out {
		g.seen[t.term] = 0
	}
	g.out = g.out[:0]
	return out
}

func (g *gather) add(f field, text string) {
	if text == "" {
		return
	}
	g.words = appendWords(g.words[:0], text, identifiers&(1<<f) != 0)
	w := g.rank.fields[f]
	tf := float32(w.weight / (1 - w.share + w.share*math.Max(1, float64(len(g.words))/w.pivot)))
	prev, paired := uint32(0), false
	for _, one := range g.words {
		forms := g.formsOf(one.text)
		g.count(forms.stem, f, tf)
		g.count(forms.exact, f, tf)
		if pairedFields&(1<<f) != 0 && one.parts == 0 && !forms.stops {
			if paired {
				g.count(g.number(g.texts[prev]+" "+g.texts[forms.stem]), f, tf)
			}
			prev, paired = forms.stem, true
		}
	}
}

func (g *gather) count(term uint32, f field, tf float32) {
	if g.seen[term] == 0 {
		g.out = append(g.out, weighedTerm{term: term})
		g.seen[term] = uint32(len(g.out))
	}
	t := &g.out[g.seen[term]-1]
	if t.fields&(1<<f) != 0 {
		if t.again&(1<<f) != 0 {
			return // who repeats what people ask for gains nothing
		}
		t.again |= 1 << f
		tf *= float32(repeated)
	}
	t.tf += tf
	t.fields |= 1 << f
}

// document analyses one tool.
func (g *gather) document(d *Document, server string) analysis {
	g.add(fieldName, d.Name)
	g.add(fieldTitle, d.Title)
	g.add(fieldHint, d.Hint)
	first, rest := firstSentence(d.Description)
	g.add(fieldSummary, first)
	g.add(fieldDescription, rest)
	p := schemaWords(d.Schema)
	g.add(fieldProperty, p.names)
	g.add(fieldPropertyText, p.texts)
	g.add(fieldEnum, p.enums)
	a := analysis{terms: g.take(), names: foldedNames(d, server)}
	g.words = appendWords(g.words[:0], d.Name, true)
	for _, w := range g.words {
		if w.parts == 0 {
			a.name = append(a.name, g.formsOf(w.text).stem)
		}
	}
	// The first or last word of its name says it, or else the first of its title or description.
	if n := len(a.name); n > 0 {
		a.does = g.lexicon.actions[g.texts[a.name[0]]] | g.lexicon.actions[g.texts[a.name[n-1]]]
	}
	if a.does == 0 {
		a.does = cmp.Or(g.lexicon.begins(d.Title), g.lexicon.begins(first))
	}
	return a
}

// begins returns the actions of the first word of a text.
func (l *lexicon) begins(text string) (does actions) {
	first, _, _ := strings.Cut(text, " ")
	for _, w := range words(first, false) {
		does |= l.actions[stem(w.text)]
	}
	return does
}

// server analyses what a server is called and says of itself.
func (g *gather) server(s *Server) []weighedTerm {
	g.add(fieldServer, s.Name)
	g.add(fieldServerTitle, s.Title)
	g.add(fieldServerText, s.Description)
	return g.take()
}

// foldedNames returns the names by which a tool is found exactly.
func foldedNames(d *Document, server string) []string {
	names := []string{fold(d.Name), fold(d.ID), fold(server + d.Name)}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
}

// firstSentence cuts a description behind its first sentence, or its first line.
func firstSentence(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	end := len(text)
	for _, mark := range []string{"\n", ". ", "。", "! ", "? "} {
		if i := strings.Index(text[:end], mark); i > 0 {
			end = i
		}
	}
	return text[:end], text[end:]
}

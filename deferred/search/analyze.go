package search

import (
	"math"
	"slices"
	"strings"
)

// analysis holds the indexed values of one document.
type analysis struct {
	terms []weighedTerm
	name  []string // stems of the name
	names []string // folded
	does  actions
}

// weighedTerm is a term with its frequency over all fields. Terms are stems; with "=" before them, words as they were
// written; with a space inside, pairs of stems.
type weighedTerm struct {
	text   string
	tf     float32
	fields fieldSet
	again  fieldSet // where it comes more than once
}

// repeated is the share that the second occurrence of a word in a field counts; further ones count nothing.
const repeated = 0.5

// gather collects terms over fields.
type gather struct {
	rank    *ranking
	lexicon *lexicon
	terms   map[string]int
	out     []weighedTerm
}

// take returns what was gathered; the next text begins anew.
func (g *gather) take() []weighedTerm {
	out := slices.Clone(g.out)
	clear(g.terms)
	g.out = g.out[:0]
	return out
}

func (g *gather) add(f field, text string) {
	if text == "" {
		return
	}
	all := words(text, identifiers&(1<<f) != 0)
	if len(all) == 0 {
		return
	}
	w := g.rank.fields[f]
	tf := float32(w.weight / (1 - w.share + w.share*math.Max(1, float64(len(all))/w.pivot)))
	prev := ""
	for _, one := range all {
		s := stem(one.text)
		g.count(s, f, tf)
		g.count("="+one.text, f, tf)
		if paired&(1<<f) != 0 && one.parts == 0 && !g.lexicon.stops[one.text] {
			if prev != "" {
				g.count(prev+" "+s, f, tf)
			}
			prev = s
		}
	}
}

func (g *gather) count(term string, f field, tf float32) {
	i, ok := g.terms[term]
	if !ok {
		i = len(g.out)
		g.terms[term] = i
		g.out = append(g.out, weighedTerm{text: term})
	}
	if g.out[i].fields&(1<<f) != 0 {
		if g.out[i].again&(1<<f) != 0 {
			return // who repeats what people ask for gains nothing
		}
		g.out[i].again |= 1 << f
		tf *= float32(repeated)
	}
	g.out[i].tf += tf
	g.out[i].fields |= 1 << f
}

// document analyses one tool.
func (g *gather) document(d *Document, s *Server) analysis {
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
	a := analysis{terms: g.take(), names: foldedNames(d, s)}
	for _, w := range words(d.Name, true) {
		if w.parts == 0 {
			a.name = append(a.name, stem(w.text))
		}
	}
	a.does = g.lexicon.does(a.name, d.Title, first)
	return a
}

// does returns the actions of a tool by the first or last word of its name, or else the first of
// its title or description.
func (l *lexicon) does(name []string, title, summary string) actions {
	var does actions
	if n := len(name); n > 0 {
		does = l.actions[name[0]] | l.actions[name[n-1]]
	}
	for _, text := range []string{title, summary} {
		if does != 0 {
			break
		}
		first, _, _ := strings.Cut(text, " ")
		for _, w := range words(first, false) {
			does |= l.actions[stem(w.text)]
		}
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
func foldedNames(d *Document, s *Server) []string {
	names := []string{fold(d.Name), fold(d.ID), fold(s.Name + d.Name)}
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

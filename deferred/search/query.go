package search

import (
	"cmp"
	"slices"
	"strings"
)

// concept is one thing that a query asks for, in all the words for it; a tool is credited with the best of them.
type concept struct {
	words []variant
	value float64 // what the best of its words can count
	word  bool    // it is a word of the query, and no reading of several
	known bool    // that word is the first of words: the others count as rare as it at most
}

// variant is one word for a concept.
type variant struct {
	term   uint32
	weight float64
}

// Bounds of one query: whoever asks writes it.
const (
	maxQueryBytes = 4 << 10
	maxConcepts   = 64      // one bit each of a mask
	maxUnknown    = 4       // unknown words for which a resemblance is sought
	maxNameWords  = 4       // of a query that may be a name
	sureLetters   = 5       // of a word in a sentence that is misspelt rather than another word
	maxPostings   = 250_000 // looked at in one search
)

// asked is a query as the index understands it.
type asked struct {
	concepts []concept // the most telling first
	value    float64   // of all the words asked for, known or not
	said     map[uint32]bool
	wants    actions
	servers  uint64 // concepts that name a server, a bit each
}

// reader turns a text into concepts.
type reader struct {
	p        *part
	x        *Index
	concepts []concept
	at       map[string]int // concepts by what they are
	least    int            // letters of words for which a resemblance is sought
	unknown  int
}

// read understands a query. The caller holds the lock.
func (p *part) read(text string) *asked {
	x := p.x
	if len(text) > maxQueryBytes {
		text = text[:maxQueryBytes]
	}
	all := p.split(words(withoutLiterals(text), true))
	r := reader{p: p, x: x, at: make(map[string]int)}
	if len(all) > maxNameWords {
		r.least = sureLetters // "tent" may be meant
	}
	a := &asked{said: make(map[uint32]bool)}
	stems := make([]string, len(all))
	for i, w := range all {
		stems[i] = stem(w)
	}
	a.wants = x.wants(all, stems)
	onlyStops := !slices.ContainsFunc(all, func(w string) bool { return !x.lexicon.stops[w] })
	prev := ""
	for i, w := range all {
		if x.lexicon.stops[w] && !onlyStops {
			continue
		}
		r.word(w, stems[i])
		if prev != "" {
			r.pair(prev, stems[i])
		}
		prev = stems[i]
	}
	r.phrasings(stems)
	a.concepts, a.value = r.best()
	for _, c := range a.concepts {
		for _, v := range c.words {
			a.said[v.term] = true
		}
	}
	return a
}

// wants returns the actions that the first word of substance asks for, or the words that begin
// there: "get rid of" is not to get.
func (x *Index) wants(all, stems []string) actions {
	for i, w := range all {
		does := x.lexicon.actions[stems[i]]
		if does == 0 && x.lexicon.stops[w] {
			continue
		}
		for n := min(maxPhrase, len(stems)-i); n > 1; n-- {
			var said actions
			for _, other := range x.lexicon.synonyms[strings.Join(stems[i:i+n], " ")] {
				said |= x.lexicon.actions[other]
			}
			if said != 0 {
				return said
			}
		}
		return does
	}
	return 0
}

// split decides how camelCase words are read: whole where some tool or server has them so
// ("GitHub"), otherwise in parts.
func (p *part) split(all []word) []string {
	out := make([]string, 0, len(all))
	for i := 0; i < len(all); i++ {
		w := all[i]
		if w.parts == 0 {
			out = append(out, w.text)
			continue
		}
		if _, known := p.term(stem(w.text)); known {
			out = append(out, w.text)
			i += w.parts
		}
	}
	return out
}

// best returns the concepts that the index knows, the most telling first, as many as there is room
// for, and the value of all words: one that nothing has would be the rarest.
func (r *reader) best() (all []concept, value float64) {
	for i := range r.concepts {
		c := &r.concepts[i]
		for _, v := range c.words {
			c.value = max(c.value, v.weight*idf(max(1, len(r.p.docsOf(v.term))), r.p.live))
		}
		if c.word && len(c.words) == 0 {
			value += idf(1, r.p.live)
		} else if c.word {
			value += c.value
		}
	}
	known := slices.DeleteFunc(r.concepts, func(c concept) bool { return len(c.words) == 0 })
	slices.SortStableFunc(known, func(a, b concept) int { return cmp.Compare(b.value, a.value) })
	return known[:min(len(known), maxConcepts)], value
}

// concept returns the place of the concept of key.
func (r *reader) concept(key string) int {
	i, ok := r.at[key]
	if !ok {
		i = len(r.concepts)
		r.at[key] = i
		r.concepts = append(r.concepts, concept{})
	}
	return i
}

// say adds a word to a concept if the index knows it.
func (r *reader) say(concept int, term string, weight float64) bool {
	id, ok := r.p.term(term)
	if ok {
		c := &r.concepts[concept]
		c.words = append(c.words, variant{id, weight})
	}
	return ok
}

func (r *reader) word(w, s string) {
	if _, twice := r.at[s]; twice {
		return
	}
	rank, weight := &r.x.rank, 1.0
	others := r.x.lexicon.synonyms[s]
	if r.x.lexicon.actions[s] != 0 {
		weight = rank.verb
	}
	c := r.concept(s)
	r.concepts[c].word = !strings.ContainsAny(w, "0123456789") // with digits it is a value
	known := r.say(c, s, weight)
	r.concepts[c].known = known
	for _, other := range others {
		known = r.say(c, other, weight*rank.synonym) || known
	}
	if known {
		r.once("="+w, rank.unstemmed)
		return
	}
	if len(others) == 0 && r.widen(c, w, weight) {
		return
	}
	if r.split(c, w) {
		return
	}
	if r.unknown < maxUnknown && len(w) >= r.least && len(others) == 0 {
		r.unknown++
		for _, a := range r.p.alike(w) {
			r.say(c, stem(a.word), rank.misspelt*a.likeness)
		}
	}
}

// widen adds to a concept what WordNet has for an unknown word.
func (r *reader) widen(concept int, w string, weight float64) (known bool) {
	like, wider := wordNet().of(w)
	for _, other := range like {
		known = r.say(concept, stem(other), weight*r.x.rank.like) || known
	}
	for _, other := range wider {
		known = r.say(concept, stem(other), weight*r.x.rank.wider) || known
	}
	return known
}

// split reads an unknown word as two known ones.
func (r *reader) split(concept int, w string) bool {
	for i := len(w) - 2; i > 2; i-- {
		front, back := stem(w[:i]), stem(w[i:])
		_, ok := r.p.term(front)
		_, ok2 := r.p.term(back)
		if ok && ok2 {
			r.say(concept, front, r.x.rank.compound)
			r.once(back, r.x.rank.compound)
			return true
		}
	}
	return false
}

// pair reads two neighbouring words as the phrase that they may be, and as the one word that others write.
func (r *reader) pair(a, b string) {
	r.once(a+" "+b, r.x.rank.phrase)
	if len(a)+len(b) > 5 {
		r.once(a+b, r.x.rank.compound)
	}
}

// once adds a known term that is a concept of its own.
func (r *reader) once(term string, weight float64) {
	_, known := r.p.term(term)
	if _, twice := r.at[term]; known && !twice {
		r.say(r.concept(term), term, weight)
	}
}

// phrasings adds what others call things that the query says in several words, stop words included.
func (r *reader) phrasings(stems []string) {
	for i := range stems {
		for n := 2; n <= maxPhrase && i+n <= len(stems); n++ {
			key := strings.Join(stems[i:i+n], " ")
			others := r.x.lexicon.synonyms[key]
			if _, twice := r.at["~"+key]; twice || len(others) == 0 {
				continue
			}
			c := r.concept("~" + key)
			for _, other := range others {
				r.say(c, other, r.x.rank.phrasing)
			}
		}
	}
}

package search

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// gram is three letters of a word, its ends marked.
type gram [3]rune

// likeness is a known word that resembles an unknown one.
type likeness struct {
	word     string
	likeness float64 // up to 1
}

// spelt returns the word of a term; ok is false if that is stemmed or too short.
func spelt(term string) (string, bool) {
	w, ok := strings.CutPrefix(term, "=")
	return w, ok && len(w) > 2
}

func (x *Index) addGrams(id uint32) {
	if w, ok := spelt(x.entries[id].text); ok {
		for _, g := range grams(w) {
			x.grams[g] = append(x.grams[g], id)
		}
	}
}

func (x *Index) removeGrams(id uint32) {
	if w, ok := spelt(x.entries[id].text); ok {
		for _, g := range grams(w) {
			x.grams[g] = slices.DeleteFunc(x.grams[g], func(other uint32) bool { return other == id })
			if len(x.grams[g]) == 0 {
				delete(x.grams, g)
			}
		}
	}
}

// grams returns the pieces of a word, each once.
func grams(w string) []gram {
	out := make([]gram, 0, len(w)+1)
	for g := range pieces(w) {
		if !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// alike returns the known words that differ from w by one or two typing errors, the most alike first.
func (p *part) alike(w string) []likeness {
	n := len([]rune(w))
	if n < 3 || strings.ContainsAny(w, "0123456789") {
		return nil
	}
	slips := 1
	if n >= 8 {
		slips = 2
	}
	shared := make(map[uint32]int)
	for _, g := range grams(w) {
		for _, id := range p.x.grams[g] {
			shared[id]++
		}
	}
	var out []likeness
	for id, n2 := range shared {
		if n2 < 2 && n > 4 {
			continue
		}
		other, _ := spelt(p.x.entries[id].text)
		if far := len([]rune(other)) - n; far > slips || far < -slips {
			continue
		}
		if d := textfile.Distance(w, other); d <= slips && p.knows(id) {
			out = append(out, likeness{other, 1 - float64(d)/float64(n)})
		}
	}
	slices.SortFunc(out, func(a, b likeness) int {
		return cmp.Or(cmp.Compare(b.likeness, a.likeness), strings.Compare(a.word, b.word))
	})
	return out[:min(len(out), 3)]
}

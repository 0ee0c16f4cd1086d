package search

import (
	"cmp"
	"slices"
	"strings"
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
		if d := distance(w, other, slips); d <= slips && p.knows(id) {
			out = append(out, likeness{other, 1 - float64(d)/float64(n)})
		}
	}
	slices.SortFunc(out, func(a, b likeness) int {
		return cmp.Or(cmp.Compare(b.likeness, a.likeness), strings.Compare(a.word, b.word))
	})
	return out[:min(len(out), 3)]
}

// distance counts the letters to insert, delete, replace or swap with the next to make one word of
// the other. A distance of more than most is most+1.
func distance(a, b string, most int) int {
	s, t := []rune(a), []rune(b)
	if len(s)-len(t) > most || len(t)-len(s) > most {
		return most + 1
	}
	rows := [3][]int{make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)}
	for j := range rows[0] {
		rows[1][j] = j
	}
	for i := 1; i <= len(s); i++ {
		before, last, row := rows[(i-1)%3], rows[i%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return min(rows[(len(s)+1)%3][len(t)], most+1)
}

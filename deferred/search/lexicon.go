package search

import (
	_ "embed"
	"strings"
)

//go:embed stopwords.txt
var stopwordsText string

//go:embed synonyms.txt
var synonymsText string

// lexicon is what is known of words beforehand. It is never changed.
type lexicon struct {
	stops map[string]bool
	// synonyms by stem; each is one way of saying it: the stems that must all occur.
	synonyms map[string][][]string
}

func newLexicon() lexicon {
	l := lexicon{stops: make(map[string]bool), synonyms: make(map[string][][]string)}
	for line := range lines(stopwordsText) {
		for _, w := range strings.Fields(line) {
			l.stops[w] = true
		}
	}
	for line := range lines(synonymsText) {
		from, to, oneWay := strings.Cut(line, ">")
		if !oneWay {
			to = from
		}
		for _, f := range members(from) {
			for _, t := range members(to) {
				if strings.Join(f, " ") != strings.Join(t, " ") {
					key := strings.Join(f, " ")
					l.synonyms[key] = append(l.synonyms[key], t)
				}
			}
		}
	}
	return l
}

// lines yields what a data file says: neither empty lines nor comments.
func lines(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !yield(line) {
				return
			}
		}
	}
}

// members are the ways of saying it that a list names, each as its stems.
func members(list string) [][]string {
	var out [][]string
	for m := range strings.SplitSeq(list, ",") {
		var stems []string
		for _, w := range words(m, nil) {
			stems = append(stems, stem(w.text))
		}
		if len(stems) > 0 {
			out = append(out, stems)
		}
	}
	return out
}

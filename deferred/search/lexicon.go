package search

import (
	_ "embed"
	"strings"
)

//go:embed stopwords.txt
var stopwordsText string

//go:embed synonyms.txt
var synonymsText string

//go:embed actions.txt
var actionsText string

// lexicon holds stop words, synonyms and actions. It is never changed.
type lexicon struct {
	stops    map[string]bool
	synonyms map[string][]string // by the stems of a way of saying it: the stems of the others
	actions  map[string]actions  // by stem
}

// actions is a set of classes of what can be done.
type actions uint8

// maxPhrase bounds the words of a synonym.
const maxPhrase = 5

func newLexicon() *lexicon {
	l := &lexicon{stops: make(map[string]bool), synonyms: make(map[string][]string), actions: make(map[string]actions)}
	for line := range lines(stopwordsText) {
		for _, w := range strings.Fields(line) {
			l.stops[w] = true
		}
	}
	l.readActions()
	l.readSynonyms()
	return l
}

func (l *lexicon) readActions() {
	classes := make(map[string]actions)
	for line := range lines(actionsText) {
		class, list, _ := strings.Cut(line, ":")
		if classes[class] == 0 {
			classes[class] = 1 << len(classes)
		}
		for _, w := range strings.Fields(list) {
			l.actions[stem(w)] |= classes[class]
		}
	}
}

func (l *lexicon) readSynonyms() {
	for line := range lines(synonymsText) {
		from, to, oneWay := strings.Cut(line, ">")
		if !oneWay {
			to = from
		}
		for _, f := range members(from) {
			for _, t := range members(to) {
				if f != t {
					l.synonyms[f] = append(l.synonyms[f], t)
				}
			}
		}
	}
}

// lines yields the lines of a data file, without empty ones and comments.
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

// members returns the synonyms in a list, each as its stems.
func members(list string) []string {
	var out []string
	for m := range strings.SplitSeq(list, ",") {
		var stems []string
		for _, w := range words(m, false) {
			stems = append(stems, stem(w.text))
		}
		if len(stems) > 0 {
			out = append(out, strings.Join(stems, " "))
		}
	}
	return out
}

// withoutLiterals replaces each path, URL and address in text by its kind: their parts are no subjects.
func withoutLiterals(text string) string {
	chunks := strings.Fields(text)
	for i, c := range chunks {
		if kind := literal(strings.Trim(c, "\"'`()[]<>,;:!?.")); kind != "" {
			chunks[i] = kind
		}
	}
	return strings.Join(chunks, " ")
}

// literal returns the kind of value that a chunk of text is; "" if it is none.
func literal(c string) string {
	if c == "" {
		return ""
	}
	if strings.Contains(c, "://") || strings.HasPrefix(c, "www.") {
		return "url"
	}
	if at := strings.IndexByte(c, '@'); at > 0 && strings.Contains(c[at:], ".") {
		return "email"
	}
	absolute := c[0] == '/' && strings.Count(c, "/") > 1
	drive := len(c) > 3 && c[1:3] == `:\`
	if !absolute && !drive && !strings.HasPrefix(c, "./") && !strings.HasPrefix(c, "~/") {
		return ""
	}
	if dot := strings.LastIndexByte(c, '.'); dot > strings.LastIndexAny(c, `/\`) {
		return "file path " + c[dot+1:]
	}
	return "file path"
}

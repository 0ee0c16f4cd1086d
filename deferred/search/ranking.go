package search

import "slices"

// field is a part of what describes a tool or its server.
type field uint8

const (
	fieldName field = iota
	fieldTitle
	fieldHint
	fieldSummary // the description's first sentence
	fieldDescription
	fieldProperty
	fieldPropertyText
	fieldEnum
	fieldServer
	fieldServerTitle
	fieldServerText
	fieldMeaning // none that is indexed: the tool was found by meaning
	fieldLearned // none, either: it answered such a question before
	numFields
)

// fieldSet is a set of fields.
type fieldSet uint16

// names returns the fields as hits name them, the most telling first.
func (s fieldSet) names() []string {
	all := [numFields]string{
		"name", "title", "search_hint", "description", "description", "parameter", "parameter", "parameter",
		"server", "server", "server", "meaning", "learned",
	}
	var out []string
	for f := range numFields {
		if s&(1<<f) != 0 && !slices.Contains(out, all[f]) {
			out = append(out, all[f])
		}
	}
	return out
}

// identifiers are fields whose texts are written for programs: camelCase is cut and numbers are kept.
const identifiers fieldSet = 1<<fieldName | 1<<fieldProperty | 1<<fieldEnum | 1<<fieldServer

// pairedFields are those whose neighbouring words are indexed as pairs. They are the short ones.
const pairedFields fieldSet = 1<<fieldName | 1<<fieldTitle | 1<<fieldHint | 1<<fieldServer |
	1<<fieldServerTitle

// fieldWeight weighs a word in a field: with weight if the field is up to pivot words long, with
// less if it is longer, the more so the larger share is (0: not at all, 1: half of it in a text of
// twice the pivot). Pivots are fixed and not averages, so that adding a server does not change the
// index of the others.
type fieldWeight struct{ weight, pivot, share float64 }

// ranking is every number of the ranking. They were chosen where the measured figures are flat: half or twice of one
// changes little, see docs/search.md.
type ranking struct {
	fields [numFields]fieldWeight
	// saturation is the weighted frequency at which a word counts half of what it could: repeating
	// it adds less and less.
	saturation float64
	prior      float64 // what a server's own words count beside its tools'
	named      float64 // what naming a server adds to its tools
	synonym    float64 // what another word counts beside the word asked for
	like       float64 // what a word of like meaning counts for an unknown one
	wider      float64 // what a word of wider meaning counts for an unknown one
	verb       float64 // what a word for something to do counts beside one for a thing
	phrasing   float64 // what a word counts that stands for several of the question's
	unstemmed  float64 // what the very form adds
	phrase     float64 // what a pair of words adds
	compound   float64 // what the parts or the whole of a compound count
	misspelt   float64 // what a word counts for the one that it resembles, at most
	coverage   float64 // by how much a tool gains that covers the whole question
	nameCover  float64 // by how much one gains whose whole name the question says
	action     float64 // by how much one loses that does something else
	alike      float64 // by how much a tool loses at most, in a long question, that is like a better one
	bare       float64 // by how much one loses that has nothing of the question but its server's name
	learned    float64 // by how much one gains that was called after questions with all of these words
}

func newRanking() ranking {
	return ranking{
		saturation: 2, prior: 0.6, named: 0.7, synonym: 0.8, like: 0.5, wider: 0.3, verb: 0.8, phrasing: 0.8,
		unstemmed: 0.4, phrase: 0.3, compound: 0.6, misspelt: 0.8, coverage: 0.5, nameCover: 0.35, action: 0.2,
		alike: 0.4, bare: 0.5, learned: 0.5,
		fields: [numFields]fieldWeight{
			fieldName: {3, 3, 0.3}, fieldTitle: {3, 4, 0.3}, fieldHint: {3, 6, 0.3},
			fieldSummary: {1.5, 12, 0.5}, fieldDescription: {1, 30, 0.7},
			fieldProperty: {0.6, 8, 0.6}, fieldPropertyText: {0.5, 40, 0.7}, fieldEnum: {0.3, 10, 0.7},
			fieldServer: {3, 2, 0.3}, fieldServerTitle: {2, 2, 0.3}, fieldServerText: {1, 20, 0.7},
		},
	}
}

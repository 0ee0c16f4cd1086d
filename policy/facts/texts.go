package facts

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// mask is a set of effects.
type mask uint16

func (m mask) has(e effect) bool { return m&(1<<e) != 0 }
func (m mask) any() bool         { return m != 0 }

// evidence is the evidence of texts about the effects of a tool.
type evidence struct {
	hard mask   // effects that a text names without doubt
	soft mask   // effects that it names if its words mean what they may
	why  string // the first word of hard or soft, and where it stands
}

func (e *evidence) add(v verb, word, where string) {
	if !v.effect.writes() {
		return
	}
	e.why = cmp.Or(e.why, where+` "`+word+`"`)
	if v.soft {
		e.soft |= 1 << v.effect
	} else {
		e.hard |= 1 << v.effect
	}
}

// nameEvidence is the evidence of a tool name.
type nameEvidence struct {
	evidence
	lead         effect // of its first verb, where that changes nothing
	verbless     bool
	saysReadOnly bool
	network      bool
	browser      bool
	derivative   bool
	files        bool
	readLast     bool // ends in a verb that reads, after nouns that are verbs as well: pull_request_read
	query        bool // speaks of a query
	database     bool // speaks of a database
	foreign      bool // holds a word of a language that is not read here
}

// readName reads a tool's own name, but for the name of its server at the beginning.
func readName(native, server string) nameEvidence {
	n := nameEvidence{verbless: true}
	words := split(native)
	own := split(server)
	for len(words) > 1 && (slices.Contains(own, words[0])) {
		words = words[1:]
	}
	first := true
	for i, w := range words {
		if w == "readonly" || w == "only" && i > 0 && words[i-1] == "read" {
			n.saysReadOnly = true
		}
		n.foreign = n.foreign || strings.ContainsFunc(w, func(r rune) bool { return r >= utf8.RuneSelf })
		n.network = n.network || networkWord(w)
		n.browser = n.browser || browserWord(w)
		n.derivative = n.derivative || derivative(w)
		n.files = n.files || w == "file" || w == "files" || w == "directory" || w == "folder"
		n.query = n.query || w == "query" || w == "sql"
		n.database = n.database || databaseWord(w)
		v := verbOf(w)
		if w == "check" && i+1 < len(words) && (words[i+1] == "out" || words[i+1] == "in") {
			v = verb{effect: updates}
		}
		joined := i > 0 && (words[i-1] == "and" || words[i-1] == "or" || words[i-1] == "then")
		if v.effect == noEffect || v.soft && !first && !joined && v.effect != destroys {
			continue
		}
		n.verbless = false
		if v.effect.writes() {
			n.add(v, w, "its name holds")
		} else if first {
			n.lead = v.effect
		}
		n.readLast = i > 0 && i == len(words)-1 && (w == "read" || w == "get") && !n.soft.has(destroys)
		first = false
	}
	return n
}

// maxDescription bounds the bytes of a description that are read. Of a longer one not everything is known.
const maxDescription = 16 << 10

// maxVerb bounds the length of words that have a meaning here, in bytes.
const maxVerb = 32

// descriptionEvidence is the evidence of a description.
type descriptionEvidence struct {
	evidence
	lead         verb // the verb that the description begins with
	saysReadOnly bool
	deprecated   bool
	network      bool
	browser      bool
	database     bool // the first sentence speaks of one
	tooLong      bool
	foreign      bool // more of it is in scripts that are not read than in the one that is
}

// descriptionReader goes through the words of a description.
type descriptionReader struct {
	descriptionEvidence
	nameReads bool // the name's verb reads: a noun is a noun, then

	sentence int // number of the sentence, from 0
	inWords  int // words of this sentence so far
	leadDone bool
	leadIn   int // the sentence of the lead
	negated  bool
	previous [2]string // the two words before this one; "" for an identifier
	after    bool      // a comma, slash or ampersand stands before this word
}

// readDescription reads a description; nameReads says that the name of the tool begins with a verb that only reads.
func readDescription(text string, nameReads bool) descriptionEvidence {
	r := descriptionReader{nameReads: nameReads}
	if len(text) > maxDescription {
		text, r.tooLong = text[:maxDescription], true
	}
	text = lower(text)
	quoted := false // between backticks
	plain, other := 0, 0
	for i := 0; i < len(text); {
		c := text[i]
		if !isLetter(c) {
			if c == '`' {
				quoted = !quoted
			}
			r.punctuation(c, i+1 == len(text) || text[i+1] <= ' ')
			i++
			continue
		}
		start := i
		identifier := quoted
		for i < len(text) && (isLetter(text[i]) || isDigit(text[i]) || strings.IndexByte("_-'", text[i]) >= 0) {
			identifier = identifier || text[i] == '_'
			if text[i] < utf8.RuneSelf {
				plain++
			} else {
				other++
			}
			i++
		}
		if identifier || i-start > maxVerb {
			r.skip()
		} else {
			r.word(text[start:i])
		}
	}
	r.foreign = other/2 > plain // letters of most scripts are two bytes or three
	return r.descriptionEvidence
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// lower is text with its ASCII letters in lower case. It has the length of text.
func lower(text string) string {
	out := []byte(text)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c | 0x20
		}
	}
	return string(out)
}

func (r *descriptionReader) punctuation(c byte, last bool) {
	switch c {
	case '.', '!', '?', ';', ':':
		if !last {
			return
		}
	case '\n':
	case ',', '/', '&', '+':
		r.after = true
		return
	default:
		return
	}
	if r.inWords > 0 {
		r.sentence++
		r.inWords, r.negated, r.after = 0, false, false
		r.previous = [2]string{}
	}
}

// skip takes note of a word that is an identifier.
func (r *descriptionReader) skip() {
	r.inWords++
	if !r.leadDone {
		r.leadDone, r.leadIn = true, r.sentence
	}
	r.push("")
}

func (r *descriptionReader) push(word string) {
	r.previous[0], r.previous[1] = r.previous[1], word
	r.after = false
}

func (r *descriptionReader) word(word string) {
	first := r.inWords == 0
	r.inWords++
	switch word {
	case "not", "never", "without", "cannot", "no", "nothing", "neither", "nor", "don't", "doesn't", "can't", "won't":
		r.negated = true
	case "only":
		r.negated = r.negated && r.previous[1] != "not" // "not only reads but deletes"
	case "but":
		r.negated = false
	}
	if r.opening() {
		r.network = r.network || networkWord(word)
		r.browser = r.browser || browserWord(word)
		r.database = r.database || databaseWord(word)
	}
	r.statements(word, first)
	switch {
	case !r.leadDone && !filler(word):
		r.begin(word)
	case !r.negated:
		r.clause(word)
	}
	if r.leadDone && strings.HasSuffix(word, "ly") && len(word) > 4 {
		return // "list, and optionally delete": an adverb parts nothing
	}
	r.push(word)
}

// opening reports whether the sentence that begins with the tool's verb is not over yet.
func (r *descriptionReader) opening() bool { return !r.leadDone || r.sentence == r.leadIn }

// begin takes the verb that the description begins with.
func (r *descriptionReader) begin(word string) {
	r.leadDone, r.leadIn = true, r.sentence
	if base, ok := thirdPerson(word); ok {
		word = base
	}
	r.lead = verbOf(word)
	v := r.lead
	if !v.effect.writes() || v.soft && r.nameReads && v.effect != destroys {
		return
	}
	r.add(v, word, "the description begins with")
}

// clause looks for verbs of further effects.
func (r *descriptionReader) clause(word string) {
	const where = "the description says"
	joined := r.after || r.previous[1] == "and" || r.previous[1] == "or" || r.previous[1] == "then"
	if base, ok := thirdPerson(word); ok {
		v := verbOf(base)
		if !v.soft {
			r.add(v, word, where)
		}
		return
	}
	if e := participle(word); e != noEffect && r.previous[1] == "be" &&
		(r.previous[0] == "will" || r.previous[0] == "may" || r.previous[0] == "would") {
		r.add(verb{effect: e}, word, where)
		return
	}
	if r.previous[1] == "arbitrary" && (word == "code" || word == "javascript" || word == "sql" || word == "commands" ||
		word == "shell" ||
		word == "python") {
		r.add(verb{effect: executes}, "arbitrary "+word, where)
	}
	able := r.previous[1] == "can" || r.previous[1] == "may" || r.previous[1] == "will" || r.previous[1] == "also"
	v := verbOf(word)
	switch {
	case r.opening() && (joined || able) && (!v.soft || v.effect == destroys || joined && !r.nameReads),
		able && v.effect == destroys && !v.soft:
		r.add(v, word, where)
	}
}

// statements looks for explicit statements about the tool, such as "read-only".
func (r *descriptionReader) statements(word string, first bool) {
	switch word {
	case "read-only", "readonly":
		if !r.negated {
			r.saysReadOnly = true
		}
	case "mode", "replica", "user", "credentials", "unless", "except", "connection":
		if r.previous[1] == "read-only" || r.previous[1] == "readonly" {
			r.saysReadOnly = false // "in read-only mode": of something else
		}
	case "deprecated":
		if first && r.sentence == 0 || r.previous == [2]string{"tool", "is"} {
			r.deprecated = true
		}
	case "irreversible", "irreversibly", "undone":
		if word != "undone" || r.previous == [2]string{"cannot", "be"} {
			r.add(verb{effect: destroys}, word, "the description says")
		}
	}
}

// filler reports whether a description may begin with word without having said anything yet.
func filler(word string) bool {
	if strings.HasSuffix(word, "ly") && hardVerb(word) == noEffect {
		return true
	}
	switch word {
	case "this", "tool", "function", "command", "that", "which", "will", "can", "is", "be", "used", "to", "use",
		"helps",
		"help", "lets", "allows", "you", "a", "an", "the", "purpose", "it", "for", "perform", "performs", "fast", "and":
		return true
	}
	return word[0] >= utf8.RuneSelf // an emoji, or a language that is not read here
}

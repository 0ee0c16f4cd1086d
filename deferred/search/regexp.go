package search

import (
	"context"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
)

// Bounds of a search by pattern, which is written by whoever asks.
const (
	maxPattern      = 1000 // bytes
	maxInstructions = 300  // of the program that a pattern is
	maxMatched      = 1000 // bytes of a description that a pattern is tried on
	patternTime     = 6 * time.Millisecond
)

// Regexp finds tools by a pattern over name, title and description; a match in the name counts most. Patterns that are
// too large are not tried, and the time that one may take is bounded: Notes says when not all was looked at.
func (x *Index) Regexp(ctx context.Context, re *regexp.Regexp, q Query) Answer {
	started := time.Now()
	pattern := re.String()
	if len(pattern) > maxPattern {
		return tooLarge()
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return Answer{Notes: []string{"the pattern cannot be read: write one in RE2 syntax"}}
	}
	tree = tree.Simplify()
	if prog, err := syntax.Compile(tree); err != nil || len(prog.Inst) > maxInstructions {
		return tooLarge()
	}
	literals := required(tree)

	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.in(q.Scope)
	var t tally
	t.reset(len(x.docs))
	var notes []string
	tried := 0
	for at := range x.docs {
		if !p.has(uint32(at)) {
			continue
		}
		if ctx.Err() != nil || tried > 0 && time.Since(started) > patternTime {
			notes = append(notes, "the pattern was tried on a part of the tools only, in the time there is: "+
				"write a word into it that the tool's name or description must hold, or search by words")
			break
		}
		tried++
		x.match(re, literals, at, &t)
	}
	a := p.answer(p.best(&t, q, q.limit()), &t, q)
	a.Notes = notes
	return a
}

func tooLarge() Answer {
	return Answer{Notes: []string{"the pattern is too large to be tried on every tool: shorten it, or search by words"}}
}

// match tries a pattern on one tool, unless it lacks what all matches have.
func (x *Index) match(re *regexp.Regexp, literals []string, at int, t *tally) {
	d := &x.docs[at]
	if len(literals) > 0 && !containsAny(d.lower, literals) {
		return
	}
	description := d.src.Description[:min(len(d.src.Description), maxMatched)]
	for _, in := range [...]struct {
		field field
		text  string
	}{{fieldName, d.src.Name}, {fieldTitle, d.src.Title}, {fieldDescription, description}} {
		if in.text != "" && re.MatchString(in.text) {
			t.score[at] += float32(x.rank.fields[in.field].weight)
			t.fields[at] |= 1 << in.field
		}
	}
}

func containsAny(text string, of []string) bool {
	for _, s := range of {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// maxLiterals is how many literals are looked for rather than trying the pattern.
const maxLiterals = 8

// required are literals, in lower case, of which every match of the pattern holds one; none if that is not known.
func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r >= 0x80 {
				return nil // folding other letters has its own rules
			}
		}
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if of := required(sub); len(of) > 0 && (best == nil || shortest(of) > shortest(best)) {
				best = of
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			of := required(sub)
			if len(of) == 0 || len(all)+len(of) > maxLiterals {
				return nil
			}
			all = append(all, of...)
		}
		return all
	}
	return nil
}

func shortest(of []string) int {
	n := len(of[0])
	for _, s := range of {
		n = min(n, len(s))
	}
	return n
}

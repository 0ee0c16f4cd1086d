package search

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
)

// Bounds of a search by pattern, which is written by whoever asks.
const (
	maxPattern      = 1000 // bytes
	maxInstructions = 300  // of the program that a pattern is
	maxProperties   = 20   // \p{…}: each stands for hundreds of ranges of characters
	maxMatched      = 1000 // bytes of a description that a pattern is tried on
	patternTime     = 100 * time.Millisecond
	// instructions times bytes, that are tried however long it takes: less time than patternTime is
	patternWork = 500_000
)

// Pattern is a regular expression that is small enough to be tried on every tool.
type Pattern struct {
	re   *regexp.Regexp
	size int // about how many instructions its program has
}

var errTooLarge = errors.New("the pattern is too large to be tried on every tool: shorten it, or search by words")

// ReadPattern reads a regular expression in RE2 syntax. How large it is is found out before it is
// compiled. Errors are for who wrote it.
func ReadPattern(text string) (*Pattern, error) {
	if len(text) > maxPattern || strings.Count(text, `\p`)+strings.Count(text, `\P`) > maxProperties {
		return nil, errTooLarge
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the pattern is not one of RE2: %w: mend it, or search by words", err)
	}
	size := instructions(tree)
	if size > maxInstructions {
		return nil, errTooLarge
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("the pattern is not one of RE2: %w: mend it, or search by words", err)
	}
	return &Pattern{re, size}, nil
}

// instructions is about how many the program of a pattern has, or more than maxInstructions.
func instructions(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		if n += instructions(sub); n > maxInstructions {
			return n
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min+1, re.Max)
	}
	return n
}

// Regexp finds tools by a pattern over name, title and description; a match in the name on its
// server counts most, then one in the names that have the server's before that, as who asks has
// read them. The time that it may take is bounded: Notes says when not all was looked at. That is
// not so while the work is little, though the processor may have been somebody else's meanwhile:
// what a pattern finds among fifty tools does not depend on the machine.
func (x *Index) Regexp(ctx context.Context, pattern *Pattern, q Query) Answer {
	started := time.Now()
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.in(q.Scope)
	t := newTally(len(x.docs))
	var notes []string
	work := 0
	for at := range x.docs {
		if !p.has(uint32(at)) {
			continue
		}
		if ctx.Err() != nil || work > patternWork && time.Since(started) > patternTime {
			notes = append(notes, "the pattern was tried on a part of the tools only, in the time there is: "+
				"shorten it, or search by words")
			break
		}
		shown := ""
		if q.Shown != nil {
			shown = q.Shown(x.docs[at].src.ID)
		}
		work += 1 + pattern.size*x.match(pattern, at, shown, t)
	}
	a := p.answer(p.best(t, q, q.limit()), q)
	a.Notes = notes
	return a
}

// wholeName weighs a match in a qualified name, relative to one in the tool's own name.
const wholeName = 0.5

// match tries a pattern on one tool. It returns on how many bytes.
func (x *Index) match(pattern *Pattern, at int, shown string, t *tally) (tried int) {
	d := &x.docs[at]
	try := func(f field, text string, share float64) bool {
		tried += len(text)
		if text == "" || !pattern.re.MatchString(text) {
			return false
		}
		t.score[at] += float32(share * x.rank.fields[f].weight)
		t.fields[at] |= 1 << f
		return true
	}
	_ = try(fieldName, d.src.Name, 1) || try(fieldName, d.src.ID, wholeName) || try(fieldName, shown, wholeName)
	try(fieldTitle, d.src.Title, 1)
	try(fieldDescription, d.src.Description[:min(len(d.src.Description), maxMatched)], 1)
	return tried
}

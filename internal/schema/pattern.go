package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
)

// Bounds of regular expressions. A weight is about the number of steps of the matching program, which is what each
// character of a string may cost.
const (
	maxPatternBytes  = 4096
	maxPatternWeight = 20_000
	maxWeightInAll   = 100_000 // in one schema
)

// pattern is a regular expression of a schema; without re it matches everything.
type pattern struct {
	text   string
	re     *regexp.Regexp
	weight int
}

func (p *pattern) MatchString(s string) bool { return p.re == nil || p.re.MatchString(s) }
func (p *pattern) String() string            { return p.text }

// patterns is the regular expression engine of one compilation. JSON Schema's expressions are ECMA-262's; Go's cannot
// look ahead or refer back, in return they run in linear time, which is why they are used on a stranger's patterns.
type patterns struct {
	known   map[string]*pattern
	weight  int
	ignored []string
	broken  []string
}

func newPatterns() *patterns { return &patterns{known: make(map[string]*pattern)} }

// compile never fails: what cannot be expressed matches everything and is reported.
func (ps *patterns) compile(text string) (jsonschema.Regexp, error) {
	if p, ok := ps.known[text]; ok {
		return p, nil
	}
	p := &pattern{text: text}
	ps.known[text] = p
	if why := ps.build(p); why != "" {
		ps.ignored = append(ps.ignored, fmt.Sprintf("pattern %q %s: it is not applied", clip(text), why))
	}
	return p, nil
}

// build fills p.re, or says why it cannot.
func (ps *patterns) build(p *pattern) (why string) {
	if len(p.text) > maxPatternBytes {
		return fmt.Sprintf("has more than %d bytes", maxPatternBytes)
	}
	text := translate(p.text)
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		if isBroken(text, err) {
			ps.broken = append(ps.broken, fmt.Sprintf("pattern %q", clip(p.text)))
			return "is no regular expression"
		}
		return "uses what linear-time matching cannot express"
	}
	weight := weigh(parsed)
	if weight > maxPatternWeight || ps.weight+weight > maxWeightInAll {
		return "is too costly to match"
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return "is too costly to match"
	}
	ps.weight += weight
	p.re, p.weight = re, weight
	return ""
}

// report returns the sentences on ignored patterns and the broken ones, in an order that does not depend on maps.
func (ps *patterns) report() (ignored, broken []string) {
	slices.Sort(ps.ignored)
	slices.Sort(ps.broken)
	return ps.ignored, ps.broken
}

// weigh estimates the size of the program that re compiles to, without building it.
func weigh(re *syntax.Regexp) int {
	weight := 1 + len(re.Rune)/8
	for _, sub := range re.Sub {
		weight = min(weight+weigh(sub), 1<<24)
	}
	if re.Op == syntax.OpRepeat {
		weight = min(weight*max(re.Min, re.Max, 1), 1<<24)
	}
	return weight
}

// isBroken tells an expression that ECMA-262 refuses too from one that only Go does.
func isBroken(text string, err error) bool {
	fault, ok := err.(*syntax.Error)
	if !ok {
		return false
	}
	switch fault.Code {
	case syntax.ErrMissingBracket:
		return !strings.Contains(text, "[]") && !strings.Contains(text, "[^]") // ECMA's nothing and anything
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		return !strings.Contains(text, "[]") && !strings.Contains(text, "[^]") && !strings.Contains(text, "(?")
	case syntax.ErrTrailingBackslash, syntax.ErrMissingRepeatArgument, syntax.ErrInvalidRepeatOp,
		syntax.ErrInvalidCharRange:
		return !strings.Contains(text, "(?")
	}
	return false
}

// translate rewrites ECMA's \uXXXX and \u{X} as Go's \x{X}. Everything else that Go lacks stays, and fails to parse.
func translate(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		if digits, used := codePoint(text[i:]); used > 0 {
			out.WriteString(`\x{` + digits + `}`)
			i += used - 1
			continue
		}
		out.WriteString(text[i : i+2])
		i++
	}
	return out.String()
}

// codePoint reads an escaped code point, without the surrogates, at the start of text.
func codePoint(text string) (digits string, used int) {
	rest, ok := strings.CutPrefix(text, `\u`)
	if !ok {
		return "", 0
	}
	if inner, ok := strings.CutPrefix(rest, "{"); ok {
		digits, _, ok = strings.Cut(inner, "}")
		if !ok {
			return "", 0
		}
		used = len(`\u{}`) + len(digits)
	} else if len(rest) >= 4 {
		digits, used = rest[:4], len(`\u0000`)
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n > 0x10FFFF || 0xD800 <= n && n <= 0xDFFF {
		return "", 0
	}
	return digits, used
}

// clip shortens text that a stranger wrote to what a message can hold.
func clip(text string) string { return hidden.Cut(text, 120) }

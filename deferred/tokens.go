package deferred

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// AnswerTokens is about how many tokens a model reads in the answer to a search that found these declarations, best
// first.
func AnswerTokens(declarations ...json.RawMessage) int {
	l := New(Config{}, Options{Keys: [][]byte{{0}}, Now: func() time.Time { return time.Time{} }}) // the same each time
	f := &found{loader: l, refs: l.signer(), surface: &tool.Surface{}}
	for _, d := range declarations {
		schema, _ := rawjson.Get(d, "inputSchema")
		f.hits = append(f.hits, hit{listed: &tool.Listed{Name: rawjson.Text(d, "name"), Changed: d,
			Tool: &tool.Tool{InputSchema: schema}}})
	}
	f.fit()
	return 15 * tokensOf([]byte(f.text(f.answer()))) / 16
}

// Tokens is about how many tokens a declaration costs a model: of what clients give their models of it, which is its
// name, its description and its input schema. Of tokenizers in use (o200k_base, cl100k_base) it is within a quarter for
// one declaration of the usual kind, and within a tenth for a list of them; see TestEstimate.
func Tokens(declaration json.RawMessage) int { return tokensNamed(declaration, nil) }

// tokensNamed is Tokens of a declaration that has name, in JSON, in place of its own; nil is its own.
func tokensNamed(declaration, name json.RawMessage) int {
	sixteenths := 0
	_ = rawjson.Members(declaration, func(m rawjson.Member) bool {
		if name != nil && m.Is("name") {
			m.Value = name
		}
		if m.Is("name") || m.Is("description") || m.Is("inputSchema") {
			sixteenths += 15*tokensOf(m.Value) + 2*16 // the member's own name
		}
		return true
	})
	return sixteenths / 16
}

// tokensOf counts pieces as tokenizers cut them: a word of usual length is one token, with the space before it; digits
// come in threes, punctuation in runs; other scripts take more.
func tokensOf(text []byte) int {
	fifths := 0
	for i := 0; i < len(text); {
		from, c := i, text[i]
		switch {
		case isLetter(c):
			for i++; i < len(text) && isLetter(text[i]) && (isLower(text[i]) || !isLower(text[i-1])); i++ {
			}
			fifths += 5 + max(0, i-from-usualWord)
		case isDigit(c):
			for i++; i < len(text) && isDigit(text[i]); i++ {
			}
			fifths += 5 * ((i - from + 2) / 3)
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			for i++; i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r'); i++ {
			}
			if i-from > 1 {
				fifths += 5
			}
		case c < utf8.RuneSelf:
			for i++; i < len(text) && isMark(text[i]); i++ {
			}
			fifths += 5 * ((i - from + 2) / 3)
		default:
			r, size := utf8.DecodeRune(text[i:])
			i += size
			fifths += 3
			if r >= firstIdeograph {
				fifths++
			}
		}
	}
	return (fifths + 4) / 5
}

const (
	usualWord      = 9      // letters that make one token; every five more make another
	firstIdeograph = 0x2E80 // from here on a character is nearly a token
)

func isLower(c byte) bool  { return 'a' <= c && c <= 'z' }
func isLetter(c byte) bool { return isLower(c|0x20) && c < utf8.RuneSelf }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

func isMark(c byte) bool {
	return c > ' ' && c < utf8.RuneSelf && !isLetter(c) && !isDigit(c)
}

package textfile

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxTokens bounds a YAML file: the parser's time grows with the square of a mapping's length. 100,000 are some
	// 5,000 servers, read in about a second.
	maxTokens = 100_000

	// MaxDepth is how many levels a file may nest: parsers recurse, and no setting lies deeper than ten levels.
	MaxDepth = 100
)

// Refusal is why a text was not parsed.
type Refusal struct {
	Position
	Message string // what is wrong
	Hint    string // what to do; "" where that depends on what the file is for
	Detail  string // the parser's own words, "" where it has none. They may quote the file, which may hold secrets
}

// YAML parses data into syntax trees, duplicate keys included, one for each document. The library's bugs end here: for
// some files that are no YAML it panics, and for a stranger's file that must be a fault like any other.
func YAML(data []byte) (docs []*ast.DocumentNode, refused *Refusal) {
	defer func() {
		if recover() != nil {
			docs, refused = nil, &Refusal{At(1, 1), "not valid YAML", "check indentation, quotes and brackets", ""}
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if refused := bounded(tokens); refused != nil {
		return nil, refused
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file.Docs, nil
	}
	refused = &Refusal{At(1, 1), "not valid YAML", "check indentation, quotes and brackets here and on the line before", ""}
	var located interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &located) {
		refused.Position = TokenPosition(located.GetToken())
		refused.Detail = strings.ReplaceAll(located.GetMessage(), "\t", `\t`)
	}
	return nil, refused
}

// bounded refuses files that would keep the parser busy for minutes or break its stack.
func bounded(tokens token.Tokens) *Refusal {
	if len(tokens) > maxTokens {
		return &Refusal{TokenPosition(tokens[maxTokens]), "more than 100,000 YAML tokens", "", ""}
	}
	flow, inline, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, inline = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			inline++
		}
		if flow+inline > MaxDepth {
			return &Refusal{TokenPosition(t), "nested more than 100 levels deep", "flatten the file", ""}
		}
	}
	return nil
}

// TokenPosition is the place of t, which may be nil: then it is the start of the file.
func TokenPosition(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return At(1, 1)
	}
	return At(max(t.Position.Line, 1), max(t.Position.Column, 1))
}

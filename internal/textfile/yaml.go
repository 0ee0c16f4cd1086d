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

	// MaxDepth bounds the levels of a file: parsers recurse, and no setting lies deeper than ten levels.
	MaxDepth = 100

	// maxAliased bounds what aliases add to a file once they are followed: nine lines of aliases to aliases stand for
	// billions of values otherwise.
	maxAliased = 100_000
)

// ParseYAML reads the one document of a YAML text. A text without a document is an empty mapping. Faults show nothing
// of the text, which may hold secrets.
func ParseYAML(data []byte) (root *Node, faults Faults) {
	// The library's bugs end here: for some texts that are no YAML it panics.
	defer func() {
		if recover() != nil {
			root, faults = nil, Faults{{Position: At(1, 1), Message: "not valid YAML",
				Hint: "check indentation, quotes and brackets"}}
		}
	}()
	docs, refused := documents(data)
	if refused != nil {
		return nil, Faults{*refused}
	}
	w := yamlWalk{anchors: map[string]*Node{}}
	for _, doc := range docs {
		switch doc.Body.(type) {
		case nil, *ast.DirectiveNode, *ast.CommentGroupNode:
			continue
		}
		n := w.node(doc.Body)
		if root != nil {
			w.fail(n.Position, "a second YAML document", "keep one document in the file")
			break
		}
		root = n
	}
	switch {
	case len(w.faults) > 0:
		return nil, w.faults
	case root == nil:
		root = &Node{Position: At(1, 1), Kind: Mapping}
	}
	return root, nil
}

// documents parses data into syntax trees, duplicate keys included, or says why it does not.
func documents(data []byte) (docs []*ast.DocumentNode, refused *Fault) {
	tokens := lexer.Tokenize(string(data))
	if refused := bounded(tokens); refused != nil {
		return nil, refused
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file.Docs, nil
	}
	refused = &Fault{Position: At(1, 1), Message: "not valid YAML here",
		Hint: "check indentation, quotes and brackets here and on the line before"}
	var located interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &located) {
		refused.Position = tokenPosition(located.GetToken())
		detail := strings.ReplaceAll(located.GetMessage(), "\t", `\t`)
		if !strings.ContainsRune(detail, '"') { // a quotation is a piece of the text
			refused.Message = "not valid YAML: " + detail
		}
		if strings.Contains(refused.Message, `\t`) {
			refused.Hint = "indent with spaces"
		}
	}
	return nil, refused
}

// bounded refuses files that would keep the parser busy for minutes or break its stack.
func bounded(tokens token.Tokens) *Fault {
	if len(tokens) > maxTokens {
		return &Fault{Position: tokenPosition(tokens[maxTokens]), Message: "more than 100,000 YAML tokens",
			Hint: "check the path, or write the file as JSON"}
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
			return &Fault{Position: tokenPosition(t), Message: "nested more than 100 levels deep",
				Hint: "flatten the file"}
		}
	}
	return nil
}

// tokenPosition is the place of t, which may be nil: then it is the start of the file.
func tokenPosition(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return At(1, 1)
	}
	return At(max(t.Position.Line, 1), max(t.Position.Column, 1))
}

// yamlWalk turns a syntax tree into nodes, follows aliases and merges.
type yamlWalk struct {
	faults  Faults
	anchors map[string]*Node
	aliased int
}

// fail reports a fault that leaves no tree to look at.
func (w *yamlWalk) fail(p Position, message, hint string) *Node {
	w.faults = append(w.faults, Fault{Position: p, Message: message, Hint: hint})
	return &Node{Position: p, Kind: Null, weight: 1}
}

func (w *yamlWalk) node(n ast.Node) *Node {
	switch x := n.(type) {
	case nil:
		return &Node{Position: At(1, 1), Kind: Null, weight: 1}
	case *ast.MappingNode:
		p := tokenPosition(x.Start)
		if len(x.Values) > 0 && !x.IsFlowStyle {
			p = tokenPosition(x.Values[0].Key.GetToken())
		}
		return w.mapping(p, x.Values)
	case *ast.MappingValueNode:
		return w.mapping(tokenPosition(x.Key.GetToken()), []*ast.MappingValueNode{x})
	case *ast.SequenceNode:
		list := &Node{Position: tokenPosition(x.Start), Kind: List, weight: 1}
		for _, v := range x.Values {
			child := w.node(v)
			list.Items = append(list.Items, child)
			list.weight += child.weight
		}
		return list
	case *ast.AnchorNode:
		child := w.node(x.Value)
		w.anchors[nameOf(x.Name)] = child
		return child
	case *ast.AliasNode:
		return w.alias(x)
	case *ast.TagNode:
		return w.tagged(x)
	}
	return w.scalar(n)
}

func (w *yamlWalk) scalar(n ast.Node) *Node {
	s := &Node{Position: tokenPosition(n.GetToken()), weight: 1}
	if t := n.GetToken(); t != nil {
		s.Text = t.Value
	}
	switch x := n.(type) {
	case *ast.StringNode:
		s.Kind, s.Text = Text, x.Value
	case *ast.LiteralNode:
		s.Kind, s.Text, s.Position = Text, "", tokenPosition(x.Start)
		if x.Value != nil {
			s.Text = x.Value.Value
		}
	case *ast.IntegerNode:
		s.Kind = Integer
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		s.Kind = Number
	case *ast.BoolNode:
		s.Kind = Bool
	case *ast.NullNode, *ast.CommentGroupNode:
		s.Kind, s.Text = Null, ""
	default:
		return w.fail(s.Position, "a kind of YAML value that has no meaning here",
			"write a string, number, list or mapping")
	}
	return s
}

func (w *yamlWalk) mapping(p Position, values []*ast.MappingValueNode) *Node {
	m := &Node{Position: p, Kind: Mapping, weight: 1}
	var merged []*Node
	for _, v := range values {
		if v.Key == nil {
			continue
		}
		if v.Key.IsMergeKey() {
			merged = append(merged, w.node(v.Value))
			continue
		}
		key := w.key(v.Key)
		if key == nil {
			continue
		}
		child := w.node(v.Value)
		m.Members = append(m.Members, Member{key.Position, key.Text, child})
		m.weight += child.weight
	}
	if len(merged) > 0 {
		w.merge(m, merged)
	}
	return m
}

// key returns the node of a mapping's key, or nil after a fault.
func (w *yamlWalk) key(n ast.Node) *Node {
	switch x := n.(type) {
	case *ast.MappingKeyNode:
		return w.key(x.Value)
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, nil:
		p := At(1, 1)
		if n != nil {
			p = tokenPosition(n.GetToken())
		}
		w.fail(p, "a key that is not a string", "write a plain word as the key")
		return nil
	}
	k := w.node(n)
	if k.Kind == List || k.Kind == Mapping {
		w.fail(k.Position, "a key that is not a string", "write a plain word as the key")
		return nil
	}
	return k
}

// merge adds what "<<" brings in. A key of the mapping itself wins, then the earlier source.
func (w *yamlWalk) merge(m *Node, merged []*Node) {
	have := map[string]bool{}
	for _, own := range m.Members {
		have[own.Key] = true
	}
	var sources []*Node
	for _, n := range merged {
		if n.Kind == List {
			sources = append(sources, n.Items...)
		} else {
			sources = append(sources, n)
		}
	}
	for _, source := range sources {
		if source.Kind != Mapping {
			w.fail(source.Position, "<< merges "+string(source.Kind), "let << name an anchor of a mapping")
			return
		}
		for _, other := range source.Members {
			if !have[other.Key] {
				have[other.Key] = true
				m.Members = append(m.Members, other)
				m.weight += other.Value.weight
			}
		}
	}
}

func (w *yamlWalk) alias(x *ast.AliasNode) *Node {
	p := tokenPosition(x.Start)
	target := w.anchors[nameOf(x.Value)]
	if target == nil {
		return w.fail(p, "an alias without an anchor before it",
			"define the anchor (&name) above this line, outside of itself")
	}
	if w.aliased += target.weight; w.aliased > maxAliased {
		if len(w.faults) > 0 {
			return &Node{Position: p, Kind: Null, weight: 1}
		}
		return w.fail(p, "aliases that stand for more than 100,000 values", "write the values out, or fewer of them")
	}
	return target
}

// tagged obeys !!str and checks nothing else: the table says what type each value must have.
func (w *yamlWalk) tagged(x *ast.TagNode) *Node {
	child := w.node(x.Value)
	switch x.Start.Value {
	case "!!str":
		if child.Kind == List || child.Kind == Mapping {
			return child
		}
		text := *child
		text.Kind = Text
		return &text
	case "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
		return child
	}
	return w.fail(tokenPosition(x.Start), "a YAML tag that has no meaning here",
		"remove the tag (the word that begins with !)")
}

func nameOf(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

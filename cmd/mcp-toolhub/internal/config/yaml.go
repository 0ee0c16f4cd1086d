package config

import (
	"cmp"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// maxAliased bounds what aliases add to a file once they are followed: nine lines of aliases to aliases stand for
// billions of values otherwise.
const maxAliased = 100_000

// yamlTree reads the one document of a YAML file.
func (r *reader) yamlTree(data []byte) *node {
	docs, ok := r.yamlParse(data)
	if !ok {
		return nil
	}
	w := yamlWalk{r: r, anchors: map[string]*node{}}
	var root *node
	for _, doc := range docs {
		switch doc.Body.(type) {
		case nil, *ast.DirectiveNode, *ast.CommentGroupNode:
			continue
		}
		if root != nil {
			r.faultAt(w.node(doc.Body).Position, "a second YAML document", "keep one document in the file")
			return nil
		}
		root = w.node(doc.Body)
	}
	switch {
	case w.failed:
		return nil
	case root == nil:
		return &node{Position: textfile.At(1, 1), kind: kindMapping}
	}
	return root
}

// yamlParse reports why the text is not parsed, and shows nothing of it.
func (r *reader) yamlParse(data []byte) ([]*ast.DocumentNode, bool) {
	docs, refused := textfile.YAML(data)
	if refused == nil {
		return docs, true
	}
	message, hint := refused.Message, cmp.Or(refused.Hint, "check the path, or write the file as JSON")
	switch {
	case strings.ContainsRune(refused.Detail, '"'): // a quotation is a piece of the file, which may be a secret
		message += " here"
	case refused.Detail != "":
		message += ": " + refused.Detail
	}
	if strings.Contains(message, `\t`) {
		hint = "indent with spaces"
	}
	r.faultAt(refused.Position, message, hint)
	return nil, false
}

// yamlWalk turns a syntax tree into nodes, follows aliases and merges.
type yamlWalk struct {
	r       *reader
	anchors map[string]*node
	aliased int
	failed  bool
}

// fail reports a fault that leaves no tree to look at.
func (w *yamlWalk) fail(p textfile.Position, message, hint string) *node {
	w.r.faultAt(p, message, hint)
	w.failed = true
	return &node{Position: p, kind: kindNull, weight: 1}
}

func (w *yamlWalk) node(n ast.Node) *node {
	switch x := n.(type) {
	case nil:
		return &node{Position: textfile.At(1, 1), kind: kindNull, weight: 1}
	case *ast.MappingNode:
		p := textfile.TokenPosition(x.Start)
		if len(x.Values) > 0 && !x.IsFlowStyle {
			p = textfile.TokenPosition(x.Values[0].Key.GetToken())
		}
		return w.mapping(p, x.Values)
	case *ast.MappingValueNode:
		return w.mapping(textfile.TokenPosition(x.Key.GetToken()), []*ast.MappingValueNode{x})
	case *ast.SequenceNode:
		list := &node{Position: textfile.TokenPosition(x.Start), kind: kindList, weight: 1}
		for _, v := range x.Values {
			child := w.node(v)
			list.items = append(list.items, child)
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

func (w *yamlWalk) scalar(n ast.Node) *node {
	s := &node{Position: textfile.TokenPosition(n.GetToken()), weight: 1}
	if t := n.GetToken(); t != nil {
		s.text = t.Value
	}
	switch x := n.(type) {
	case *ast.StringNode:
		s.kind, s.text = kindText, x.Value
	case *ast.LiteralNode:
		s.kind, s.text, s.Position = kindText, "", textfile.TokenPosition(x.Start)
		if x.Value != nil {
			s.text = x.Value.Value
		}
	case *ast.IntegerNode:
		s.kind = kindInteger
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		s.kind = kindNumber
	case *ast.BoolNode:
		s.kind = kindBool
	case *ast.NullNode, *ast.CommentGroupNode:
		s.kind, s.text = kindNull, ""
	default:
		return w.fail(s.Position, "a kind of YAML value that has no meaning here", "write a string, number, list or mapping")
	}
	return s
}

func (w *yamlWalk) mapping(p textfile.Position, values []*ast.MappingValueNode) *node {
	m := &node{Position: p, kind: kindMapping, weight: 1}
	var merged []*node
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
		m.members = append(m.members, member{key.Position, key.text, child})
		m.weight += child.weight
	}
	if len(merged) > 0 {
		w.merge(m, merged)
	}
	return m
}

// key returns the node of a mapping's key, or nil after a fault.
func (w *yamlWalk) key(n ast.Node) *node {
	switch x := n.(type) {
	case *ast.MappingKeyNode:
		return w.key(x.Value)
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, nil:
		p := textfile.At(1, 1)
		if n != nil {
			p = textfile.TokenPosition(n.GetToken())
		}
		w.fail(p, "a key that is not a string", "write a plain word as the key")
		return nil
	}
	k := w.node(n)
	if k.kind == kindList || k.kind == kindMapping {
		w.fail(k.Position, "a key that is not a string", "write a plain word as the key")
		return nil
	}
	return k
}

// merge adds what "<<" brings in. A key of the mapping itself wins, then the earlier source.
func (w *yamlWalk) merge(m *node, merged []*node) {
	have := map[string]bool{}
	for _, own := range m.members {
		have[own.key] = true
	}
	var sources []*node
	for _, n := range merged {
		if n.kind == kindList {
			sources = append(sources, n.items...)
		} else {
			sources = append(sources, n)
		}
	}
	for _, source := range sources {
		if source.kind != kindMapping {
			w.fail(source.Position, "<< merges "+string(source.kind), "let << name an anchor of a mapping")
			return
		}
		for _, other := range source.members {
			if !have[other.key] {
				have[other.key] = true
				m.members = append(m.members, other)
				m.weight += other.value.weight
			}
		}
	}
}

func (w *yamlWalk) alias(x *ast.AliasNode) *node {
	p := textfile.TokenPosition(x.Start)
	target := w.anchors[nameOf(x.Value)]
	if target == nil {
		return w.fail(p, "an alias without an anchor before it", "define the anchor (&name) above this line, outside of itself")
	}
	if w.aliased += target.weight; w.aliased > maxAliased {
		if w.failed {
			return &node{Position: p, kind: kindNull, weight: 1}
		}
		return w.fail(p, "aliases that stand for more than 100,000 values", "write the values out, or fewer of them")
	}
	return target
}

// tagged obeys !!str and checks nothing else: the table says what type each value must have.
func (w *yamlWalk) tagged(x *ast.TagNode) *node {
	child := w.node(x.Value)
	switch x.Start.Value {
	case "!!str":
		if child.kind == kindList || child.kind == kindMapping {
			return child
		}
		text := *child
		text.kind = kindText
		return &text
	case "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
		return child
	}
	return w.fail(textfile.TokenPosition(x.Start), "a YAML tag that has no meaning here", "remove the tag (the word that begins with !)")
}

func nameOf(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

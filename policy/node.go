package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

const maxFile = 1 << 20 // bytes of a file of rules, grants or test calls

// node is a value of a YAML or JSON file with its place. Anchors, aliases, merges and tags are refused: in a file that
// decides what may run, what is written is what is meant.
type node struct {
	textfile.Position
	kind    nodeKind
	text    string // of a scalar
	items   []*node
	members []member
}

type member struct {
	key   *node
	value *node
}

type nodeKind string

const (
	isNull    nodeKind = "nothing"
	isText    nodeKind = "a text"
	isNumber  nodeKind = "a number"
	isBool    nodeKind = "true or false"
	isList    nodeKind = "a list"
	isMapping nodeKind = "a mapping"
)

// reader gathers the faults of one file.
type reader struct {
	file   string
	faults textfile.Faults
}

func (r *reader) fault(n *node, key, message, hint string) {
	f := textfile.Fault{File: r.file, Position: textfile.At(1, 1), Key: key, Message: message, Hint: hint}
	if n != nil {
		f.Position = n.Position
	}
	r.faults = append(r.faults, f)
}

// err is the faults as an error, nil where there are none.
func (r *reader) err() error {
	if len(r.faults) == 0 {
		return nil
	}
	return Faults{r.faults.Sort()}
}

// tree reads the one document of data; an empty one is an empty mapping. It is nil after a fault.
func (r *reader) tree(data []byte) (root *node) {
	root = &node{Position: textfile.At(1, 1), kind: isMapping}
	if len(data) > maxFile {
		r.fault(nil, "", "the file is larger than 1 MiB", "check the path, or split the rules by source")
		return nil
	}
	// The library's bugs end here: for some files that are no YAML it panics.
	defer func() {
		if recover() != nil {
			r.fault(nil, "", "not valid YAML", "check indentation, quotes and brackets")
			root = nil
		}
	}()
	docs, refused := textfile.YAML(data)
	if refused != nil {
		r.refuse(refused)
		return nil
	}
	found := false
	for _, doc := range docs {
		switch doc.Body.(type) {
		case nil, *ast.DirectiveNode, *ast.CommentGroupNode:
			continue
		}
		n := r.node(doc.Body)
		if found {
			r.fault(n, "", "a second YAML document", "keep one document in the file")
			return nil
		}
		root, found = n, true
	}
	if len(r.faults) > 0 {
		return nil
	}
	return root
}

func (r *reader) refuse(refused *textfile.Refusal) {
	message := refused.Message
	if refused.Detail != "" {
		message += ": " + refused.Detail
	}
	r.fault(&node{Position: refused.Position}, "", message, cmp.Or(refused.Hint, "split the rules by source"))
}

func placed(t *token.Token) *node { return &node{Position: textfile.TokenPosition(t), kind: isNull} }

func (r *reader) node(n ast.Node) *node {
	switch x := n.(type) {
	case nil:
		return placed(nil)
	case *ast.MappingNode:
		m := placed(x.Start)
		if len(x.Values) > 0 && !x.IsFlowStyle {
			m = placed(x.Values[0].Key.GetToken())
		}
		return r.mapping(m, x.Values)
	case *ast.MappingValueNode:
		return r.mapping(placed(x.Key.GetToken()), []*ast.MappingValueNode{x})
	case *ast.SequenceNode:
		list := placed(x.Start)
		list.kind = isList
		for _, v := range x.Values {
			list.items = append(list.items, r.node(v))
		}
		return list
	case *ast.LiteralNode:
		s := placed(x.Start)
		s.kind = isText
		if x.Value != nil {
			s.text = x.Value.Value
		}
		return s
	}
	return r.scalar(n)
}

func (r *reader) scalar(n ast.Node) *node {
	s := placed(n.GetToken())
	if t := n.GetToken(); t != nil {
		s.text = t.Value
	}
	switch x := n.(type) {
	case *ast.StringNode:
		s.kind, s.text = isText, x.Value
	case *ast.IntegerNode, *ast.FloatNode:
		s.kind = isNumber
	case *ast.BoolNode:
		s.kind = isBool
		s.text = fmt.Sprint(x.Value)
	case *ast.NullNode, *ast.CommentGroupNode:
		s.text = ""
	default:
		r.fault(s, "", "anchors, aliases, tags and special numbers have no meaning here", "write the value out")
	}
	return s
}

func (r *reader) mapping(m *node, values []*ast.MappingValueNode) *node {
	m.kind = isMapping
	seen := map[string]bool{}
	for _, v := range values {
		if v.Key == nil {
			continue
		}
		if _, plain := v.Key.(ast.ScalarNode); !plain || v.Key.IsMergeKey() {
			r.fault(placed(v.Key.GetToken()), "", "a key that is no plain word", "write a word as the key")
			continue
		}
		key := r.scalar(v.Key)
		if seen[key.text] {
			r.fault(key, key.text, "this key stands here twice", "remove one of the two")
		}
		seen[key.text] = true
		m.members = append(m.members, member{key, r.node(v.Value)})
	}
	return m
}

// fields calls set for each member of the mapping n that is among known, and reports all others.
func (r *reader) fields(n *node, key string, known []string, set func(name, key string, value *node)) {
	r.fieldsMeant(n, key, known, nil, set)
}

// fieldsMeant is fields where meant says which key people mean by some other words.
func (r *reader) fieldsMeant(n *node, key string, known []string, meant map[string]string, set func(name, key string, value *node)) {
	if n.kind != isMapping {
		r.fault(n, key, "this is "+string(n.kind)+" and must be a mapping", "write "+strings.Join(known, ", "))
		return
	}
	for _, m := range n.members {
		path := join(key, m.key.text)
		found := false
		for _, k := range known {
			found = found || k == m.key.text
		}
		if !found {
			r.fault(m.key, path, "unknown key", textfile.DidYouMean(cmp.Or(meant[m.key.text], m.key.text), known,
				"the keys here are "+strings.Join(known, ", ")))
			continue
		}
		set(m.key.text, path, m.value)
	}
}

func join(key, name string) string {
	switch {
	case key == "":
		return name
	case name == "":
		return key
	}
	return key + "." + name
}

// list calls each for each element of n.
func (r *reader) list(n *node, key string, each func(i int, key string, value *node)) {
	if n.kind == isNull {
		return
	}
	if n.kind != isList {
		r.fault(n, key, "this is "+string(n.kind)+" and must be a list", "begin each element with a dash")
		return
	}
	for i, item := range n.items {
		each(i, fmt.Sprintf("%s[%d]", key, i), item)
	}
}

// words reads a text or a list of texts.
func (r *reader) words(n *node, key string) []string {
	if n.kind != isList {
		return []string{r.word(n, key)}
	}
	words := []string{}
	r.list(n, key, func(_ int, key string, v *node) { words = append(words, r.word(v, key)) })
	if len(words) == 0 {
		r.fault(n, key, "the list is empty, so the rule would match nothing by it", "remove the key, or write what it matches")
	}
	return words
}

func (r *reader) word(n *node, key string) string {
	switch n.kind {
	case isText, isNumber:
		return n.text
	}
	r.fault(n, key, "this is "+string(n.kind)+" and must be a text", "put it in quotes")
	return ""
}

func (r *reader) truth(n *node, key string) bool {
	if n.kind != isBool {
		r.fault(n, key, "this is "+string(n.kind)+" and must be true or false", "write true or false")
	}
	return n.kind == isBool && n.text == "true"
}

func (r *reader) instant(n *node, key string) time.Time {
	t, err := time.Parse(time.RFC3339, r.word(n, key))
	if err != nil {
		r.fault(n, key, "this is no time", "write it like 2026-11-21T22:00:00Z")
	}
	return t.UTC()
}

// json is the value as JSON text.
func (n *node) json() json.RawMessage {
	var b strings.Builder
	n.write(&b)
	return json.RawMessage(b.String())
}

func (n *node) write(b *strings.Builder) {
	switch n.kind {
	case isNull:
		b.WriteString("null")
	case isBool:
		b.WriteString(n.text)
	case isNumber:
		if json.Valid([]byte(n.text)) {
			b.WriteString(n.text)
			return
		}
		fallthrough // YAML knows spellings of numbers that JSON does not
	case isText:
		text, err := json.Marshal(n.text)
		if err != nil {
			text = []byte(`""`)
		}
		b.Write(text)
	case isList:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case isMapping:
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			(&node{kind: isText, text: m.key.text}).write(b)
			b.WriteByte(':')
			m.value.write(b)
		}
		b.WriteByte('}')
	}
}

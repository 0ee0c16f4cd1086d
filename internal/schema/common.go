package schema

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Bounds of a common schema, with which no bound of Compile can be exceeded.
const (
	maxCommonBytes   = 64 << 10
	maxCommonSchemas = 100
	maxCommonDepth   = 64

	// maxCommonSteps bounds what the library takes for one value, so that any arguments are affordable: a value takes two bytes,
	// one of them for a comma or bracket, and one step more for being part of another.
	maxCommonSteps = 2*stepsPerByte - 1
)

// kinds is a set of kinds of JSON values.
type kinds uint8

const ( // in the order of the names in allowKind
	nulls kinds = 1 << iota
	booleans
	integers
	fractions // numbers that are not written as integers
	texts
	arrays
	objects

	anything = nulls | booleans | integers | fractions | texts | arrays | objects
)

// node is a common schema: keywords that everybody uses, without references and patterns. That it compiles, and that nothing in
// it is Broken, is known without compiling it. A nil node stands for a schema that anything satisfies.
type node struct {
	kinds  kinds
	values map[string]bool // those that an enum or const allows, as they are written; nil: all
	any    []*node         // one of them holds for the value, too, if there are some

	floor, ceiling bound // of numbers; infinite where there is none

	minLength, maxLength int // of texts, in code points

	least, most int   // how many elements
	items       *node // of an array

	members  map[string]member
	others   *node  // of all other members
	required uint64 // the bits of the required members

	steps int // that the library takes for a value and its parts which all of the schema has a say in
}

// member is a member that a schema names.
type member struct {
	node *node
	bit  uint64 // in node.required; 0 where the member may be missing
}

// bound is a bound of numbers: the float next to it, and what is to be known about a number that is equal to that.
type bound struct {
	at     float64
	closed bool // the float is the bound, and the bound itself is allowed
}

const unbounded = math.MaxInt

// newNode returns the node of a schema that says nothing.
func newNode() node {
	return node{kinds: anything, floor: bound{at: math.Inf(-1)}, ceiling: bound{at: math.Inf(1)}, maxLength: unbounded, most: unbounded}
}

// common returns the node of the schema raw; nil where raw is not known to be a common one.
func common(raw json.RawMessage) *node {
	if len(raw) > maxCommonBytes || bytes.Contains(raw, []byte(`\u`)) { // keys with escapes could be any keyword
		return nil
	}
	m := measure(raw)
	if m.depth > maxCommonDepth || m.schemas > maxCommonSchemas || m.tooBig || m.beyond || !rawjson.Valid(raw) {
		return nil
	}
	dialects := 0
	switch dialect, _ := rawjson.Get(raw, "$schema"); string(dialect) {
	case "":
	case `"http://json-schema.org/draft-07/schema#"`, `"https://json-schema.org/draft/2020-12/schema"`:
		dialects = 1
	default:
		return nil
	}
	if bytes.Count(raw, []byte(`"$`)) != dialects {
		return nil // references, identifiers, vocabularies: also where they are data, because Compile counts them there
	}
	if n, ok := nodeOf(raw); ok {
		return n
	}
	return nil
}

// nodeOf returns the node of a schema. ok is false where something about it is uncommon.
func nodeOf(raw []byte) (n *node, ok bool) {
	switch string(raw) {
	case "true":
		return nil, true
	case "false":
		return &node{steps: 1}, true // of no kind
	}
	n = &node{}
	*n = newNode()
	required := []byte("[]")
	ok = eachMember(raw, func(m rawjson.Member) bool {
		if string(m.Key) == "required" {
			required = m.Value // is looked at when all members are known
			return true
		}
		return n.keyword(string(m.Key), m.Value)
	})
	if !ok || string(required) != "[]" && !eachElement(required, n.require) {
		return nil, false
	}
	own := 1 + len(n.values)/8
	if n.kinds&(integers|fractions) != 0 {
		own = 1 + 4*len(n.values)
	}
	n.steps += own
	if len(n.any) > 0 {
		own = n.steps
	}
	return n, own <= maxCommonSteps
}

// keyword notes what a keyword says; of a member that occurs twice, the last one, as decoders do. It reports whether keyword and
// value are common.
func (n *node) keyword(name string, value []byte) (ok bool) {
	switch name {
	case "type":
		n.kinds = 0
		if value[0] == '[' {
			return eachElement(value, n.allowKind)
		}
		return n.allowKind(value)
	case "enum":
		return n.values == nil && eachElement(value, n.allow)
	case "const":
		return n.values == nil && n.allow(value)
	case "properties":
		n.members = make(map[string]member)
		return eachMember(value, func(p rawjson.Member) bool {
			one, ok := n.part(p.Value)
			n.members[p.Name()] = member{node: one}
			return ok
		})
	case "additionalProperties":
		n.others, ok = n.part(value)
		return ok
	case "items":
		n.items, ok = n.part(value)
		return ok
	case "anyOf":
		n.any = nil
		return eachElement(value, func(one []byte) bool {
			other, ok := n.part(one)
			n.any = append(n.any, other)
			return ok
		})
	case "minimum", "exclusiveMinimum":
		return setBound(&n.floor, value, name == "minimum")
	case "maximum", "exclusiveMaximum":
		return setBound(&n.ceiling, value, name == "maximum")
	case "minLength":
		return setSize(&n.minLength, value)
	case "maxLength":
		return setSize(&n.maxLength, value)
	case "minItems":
		return setSize(&n.least, value)
	case "maxItems":
		return setSize(&n.most, value)
	case "default":
		return true
	case "title", "description", "contentEncoding", "contentMediaType":
		return value[0] == '"'
	case "propertyNames":
		return eachMember(value, func(m rawjson.Member) bool { return string(m.Key) == "type" && string(m.Value) == `"string"` })
	case "format":
		return value[0] == '"' && string(value) != `"regex"` // the others are not asserted: see formats
	case "examples":
		return value[0] == '['
	case "readOnly", "writeOnly", "deprecated":
		return value[0] == 't' || value[0] == 'f'
	case "$schema": // of the whole schema: common has looked at it
		return true
	}
	return strings.HasPrefix(name, "x-") && value[0] != '{' && value[0] != '[' // no keyword begins so, and no schema is in it
}

// part returns the node of a schema that n holds.
func (n *node) part(raw []byte) (p *node, ok bool) {
	p, ok = nodeOf(raw)
	n.steps++
	if p != nil {
		n.steps += p.steps - 1
	}
	return p, ok
}

// allowKind adds to the kinds one that a "type" names.
func (n *node) allowKind(name []byte) bool {
	names := [...]string{`"null"`, `"boolean"`, `"integer"`, `"number"`, `"string"`, `"array"`, `"object"`}
	i := slices.Index(names[:], string(name))
	if i < 0 {
		return false
	}
	kind := kinds(1) << i
	if kind == fractions {
		kind |= integers
	}
	again := n.kinds&kind == kind
	n.kinds |= kind
	return !again
}

// allow adds a value to those that are allowed. It has to be one that has one spelling only, and is not among them.
func (n *node) allow(value []byte) bool {
	if n.values == nil {
		n.values = make(map[string]bool)
	}
	again := n.values[string(value)]
	n.values[string(value)] = true
	switch value[0] {
	case '"':
		return !again && plain(value)
	case 't', 'f', 'n':
		return !again
	}
	return !again && isWhole(value)
}

// require makes a member required. No member is named twice.
func (n *node) require(name []byte) bool {
	if name[0] != '"' || !plain(name) {
		return false
	}
	key := string(name[1 : len(name)-1])
	m, declared := n.members[key]
	if !declared {
		m.node = n.others
	}
	again := m.bit != 0
	m.bit = n.required + 1
	n.required |= m.bit
	if n.members == nil {
		n.members = make(map[string]member)
	}
	n.members[key] = m
	return !again && m.bit != 0 // otherwise they are more than fit
}

// setBound sets a bound that there is none of yet.
func setBound(to *bound, value []byte, closed bool) bool {
	at, err := strconv.ParseFloat(string(value), 64)
	exact := isWhole(bytes.TrimPrefix(value, []byte("-"))) && math.Abs(at) < 1<<53
	none := math.IsInf(to.at, 0)
	*to = bound{at, closed && exact}
	return none && err == nil
}

func setSize(to *int, value []byte) bool {
	n, err := strconv.Atoi(string(value))
	*to = n
	return err == nil && len(value) < 10 && isWhole(value)
}

// isWhole reports whether value is a number that is written with digits alone.
func isWhole(value []byte) bool { return len(bytes.Trim(value, "0123456789")) == 0 }

// eachMember reports whether test holds for each member of object, which is one.
func eachMember(object []byte, test func(rawjson.Member) bool) bool {
	passed := true
	err := rawjson.Members(object, func(m rawjson.Member) bool {
		passed = test(m)
		return passed
	})
	return err == nil && passed
}

// eachElement reports whether array is one, holds something, and test holds for each element.
func eachElement(array []byte, test func([]byte) bool) bool {
	passed := false
	err := rawjson.Elements(array, func(one []byte) bool {
		passed = test(one)
		return passed
	})
	return err == nil && passed
}

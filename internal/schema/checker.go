package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checker checks the text of arguments against a schema of the common kind: objects and arrays of scalars, with bounds and
// enums, and combinations of such schemas. Arguments are neither decoded nor copied.
//
// It says only that arguments are valid, and then the library says so as well. Where it says nothing, the library decides:
// about schemas and arguments that are out of the ordinary, and about everything that is refused.
type checker struct {
	root *node

	// linear says that the work grows with the arguments alone, so that it is always affordable.
	linear bool
}

// kinds is a set of kinds of JSON values.
type kinds uint8

const (
	nulls kinds = 1 << iota
	booleans
	integers
	fractions // numbers that are not written as integers
	texts
	arrays
	objects

	anything = nulls | booleans | integers | fractions | texts | arrays | objects
)

func kindsOf(types *jsonschema.Types) (k kinds) {
	if types == nil || types.IsEmpty() {
		return anything
	}
	for i, name := range []string{"null", "boolean", "integer", "number", "string", "array", "object"} {
		if slices.Contains(types.ToStrings(), name) {
			k |= 1 << i
		}
	}
	if k&fractions != 0 {
		k |= integers
	}
	return k
}

// node is a schema, as far as the checker looks at values with it. A nil node stands for a schema that anything satisfies.
type node struct {
	kinds kinds

	// values are those that an enum or const allows, as they are written, strings without the closing quote; nil: all.
	values map[string]bool

	all, any []*node // all of all hold for the value, too, and one of any, if there are some

	floor, ceiling *bound // of numbers

	minLength, maxLength int // of texts, in code points
	pattern              *pattern

	least, most int   // how many elements
	items       *node // of an array

	members  map[string]member
	others   *node  // of all other members
	required uint64 // the bits of the required members
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

// newChecker returns the checker of a schema; nil where the schema holds anything uncommon.
func newChecker(root *jsonschema.Schema) *checker {
	c := &checkerCompiler{known: make(map[*jsonschema.Schema]*node), open: make(map[*jsonschema.Schema]bool), linear: true}
	n, ok := c.compile(root)
	if !ok {
		return nil
	}
	return &checker{root: n, linear: c.linear}
}

// checkerCompiler is one newChecker.
type checkerCompiler struct {
	known  map[*jsonschema.Schema]*node
	open   map[*jsonschema.Schema]bool // has been begun: where it is not known yet, it is recursive
	linear bool
}

// maxLinearEnum bounds the values of an enum that numbers are compared with. With more, the work of a validation can grow faster
// than the arguments: see enumSteps.
const maxLinearEnum = stepsPerByte/4 + 3

// common reports whether s has no keyword that the checker does not know. A keyword that the library learns is not known.
func common(s *jsonschema.Schema) bool {
	value := reflect.ValueOf(*s)
	for i := range value.NumField() {
		if !value.Type().Field(i).IsExported() || value.Field(i).IsZero() {
			continue
		}
		switch value.Type().Field(i).Name {
		case "DraftVersion", "Location", "ID", "Anchor", "Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly",
			"Examples", "Deprecated": // assert nothing
		case "Bool", "Ref", "Types", "Enum", "Const", "AllOf", "AnyOf", "Format", "Required", "PropertyNames",
			"Properties", "AdditionalProperties", "MinItems", "MaxItems", "Items", "Items2020", "MinLength", "MaxLength",
			"Pattern", "Maximum", "Minimum", "ExclusiveMaximum", "ExclusiveMinimum":
		default:
			return false
		}
	}
	return s.Format == nil || slices.Contains(formats(), s.Format.Name) // those are not asserted
}

// compile returns the node of s; ok is false where s is not common, or recursive.
func (c *checkerCompiler) compile(s *jsonschema.Schema) (n *node, ok bool) {
	if n, ok = c.known[s]; ok {
		return n, true
	}
	if !common(s) || c.open[s] {
		return nil, false
	}
	c.open[s] = true
	if s.Bool != nil {
		if !*s.Bool {
			n = &node{} // of no kind
		}
		c.known[s] = n
		return n, true
	}
	says := s
	if s.Ref != nil && s.DraftVersion < 2019 {
		says = &jsonschema.Schema{Ref: s.Ref} // "All other properties in a $ref object MUST be ignored."
	}
	n = &node{kinds: kindsOf(says.Types), maxLength: unbounded, most: unbounded}
	if !c.value(n, says) || !c.combined(n, says) || !c.object(n, says) || !c.array(n, says) {
		return nil, false
	}
	c.known[s] = n
	return n, true
}

// value compiles what s says of single values.
func (c *checkerCompiler) value(n *node, s *jsonschema.Schema) bool {
	var allowed []any
	switch {
	case s.Enum != nil && s.Const != nil:
		return false
	case s.Enum != nil:
		allowed = s.Enum.Values
	case s.Const != nil:
		allowed = []any{*s.Const}
	}
	if allowed != nil {
		n.values = make(map[string]bool, len(allowed))
		most := maxLinearEnum
		if n.kinds&(integers|fractions) == 0 {
			most *= 32
		}
		c.linear = c.linear && len(allowed) <= most
	}
	for _, v := range allowed {
		switch v := v.(type) {
		case nil, bool, json.Number:
			n.values[strings.Replace(fmt.Sprint(v), "<nil>", "null", 1)] = true
		case string:
			n.values[`"`+v] = true
		}
	}
	for _, b := range []struct {
		to     **bound
		at     *big.Rat
		closed bool
	}{{&n.floor, s.Minimum, true}, {&n.ceiling, s.Maximum, true}, {&n.floor, s.ExclusiveMinimum, false}, {&n.ceiling, s.ExclusiveMaximum, false}} {
		if b.at == nil {
			continue
		}
		if *b.to != nil {
			return false // both kinds of bound
		}
		at, exact := b.at.Float64()
		*b.to = &bound{at, exact && b.closed}
	}
	set(&n.minLength, s.MinLength)
	set(&n.maxLength, s.MaxLength)
	if s.Pattern != nil {
		c.linear = false
		var ours bool
		n.pattern, ours = s.Pattern.(*pattern)
		return ours
	}
	return true
}

// combined compiles what other schemas say of the same value.
func (c *checkerCompiler) combined(n *node, s *jsonschema.Schema) bool {
	all := s.AllOf
	if s.Ref != nil {
		all = append(slices.Clip(all), s.Ref)
	}
	c.linear = c.linear && len(all)+len(s.AnyOf) == 0
	for i, one := range slices.Concat(all, s.AnyOf) {
		other, ok := c.compile(one)
		if !ok {
			return false
		}
		to := &n.any
		if i < len(all) {
			to = &n.all
		}
		*to = append(*to, other)
	}
	return true
}

func (c *checkerCompiler) object(n *node, s *jsonschema.Schema) (ok bool) {
	if s.PropertyNames != nil { // it has to allow any text
		n, ok := c.compile(s.PropertyNames)
		if !ok || n != nil && (n.kinds&texts == 0 || n.values != nil || n.all != nil || n.any != nil || n.minLength != 0 ||
			n.maxLength != unbounded || n.pattern != nil) {
			return false
		}
	}
	switch others := s.AdditionalProperties.(type) {
	case bool:
		if !others {
			n.others = &node{}
		}
	case *jsonschema.Schema:
		if n.others, ok = c.compile(others); !ok {
			return false
		}
	}
	n.members = make(map[string]member, len(s.Properties))
	for name, property := range s.Properties {
		p, ok := c.compile(property)
		if !ok {
			return false
		}
		n.members[name] = member{node: p}
	}
	for _, name := range s.Required {
		m, declared := n.members[name]
		if !declared {
			m.node = n.others
		}
		if m.bit == 0 {
			if m.bit = n.required + 1; m.bit == 0 {
				return false // more than fit
			}
			n.required |= m.bit
		}
		n.members[name] = m
	}
	return true
}

func (c *checkerCompiler) array(n *node, s *jsonschema.Schema) (ok bool) {
	set(&n.least, s.MinItems)
	set(&n.most, s.MaxItems)
	items := s.Items2020
	if s.Items != nil {
		if items, ok = s.Items.(*jsonschema.Schema); !ok {
			return false
		}
	}
	if items == nil {
		return true
	}
	n.items, ok = c.compile(items)
	return ok
}

func set(bound, value *int) {
	if value != nil {
		*bound = *value
	}
}

package schema

import (
	"encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A validation visits a value once for each way through the schema that leads to it, and ways multiply: twenty allOf
// of two references each are a million visits, and a recursive anyOf doubles them with each level of the arguments. The
// library has no bound, so the visits are counted before it begins.
const (
	freeSteps     = 1_000_000 // about a fifth of a second
	stepsPerByte  = 16        // of the arguments
	carelessSteps = 200_000   // so few that counting is not worth it
	bytesPerStep  = 50        // of pattern weight times string length
)

// costs bounds the steps of a validation.
type costs struct {
	ways    int // through the schema, from its root to any end; maxWays where it is recursive or there are more
	anchors map[string][]*jsonschema.Schema
	again   []*jsonschema.Schema // targets of $recursiveRef
}

const maxWays = 1 << 30

func (g *graph) costs() costs {
	c := costs{anchors: make(map[string][]*jsonschema.Schema)}
	ways := make(map[*jsonschema.Schema]int, len(g.all)) // -1 while it is being counted
	var count func(s *jsonschema.Schema) int
	count = func(s *jsonschema.Schema) int {
		switch n := ways[s]; {
		case n > 0:
			return n
		case n < 0:
			return maxWays
		}
		ways[s] = -1
		sum := 1 + patternWeight(s)/bytesPerStep + enumSteps(s, json.Number(""))
		add := func(next *jsonschema.Schema) { sum = min(sum+count(next), maxWays) }
		sameValue(s, add)
		partsOf(s, add)
		ways[s] = sum
		return sum
	}
	c.ways = count(g.root)
	for _, s := range g.all {
		if s.DynamicAnchor != "" {
			c.anchors[s.DynamicAnchor] = append(c.anchors[s.DynamicAnchor], s)
			c.ways = maxWays
		}
		if s.RecursiveAnchor {
			c.again = append(c.again, s)
			c.ways = maxWays
		}
	}
	return c
}

func patternWeight(s *jsonschema.Schema) int {
	weight := weightOf(s.Pattern)
	for re := range s.PatternProperties {
		weight += weightOf(re)
	}
	return weight
}

func weightOf(re jsonschema.Regexp) int {
	if p, ok := re.(*pattern); ok {
		return p.weight
	}
	return 0
}

// enumSteps bounds the cost of comparing v with an enum: numbers are parsed anew for each comparison.
func enumSteps(s *jsonschema.Schema, v any) int {
	if s.Enum == nil {
		return 0
	}
	if _, ok := v.(json.Number); ok {
		return 4 * len(s.Enum.Values)
	}
	return len(s.Enum.Values) / 8
}

// size counts the values in v, up to about most.
func size(v any, most int) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if n > most {
				break
			}
			n += size(item, most-n)
		}
	case map[string]any:
		for _, item := range v {
			if n > most {
				break
			}
			n += size(item, most-n)
		}
	}
	return n
}

// affordable reports whether the validation of v, which is as many bytes as JSON, stays within the bounds.
func (c costs) affordable(root *jsonschema.Schema, v any, bytes int) bool {
	if int64(c.ways)*int64(bytes+1) <= carelessSteps {
		return true
	}
	w := walk{costs: c, left: freeSteps + stepsPerByte*bytes}
	w.visit(root, v)
	return w.left > 0
}

// walk follows every way that the library may take, without looking at values other than by their type. It stops when
// no steps are left.
type walk struct {
	costs
	left int
}

func (w *walk) visit(s *jsonschema.Schema, v any) {
	w.left--
	if w.left <= 0 || s.Bool != nil || s.Types != nil && !accepts(*s.Types, v) {
		return
	}
	w.left -= enumSteps(s, v)
	next := func(s *jsonschema.Schema) { w.part(s, v) }
	sameValue(s, next)
	if s.DynamicRef != nil {
		for _, target := range w.anchors[s.DynamicRef.Anchor] {
			next(target)
		}
	}
	if s.RecursiveRef != nil {
		for _, target := range w.again {
			next(target)
		}
	}
	if s.Ref != nil && s.DraftVersion < 2019 {
		return
	}
	switch v := v.(type) {
	case json.Number:
		w.left -= len(v) / 32
	case string:
		w.left -= patternWeight(s) * (len(v) + 1) / bytesPerStep
	case map[string]any:
		w.members(s, v)
	case []any:
		w.elements(s, v)
	}
}

// part visits s, where there is one, for a part v of a value.
func (w *walk) part(s *jsonschema.Schema, v any) {
	if s != nil && w.left > 0 {
		w.visit(s, v)
	}
}

func (w *walk) members(s *jsonschema.Schema, object map[string]any) {
	w.left -= len(object)
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	for name, value := range object {
		if w.left <= 0 {
			return
		}
		declared := s.Properties[name]
		w.part(declared, value)
		for re, sub := range s.PatternProperties {
			w.left -= 1 + weightOf(re)*(len(name)+1)/bytesPerStep
			w.part(sub, value)
		}
		if declared == nil {
			w.part(additional, value)
		}
		w.part(s.PropertyNames, name)
		w.part(s.UnevaluatedProperties, value)
	}
}

func (w *walk) elements(s *jsonschema.Schema, array []any) {
	w.left -= len(array)
	if s.UniqueItems {
		w.left -= 20*len(array) + size(array, w.left)
	}
	all, _ := s.Items.(*jsonschema.Schema)
	list, _ := s.Items.([]*jsonschema.Schema)
	additional, _ := s.AdditionalItems.(*jsonschema.Schema)
	for i, value := range array {
		if w.left <= 0 {
			return
		}
		w.part(all, value)
		if i < len(list) {
			w.part(list[i], value)
		} else {
			w.part(additional, value)
		}
		if i < len(s.PrefixItems) {
			w.part(s.PrefixItems[i], value)
		} else {
			w.part(s.Items2020, value)
		}
		w.part(s.Contains, value)
		w.part(s.UnevaluatedItems, value)
	}
}

// accepts reports whether v may be of one of types. Integers are taken for numbers.
func accepts(types jsonschema.Types, v any) bool {
	var own jsonschema.Types
	switch v.(type) {
	case nil:
		own.Add("null")
	case bool:
		own.Add("boolean")
	case json.Number:
		own.Add("number")
		own.Add("integer")
	case string:
		own.Add("string")
	case []any:
		own.Add("array")
	case map[string]any:
		own.Add("object")
	}
	return types&own != 0
}

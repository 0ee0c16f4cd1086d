package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// graph is all that can be reached from a compiled schema.
type graph struct {
	root *jsonschema.Schema
	all  []*jsonschema.Schema
}

// survey follows root and the schemas that only dynamic references lead to.
func survey(root *jsonschema.Schema, dynamic []*jsonschema.Schema) *graph {
	g := &graph{root: root}
	seen := make(map[*jsonschema.Schema]bool)
	add := func(s *jsonschema.Schema) {
		if !seen[s] {
			seen[s] = true
			g.all = append(g.all, s)
		}
	}
	add(root)
	for _, s := range dynamic {
		add(s)
	}
	for i := 0; i < len(g.all); i++ {
		sameValue(g.all[i], add)
		partsOf(g.all[i], add)
	}
	return g
}

// sameValue yields the subschemas of s that look at the very value that s looks at. It leaves out where dynamic
// references lead at run time, other than their static target.
func sameValue(s *jsonschema.Schema, yield func(*jsonschema.Schema)) {
	if s.Bool != nil {
		return
	}
	some := func(list ...*jsonschema.Schema) {
		for _, next := range list {
			if next != nil {
				yield(next)
			}
		}
	}
	some(s.Ref)
	if s.Ref != nil && s.DraftVersion < 2019 {
		return // "All other properties in a $ref object MUST be ignored."
	}
	some(s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		some(s.DynamicRef.Ref)
	}
	some(s.AllOf...)
	some(s.AnyOf...)
	some(s.OneOf...)
	for _, next := range s.DependentSchemas {
		some(next)
	}
	for _, next := range s.Dependencies {
		if next, ok := next.(*jsonschema.Schema); ok {
			some(next)
		}
	}
}

// partsOf yields the subschemas of s that look at a part of its value: a member, an element or a member's name.
func partsOf(s *jsonschema.Schema, yield func(*jsonschema.Schema)) {
	if s.Bool != nil {
		return
	}
	some := func(list ...any) {
		for _, next := range list {
			if next, ok := next.(*jsonschema.Schema); ok && next != nil {
				yield(next)
			}
		}
	}
	for _, next := range s.Properties {
		some(next)
	}
	for _, next := range s.PatternProperties {
		some(next)
	}
	some(s.AdditionalProperties, s.PropertyNames, s.UnevaluatedProperties,
		s.Items, s.AdditionalItems, s.Items2020, s.UnevaluatedItems, s.Contains)
	list, _ := s.Items.([]*jsonschema.Schema)
	for _, next := range slices.Concat(list, s.PrefixItems) {
		some(next)
	}
}

// cycle finds a schema that leads back to itself without going down into the value: it says nothing
// and would never end.
func (g *graph) cycle() (at *jsonschema.Schema, ok bool) {
	open, done := make(map[*jsonschema.Schema]bool), make(map[*jsonschema.Schema]bool, len(g.all))
	var visit func(s *jsonschema.Schema)
	visit = func(s *jsonschema.Schema) {
		switch {
		case ok || done[s]:
			return
		case open[s]:
			at, ok = s, true
			return
		}
		open[s] = true
		sameValue(s, visit)
		done[s] = true
	}
	for _, s := range g.all {
		visit(s)
	}
	return at, ok
}

// loosen drops upper bounds that overflowed in the library. With unapplied, a pattern of the schema is not applied, and
// so matches everything: then loosen undoes each place where that could refuse a valid value: negations, conditions,
// choices of exactly one, upper counts, and members that the pattern may not be about.
func (g *graph) loosen(unapplied bool) {
	for _, s := range g.all {
		for _, bound := range []**int{&s.MaxLength, &s.MaxItems, &s.MaxProperties, &s.MaxContains} {
			if *bound != nil && **bound < 0 {
				*bound = nil
			}
		}
		if !unapplied {
			continue
		}
		s.Not, s.If, s.MaxContains = nil, nil, nil
		if len(s.AnyOf) == 0 {
			s.AnyOf = s.OneOf
		}
		s.OneOf = nil
		for re := range s.PatternProperties {
			if p, ok := re.(*pattern); ok && p.re == nil {
				s.PatternProperties[re] = &jsonschema.Schema{Bool: new(true)}
			}
		}
	}
}

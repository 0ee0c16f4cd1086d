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

// loosen undoes the places where a pattern that is not applied, and so matches everything, would
// refuse a valid value: in a negation, a condition, a choice of exactly one, an upper count, and
// for members that it may not be about. It also drops upper bounds that overflowed in the library.
func (g *graph) loosen() {
	passed := g.reaching(passedOver)
	for _, s := range g.all {
		for _, bound := range []**int{&s.MaxLength, &s.MaxItems, &s.MaxProperties, &s.MaxContains} {
			if *bound != nil && **bound < 0 {
				*bound = nil
			}
		}
		if len(passed) == 0 {
			continue
		}
		if passed[s.Not] {
			s.Not = nil
		}
		if passed[s.If] {
			s.If = nil
		}
		if passed[s.Contains] {
			s.MaxContains = nil
		}
		if slices.ContainsFunc(s.OneOf, func(next *jsonschema.Schema) bool { return passed[next] }) {
			if len(s.AnyOf) == 0 {
				s.AnyOf = s.OneOf
			}
			s.OneOf = nil
		}
		for re := range s.PatternProperties {
			if isPassedOver(re) {
				s.PatternProperties[re] = &jsonschema.Schema{Bool: new(true)}
			}
		}
	}
}

// passedOver reports whether s itself holds a pattern that is not applied.
func passedOver(s *jsonschema.Schema) bool {
	if isPassedOver(s.Pattern) {
		return true
	}
	for re := range s.PatternProperties {
		if isPassedOver(re) {
			return true
		}
	}
	return false
}

func isPassedOver(re jsonschema.Regexp) bool {
	p, ok := re.(*pattern)
	return ok && p.re == nil
}

// reaching returns the schemas that have, or lead to, one that is marked.
func (g *graph) reaching(marked func(*jsonschema.Schema) bool) map[*jsonschema.Schema]bool {
	found := slices.DeleteFunc(slices.Clone(g.all), func(s *jsonschema.Schema) bool { return !marked(s) })
	if len(found) == 0 {
		return nil
	}
	users := make(map[*jsonschema.Schema][]*jsonschema.Schema)
	for _, s := range g.all {
		used := func(next *jsonschema.Schema) { users[next] = append(users[next], s) }
		sameValue(s, used)
		partsOf(s, used)
	}
	reached := make(map[*jsonschema.Schema]bool)
	for len(found) > 0 {
		s := found[len(found)-1]
		found = found[:len(found)-1]
		if !reached[s] {
			reached[s] = true
			found = append(found, users[s]...)
		}
	}
	return reached
}

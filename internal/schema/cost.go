package schema

import (
	"encoding/json"
	"errors"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A validation visits a value once for each way through the schema that leads to it, and ways multiply: twenty allOf
// of two references each are a million visits, and a recursive anyOf doubles them with each level of the arguments. The
// library has no bound, so each visit counts its steps, and ends the validation that has taken too many.
const (
	freeSteps    = 1_000_000 // about a fifth of a second
	stepsPerByte = 16        // of the arguments
	bytesPerStep = 50        // of pattern weight times string length
)

// errCostly ends a validation that has taken too many steps. It is a panic: the library stops at nothing else.
var errCostly = errors.New("too many steps")

// meter counts the steps of a validation, and panics with errCostly where there are too many. A
// schema runs one at a time.
type meter struct {
	mu   sync.Mutex
	left int
}

// watch makes each visit of a schema in g count. The library asks a format in each, once the value has the right type.
func (m *meter) watch(g *graph) {
	heaviest := 0
	for _, s := range g.all {
		heaviest = max(heaviest, entrySteps(s))
	}
	for _, s := range g.all {
		w := weightOf(s)
		if s.DynamicRef != nil || s.RecursiveRef != nil { // they may lead to any schema
			w.same += heaviest
		}
		s.Format = &jsonschema.Format{Validate: func(v any) error {
			if m.left -= w.steps(v, m.left); m.left < 0 {
				panic(errCostly)
			}
			return nil
		}}
	}
}

// weight is what one visit costs, with the entry into each schema that it leads to: these count
// their own visits only where the value has their type.
type weight struct {
	same     int            // for the value itself
	elements int            // for each element
	members  int            // for each member
	declared map[string]int // for members of these names
	names    int            // of the patterns that members' names are matched with
	text     int            // of the pattern that a text is matched with
	unique   bool
}

// entrySteps bounds what a visit of s costs before it counts. Numbers are parsed anew for each comparison.
func entrySteps(s *jsonschema.Schema) int {
	steps := 8 // eighths
	if s.Enum != nil {
		for _, v := range s.Enum.Values {
			steps++
			if _, ok := v.(json.Number); ok {
				steps += 31
			}
		}
	}
	return steps / 8
}

func weightOf(s *jsonschema.Schema) weight {
	w := weight{same: 1, text: patternWeight(s.Pattern), unique: s.UniqueItems, declared: make(map[string]int)}
	sameValue(s, func(next *jsonschema.Schema) { w.same += entrySteps(next) })
	partsOf(s, func(next *jsonschema.Schema) { w.elements += entrySteps(next) })
	for name, next := range s.Properties {
		w.declared[name] = entrySteps(next)
		w.elements -= entrySteps(next)
	}
	for re := range s.PatternProperties {
		w.names += patternWeight(re)
	}
	w.members, w.elements = w.elements+len(s.PatternProperties)+1, w.elements+1
	return w
}

func patternWeight(re jsonschema.Regexp) int {
	if p, ok := re.(*pattern); ok {
		return p.weight
	}
	return 0
}

// steps counts what the visit of v costs, up to about most.
func (w *weight) steps(v any, most int) int {
	steps := w.same
	switch v := v.(type) {
	case json.Number:
		steps += len(v) / 32
	case string:
		steps += w.text * (len(v) + 1) / bytesPerStep
	case map[string]any:
		steps += w.members * len(v)
		for name := range v {
			steps += w.declared[name] + w.names*(len(name)+1)/bytesPerStep
		}
	case []any:
		steps += w.elements * len(v)
		if w.unique {
			steps += 20*len(v) + size(v, most)
		}
	}
	return steps
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

package policy

import (
	"cmp"
	"strings"
	"unique"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// verdict is what a look at the arguments says of a condition. && is the least of two, || the greatest.
type verdict int8

const (
	no      verdict = -1
	unknown verdict = 0 // the library has to evaluate it
	yes     verdict = 1
)

func verdictOf(holds bool) verdict {
	if holds {
		return yes
	}
	return no
}

// quick decides a condition in some nanoseconds, where the library takes hundreds. It knows
// comparisons of arguments with constants of the same type, and what joins them: most calls that a
// condition is not about differ in one of those. Everything else is unknown. What it says is what
// the library would say, where an error beside false in && or beside true in || does not count
// either.
type quick func(s *subject) verdict

func quickOf(e celast.Expr) quick {
	if at, ok := placeOf(e); ok {
		if !e.AsSelect().IsTestOnly() {
			return comparison(at, operators.Equals, types.True)
		}
		return func(s *subject) verdict { // has(arguments.a)
			object := at.in(s)
			if object == nil {
				return unknown
			}
			_, has := object[at.name]
			return verdictOf(has)
		}
	}
	if e.Kind() == celast.CallKind {
		return quickCall(e.AsCall())
	}
	return nobodyKnows
}

func nobodyKnows(*subject) verdict { return unknown }

func quickCall(call celast.CallExpr) quick {
	name, args := call.FunctionName(), call.Args()
	switch name {
	case operators.LogicalNot:
		a := quickOf(args[0])
		return func(s *subject) verdict { return -a(s) }
	case operators.LogicalAnd:
		a, b := quickOf(args[0]), quickOf(args[1])
		return func(s *subject) verdict {
			if x := a(s); x != no {
				return min(x, b(s))
			}
			return no
		}
	case operators.LogicalOr:
		a, b := quickOf(args[0]), quickOf(args[1])
		return func(s *subject) verdict {
			if x := a(s); x != yes {
				return max(x, b(s))
			}
			return yes
		}
	}
	if call.IsMemberFunction() {
		args = append([]celast.Expr{call.Target()}, args...)
	}
	if len(args) != 2 || args[1].Kind() != celast.LiteralKind {
		return nobodyKnows
	}
	if at, ok := placeOf(args[0]); ok && !args[0].AsSelect().IsTestOnly() {
		return comparison(at, name, args[1].AsLiteral())
	}
	return nobodyKnows
}

// place is where a value stands in the arguments: a member of an object.
type place struct {
	in   func(s *subject) map[string]any // nil where there is no such object
	name string
	top  bool // the object is the arguments
}

// value is what stands there; nil for nothing. Many conditions in a row look at the same argument.
func (p *place) value(s *subject) any {
	if !p.top {
		return p.in(s)[p.name]
	}
	if s.seen.name != p.name {
		s.seen.name, s.seen.value = p.name, p.in(s)[p.name]
	}
	return s.seen.value
}

// placeOf is the place that e selects.
func placeOf(e celast.Expr) (p place, ok bool) {
	if e.Kind() != celast.SelectKind {
		return p, false
	}
	// many conditions name the same, and the processor finds it where it was
	p.name = unique.Make(e.AsSelect().FieldName()).Value()
	switch of := e.AsSelect().Operand(); of.Kind() {
	case celast.IdentKind:
		p.in = func(s *subject) map[string]any { return s.arguments.decoded(s.Input) }
		p.top = true
		return p, of.AsIdent() == "arguments"
	case celast.SelectKind:
		outer, ok := placeOf(of)
		p.in = func(s *subject) map[string]any {
			object, _ := outer.in(s)[outer.name].(map[string]any)
			return object
		}
		return p, ok && !of.AsSelect().IsTestOnly()
	}
	return p, false
}

// comparison compares a value with a constant by an operator or function of the library. Types that differ are unknown.
func comparison(at place, name string, constant ref.Val) quick {
	orders := ordersOf(name)
	switch c := constant.(type) {
	case types.String:
		text := string(c)
		switch {
		case name == operators.Equals: // without an order it takes two lengths most of the time
			return ofType(at, func(v string) bool { return v == text })
		case name == "startsWith":
			return ofType(at, func(v string) bool { return strings.HasPrefix(v, text) })
		case name == "endsWith":
			return ofType(at, func(v string) bool { return strings.HasSuffix(v, text) })
		case name == "contains":
			return ofType(at, func(v string) bool { return strings.Contains(v, text) })
		case orders != 0:
			return ofType(at, func(v string) bool { return orders.has(strings.Compare(v, text)) })
		}
	case types.Int:
		if orders != 0 {
			return ofType(at, func(v int64) bool { return orders.has(cmp.Compare(v, int64(c))) })
		}
	case types.Bool:
		if orders == equal || orders == less|greater {
			return ofType(at, func(v bool) bool { return (v == bool(c)) == (orders == equal) })
		}
	}
	return nobodyKnows
}

func ofType[T any](at place, holds func(v T) bool) quick {
	return func(s *subject) verdict {
		if v, ok := at.value(s).(T); ok {
			return verdictOf(holds(v))
		}
		return unknown
	}
}

// orders is a set of outcomes of cmp.Compare.
type orders uint8

const (
	less orders = 1 << iota
	equal
	greater
)

func (o orders) has(order int) bool { return o>>(order+1)&1 != 0 }

// ordersOf is when an operator holds; none where name is no operator of comparison.
func ordersOf(name string) orders {
	switch name {
	case operators.Equals:
		return equal
	case operators.NotEquals:
		return less | greater
	case operators.Less:
		return less
	case operators.LessEquals:
		return less | equal
	case operators.Greater:
		return greater
	case operators.GreaterEquals:
		return greater | equal
	}
	return 0
}

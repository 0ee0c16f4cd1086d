package policy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestQuickAgreesWithTheLibrary: what a look at the arguments says of a condition is what the library says of it, for conditions made of
// all that it knows and of what it does not, and arguments of every type.
func TestQuickAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	one := func(from ...string) string { return from[random.IntN(len(from))] }
	var text func(depth int) string
	text = func(depth int) string {
		if depth > 0 && random.IntN(3) > 0 {
			switch a, b := text(depth-1), text(depth-1); random.IntN(3) {
			case 0:
				return "(" + a + " && " + b + ")"
			case 1:
				return "(" + a + " || " + b + ")"
			default:
				return "!" + a
			}
		}
		at := one("arguments.a", "arguments.b", "arguments.o.a", "arguments.none", "arguments.o.none.a")
		switch random.IntN(5) {
		case 0:
			return fmt.Sprintf("has(%s)", at)
		case 1:
			return fmt.Sprintf("%s.%s(%s)", at, one("startsWith", "endsWith", "contains", "matches"), one(`"x"`, `""`, `"xy"`))
		case 2:
			return fmt.Sprintf("(%s == true)", at)
		case 3:
			return one("dyn("+at+")", "(1 in ["+at+"])", "(tool.name == 'x')", "("+at+" == arguments.a)")
		}
		return fmt.Sprintf("(%s %s %s)", at, one("==", "!=", "<", "<=", ">", ">="), one("1", "0", "-1", "1.0", `"x"`, `""`, "null", "1u"))
	}
	value := func() string {
		return one("1", "0", "-2", "1.0", "18446744073709551615", `"x"`, `"xy"`, `""`, "true", "false", "null", "[]", `{"a":1}`)
	}
	known := 0
	var compiler conditions
	for range 600 {
		when := text(2)
		c, errs := compiler.compile(when)
		if len(errs) > 0 {
			continue // it compares types that never agree
		}
		for range 20 {
			input := one(fmt.Sprintf(`{"a":%s,"b":%s,"o":{"a":%s}}`, value(), value(), value()), fmt.Sprintf(`{"o":%s}`, value()), `{"a":1,"a":2}`, `[`)
			look := prepare(&Request{Input: json.RawMessage(input)})
			said := c.quick(look)
			if said == unknown {
				continue
			}
			known++
			library := condition{program: c.program}
			holds, err := library.holds(prepare(&Request{Input: json.RawMessage(input)}))
			if err != nil || holds != (said == yes) {
				t.Fatalf("%s with %s is %d after a look, and the library says %v, %v", when, input, said, holds, err)
			}
		}
	}
	if known < 500 {
		t.Errorf("only %d are known after a look", known)
	}
}

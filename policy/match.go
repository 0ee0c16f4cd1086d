package policy

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Matcher says which calls something that decides nothing by itself is about, such as a hook: by
// the keys that rules have. It is safe for concurrent use.
type Matcher struct{ rule compiledRule }

// NewSubject returns the subject of r.
func NewSubject(r Request) *Subject { return prepare(&r) }

// Matcher compiles the keys match, tags, server, profile, actor and when of r. A matcher without
// any of them matches every call.
func (c *Compiler) Matcher(r Rule) (*Matcher, []Problem) {
	r.Then = tool.Allow
	if len(r.Match)+len(r.Tags)+len(r.Server)+len(r.Profile)+len(r.Actor) == 0 && r.When == "" {
		r.Match = []string{"*"}
	}
	rules, problems := compileRules("", []Rule{r}, c)
	return &Matcher{rules[0]}, problems
}

// Varies reports whether Matches can say otherwise of two calls of one caller to one tool.
func (m *Matcher) Varies() bool { return !m.rule.isStatic() }

// CanMatch reports whether a call like s can match: the same tool, profile and caller, with any arguments.
func (m *Matcher) CanMatch(s *Subject) bool {
	if m.Varies() {
		return m.rule.mismatch(s.Request) == ""
	}
	return m.Matches(s)
}

// Matches reports whether the call matches. A condition that cannot be evaluated matches: what
// guards a call must not be passed by breaking its condition.
func (m *Matcher) Matches(s *Subject) bool {
	matched, err := m.rule.matches(s)
	return matched || err != nil
}

// RepeatedMember returns the name of a member that an object in raw holds twice, also in another
// letter case. raw is valid JSON.
func RepeatedMember(raw json.RawMessage) (name string, twice bool) {
	return rawjson.Repeated(raw, compareFold)
}

// JSON returns the value of the expression. Whole numbers of up to 64 bits stay exact.
func (e *Expression) JSON(s *Subject) (json.RawMessage, error) {
	out, _, err := e.program.Eval(s)
	if err != nil {
		return nil, fmt.Errorf("evaluate the expression: %s", oneLine(err.Error()))
	}
	native, err := nativeOf(out)
	if err != nil {
		return nil, err
	}
	return rawjson.Encode(native)
}

// nativeOf turns a value of the library into one that JSON can encode.
func nativeOf(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool, types.Int, types.Uint, types.String:
		return v.Value(), nil
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("the expression is a number that JSON has not: %v", float64(v))
		}
		return float64(v), nil
	case traits.Mapper:
		object := make(map[string]any)
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name, ok := key.(types.String)
			if !ok {
				return nil, fmt.Errorf("the expression is an object with a %s for a name: use strings",
					key.Type().TypeName())
			}
			value, err := nativeOf(v.Get(key))
			if err != nil {
				return nil, err
			}
			object[string(name)] = value
		}
		return object, nil
	case traits.Lister:
		list := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			value, err := nativeOf(it.Next())
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	}
	return nil, fmt.Errorf("the expression is a %s, which JSON has not: make it a string, a number, a list or an object",
		v.Type().TypeName())
}

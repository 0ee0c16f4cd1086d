package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// Bounds of a filter, which are those of conditions in rules.
const (
	maxFilter     = 8 << 10
	maxFilterCost = 50_000
)

// Filter is a compiled one. A nil Filter lets everything pass.
type Filter struct{ program cel.Program }

// NewFilter compiles a CEL expression over event, an object of JSON; nil where text is "".
func NewFilter(text string) (*Filter, error) {
	if text == "" {
		return nil, nil
	}
	env, err := cel.NewCustomEnv(cel.StdLib(), cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true),
		cel.ParserRecursionLimit(100),
		cel.ParserExpressionSizeLimit(maxFilter), cel.Variable("event", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		return nil, fmt.Errorf("prepare the filter: %w", err)
	}
	checked, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("the filter is no CEL expression over event, for instance "+
			"event.tool_id.startsWith(\"mcp.github.\"): %s", strings.Join(strings.Fields(issues.Errors()[0].Message), " "))
	}
	if t := checked.OutputType(); !t.IsExactType(types.BoolType) && !t.IsExactType(types.DynType) {
		return nil, errors.New("the filter is neither true nor false: compare something, for instance " +
			"event.tool_id == \"mcp.github.create_issue\"")
	}
	program, err := env.Program(checked, cel.CostLimit(maxFilterCost))
	if err != nil {
		return nil, fmt.Errorf("the filter cannot be planned: %w", err)
	}
	return &Filter{program}, nil
}

// Holds reports whether the expression is true of an object. It is not where that lacks a member
// that the expression names.
func (f *Filter) Holds(object json.RawMessage) bool {
	if f == nil {
		return true
	}
	var members map[string]any
	dec := json.NewDecoder(bytes.NewReader(object))
	if dec.Decode(&members) != nil {
		return false
	}
	out, _, err := f.program.Eval(map[string]any{"event": members})
	return err == nil && out == types.True
}

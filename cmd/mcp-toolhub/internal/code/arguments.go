package code

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// check refuses tools that are not declared, and arguments that the declared input schema refuses.
// It does so also where the pipeline has checked them before.
func (t *Toolset) check(e *tool.Execution) error {
	i := slices.IndexFunc(t.catalog.Tools, func(declared *tool.Tool) bool { return declared.Native == e.Tool.Native })
	if i < 0 {
		return failure(tool.ClassUnknownTool, "", "the toolset code has no tool %q: list the tools again",
			e.Tool.Native)
	}
	s, err := t.schemas.Get(t.catalog.Tools[i].SchemaDigest, t.catalog.Tools[i].InputSchema)
	if err != nil {
		return fmt.Errorf("compile the input schema: %w", err)
	}
	if err := s.Validate(e.Arguments); err != nil {
		return invalid("", "%s", err)
	}
	return nil
}

// readArguments reads arguments that check has let pass into v, which holds the defaults.
func readArguments(e *tool.Execution, v any) error {
	err := json.Unmarshal(e.Arguments, v)
	var own *tool.Failure
	if err != nil && !errors.As(err, &own) {
		return invalid("", "the arguments cannot be read (%s): send a JSON object", err)
	}
	return err
}

// integer is a number without fraction. 2.0 and 2e0 are such numbers for JSON Schema, and not for encoding/json.
type integer int

func (i *integer) UnmarshalJSON(raw []byte) error {
	f, err := strconv.ParseFloat(string(raw), 64)
	*i = integer(f)
	return err
}

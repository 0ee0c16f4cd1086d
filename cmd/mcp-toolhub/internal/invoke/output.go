package invoke

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// checkOutput checks the structuredContent of a success: "Servers MUST provide structured results
// that conform to this schema." The record says what is wrong, and the result passes all the same.
func (v *validator) checkOutput(inv *invocation) {
	t := inv.listed.Tool
	if t.OutputSchema == nil || inv.outcome.Task != nil {
		return
	}
	invalid := v.invalidOutput(inv)
	if invalid == nil {
		return
	}
	inv.record.Event(tool.EventInvocationValidationFailed,
		map[string]any{"checked": "output", "problems": invalid.Problems, "mode": string(tool.ValidateWarn)}, time.Now())
	if _, warned := v.warned.LoadOrStore(t.Name, true); !warned {
		v.logger.Warn("results of a tool do not fit its output schema: clients that check them may refuse them", "tool",
			t.Name,
			"invocation", inv.id, "problem", invalid.OutputSummary())
	}
}

// invalidOutput returns what the output schema has against the result; nil where it has nothing.
func (v *validator) invalidOutput(inv *invocation) *schema.Invalid {
	t := inv.listed.Tool
	structured, ok := inv.outcome.Object.Get("structuredContent")
	if !ok {
		return &schema.Invalid{Problems: []schema.Problem{{Message: "is missing"}}}
	}
	s, err := v.schemas.Get(t.OutputDigest, t.OutputSchema)
	if err != nil { // admission removes schemas that do not compile
		v.logger.Warn("output schema does not compile: results are not checked", "tool", t.Name, "error", err)
		return nil
	}
	err = s.ValidateOutput(structured)
	if invalid, ok := errors.AsType[*schema.Invalid](err); ok || err == nil {
		return invalid
	}
	return &schema.Invalid{Problems: []schema.Problem{{Message: fmt.Sprintf("cannot be checked: %v", err)}}}
}

// outputOf says whether a success has brought nothing.
func outputOf(result rawjson.Object) tool.Output {
	says := tool.OutputMissing
	for _, m := range result.Members() {
		switch m.Name() {
		case "_meta", "isError", "resultType":
		case "content":
			if rawjson.IsNull(m.Value) {
				continue
			}
			if !isSilent(m.Value) {
				return ""
			}
			says = tool.OutputEmpty
		default:
			if !rawjson.IsNull(m.Value) {
				return ""
			}
		}
	}
	return says
}

// isSilent reports whether a content has no block, or texts without a character.
func isSilent(content []byte) bool {
	silent := isArray(content)
	_ = rawjson.Elements(content, func(block []byte) bool {
		kind, _ := rawjson.Get(block, "type")
		text, _ := rawjson.Get(block, "text")
		silent = silent && string(kind) == `"text"` && string(text) == `""`
		return silent
	})
	return silent
}

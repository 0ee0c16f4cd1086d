package invoke

import (
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
	var invalid *schema.Invalid
	if structured, ok := inv.outcome.Object.Get("structuredContent"); !ok {
		invalid = &schema.Invalid{Problems: []schema.Problem{{Message: "is missing"}}}
	} else if s, err := v.schemas.Get(t.OutputDigest, t.OutputSchema); err != nil {
		// admission removes schemas that do not compile
		v.logger.Warn("output schema does not compile: results are not checked", "tool", t.Name, "error", err)
	} else {
		invalid = s.ValidateOutput(structured)
	}
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
			silent := true // it has no block, or texts without a character
			err := rawjson.Elements(m.Value, func(block []byte) bool {
				kind, _ := rawjson.Get(block, "type")
				text, _ := rawjson.Get(block, "text")
				silent = string(kind) == `"text"` && string(text) == `""`
				return silent
			})
			if err != nil || !silent {
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

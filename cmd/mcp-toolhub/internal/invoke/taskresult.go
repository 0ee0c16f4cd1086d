package invoke

import (
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// TaskLimit limits the result of a task, as the result of its call would have been: it returns what the caller gets, which is native where
// that is within the limit. It may be called concurrently, and more than once.
type TaskLimit func(native json.RawMessage) json.RawMessage

// TaskLimit returns what limits the result of the task that the server has made of c, which ended with o; nil where nothing does. The
// decision is recorded beside the call, which has ended.
func (p *Pipeline) TaskLimit(c *Call, o *Outcome) TaskLimit {
	l, ok := c.Surface.Resolve(c.Name)
	if !ok || c.Surface.Results == nil {
		return nil
	}
	x := newExcess(c, o.InvocationID, l.Tool.Name, c.Surface.Results.For(l.Tool.Name))
	if x.rule.MaxChars <= 0 {
		return nil
	}
	return func(native json.RawMessage) json.RawMessage {
		result, err := rawjson.ReadObject(native)
		if err != nil || len(native) <= x.rule.MaxChars {
			return native
		}
		now := p.opts.Now()
		d, part := x.decide(&p.opts, result, true, now)
		if d == nil {
			return native
		}
		if err := p.opts.Journal.TryAppend(persist.DecisionRecords(x.id, x.tool, d, false, now)...); err != nil {
			p.opts.Logger.Warn("a decision about the result of a task is not in the journal", "invocation", x.id, "error", err)
		}
		if part == nil {
			return native
		}
		return part
	}
}

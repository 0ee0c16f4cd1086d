package results

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/persist/slice"
)

// ToolName is the name of the hub's tool that reads parts of stored results.
const ToolName tool.Name = "result_read"

const description = "Reads on in a result that was too large to be shown whole, from the beginning or the part that " +
	"you name. An answer that is not the end has a cursor."

// HubTool returns result_read. reader returns what it reads from.
func HubTool(reader func() Reader) *tool.HubTool {
	return &tool.HubTool{
		Name: ToolName, Title: "Read a stored result", Description: description, InputSchema: slice.InputSchema,
		Annotations: `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`,
		Listed:      func(_, cuts bool) bool { return cuts }, Whole: true, Reads: true, Kind: "retrieval",
		Run: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) { return reader().part(ctx, e) },
	}
}

// Bounds of an answer, in characters.
const (
	mostChars  = 20_000
	frameChars = 300 // what stands around an answer's texts
)

// part answers a call of result_read.
func (r Reader) part(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
	reply := tool.Reply{Mapping: tool.ExternalMapping{Source: tool.OwnServer, ToolName: string(ToolName)}}
	q, err := slice.Parse(e.Arguments)
	if err != nil {
		return reply, refused(err)
	}
	most := mostChars
	if rules := e.Surface.Results; rules != nil && rules.Usual.MaxChars > 0 {
		most = min(most, rules.Usual.MaxChars)
	}
	free, err := r.Read(e.Actor, tool.ResultID(q.ID), func(of payload.Entry, native []byte) (err error) {
		var a slice.Answer
		if of.Name != "" {
			a, err = slice.ReadFile(ctx, native, of.MediaType, q, most-frameChars)
		} else {
			a, err = slice.Read(ctx, native, q, most-frameChars)
		}
		if err == nil {
			reply.Result = answer(a)
		}
		return err
	})
	free()
	if ctx.Err() != nil {
		return reply, &tool.Failure{Class: tool.ClassCanceled, Message: "the reading was canceled", Cause: err}
	}
	if errors.Is(err, ErrUnknown) {
		return reply, &tool.Failure{Class: tool.ClassInvalidArguments, Code: "unknown_result",
			Message: fmt.Sprintf("no result is stored under the id %q: use an id that came in the place of a result",
				q.ID)}
	}
	return reply, refused(err)
}

// answer writes a page as a result.
func answer(a slice.Answer) []byte {
	out := []byte(`{"content":[`)
	if len(a.Data) > 0 {
		out = append(append(append(out, `{"type":"text","text":`...), rawjson.Quote(a.Text())...), "},"...)
	}
	note := a.Note
	if a.Next != "" && !strings.Contains(note, a.Next) {
		note += " The cursor is " + a.Next
	}
	return append(append(append(out, `{"type":"text","text":`...), rawjson.Quote(note)...),
		`,"_meta":{"toolhub/preview":true}}]}`...)
}

// refused makes what a caller can mend a failure of its arguments.
func refused(err error) error {
	if fault, ok := errors.AsType[slice.InputError](err); ok {
		return &tool.Failure{Class: tool.ClassInvalidArguments, Message: string(fault)}
	}
	return err
}

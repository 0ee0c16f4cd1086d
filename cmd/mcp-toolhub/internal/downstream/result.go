package downstream

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// metaInvocation is the one member that the hub adds to a result's _meta.
const metaInvocation = "toolhub/invocation"

// invocationMeta is what the client learns of the invocation behind a result.
type invocationMeta struct {
	InvocationID  string `json:"invocation_id"`
	Status        string `json:"status"`
	ErrorClass    string `json:"error_class,omitempty"`
	JournalFailed bool   `json:"journal_failed,omitempty"`
}

// resultFor is the result as this client gets it: the executor's bytes, the toolhub/ member in _meta, and what the
// client's protocol revision demands of every hop. Keys of the upstream's hop are taken out of _meta.
func (s *Server) resultFor(p peer, o invoke.Outcome) (pieces, error) {
	result := o.Object
	if result.Text() == nil {
		return pieces{}, errors.New("no JSON object")
	}
	about, err := json.Marshal(invocationMeta{string(o.InvocationID), string(o.Status), string(o.Class), o.JournalFailed})
	if err != nil {
		return pieces{}, fmt.Errorf("describe invocation: %w", err)
	}
	meta, ok := result.Get("_meta")
	if !ok || !rawjson.IsObject(meta) {
		meta = json.RawMessage(`{}`)
	}
	meta, _, err = rawjson.DeleteFunc(meta, func(m rawjson.Member) bool { return tool.OfHop(m.Name()) })
	if err != nil {
		return pieces{}, fmt.Errorf("clean _meta of result: %w", err)
	}
	if meta, err = rawjson.Set(meta, metaInvocation, about); err != nil {
		return pieces{}, fmt.Errorf("add to _meta of result: %w", err)
	}
	if p.modern {
		if meta, err = rawjson.Set(meta, mcp.MetaKeyServerInfo, s.serverInfo); err != nil {
			return pieces{}, fmt.Errorf("add to _meta of result: %w", err)
		}
	}
	changes := append(make([]rawjson.Change, 0, 3), rawjson.Change{Name: "_meta", Value: meta})
	switch {
	case p.modern:
		// "resultType" is mandatory on 2026-07-28; an upstream of that revision has set it itself.
		kind, ok := result.Get("resultType")
		if !ok || o.Status != tool.StatusNeedsInput && asksForInput(kind) {
			changes = append(changes, rawjson.Change{Name: "resultType", Value: []byte(`"complete"`)})
		}
	case o.Revision >= modernVersion:
		changes = append(changes, older(result)...)
	}
	oneLine := result.OneLine()
	for _, c := range changes {
		oneLine = oneLine && !hasBreak(c.Value)
	}
	return pieces{result.With(changes...), oneLine}, nil
}

// asksForInput reports whether a result is of type input_required. One that a server up to 2025-11-25 calls so is none: it
// knows no result types, and what it asks for in that way went through none of the hub's checks.
func asksForInput(resultType []byte) bool {
	kind, _ := rawjson.String(resultType)
	return kind == "input_required"
}

// older turns a result of 2026-07-28 into one that clients of older revisions take: those know no result type, and refuse
// the whole result where structuredContent is no object. What it said is in the content as well: "servers SHOULD also
// return the serialized JSON in a TextContent block".
func older(result rawjson.Object) []rawjson.Change {
	changes := []rawjson.Change{{Name: "resultType"}}
	if structured, ok := result.Get("structuredContent"); ok && !rawjson.IsObject(structured) {
		changes = append(changes, rawjson.Change{Name: "structuredContent"})
	}
	return changes
}

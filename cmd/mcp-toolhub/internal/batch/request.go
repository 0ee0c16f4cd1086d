package batch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// read reads the arguments of a call of the tool, and refuses what could not run. The schema has been checked.
func read(e *tool.Execution) (*request, error) {
	r := &request{}
	if err := json.Unmarshal(e.Arguments, r); err != nil {
		return nil, refused("the arguments cannot be read: %v", err)
	}
	r.Failure, r.Ordering = cmp.Or(r.Failure, invoke.CancelDependent), cmp.Or(r.Ordering, preserveOrder)
	r.MaxParallel = cmp.Or(r.MaxParallel, defaultParallel)
	if len(r.Calls) > maxCalls {
		return nil, refused("%d calls are more than %d: make more than one batch", len(r.Calls), maxCalls)
	}
	var earlier []string
	size := 0
	for i := range r.Calls {
		c := &r.Calls[i]
		where := fmt.Sprintf("calls[%d] (%q)", i, c.ID)
		if slices.Contains(earlier, c.ID) {
			return nil, refused("%s: an earlier call has this id: give each call its own", where)
		}
		if l, ok := e.Surface.Resolve(c.Name); ok && l.Tool.Hub != nil {
			if l.Tool.Hub.Batches {
				return nil, refused("%s: a batch cannot hold a batch: put those calls into this one", where)
			}
			if l.Tool.Hub.Forwards {
				return nil,
					refused("%s: a batch needs no %s: write the name, the arguments and the selection_ref of "+
						"that call here", where, c.Name)
			}
		}
		if err := c.depend(where, earlier); err != nil {
			return nil, err
		}
		if rawjson.IsNull(c.Arguments) {
			c.Arguments = json.RawMessage(`{}`)
		}
		if size += len(c.Arguments); size > maxArguments {
			return nil,
				refused("the arguments of the calls are larger than %d bytes together: make more than one batch",
					maxArguments)
		}
		earlier = append(earlier, c.ID)
	}
	return r, nil
}

// depend checks what c depends on, and makes what its arguments come from a part of that.
func (c *call) depend(where string, earlier []string) error {
	for _, id := range c.DependsOn {
		if !slices.Contains(earlier, id) {
			return refused("%s: depends_on names %q, which is no earlier call of this batch", where, id)
		}
	}
	for _, argument := range slices.Sorted(maps.Keys(c.ArgumentsFrom)) {
		from := c.ArgumentsFrom[argument]
		if !slices.Contains(earlier, from.Call) {
			return refused("%s: arguments_from.%s names %q, which is no earlier call of this batch", where, argument,
				from.Call)
		}
		if from.Pointer != "" && from.Pointer[0] != '/' {
			return refused("%s: arguments_from.%s has the pointer %q: a JSON pointer is empty or begins with /", where,
				argument, from.Pointer)
		}
		if !slices.Contains(c.DependsOn, from.Call) {
			c.DependsOn = append(c.DependsOn, from.Call)
		}
	}
	return nil
}

func refused(format string, about ...any) error {
	return &tool.Failure{Class: tool.ClassInvalidArguments, Code: "invalid_batch", Message: "nothing ran: " +
		fmt.Sprintf(format, about...)}
}

// structured returns the structured result of a call. Of servers that give none it is the JSON in
// the one block of text.
func structured(result rawjson.Object) (json.RawMessage, bool) {
	if value, ok := result.Get("structuredContent"); ok {
		return value, true
	}
	content, _ := result.Get("content")
	var blocks [][]byte
	if rawjson.Elements(content, func(b []byte) bool { blocks = append(blocks, b); return true }) != nil ||
		len(blocks) != 1 {
		return nil, false
	}
	text := bytes.TrimSpace([]byte(rawjson.Text(blocks[0], "text")))
	return text, len(text) > 0 && rawjson.Valid(text)
}

package batch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	bytes := 0
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
		if bytes += len(c.Arguments); bytes > maxArguments {
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
	text := []byte(rawjson.Text(blocks[0], "text"))
	return text, len(text) > 0 && rawjson.Valid(text)
}

// at returns the value at a JSON pointer (RFC 6901); the error says where the way ends.
func at(value json.RawMessage, pointer string) (json.RawMessage, error) {
	way := "the result"
	var steps []string
	if pointer != "" {
		steps = strings.Split(pointer[1:], "/")
	}
	for i, step := range steps {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		next, ok := below(value, name)
		if !ok {
			return nil, fmt.Errorf("there is nothing at %q: %s %s", pointer, way, holds(value))
		}
		value, way = next, "what is at /"+strings.Join(steps[:i+1], "/")
	}
	return value, nil
}

// below returns the member or element of that name.
func below(value json.RawMessage, name string) (found json.RawMessage, ok bool) {
	if rawjson.IsObject(value) {
		return rawjson.Get(value, name)
	}
	if len(value) == 0 || value[0] != '[' {
		return nil, false
	}
	index, err := strconv.Atoi(name)
	if err != nil || index < 0 || strconv.Itoa(index) != name {
		return nil, false
	}
	_ = rawjson.Elements(value, func(e []byte) bool {
		if index == 0 {
			found, ok = e, true
		}
		index--
		return !ok
	})
	return found, ok
}

// holds says for a model what a value is.
func holds(value json.RawMessage) string {
	const most = 20
	switch {
	case rawjson.IsObject(value):
		var names []string
		_ = rawjson.Members(value, func(m rawjson.Member) bool {
			names = append(names, m.Name())
			return len(names) < most
		})
		if len(names) == 0 {
			return "is an empty object"
		}
		return fmt.Sprintf("has the members %q", names)
	case len(value) > 0 && value[0] == '[':
		n := 0
		_ = rawjson.Elements(value, func([]byte) bool { n++; return true })
		return fmt.Sprintf("is an array of %d", n)
	}
	return "is neither an object nor an array"
}

package batch

import (
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// reply puts the results together: in structuredContent whole, and in content for models that read text.
func (b *batch) reply() tool.Reply {
	results, content := []byte("["), []byte("[")
	failed, room := 0, maxResults
	add := func(block []byte) {
		if len(content) > 1 {
			content = append(content, ',')
		}
		content = append(content, block...)
	}
	for i, m := range b.members {
		if m.failed() {
			failed++
		}
		fits := len(m.Result) <= room
		if fits {
			room -= len(m.Result)
		}
		if i > 0 {
			results = append(results, ',')
		}
		results = append(results, m.entry(fits)...)
		add(textBlock(m.headline(fits)))
		if blocks, ok := m.Object.Get("content"); ok && fits {
			_ = rawjson.Elements(blocks, func(block []byte) bool {
				add(block)
				return true
			})
		}
		if m.Free != nil {
			m.Free() // all that is needed of it has been copied
		}
	}
	out := append(append([]byte(`{"content":`), content...), `],"structuredContent":{"results":`...)
	out = append(append(out, results...), `]}`...)
	reply := tool.Reply{}
	if failed > 0 {
		out = append(out, `,"isError":true`...)
		if reply.Class = tool.ClassPartialFailure; failed == len(b.members) {
			reply.Class = tool.ClassExecutionFailed
		}
	}
	reply.Result = append(out, '}')
	return reply
}

// entry is a call among the results of its batch.
func (m *member) entry(whole bool) []byte {
	out := rawjson.AppendMember([]byte("{"), "id", rawjson.Quote(m.ID))
	out = rawjson.AppendMember(out, "invocation_id", rawjson.Quote(string(m.InvocationID)))
	out = rawjson.AppendMember(out, "status", rawjson.Quote(string(m.Status)))
	if m.Class != "" {
		out = rawjson.AppendMember(out, "error_class", rawjson.Quote(string(m.Class)))
	}
	if m.Aborted != "" {
		out = rawjson.AppendMember(out, "abort_reason", rawjson.Quote(m.Aborted))
	}
	switch {
	case m.Err != nil:
		text := m.Err.Raw
		if text == nil {
			text, _ = json.Marshal(m.Err) // a number, a text and valid JSON: it always encodes
		}
		out = rawjson.AppendMember(out, "error", text)
	case !whole:
		out = rawjson.AppendMember(out, "omitted_bytes", fmt.Append(nil, len(m.Result)))
	case m.Object.Text() != nil:
		out = rawjson.AppendMember(out, "result", m.Result)
	}
	return append(out, '}')
}

// headline says in a line how a call has ended.
func (m *member) headline(whole bool) string {
	text := fmt.Sprintf("[%s] %s", m.ID, m.Status)
	switch {
	case m.Err != nil:
		text += ": " + m.Err.Message
	case !whole:
		text += fmt.Sprintf(": the result of %d bytes is left out, because all results of a batch have at most %d. The call has run: do not "+
			"make it again if it changes something", len(m.Result), maxResults)
	}
	return text
}

func textBlock(text string) []byte {
	return append(rawjson.AppendMember([]byte(`{"type":"text"`), "text", rawjson.Quote(text)), '}')
}

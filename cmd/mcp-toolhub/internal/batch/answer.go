package batch

import (
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// reply puts the results together: in structuredContent whole, and in content for models that read text. What is kept of it lacks the
// results, which the records of the calls have, without their secrets.
func (b *batch) reply() tool.Reply {
	var all, kept answer
	reply := tool.Reply{}
	failed, room := 0, maxResults
	for _, m := range b.members {
		if m.failed() {
			failed++
		}
		reply.Unkept = reply.Unkept || m.Unkept
		fits := len(m.Result) <= room
		if fits {
			room -= len(m.Result)
		}
		headline := textBlock(m.headline(fits))
		all.add(headline, m.entry(fits))
		kept.add(headline, append(m.facts(), '}'))
		if blocks, ok := m.Object.Get("content"); ok && fits {
			_ = rawjson.Elements(blocks, func(block []byte) bool {
				all.content = element(all.content, block)
				return true
			})
		}
		if m.Free != nil {
			m.Free() // all that is needed of it has been copied
		}
	}
	if failed > 0 {
		if reply.Class = tool.ClassPartialFailure; failed == len(b.members) {
			reply.Class = tool.ClassExecutionFailed
		}
	}
	reply.Result, reply.Kept = all.result(failed > 0), kept.result(failed > 0)
	return reply
}

// answer is the result of a batch in the making: the elements of content and of structuredContent.results.
type answer struct{ content, results []byte }

func (a *answer) add(block, entry []byte) {
	a.content, a.results = element(a.content, block), element(a.results, entry)
}

func (a *answer) result(isError bool) []byte {
	out := append(append([]byte(`{"content":[`), a.content...), `],"structuredContent":{"results":[`...)
	out = append(append(out, a.results...), `]}`...)
	if isError {
		out = append(out, `,"isError":true`...)
	}
	return append(out, '}')
}

// element adds an element to those of an array.
func element(all, one []byte) []byte {
	if len(all) > 0 {
		all = append(all, ',')
	}
	return append(all, one...)
}

// facts says which call it is and how it ended, in an object that is open: more can follow.
func (m *member) facts() []byte {
	out := rawjson.AppendMember([]byte("{"), "id", rawjson.Quote(m.ID))
	out = rawjson.AppendMember(out, "invocation_id", rawjson.Quote(string(m.InvocationID)))
	out = rawjson.AppendMember(out, "status", rawjson.Quote(string(m.Status)))
	if m.Class != "" {
		out = rawjson.AppendMember(out, "error_class", rawjson.Quote(string(m.Class)))
	}
	if m.Err == nil && m.Error != nil && m.Error.RetryAfterMS > 0 {
		out = rawjson.AppendMember(out, "retry_after_ms", fmt.Append(nil, m.Error.RetryAfterMS))
	}
	if m.Aborted != "" {
		out = rawjson.AppendMember(out, "abort_reason", rawjson.Quote(m.Aborted))
	}
	return out
}

// entry is a call among the results of its batch.
func (m *member) entry(whole bool) []byte {
	out := m.facts()
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

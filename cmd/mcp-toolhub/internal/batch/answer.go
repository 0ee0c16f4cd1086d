package batch

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// reply puts the results together: in structuredContent whole, and in content for models that read
// text. What is kept of it lacks the results, which the records of the calls have, without their
// secrets.
func (b *batch) reply() tool.Reply {
	var all, kept answer
	reply := tool.Reply{}
	failed := 0
	for _, m := range b.members {
		if m.failed() {
			failed++
		}
		reply.Unkept = reply.Unkept || m.Unkept
		headline := textBlock(m.headline())
		all.add(headline, m.entry())
		kept.add(headline, append(m.facts(), '}'))
		if blocks, ok := rawjson.Get(m.Result, "content"); ok {
			_ = rawjson.Elements(blocks, func(block []byte) bool {
				all.content = element(all.content, block)
				return true
			})
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

// keep copies what the answer needs of m, which has ended, and gives back the memory of its result:
// later calls may wait for that. Where results and errors do not fit into maxResults together,
// those of later calls are left out. One that was left out does not come back.
func (b *batch) keep(m *member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.size = len(m.Result); m.Err != nil {
		m.size = len(m.Err.Raw)
	}
	room := maxResults
	for _, other := range b.members {
		if other.size > room {
			other.leaveOut()
		}
		room -= other.size
	}
	m.Result = slices.Clone(m.Result)
	if m.Err != nil && m.Err.Raw != nil {
		m.Err = &tool.RPCError{Code: m.Err.Code, Message: m.Err.Message, Shown: m.Err.Shown,
			Raw: slices.Clone(m.Err.Raw)}
	}
	m.Object, m.whole = rawjson.Object{}, rawjson.Object{}
	if m.Free != nil {
		m.Free()
	}
}

// leaveOut keeps only the size of the result, and of an error what is short. batch.mu is held.
func (m *member) leaveOut() {
	m.omitted, m.size, m.Result = m.size, 0, nil
	if m.Err != nil {
		m.Err = &tool.RPCError{Code: m.Err.Code, Message: m.Err.Text()}
	}
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
func (m *member) entry() []byte {
	out := m.facts()
	if m.omitted > 0 {
		out = rawjson.AppendMember(out, "omitted_bytes", fmt.Append(nil, m.omitted))
	}
	switch {
	case m.Err != nil:
		text := m.Err.Raw
		if text == nil {
			text, _ = json.Marshal(m.Err) // a number, a text and valid JSON: it always encodes
		}
		out = rawjson.AppendMember(out, "error", text)
	case m.Result != nil:
		out = rawjson.AppendMember(out, "result", m.Result)
	}
	return append(out, '}')
}

// headline says in a line how a call has ended.
func (m *member) headline() string {
	text := fmt.Sprintf("[%s] %s", m.ID, m.Status)
	switch {
	case m.Err != nil:
		text += ": " + m.Err.Message
	case m.omitted > 0:
		text += fmt.Sprintf(": the result of %d bytes is left out, because all results of a batch have at most %d. "+
			"The call has run: do not "+
			"make it again if it changes something", m.omitted, maxResults)
	}
	return text
}

func textBlock(text string) []byte {
	return append(rawjson.AppendMember([]byte(`{"type":"text"`), "text", rawjson.Quote(text)), '}')
}

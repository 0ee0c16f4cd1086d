package store

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// line is what the store reads of a line of the journal: a call record, or an object of Agent Tool,
// which earlier versions wrote.
type line struct {
	Object     tool.Object       `json:"object"`
	Key        string            `json:"key"` // of standing records
	Invocation tool.InvocationID `json:"invocation_id"`
	Parent     tool.InvocationID `json:"parent_invocation_id"`
	Surface    string            `json:"surface_id"`
	Tool       string            `json:"tool_id"`
	Actor      string            `json:"actor_ref"`
	Client     *tool.ClientRef   `json:"client"`
	Profile    string            `json:"profile"`
	tool.Origin
	Status   tool.Status `json:"status"`
	Created  time.Time   `json:"created_at"`
	EndedUS  *int64      `json:"ended_us"`
	EndedAt  *time.Time  `json:"ended_at"`
	From     int         `json:"from"`
	Error    *tool.Error `json:"error"`
	Mappings []struct {
		Server string `json:"server_id"`
	} `json:"external_mappings"`

	Model      json.RawMessage `json:"model_input"`
	Observable json.RawMessage `json:"observable_input"`
	Result     struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structured_content"`
		Summary    string          `json:"summary"`
	} `json:"result"`

	// Of objects, where they have no created_at.
	Time      time.Time `json:"time"`
	DecidedAt time.Time `json:"decided_at"`
	Timestamp time.Time `json:"timestamp"`
	StartedAt time.Time `json:"started_at"`

	// Of a tool_result.
	Content    json.RawMessage `json:"content"`
	Structured json.RawMessage `json:"structured_content"`
	Summary    string          `json:"summary"`
}

// call returns the columns of the line's call, as far as the line has them.
func (l *line) call() Call {
	c := Call{ID: l.Invocation, Tool: l.Tool, Actor: l.Actor, Profile: l.Profile, Status: l.Status, Server: l.server(),
		Origin: l.Origin}
	if l.Client != nil {
		c.Client = l.Client.Name
	}
	if l.Error != nil {
		c.Class = string(l.Error.ErrorClass)
	}
	for _, at := range [...]time.Time{l.Created, l.Time, l.DecidedAt, l.StartedAt, l.Timestamp} {
		if !at.IsZero() {
			c.Created = at
			break
		}
	}
	switch {
	case l.EndedUS != nil:
		c.Ended = new(c.Created.Add(time.Duration(*l.EndedUS) * time.Microsecond))
	case l.Object == tool.ObjectInvocation && l.EndedAt != nil:
		c.Ended = l.EndedAt
	}
	return c
}

// server is whose tool was called: as the call's native ids have it, and by the tool's name where it did not get there.
func (l *line) server() string {
	for _, m := range l.Mappings {
		if m.Server != "" {
			return m.Server
		}
	}
	if rest, ok := strings.CutPrefix(l.Tool, "mcp."); ok {
		server, _, _ := strings.Cut(rest, ".")
		return server
	}
	server, _, dotted := strings.Cut(l.Tool, ".")
	if !dotted && server != "" {
		return tool.OwnServer // whose names have no dot
	}
	return server
}

// isCall reports whether the line is a call record.
func (l *line) isCall() bool { return l.Object == persist.ObjectCall }

// ends reports whether the line is the last one of its call.
func (l *line) ends() bool { return l.isCall() && l.EndedUS != nil || l.Object == tool.ObjectResult }

// kept returns how many characters of a result its caller did not get: 95,000 where a preview of
// 5,000 stands for 100,000. text is the line as it was written.
func (l *line) kept(text []byte) (chars int) {
	if !bytes.Contains(text, []byte(`"preview_size_bytes"`)) {
		return 0
	}
	err := persist.Derive([]json.RawMessage{text}, func(object json.RawMessage) bool {
		var d struct {
			Object    tool.Object
			Preview   int `json:"preview_size_bytes"`
			Threshold struct {
				Chars int `json:"result_chars"`
			}
		}
		if json.Unmarshal(object, &d) == nil && d.Object == tool.ObjectResultPersistence && d.Preview > 0 {
			chars += max(0, d.Threshold.Chars-d.Preview)
		}
		return true
	})
	if err != nil {
		return 0
	}
	return chars
}

// text is what full-text search knows of the call.
func (l *line) text() string {
	var b []byte
	for _, part := range [...]string{l.Tool, l.Actor, l.Result.Summary, l.Summary} {
		b = append(append(b, part...), ' ')
	}
	if l.Error != nil {
		b = append(append(b, l.Error.Message...), ' ')
	}
	for _, part := range [...]json.RawMessage{l.Model, l.Observable, l.Result.Content, l.Result.Structured, l.Content,
		l.Structured} {
		b = appendWords(b, part)
	}
	return string(b)
}

// appendWords adds the words of a JSON text: its strings without escapes, also of JSON inside a string.
func appendWords(b []byte, text json.RawMessage) []byte {
	for range 2 {
		if bytes.IndexByte(text, '\\') < 0 {
			break
		}
		text = unescaped(text)
	}
	return append(append(b, text...), ' ')
}

// unescaped replaces escapes of JSON strings: letters by themselves, all else by spaces.
func unescaped(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		switch text[i] {
		case 'u':
			end := i + 5
			for end+6 <= len(text) && text[end] == '\\' && text[end+1] == 'u' { // the second half of a pair, at least
				end += 6
			}
			if end > len(text) {
				return out
			}
			decoded, _ := rawjson.String(append(append([]byte{'"'}, text[i-1:end]...), '"'))
			out = append(out, decoded...)
			i = end - 1
		case '\\':
			out = append(out, '\\') // an escape of the JSON inside
		default:
			out = append(out, ' ')
		}
	}
	return out
}

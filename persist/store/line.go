package store

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// said is what full-text search knows of a line of a call.
type said struct {
	Tool       string          `json:"tool_id"`
	Actor      string          `json:"actor_ref"`
	Model      json.RawMessage `json:"model_input"`
	Observable json.RawMessage `json:"observable_input"`
	Result     struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structured_content"`
		Summary    string          `json:"summary"`
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

// kept returns how many characters of a result its caller did not get: 95,000 where a preview of
// 5,000 stands for 100,000. text is a line of the call.
func kept(text []byte) (chars int) {
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

// wordsIn returns what full-text search knows of a line. It is empty for one of a later version.
func wordsIn(line []byte) string {
	var l said
	if json.Unmarshal(line, &l) != nil {
		return ""
	}
	var b []byte
	for _, part := range [...]string{l.Tool, l.Actor, l.Result.Summary, l.Error.Message} {
		b = append(append(b, part...), ' ')
	}
	for _, part := range [...]json.RawMessage{l.Model, l.Observable, l.Result.Content, l.Result.Structured} {
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

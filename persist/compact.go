package persist

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// appendCompact adds text to dst without its insignificant white space and otherwise byte for byte, as json.Compact
// does. ok is false if text is not one JSON value: a broken text would break the line that it stands in.
func appendCompact(dst, text []byte) (out []byte, ok bool) {
	if !rawjson.Valid(text) { // which allows less nesting than encoding/json
		var compact bytes.Buffer
		err := json.Compact(&compact, text)
		return append(dst, compact.Bytes()...), err == nil
	}
	start := 0 // of what is not copied yet
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case ' ', '\n', '\t', '\r':
			dst = append(dst, text[start:i]...)
			start = i + 1
		}
	}
	return append(dst, text[start:]...), true
}

package persist

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"

	"github.com/segmentio/encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// appendJSON adds v to dst as a json.Encoder with SetEscapeHTML(false) writes it, but takes raw
// texts as they are. Every call leaves a record, so an encoder does this that appends, and is
// faster than encoding/json: tests compare the two.
func appendJSON(dst []byte, v any) ([]byte, error) {
	out, err := json.Append(dst, v, json.SortMapKeys|json.TrustRawMessage)
	if err != nil {
		return dst, fmt.Errorf("encode a record: %w", err)
	}
	return out, nil
}

// appendChecked is appendJSON for what may hold raw texts that are no JSON. After an error, dst is as it was.
func appendChecked(dst []byte, v any) ([]byte, error) {
	out, err := appendJSON(dst, v)
	if err == nil && !isJSON(out[len(dst):]) {
		return dst, errors.New("encode a record: a raw text in it is no JSON")
	}
	return out, err
}

func isJSON(text []byte) bool {
	return rawjson.Valid(text) || stdjson.Valid(text) // which allows more nesting
}

// OneLine returns raw, which is JSON, as a record holds it: without white space where that has line breaks.
func OneLine(raw stdjson.RawMessage) stdjson.RawMessage {
	if bytes.IndexByte(raw, '\n') < 0 {
		return raw
	}
	var compact bytes.Buffer
	if stdjson.Compact(&compact, raw) != nil {
		return raw // whoever writes it finds out
	}
	return compact.Bytes()
}

// endLine makes what follows the first n bytes of out, one JSON value, a line.
func endLine(out []byte, n int) []byte {
	return append(append(out[:n], OneLine(out[n:])...), '\n')
}

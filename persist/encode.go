package persist

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// appendRecord adds r to dst as one line: what a json.Encoder with SetEscapeHTML(false) writes. After an error, dst is
// as it was.
func appendRecord(dst []byte, r tool.Record) ([]byte, error) {
	e := encoder{out: dst}
	if e.any("", r); e.err != nil {
		return dst, fmt.Errorf("encode record of kind %q: %w", r.RecordObject(), e.err)
	}
	return append(e.out, '\n'), nil
}

// encoder appends members to out. Every call leaves a call record, so that is written field by field, in a third of the time of
// encoding/json, and as that writes it: tests compare the two, also when a field is added. A key is given as it stands in the
// text, with what goes before it and its colon, so that it is one copy. The methods whose name begins with opt leave out an empty
// value.
type encoder struct {
	out []byte
	err error // the first one
}

func (e *encoder) mapping(m *tool.ExternalMapping) {
	e.text(`{"source":`, m.Source)
	e.optText(`,"role":`, m.Role)
	e.optText(`,"server_id":`, m.ServerID)
	e.optText(`,"mcp_session_id":`, m.SessionID)
	e.optText(`,"mcp_protocol_version":`, m.ProtocolVersion)
	e.optText(`,"method":`, m.Method)
	e.optText(`,"tool_name":`, m.ToolName)
	e.optText(`,"jsonrpc_request_id":`, m.JSONRPCRequestID)
	e.end()
}

func (e *encoder) failure(f *tool.Error) {
	e.text(`{"error_code":`, f.ErrorCode)
	e.text(`,"error_class":`, string(f.ErrorClass))
	e.text(`,"message":`, f.Message)
	e.optText(`,"recoverability":`, f.Recoverability)
	if f.RetryAfterMS != 0 {
		e.int(`,"retry_after_ms":`, f.RetryAfterMS)
	}
	if f.OutcomeUnknown {
		e.bool(`,"outcome_unknown":`, true)
	}
	e.optRaw(`,"native_error_ref":`, f.NativeErrorRef)
	e.end()
}

func (e *encoder) end() { e.out = append(e.out, '}') }

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *encoder) text(key, value string) { e.out = appendString(append(e.out, key...), value) }

func (e *encoder) optText(key, value string) {
	if value != "" {
		e.text(key, value)
	}
}

func (e *encoder) int(key string, value int64) {
	e.out = strconv.AppendInt(append(e.out, key...), value, 10)
}

func (e *encoder) bool(key string, value bool) {
	e.out = strconv.AppendBool(append(e.out, key...), value)
}

func (e *encoder) time(key string, value time.Time) {
	out, err := value.AppendText(append(append(e.out, key...), '"'))
	if err != nil {
		e.fail(fmt.Errorf("%s %w", bytes.Trim([]byte(key), `{,":`), err))
		return
	}
	e.out = append(out, '"')
}

func (e *encoder) optRaw(key string, value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	out, ok := appendCompact(append(e.out, key...), value)
	if !ok {
		e.fail(fmt.Errorf("%s is no JSON", bytes.Trim([]byte(key), `{,":`)))
	}
	e.out = out
}

func optTexts[S ~string](e *encoder, key string, values []S) {
	optList(e, key, values, func(e *encoder, value *S) { e.text("", string(*value)) })
}

func optList[T any](e *encoder, key string, values []T, element func(*encoder, *T)) {
	if len(values) == 0 {
		return
	}
	e.out = append(append(e.out, key...), '[')
	for i := range values {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		element(e, &values[i])
	}
	e.out = append(e.out, ']')
}

// optMap writes the members in the order of their keys.
func (e *encoder) optMap(key string, members map[string]any) {
	if len(members) == 0 {
		return
	}
	var room [8]string
	names := room[:0]
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	e.out = append(e.out, key...)
	before := byte('{')
	for _, name := range names {
		e.out = append(appendString(append(e.out, before), name), ':')
		e.any("", members[name])
		before = ','
	}
	e.end()
}

// any writes a value of any type: the simple ones itself, the others with encoding/json.
func (e *encoder) any(key string, value any) {
	e.out = append(e.out, key...)
	switch value := value.(type) {
	case nil:
		e.out = append(e.out, "null"...)
	case string:
		e.text("", value)
	case bool:
		e.bool("", value)
	case int:
		e.int("", int64(value))
	case int64:
		e.int("", value)
	default:
		var text bytes.Buffer
		std := json.NewEncoder(&text)
		std.SetEscapeHTML(false)
		if err := std.Encode(value); err != nil {
			e.fail(err)
			return
		}
		e.out = append(e.out, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
	}
}

// appendString adds value as a JSON string. Line separators are escaped although JSON allows them, and bytes that are
// no UTF-8 become U+FFFD, both as in encoding/json.
func appendString(dst []byte, value string) []byte {
	const (
		hex     = "0123456789abcdef"
		named   = "\"\\\b\f\n\r\t" // have an escape of their own: a backslash and the letter at the same place in
		letters = "\"\\bfnrt"
	)
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(value); {
		b := value[i]
		if b < utf8.RuneSelf && b >= ' ' && b != '"' && b != '\\' {
			i++
			continue
		}
		if b < utf8.RuneSelf {
			dst = append(dst, value[start:i]...)
			if at := strings.IndexByte(named, b); at >= 0 {
				dst = append(dst, '\\', letters[at])
			} else {
				dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(value[i:])
		replaced := r == utf8.RuneError && size == 1
		if replaced || r == '\u2028' || r == '\u2029' {
			dst = append(dst, value[start:i]...)
			dst = append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
			start = i + size
		}
		i += size
	}
	return append(append(dst, value[start:]...), '"')
}

package tool

import (
	"encoding/json"
	"regexp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Trace is the traceparent that a caller sends in the _meta of its call: "00-", the trace in 32
// hexadecimal digits, the span in 16, and flags, as W3C Trace Context has it. "" where it sends
// none. It says to which trace of the caller's telemetry the call belongs.
type Trace string

// TraceRuntime begins the runtime ref of an invocation that is its trace.
const TraceRuntime = "traceparent:"

// TraceRef is a trace as events name it, in trace_refs.
type TraceRef struct {
	Traceparent Trace `json:"traceparent"`
}

var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// TraceOf reads the traceparent of the _meta of a call. One that is malformed counts as none, as
// that specification demands.
func TraceOf(meta json.RawMessage) Trace {
	value, ok := rawjson.Get(meta, "traceparent")
	if text, isText := rawjson.String(value); ok && isText && traceparent.MatchString(text) {
		return Trace(text)
	}
	return ""
}

// Refs is the trace as events name it; nil where there is none.
func (t Trace) Refs() []TraceRef {
	if t == "" {
		return nil
	}
	return []TraceRef{{t}}
}

package telemetry

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// kept is how many calls are in memory: that takes about 400 kB.
const kept = 1000

// Spans are the spans of a call.
type Spans struct {
	Trace string `json:"trace_id,omitempty"` // "" where nobody traces, or the trace is not sampled
	All   []Span `json:"spans"`              // the call itself, then its phases
}

// Span is a part of a call.
type Span struct {
	Name  string        `json:"name"`
	After time.Duration `json:"after_ns"` // since the call began
	Took  time.Duration `json:"took_ns"`
}

// recent holds the latest calls.
type recent struct {
	mu    sync.Mutex
	calls []one // kept at most; then next is the oldest
	next  int
}

// one is a call, as recent keeps it.
type one struct {
	id    tool.InvocationID
	name  tool.Name
	trace trace.TraceID
	laps  []invoke.Lap
}

// add keeps a call.
func (r *recent) add(e *invoke.Ended, of trace.TraceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls) < kept {
		r.calls = append(r.calls, one{})
	}
	c := &r.calls[r.next]
	r.next = (r.next + 1) % kept
	c.id, c.name, c.trace, c.laps = e.ID, tool.UnknownTool, of, append(c.laps[:0], e.Laps...)
	if e.Listed != nil {
		c.name = e.Listed.Name
	}
}

// Spans returns the spans of one of the latest calls; nil where it is none of them.
func (t *Telemetry) Spans(id tool.InvocationID) *Spans {
	r := &t.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.calls, func(c one) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	return r.calls[i].spans()
}

func (c *one) spans() *Spans {
	s := &Spans{All: make([]Span, 1, 1+len(c.laps))}
	if c.trace.IsValid() {
		s.Trace = c.trace.String()
	}
	from := time.Duration(0)
	for _, l := range c.laps {
		s.All = append(s.All, Span{Name: l.Phase, After: from, Took: l.Until - from})
		from = l.Until
	}
	s.All[0] = Span{Name: methodCall + " " + string(c.name), Took: from}
	return s
}

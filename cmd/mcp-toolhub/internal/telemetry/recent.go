package telemetry

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// kept is how many calls are kept in memory: about 300 kB.
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
	mu   sync.Mutex
	ring []one // kept at most
	next int
}

// one is a call, as recent keeps it.
type one struct {
	id    tool.InvocationID
	name  tool.Name
	trace trace.TraceID
	laps  []invoke.Lap // its own
}

// add keeps a call.
func (r *recent) add(e *invoke.Ended, of trace.TraceID) {
	c := one{id: e.ID, name: tool.UnknownTool, trace: of}
	if e.Listed != nil {
		c.name = e.Listed.Name
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) < kept {
		c.laps = append(c.laps, e.Laps...)
		r.ring = append(r.ring, c)
		return
	}
	c.laps = append(r.ring[r.next].laps[:0], e.Laps...)
	r.ring[r.next] = c
	r.next = (r.next + 1) % kept
}

// Spans returns the spans of one of the latest calls; nil where it is none of them.
func (t *Telemetry) Spans(id tool.InvocationID) *Spans {
	r := &t.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ring {
		if c := &r.ring[i]; c.id == id {
			return c.spans()
		}
	}
	return nil
}

func (c *one) spans() *Spans {
	s := &Spans{All: make([]Span, 1, 1+len(c.laps))}
	if c.trace.IsValid() {
		s.Trace = c.trace.String()
	}
	from := time.Duration(0)
	for _, l := range c.laps {
		s.All = append(s.All, Span{Name: l.Phase(), After: from, Took: l.Until - from})
		from = l.Until
	}
	s.All[0] = Span{Name: methodCall + " " + string(c.name), Took: from}
	return s
}

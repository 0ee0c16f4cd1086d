package telemetry

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	kept  = 1000 // calls in memory: about 200 kB
	piece = 100  // of those are made room for at a time
)

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
	mu     sync.Mutex
	pieces [kept / piece]*[piece]one // nil: no call has come so far
	next   int
}

// one is a call, as recent keeps it.
type one struct {
	id    tool.InvocationID // "" where there is none so far
	name  tool.Name
	trace trace.TraceID
	n     int
	laps  [13]invoke.Lap // n of them
	more  []invoke.Lap   // of a call that waited for its client: then laps are the first ones
}

// add keeps a call.
func (r *recent) add(e *invoke.Ended, of trace.TraceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := &r.pieces[r.next/piece]
	if *at == nil {
		*at = new([piece]one)
	}
	c := &(*at)[r.next%piece]
	r.next = (r.next + 1) % kept
	c.id, c.name, c.trace, c.more = e.ID, tool.UnknownTool, of, nil
	if e.Listed != nil {
		c.name = e.Listed.Name
	}
	if c.n = copy(c.laps[:], e.Laps); c.n < len(e.Laps) {
		c.more = append(c.more, e.Laps[c.n:]...)
	}
}

// Spans returns the spans of one of the latest calls; nil where it is none of them.
func (t *Telemetry) Spans(id tool.InvocationID) *Spans {
	r := &t.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pieces {
		if p == nil {
			break
		}
		for i := range p {
			if p[i].id == id && id != "" {
				return p[i].spans()
			}
		}
	}
	return nil
}

func (c *one) spans() *Spans {
	s := &Spans{All: make([]Span, 1, 1+c.n+len(c.more))}
	if c.trace.IsValid() {
		s.Trace = c.trace.String()
	}
	from := time.Duration(0)
	for _, laps := range [][]invoke.Lap{c.laps[:c.n], c.more} {
		for _, l := range laps {
			s.All = append(s.All, Span{Name: l.Phase(), After: from, Took: l.Until() - from})
			from = l.Until()
		}
	}
	s.All[0] = Span{Name: methodCall + " " + string(c.name), Took: from}
	return s
}

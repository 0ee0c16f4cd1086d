package events

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	maxStreams  = 32               // open at a time
	beatEvery   = 15 * time.Second // a comment tells both sides that the stream is open
	writeWithin = 30 * time.Second // a reader that takes nothing for so long is gone
)

// Server serves a journal over HTTP, as server-sent events. Whoever may read is its caller's to decide.
type Server struct {
	Dir    string // of the journal
	Logger *slog.Logger

	open atomic.Int32
}

// Parameters of a stream's address.
const (
	FormatParameter = "format"
	FilterParameter = "filter"
	SinceParameter  = "since"  // a duration until now
	FollowParameter = "follow" // "false": the stream ends with what there is
)

// Serve answers a GET. Its stream ends when may, which is called often, returns false. The id of
// each event is that of the tool_event; a request with Last-Event-ID goes on after that.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, may func() bool) {
	o, err := optionsOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if s.open.Add(1) > maxStreams {
		s.open.Add(-1)
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("%d streams of events are open: close one, or try again later", maxStreams),
			http.StatusServiceUnavailable)
		return
	}
	defer s.open.Add(-1)
	o.Dir = s.Dir
	o.Damaged = func(err error) { s.Logger.Warn("a stream of events passes over a part of the journal", "error", err) }
	out, control, beat := &begun{ResponseWriter: w}, http.NewResponseController(w), time.Now()
	_ = control.SetWriteDeadline(time.Now().Add(writeWithin))
	flush := func() error {
		out.begin()
		beat = time.Now()
		err := control.Flush()
		return errors.Join(err, control.SetWriteDeadline(beat.Add(writeWithin+beatEvery)))
	}
	o.Idle = func() error {
		switch {
		case !may():
			return errNoRight
		case out.unsent, !out.is:
			out.unsent = false
			return flush()
		case time.Since(beat) > beatEvery:
			if _, err := out.Write([]byte(":\n\n")); err != nil {
				return err
			}
			return flush()
		}
		return nil
	}
	err = Stream(r.Context(), o, func(m Message) error {
		out.begin()
		_, err := fmt.Fprintf(out, "id: %s\ndata: %s\n\n", m.ID, m.Text)
		if out.unsent = true; time.Since(beat) > time.Second {
			err = errors.Join(err, flush())
		}
		return err
	})
	if err != nil && !out.is {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out.begin()
}

// errNoRight ends the stream of a reader that may not read any more.
var errNoRight = errors.New("the right to read events has ended")

// begun is an answer whose status is sent with its first event, or when there is none to wait for.
type begun struct {
	http.ResponseWriter
	is     bool
	unsent bool
}

func (b *begun) begin() {
	if b.is {
		return
	}
	b.is = true
	b.Header().Set("Content-Type", "text/event-stream")
	b.Header().Set("Cache-Control", "no-store")
	b.WriteHeader(http.StatusOK)
}

// optionsOf reads what a request wants.
func optionsOf(r *http.Request) (o Options, err error) {
	q := r.URL.Query()
	for name := range q {
		if known := []string{FilterParameter, FollowParameter, FormatParameter, SinceParameter}; !slices.Contains(known,
			name) {
			return o, fmt.Errorf("the parameter %q is not known: there are %s", name, strings.Join(known, ", "))
		}
	}
	o = Options{Format: Format(q.Get(FormatParameter)), Filter: q.Get(FilterParameter), Follow: true,
		After: tool.EventID(r.Header.Get("Last-Event-ID"))}
	switch q.Get(FollowParameter) {
	case "", "true":
	case "false":
		o.Follow = false
	default:
		return o, errors.New("the parameter follow is true or false")
	}
	if since := q.Get(SinceParameter); since != "" {
		d, err := time.ParseDuration(since)
		if err != nil || d < 0 {
			return o, fmt.Errorf("the parameter since is a duration, for instance 1h: %q is none", since)
		}
		o.Since = time.Now().Add(-d)
	}
	return o, nil
}

// subjectOf is the text that every line has which an event follows from: the invocation, or the event's own id.
func subjectOf(id tool.EventID) string {
	if call, _, derived := strings.Cut(strings.TrimPrefix(string(id), "evt_"), "."); derived {
		return "inv_" + call
	}
	return string(id)
}

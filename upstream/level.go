package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// quietLevel is what a server is set to once nobody wishes for log messages any more: there is no level for none.
const quietLevel = "emergency"

// levelWithin is how long a call waits until its server has taken the level that clients wish for.
const levelWithin = time.Second

// logLevel is the level of log messages that the server of a session has been told.
type logLevel struct {
	mu      sync.Mutex
	told    string        // "": none
	waived  string        // the level that calls no longer wait for; "": none
	changed chan struct{} // closed at the next change; nil where nobody waits
}

// after returns what is to be told now that clients wish for level, and whether that is something else than was told.
func (l *logLevel) after(level string) (next string, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next(level), l.next(level) != l.told
}

// next is after where l.mu is held.
func (l *logLevel) next(level string) string {
	if level == "" && l.told != "" {
		return quietLevel
	}
	return level
}

// set notes what the server was told.
func (l *logLevel) set(level string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = level
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// pending returns what is closed when the server has been told more, or nil if there is nothing to wait for: clients wish
// for level.
func (l *logLevel) pending(level string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next := l.next(level); next == l.told || next == l.waived {
		return nil
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// waive lets no further call wait for level.
func (l *logLevel) waive(level string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waived = l.next(level)
}

// levelFirst returns when the server of sess knows the log level that clients wish for, so that what a client asked for
// before a call counts for that call. A server that does not take it holds nobody up for longer than levelWithin, and
// that once.
func (s *server) levelFirst(ctx context.Context, sess *session) {
	if sess.hop != nil || s.use == useListing {
		return
	}
	var limit <-chan time.Time
	for {
		level := s.wishes.logLevel()
		changed := sess.book.level.pending(level)
		if changed == nil || !sess.abilities().Logging {
			return
		}
		if limit == nil {
			timer := time.NewTimer(levelWithin)
			defer timer.Stop()
			limit = timer.C
		}
		select {
		case <-changed:
		case <-limit:
			sess.book.level.waive(level)
			return
		case <-sess.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// setLevel tells the server of the log level that clients wish for, where it is another than before.
func (s *server) setLevel(ctx context.Context, sess *session) {
	level, isNew := sess.book.level.after(s.wishes.logLevel())
	if !isNew {
		return
	}
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Call)
	defer cancel()
	params := append(append([]byte(`{"level":`), rawjson.Quote(level)...), '}')
	c := newLaneCall(s.nextID(), methodSetLevel, params)
	sess.lane.send(limited, c)
	if a := await(limited, sess.lane, c); a.err != nil && ctx.Err() == nil {
		s.log.Warn("the server's log level could not be set", "level", level, "error", s.redact.Text(a.err.Error()))
	}
	sess.book.level.set(level)
}

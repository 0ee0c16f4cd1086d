package upstream

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	maxStderrLine   = 4 << 10 // bytes of a line that are kept
	stderrPerSecond = 20
	stderrBurst     = 100
	stderrKept      = 20 // lines kept for errors
)

// stderrLog moves a child's stderr to the log, one record a line, and keeps the last lines.
type stderrLog struct {
	log     *slog.Logger
	pid     int // of the child
	redact  *redactor
	limiter *rate.Limiter
	dropped int // since the last record; only the reader uses it

	mu   sync.Mutex
	last []string
}

func newStderrLog(log *slog.Logger, pid int, redact *redactor) *stderrLog {
	return &stderrLog{log: log, pid: pid, redact: redact, limiter: rate.NewLimiter(stderrPerSecond, stderrBurst)}
}

// copyFrom reads r to its end.
func (s *stderrLog) copyFrom(r io.Reader) {
	in := bufio.NewReaderSize(r, maxStderrLine)
	cut := false // the line's beginning was handled: what follows is over the limit
	for {
		part, err := in.ReadSlice('\n')
		if len(part) > 0 && !cut {
			s.line(string(part))
		}
		cut = errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !cut {
			s.reportDropped()
			return
		}
	}
}

func (s *stderrLog) line(raw string) {
	text := truncate(cleanText(s.redact.secrets.Replace(raw)), maxStderrLine)
	if text == "" {
		return
	}
	s.mu.Lock()
	if len(s.last) == stderrKept {
		s.last = append(s.last[:0], s.last[1:]...)
	}
	s.last = append(s.last, text)
	s.mu.Unlock()
	if !s.limiter.AllowN(time.Now(), 1) {
		s.dropped++
		return
	}
	s.reportDropped()
	s.log.Info(text, "stream", "stderr", "pid", s.pid)
}

func (s *stderrLog) reportDropped() {
	if s.dropped > 0 {
		s.log.Warn("stderr of the server was too fast: lines dropped", "lines", s.dropped)
		s.dropped = 0
	}
}

// tail returns the last line that says something, or "".
func (s *stderrLog) tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) == 0 {
		return ""
	}
	return truncate(s.last[len(s.last)-1], maxText)
}

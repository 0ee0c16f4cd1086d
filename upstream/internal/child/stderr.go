package child

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
)

const (
	stderrPerSecond = 20
	stderrBurst     = 100
	keptLines       = 50 // lines of stderr kept for errors: Node and Python write a stack around the cause
)

// stderrLog moves a child's stderr to the log, one record a line, and keeps the last lines.
type stderrLog struct {
	log     *slog.Logger
	pid     int // of the child
	redact  *secret.Redactor
	limiter *rate.Limiter
	dropped int // since the last record; only the reader uses it

	mu   sync.Mutex
	last []string
}

func newStderrLog(log *slog.Logger, pid int, redact *secret.Redactor) *stderrLog {
	return &stderrLog{log: log, pid: pid, redact: redact, limiter: rate.NewLimiter(stderrPerSecond, stderrBurst)}
}

// copyFrom reads r to its end.
func (s *stderrLog) copyFrom(r io.Reader) {
	in := bufio.NewReaderSize(r, secret.MaxLine)
	cut := false // the line's beginning was handled: what follows is over the limit
	for {
		part, err := in.ReadSlice('\n')
		if len(part) > 0 && !cut {
			s.line(string(part), !errors.Is(err, bufio.ErrBufferFull))
		}
		cut = errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !cut {
			s.reportDropped()
			return
		}
	}
}

// line takes in a line, or the beginning of one that is too long.
func (s *stderrLog) line(raw string, whole bool) {
	text := s.redact.Show(raw, whole, secret.MaxLine)
	if text == "" {
		return
	}
	s.mu.Lock()
	if len(s.last) == keptLines {
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

// lines returns the last lines.
func (s *stderrLog) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.last)
}

var (
	// exceptionLine matches the line in which runtimes name what ended a program: "TypeError: …"
	// and "Error [CODE]: …" of Node, "pkg.SomeError: …" of Python, also in a group ("| KeyError:
	// …"), Go's "panic: …", Java's "Caused by: …".
	exceptionLine = regexp.MustCompile(`^[\s|]*(?:[\w$.]*(?:Error|Exception|Rejection|Interrupt|Exit)` +
		`(?: \[\w+\])?(?::|$)|panic: |fatal error: |Caused by: |Exception in thread )`)
	// troubleLine matches what programs write about trouble in their own words.
	troubleLine = regexp.MustCompile(`(?i)\b(?:\w*error|fatal|panicked|exception|cannot|can't|could not|unable|failed` +
		`|not found|no such|no module|not in|denied|refused|missing|required)\b`)
	// asideLine matches lines that look like trouble and say nothing: warnings, stack frames, and what
	// npm writes around the cause.
	asideLine = regexp.MustCompile(`(?i)^at |\bwarn|deprecat|^npm (?:error|err!) (?:code \w+|errno .*|\d+|\d+ ` +
		`(?:note|tarball,) .*` +
		`|.*complete log of this run.*)$`)
)

// Cause returns the line that says what is wrong: the last one that names an exception, else the
// last one about trouble, else the last one.
func Cause(lines []string) string {
	for _, isCause := range []func(string) bool{
		exceptionLine.MatchString,
		func(line string) bool { return troubleLine.MatchString(line) && !asideLine.MatchString(line) },
		func(string) bool { return true },
	} {
		for _, line := range slices.Backward(lines) {
			if isCause(line) {
				return line
			}
		}
	}
	return ""
}

package downstream

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestAClientThatDoesNotReadHoldsUpItsOwnCalls sends many calls and reads nothing at first. No more
// than maxServed of them run. When the client reads at last, it gets all answers.
func TestAClientThatDoesNotReadHoldsUpItsOwnCalls(t *testing.T) {
	t.Parallel()
	const calls = 3 * maxServed
	// Too large for the records, which would keep it longer than the client needs to take it in.
	result := json.RawMessage(`{"content":[],"x":"` + strings.Repeat("x", 40<<10) + `"}`)
	var untaken, most atomic.Int64 // results that the client has not taken in
	var once sync.Once
	full := make(chan struct{})
	f := &far{execute: func(context.Context, *tool.Execution) (tool.Reply, error) {
		n := untaken.Add(1)
		if most.Store(max(most.Load(), n)); n == maxServed {
			once.Do(func() { close(full) })
		}
		return tool.Reply{Result: result, Free: func() { untaken.Add(-1) }}, nil
	}}
	s := newServer(t, Config{Version: "v"}, f)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- s.ServeStdio(t.Context(), inR, outW, Stdio{Profile: "default"})
		_ = outW.Close()
	}()
	go func() {
		for i := range calls {
			_, _ = fmt.Fprintf(inW,
				`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"mcp.s.echo","_meta":{%s}}}`+"\n", i,
				modernMeta)
		}
		_ = inW.Close()
	}()
	<-full
	answers := 0
	lines := bufio.NewScanner(outR)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"result":{"content"`) {
			answers++
		}
	}
	if err := <-ended; err != nil || answers != calls || most.Load() > maxServed {
		t.Errorf("%d answers, %d results at a time: %v", answers, most.Load(), err)
	}
}

// slowReader is a response whose client takes so long to take in each write.
type slowReader struct {
	http.ResponseWriter
	takes    func(written int) time.Duration
	written  int
	deadline time.Time
}

func (s *slowReader) Header() http.Header { return make(http.Header) }

func (s *slowReader) WriteHeader(int) {}

func (s *slowReader) Flush() {}

func (s *slowReader) SetWriteDeadline(at time.Time) error {
	s.deadline = at
	return nil
}

func (s *slowReader) Write(p []byte) (int, error) {
	takes := s.takes(s.written)
	if left := time.Until(s.deadline); !s.deadline.IsZero() && takes > left {
		time.Sleep(left) // virtual time
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(takes) // virtual time
	s.written += len(p)
	return len(p), nil
}

// TestASlowReaderHasTimeAsLongAsItReads answers clients that read slowly, and ones that stop in the middle.
func TestASlowReaderHasTimeAsLongAsItReads(t *testing.T) {
	t.Parallel()
	const size = 10 << 20
	text := pieces{parts: [][]byte{[]byte(`{"a":"`), []byte(strings.Repeat("x", size)), []byte(`"}`)}}
	for _, inline := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			slow := &slowReader{takes: func(int) time.Duration { return progressWithin - time.Second }}
			r := &httpReply{id: json.RawMessage("1"), inline: inline, w: slow}
			began := time.Now()
			if !r.answer(text) || slow.written < size || !slow.deadline.IsZero() {
				t.Errorf("a client that reads slowly has %d bytes, the deadline is %s", slow.written, slow.deadline)
			}
			t.Logf("it has read for %s", time.Since(began))

			stops := &slowReader{takes: func(written int) time.Duration {
				if written > size/2 {
					return time.Hour
				}
				return 0
			}}
			r = &httpReply{id: json.RawMessage("1"), inline: inline, w: stops}
			began = time.Now()
			if r.answer(text) || time.Since(began) != progressWithin {
				t.Errorf("a client that has stopped reading is given up after %s", time.Since(began))
			}
		})
	}
}

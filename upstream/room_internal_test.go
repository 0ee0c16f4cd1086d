//go:build e2e

package upstream

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

// room takes room for size bytes.
func room(t *testing.T, b *budget.Share, size int64) *budget.Room {
	t.Helper()
	r := b.Room(nil)
	if err := r.Take(size); err != nil {
		t.Error(err)
	}
	r.Whole(size)
	return r
}

// TestAMessageWithoutRoomIsDroppedAlone reads a large message and a small one over each wire, while others hold the
// memory, and again when they have freed it.
func TestAMessageWithoutRoomIsDroppedAlone(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	long := `{"jsonrpc":"2.0","id":1,"result":{"text":"` + strings.Repeat("a", size) + `"}}`
	var lines strings.Builder
	for rest := long; rest != ""; {
		n := min(len(rest), 60_000)
		lines.WriteString("data: " + rest[:n] + "\n")
		rest = rest[n:]
	}
	type reader func(*budget.Share) (large jsonrpc.Received, small string, err error)
	events := func(stream string) reader {
		return func(a *budget.Share) (jsonrpc.Received, string, error) {
			s := jsonrpc.NewEventReader(strings.NewReader(stream+"data: {}\n\n"), 64<<20, a)
			ev, err := s.Next()
			next, failed := s.Next()
			if failed != nil {
				return jsonrpc.Received{}, "", failed
			}
			return ev.Received(), string(next.Data), err
		}
	}
	for name, read := range map[string]reader{
		"line": func(a *budget.Share) (jsonrpc.Received, string, error) {
			l := jsonrpc.NewLineReader(strings.NewReader(long+"\n{}\n"), func() int { return 64 << 20 }, a)
			large, err := l.Next()
			next, failed := l.Next()
			if failed != nil {
				return jsonrpc.Received{}, "", failed
			}
			return large, string(next.Text), err
		},
		"event":          events("data: " + long + "\n\n"),
		"event of lines": events(lines.String() + "\n"),
		"body": func(a *budget.Share) (jsonrpc.Received, string, error) {
			resp := &http.Response{ContentLength: -1, Body: io.NopCloser(strings.NewReader(long))}
			got, err := jsonrpc.ReadBody(resp.Body, resp.ContentLength, 64<<20, a)
			return got, "{}", err
		},
		"body of known size": func(a *budget.Share) (jsonrpc.Received, string, error) {
			resp := &http.Response{ContentLength: int64(len(long)), Body: io.NopCloser(strings.NewReader(long))}
			got, err := jsonrpc.ReadBody(resp.Body, resp.ContentLength, 64<<20, a)
			return got, "{}", err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := budget.New(16 << 20)
			defer b.Close()
			memory := b.Share()
			others := room(t, b.Share(), 12<<20)
			began := time.Now()
			_, small, err := read(memory)
			var large *jsonrpc.TooLarge
			if errors.As(err, &large) {
				if f := transport.OversizeFailure(large); f.Class != "result_too_large" || !strings.Contains(f.Message, "hub.limits.memory") {
					t.Errorf("%s: %+v", name, f)
				}
				if string(large.ResponseID()) != "1" && !strings.HasPrefix(name, "body") { // the request to a body knows
					t.Errorf("%s: it is not known whose the message was: %s", name, large.ResponseID())
				}
				err = large.NoRoom
			}
			if !errors.Is(err, budget.ErrBusy) || small != "{}" {
				t.Errorf("%s: %v, and then %q", name, err, small)
			}
			if waited := time.Since(began); waited < budget.Patience || waited > budget.Patience+budget.Stall {
				t.Errorf("%s: the message has waited %s", name, waited)
			}
			others.Free()
			room(t, memory, 12<<20).Free() // what had no room holds none
			got, small, err := read(memory)
			if err != nil || len(bytes.ReplaceAll(got.Text, []byte("\n"), nil)) != len(long) || small != "{}" {
				t.Fatalf("%s: %v, %d bytes, and then %q", name, err, len(got.Text), small)
			}
			if r := memory.Room(nil); r.Take(12<<20) == nil {
				t.Errorf("%s: a message that is held takes no room", name)
			}
			got.Room.Free()
			room(t, memory, 12<<20).Free()
		})
	}
}

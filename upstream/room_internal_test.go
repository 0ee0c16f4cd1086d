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

// crowded is an account of a budget of 16 MiB for large messages, of which others hold 10.
func crowded(t *testing.T) (mine *budget.Account, others *budget.Lease) {
	t.Helper()
	b := budget.New(16<<20*4/3, t.TempDir())
	others, err := b.Account("others").Take(10 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return b.Account("mine"), others
}

// empty reports whether an account of crowded holds nothing: then it may have two thirds of what the others have left.
func empty(t *testing.T, a *budget.Account) bool {
	t.Helper()
	l, err := a.Take(4 << 20)
	l.Free()
	return err == nil
}

// TestAMessageWithoutRoomIsDroppedAlone reads a large message and a small one over each wire, while others hold the
// memory, and again when they have freed it.
func TestAMessageWithoutRoomIsDroppedAlone(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	long := `{"jsonrpc":"2.0","id":"toolhub-1","result":{"text":"` + strings.Repeat("a", size) + `"}}`
	var lines strings.Builder
	for rest := long; rest != ""; {
		n := min(len(rest), 60_000)
		lines.WriteString("data: " + rest[:n] + "\n")
		rest = rest[n:]
	}
	type reader func(*budget.Account) (large jsonrpc.Received, small string, err error)
	events := func(stream string) reader {
		return func(a *budget.Account) (jsonrpc.Received, string, error) {
			s := jsonrpc.NewEventReader(strings.NewReader(stream+"data: {}\n\n"), 64<<20, a)
			ev, err := s.Next()
			if errors.Is(err, jsonrpc.ErrEventTooLarge) {
				err = transport.OversizeOf(s.Skip())
			}
			next, failed := s.Next()
			if failed != nil {
				return jsonrpc.Received{}, "", failed
			}
			return ev.Received(), string(next.Data), err
		}
	}
	for name, read := range map[string]reader{
		"line": func(a *budget.Account) (jsonrpc.Received, string, error) {
			l := jsonrpc.NewLineReader(strings.NewReader(long+"\n{}\n"), func() int { return 64 << 20 }, a)
			large, err := l.Next()
			err = transport.OversizeOf(err)
			next, failed := l.Next()
			if failed != nil {
				return jsonrpc.Received{}, "", failed
			}
			return large, string(next.Text), err
		},
		"event":          events("data: " + long + "\n\n"),
		"event of lines": events(lines.String() + "\n"),
		"body": func(a *budget.Account) (jsonrpc.Received, string, error) {
			resp := &http.Response{ContentLength: -1, Body: io.NopCloser(strings.NewReader(long))}
			got, err := jsonrpc.ReadBody(resp.Body, resp.ContentLength, 64<<20, a)
			return got, "{}", err
		},
		"body of known size": func(a *budget.Account) (jsonrpc.Received, string, error) {
			resp := &http.Response{ContentLength: int64(len(long)), Body: io.NopCloser(strings.NewReader(long))}
			got, err := jsonrpc.ReadBody(resp.Body, resp.ContentLength, 64<<20, a)
			return got, "{}", err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			mine, others := crowded(t)
			began := time.Now()
			_, small, err := read(mine)
			var large *transport.Oversize
			if errors.As(err, &large) {
				if f := large.Failure(); f.Class != "result_too_large" || !strings.Contains(f.Message, "hub.limits.memory") {
					t.Errorf("%s: %+v", name, f)
				}
				if !bytes.Contains(large.Response, []byte(`"toolhub-1"`)) {
					t.Errorf("%s: it is not known whose the message was: %s", name, large.Response)
				}
				err = large.NoRoom
			}
			if !errors.Is(err, budget.ErrBusy) || small != "{}" {
				t.Errorf("%s: %v, and then %q", name, err, small)
			}
			if waited := time.Since(began); waited != budget.Patience {
				t.Errorf("%s: the message has waited %s", name, waited)
			}
			if !empty(t, mine) {
				t.Errorf("%s: what had no room still holds some", name)
			}
			others.Free()
			got, small, err := read(mine)
			if err != nil || len(bytes.ReplaceAll(got.Text, []byte("\n"), nil)) != len(long) || small != "{}" {
				t.Fatalf("%s: %v, %d bytes, and then %q", name, err, len(got.Text), small)
			}
			if r, err := mine.Take(10 << 20); err == nil {
				t.Errorf("%s: a message that is held takes no room", name)
				r.Free()
			}
			got.Memory.Free()
			r, err := mine.Take(10 << 20)
			if err != nil {
				t.Errorf("%s: a message that was freed takes room: %v", name, err)
			}
			r.Free()
		})
	}
}

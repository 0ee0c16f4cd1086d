package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

func upstreamtestScript(b ...upstreamtest.Behaviour) upstreamtest.Script {
	return upstreamtest.Script{Behaviours: b}
}

// TestProgressComesInOrder checks that every report arrives before the result and in the order of the wire.
func TestProgressComesInOrder(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		if strings.Contains(w.name, "json") {
			continue // a single response has no place for progress
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			var calls sync.WaitGroup
			for range 8 {
				calls.Go(func() {
					var got []string
					x := execution("s", "progress", `{"n":50}`)
					x.Progress = func(p tool.Progress) {
						n, _ := rawjson.Get(p.Params, "progress")
						x, _ := rawjson.Get(p.Params, "x")
						got = append(got, string(n)+"/"+string(x))
					}
					if _, err := h.Execute(t.Context(), x); err != nil {
						t.Error(err)
						return
					}
					if len(got) != 50 {
						t.Errorf("%d reports before the result, want 50", len(got))
						return
					}
					for i, g := range got {
						if want := fmt.Sprintf("%d/1.50", i+1); g != want {
							t.Errorf("report %d is %s, want %s", i, g, want)
						}
					}
				})
			}
			calls.Wait()
		})
	}
}

// TestConcurrentCalls checks that answers reach their callers when they come in another order.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			var calls sync.WaitGroup
			for i := range 60 {
				calls.Go(func() {
					want := fmt.Sprintf(`{"content":[],"i":%d}`, i)
					reply, err := h.call(t.Context(), "s", "raw", `{"result":`+want+`}`)
					if err != nil || string(reply.Result) != want {
						t.Errorf("result %s, %v, want %s", reply.Result, err, want)
					}
				})
			}
			calls.Wait()
			if st := h.status("s"); st.InFlight != 0 {
				t.Errorf("%d calls are in flight", st.InFlight)
			}
		})
	}
}

// TestCancellation checks that a call returns at once when its caller goes, and that the server is told.
func TestCancellation(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			ids := make(chan string, 1)
			go func() {
				reply, err := h.call(ctx, "s", "hang", `{}`)
				ids <- reply.Mapping.JSONRPCRequestID
				done <- err
			}()
			h.of("s").reach(t, "hang", 1)
			cancel()
			select {
			case err := <-done:
				f := failure(t, err)
				if f.Class != tool.ClassCanceled || !f.OutcomeUnknown {
					t.Errorf("failure %+v, want canceled with unknown outcome", f)
				}
			case <-time.After(patience):
				t.Fatal("the canceled call did not return")
			}
			id := <-ids
			if w.http != nil && modern(w) {
				return // closing the request is the cancellation: the fake's handler ends, or the test would hang
			}
			eventually(t, "the server is told", func() bool {
				return strings.Contains(string(h.mustCall(t, "s", "canceled", `{}`)), id)
			})
		})
	}
}

func TestCallTimeout(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			cfg := w.config(t, "s")
			cfg.Timeouts.Call = 300 * time.Millisecond
			h := start(t, cfg)
			h.ready(t, "s")
			eventually(t, "a call that was sent times out", func() bool { // on a busy machine one may time out before it is
				_, err := h.call(t.Context(), "s", "hang", `{}`)
				f := failure(t, err)
				if f.Class == tool.ClassTimeout && !strings.Contains(f.Message, `raise timeout of server "s"`) {
					t.Errorf("failure %+v", f)
				}
				return f.Class == tool.ClassTimeout && f.OutcomeUnknown
			})
			eventually(t, "another call is answered", func() bool { // or times out on a busy machine
				_, err := h.call(t.Context(), "s", "raw", `{"result":{}}`)
				return err == nil
			})
		})
	}
}

func TestDeadlineOfTheCaller(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("s", upstreamtestScript()))
	h.ready(t, "s")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := h.call(ctx, "s", "hang", `{}`)
	if f := failure(t, err); f.Class != tool.ClassTimeout {
		t.Errorf("failure %+v, want a timeout", f)
	}
}

// TestCallOverHTTPEndsEarly checks that a call over a connection that was used before ends when its caller goes, its
// time is over, or the hub stops: with the failure that says so, and the server is told once.
func TestCallOverHTTPEndsEarly(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		if w.http == nil || w.http.SSE {
			continue
		}
		for _, end := range []string{"cancel", "timeout", "stop"} {
			t.Run(w.name+" "+end, func(t *testing.T) {
				t.Parallel()
				o := *w.http
				o.Script = w.script
				cfg, handler := overHTTP(t, "s", o)
				if end == "timeout" {
					cfg.Timeouts.Call = 2 * time.Second
				}
				h := start(t, cfg)
				h.ready(t, "s")
				h.mustCall(t, "s", "echo", `{}`)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var id string
				done := make(chan error, 1)
				go func() {
					reply, err := h.call(ctx, "s", "hang", `{}`)
					id = reply.Mapping.JSONRPCRequestID
					done <- err
				}()
				eventually(t, "the server has the call", func() bool { // asked with another call, that might take the connection
					return slices.ContainsFunc(handler.Requests(), func(r upstreamtest.Request) bool {
						return bytes.Contains(r.Body, []byte(`"hang"`))
					})
				})
				want := map[string]tool.ErrorClass{"cancel": tool.ClassCanceled, "timeout": tool.ClassTimeout, "stop": tool.ClassDependencyUnavailable}[end]
				switch end {
				case "cancel":
					cancel()
				case "stop":
					if err := h.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
				select {
				case err := <-done:
					if f := failure(t, err); f.Class != want || !f.OutcomeUnknown {
						t.Errorf("failure %+v", f)
					}
				case <-time.After(patience):
					t.Fatal("the call did not return")
				}
				told := func() (n int) {
					for _, one := range handler.Canceled() {
						if one == id {
							n++
						}
					}
					return n
				}
				if !modern(w) && end != "stop" { // the session ends then, and may take the notification with it
					eventually(t, "the server is told", func() bool { return told() > 0 })
				}
				if end != "stop" {
					h.mustCall(t, "s", "echo", `{}`)
				}
				if n := told(); n > 1 {
					t.Errorf("the server is told %d times", n)
				}
			})
		}
	}
}

func TestInvalidResponses(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		for name, text := range map[string]string{
			"neither":       `{"jsonrpc":"2.0","id":$ID}`,
			"no object":     `{"jsonrpc":"2.0","id":$ID,"result":[1]}`,
			"null":          `{"jsonrpc":"2.0","id":$ID,"result":null}`,
			"odd error":     `{"jsonrpc":"2.0","id":$ID,"error":"no"}`,
			"malformed":     `{"jsonrpc":"2.0","id":$ID,"result":{"a":01x}}`,
			"nested deeply": `{"jsonrpc":"2.0","id":$ID,"result":{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}}`,
		} {
			if w.http != nil && w.http.Pretty {
				continue
			}
			t.Run(w.name+" "+name, func(t *testing.T) {
				t.Parallel()
				h := start(t, w.config(t, "s"))
				h.ready(t, "s")
				quoted, _ := json.Marshal(text)
				_, err := h.call(t.Context(), "s", "answer", `{"text":`+string(quoted)+`}`)
				f := failure(t, err)
				if f.Class != tool.ClassExecutionFailed || f.Code != "invalid_response" || !f.OutcomeUnknown {
					t.Errorf("failure %+v", f)
				}
				h.mustCall(t, "s", "raw", `{"result":{}}`)
			})
		}
	}
}

func TestLargeResults(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		if !strings.Contains("stdio 2025, http 2025 stream, http 2026 json, sse", w.name) {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			const size = 17 << 20
			got := h.mustCall(t, "s", "big", fmt.Sprintf(`{"bytes":%d}`, size))
			if len(got) < size || !rawjson.Valid(got) {
				t.Errorf("%d bytes, want %d", len(got), size)
			}
		})
	}
}

func TestLargeArguments(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			want := `{"content":[],"x":"` + strings.Repeat("y", 1<<20) + `"}`
			if got := h.mustCall(t, "s", "raw", `{"result":`+want+`}`); string(got) != want {
				t.Errorf("%d bytes came back, want %d", len(got), len(want))
			}
		})
	}
}

// TestDeathDuringCall checks that a call fails at once when its server goes, with its outcome unknown, and that the
// server comes back.
func TestDeathDuringCall(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			_, err := h.call(t.Context(), "s", "die", `{}`)
			f := failure(t, err)
			if f.Class != tool.ClassDependencyUnavailable || !f.OutcomeUnknown {
				t.Errorf("failure %+v", f)
			}
			eventually(t, "the server answers again", func() bool {
				_, err := h.call(t.Context(), "s", "raw", `{"result":{}}`)
				return err == nil
			})
		})
	}
}

func TestMapping(t *testing.T) {
	t.Parallel()
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{})
	h := start(t, cfg)
	h.ready(t, "s")
	reply, err := h.call(t.Context(), "s", "raw", `{"result":{}}`)
	if err != nil {
		t.Fatal(err)
	}
	m := reply.Mapping
	if m.Source != "mcp" || m.Role != "upstream" || m.ServerID != "s" || m.SessionID != "session-1" || m.ProtocolVersion != "2025-11-25" ||
		m.Method != "tools/call" || m.ToolName != "raw" || !isNumber([]byte(m.JSONRPCRequestID)) {
		t.Errorf("mapping %+v", m)
	}
}

func TestUnknownServer(t *testing.T) {
	t.Parallel()
	h := start(t)
	_, err := h.call(t.Context(), "nobody", "x", `{}`)
	if f := failure(t, err); f.Class != tool.ClassDependencyUnavailable || f.OutcomeUnknown {
		t.Errorf("failure %+v", f)
	}
}

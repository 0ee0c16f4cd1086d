package upstream_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// httpWays are the ways on which the goroutine of a call's caller may exchange it.
func httpWays() (some []way) {
	for _, w := range ways() {
		if w.http != nil && !w.http.SSE {
			some = append(some, w)
		}
	}
	return some
}

// TestCallOnUsedConnectionEndsEarly checks that a call over a connection that was used before ends when its caller goes, its
// time is over, or the hub stops: with the failure that says so, and the server is told once.
func TestCallOnUsedConnectionEndsEarly(t *testing.T) {
	t.Parallel()
	for _, w := range httpWays() {
		for _, end := range []string{"cancel", "timeout", "stop"} {
			t.Run(w.name+" "+end, func(t *testing.T) {
				t.Parallel()
				o := *w.http
				o.Script = w.script
				cfg, handler := overHTTP(t, "s", o)
				if end == "timeout" {
					cfg.Tools = []upstream.ToolTimeout{{Pattern: "hang", Call: 2 * time.Second}}
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

// TestProgressOnUsedConnection checks that reports come in order, and then the result, where the caller's goroutine had begun
// to exchange the call by itself.
func TestProgressOnUsedConnection(t *testing.T) {
	t.Parallel()
	for _, w := range httpWays() {
		if w.http.JSON {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			h.mustCall(t, "s", "echo", `{}`)
			var got []string
			x := execution("s", "progress", `{"n":50}`)
			x.Progress = func(p tool.Progress) {
				n, _ := rawjson.Get(p.Params, "progress")
				got = append(got, string(n))
			}
			if _, err := h.Execute(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			if len(got) != 50 {
				t.Fatalf("%d reports", len(got))
			}
			for i, g := range got {
				if g != strconv.Itoa(i+1) {
					t.Errorf("report %d is %s", i, g)
				}
			}
		})
	}
}

// TestRedirectToSameOrigin checks that a call to a server that has begun to redirect follows, and runs once.
func TestRedirectToSameOrigin(t *testing.T) {
	t.Parallel()
	var redirect atomic.Bool
	var ran atomic.Int32
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if redirect.Load() && r.URL.Path == "/mcp" {
			http.Redirect(w, r, "/other", http.StatusPermanentRedirect)
			return true
		}
		if strings.Contains(string(body), "tools/call") {
			ran.Add(1)
		}
		return false
	}})
	h := start(t, cfg)
	h.ready(t, "s")
	h.mustCall(t, "s", "echo", `{}`)
	redirect.Store(true)
	for want := int32(2); want < 4; want++ {
		h.mustCall(t, "s", "echo", `{}`)
		if n := ran.Load(); n != want {
			t.Errorf("the server ran %d calls, not %d", n, want)
		}
	}
}

// TestLargeCallsAndPlainOnes checks that a call which is too large for the caller's goroutine comes through beside others.
func TestLargeCallsAndPlainOnes(t *testing.T) {
	t.Parallel()
	for _, w := range httpWays() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			for _, n := range []int{1, 60 << 10, 200 << 10, 1} {
				want := `{"content":[],"x":"` + strings.Repeat("x", n) + `"}`
				reply, err := h.call(t.Context(), "s", "raw", `{"result":`+want+`}`)
				if err != nil || string(reply.Result) != want {
					t.Errorf("%d bytes: %v, %.100s", n, err, reply.Result)
				}
			}
		})
	}
}

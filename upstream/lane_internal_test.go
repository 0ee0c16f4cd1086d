package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

// memoryWire is a wire whose far side is the test.
type memoryWire struct {
	in   chan []byte // to the hub
	out  chan []byte // from the hub
	stop chan struct{}
	once sync.Once
}

func newMemoryWire() *memoryWire {
	return &memoryWire{in: make(chan []byte, 1000), out: make(chan []byte, 1000), stop: make(chan struct{})}
}

func (w *memoryWire) Next() (jsonrpc.Received, error) {
	select {
	case b, ok := <-w.in:
		if !ok {
			return jsonrpc.Received{}, io.EOF
		}
		return jsonrpc.Received{Text: b}, nil
	case <-w.stop:
		return jsonrpc.Received{}, io.EOF
	}
}

func (w *memoryWire) Post(m transport.Outgoing) error {
	if m.Call == nil || m.Call.Begin() {
		w.out <- m.Data
		m.Finish(nil)
	}
	return nil
}

func (w *memoryWire) Close()   { w.once.Do(func() { close(w.stop) }) }
func (w *memoryWire) Release() { w.Close() }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func testConn(w transport.Wire) *streamConn {
	return newStreamConn(testSession(), w)
}

// testSession returns a session without a lane.
func testSession() *session { return newSession(testServer().entry, nil) }

func testServer() *server {
	e := &entry{losses: new(atomic.Int64), ids: new(atomic.Int64), cfg: ServerConfig{ID: "s"}, log: quiet(),
		redact: new(secret.Redactor), group: &Group{subscriptions: newClientSubscriptions()}}
	e.cfg.Transport = Stdio
	e.catalog = &catalog{entry: e}
	s, _ := newServer(e, tool.ServerReady)
	return s
}

func progressOf(id int64) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}`, id)
}

// TestSentArgumentsAreHeldOnce: a call that its server works on does not hold what was written to the server.
func TestSentArgumentsAreHeldOnce(t *testing.T) {
	t.Parallel()
	w := newMemoryWire()
	conn := testConn(w)
	defer conn.release()
	send := func() (*pendingRequest, weak.Pointer[byte]) {
		params := fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", 10_000))
		call := newLaneCall(1, &tool.Request{Method: tool.MethodToolsCall}, params)
		conn.send(t.Context(), call)
		return call, weak.Make(&params[0])
	}
	call, held := send()
	if sent := <-w.out; len(sent) < 10_000 {
		t.Fatalf("the server gets %q", sent)
	}
	runtime.GC()
	if held.Value() != nil {
		t.Error("the params are still in memory")
	}
	runtime.KeepAlive(call)
}

// TestProgressExtendsTheTimeout checks that each report gives a call its time anew, up to the maximum.
func TestProgressExtendsTheTimeout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		every time.Duration
		ends  time.Duration
		says  string
	}{
		"no progress":   {0, time.Minute, "raise timeout of"},
		"slow progress": {40 * time.Second, 10 * time.Minute, "raise timeout_max of"},
		"too slow":      {70 * time.Second, time.Minute, "raise timeout of"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newMemoryWire()
				conn := testConn(w)
				defer conn.release()
				call := newLaneCall(1, &tool.Request{Method: tool.MethodToolsCall}, json.RawMessage("{}"))
				if c.every > 0 {
					ctx, stop := context.WithCancel(t.Context())
					defer stop()
					go func() {
						tick := time.NewTicker(c.every)
						defer tick.Stop()
						for {
							select {
							case <-tick.C:
								w.in <- progressOf(1)
							case <-ctx.Done():
								return
							}
						}
					}()
				}
				began, reports := time.Now(), 0
				call.Progress = func(tool.Progress) { reports++ }
				a := conn.sess.wait(t.Context(), call, &callLimits{idle: time.Minute, most: 10 * time.Minute})
				var f *tool.Failure
				if !errors.As(a.err, &f) || f.Class != tool.ClassTimeout || !strings.Contains(f.Message, c.says) {
					t.Errorf("answer %+v", a)
				}
				if took := time.Since(began) - settleWithin; took != c.ends { // the server does not answer the cancellation
					t.Errorf("ended after %s, want %s", took, c.ends)
				}
				if (reports > 0) != (name == "slow progress") {
					t.Errorf("%d reports", reports)
				}
				synctest.Wait()
				<-w.out
				if got := string(<-w.out); got != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"timeout"}}` {
					t.Errorf("sent %s", got)
				}
			})
		})
	}
}

// TestNothingComesAfterTheAnswer checks that a call is told nothing once it is answered, or nobody waits for it, and that
// its first answer counts.
func TestNothingComesAfterTheAnswer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*pendingRequest){
		"answered": func(c *pendingRequest) { c.finish(response{result: json.RawMessage("{}")}) },
		"muted":    (*pendingRequest).mute,
	} {
		c, said := newLaneCall(1, &tool.Request{Method: tool.MethodToolsCall}, nil), ""
		c.Progress = func(p tool.Progress) { said += string(p.Params) }
		c.Notify = func(n tool.Notification) { said += n.Method }
		tell := func() {
			c.report(json.RawMessage("1"), new(secret.Redactor))
			c.remark(tool.Notification{Method: "2"})
		}
		tell()
		end(c)
		tell()
		c.finish(response{err: transport.ErrClosed})
		if done := c.take().done; said != "12" || (done.err != nil) != (name == "muted") {
			t.Errorf("%s: told %q, answer %+v", name, said, done)
		}
	}
}

// TestSilenceAtDiscovery: a server that does not answer server/discover is asked initialize, and a late answer is nobody's.
func TestSilenceAtDiscovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryWire()
		c := testServer().connector
		c.cfg.Timeouts.Connect = time.Minute
		sess := newSession(c.entry, nil)
		conn := newStreamConn(sess, w)
		defer conn.release()
		began := time.Now()
		go func() {
			if got := string(<-w.out); !strings.Contains(got, `"id":1,"method":"server/discover"`) {
				t.Errorf("sent %s", got)
			}
			got := string(<-w.out)
			if !strings.Contains(got, `"id":2,"method":"initialize"`) || time.Since(began) != maxProbeTime {
				t.Errorf("sent %s after %s", got, time.Since(began))
			}
			w.in <- []byte(`{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}`)
			w.in <- []byte(`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{"x":{}}}}`)
		}()
		if a := c.handshake(t.Context(), sess, false); a.err != nil {
			t.Fatal(a.err)
		}
		if got := string(<-w.out); got != `{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}` {
			t.Errorf("sent %s", got)
		}
		if sess.version != "2025-06-18" || !sess.undiscovered || sess.hop != nil || string(sess.declared) != `{"x":{}}` {
			t.Errorf("session of version %q, %s", sess.version, sess.declared)
		}
	})
}

// TestDroppedCallDoesNotReachAServerOverHTTP: a call that is dropped before its request is written is not received whole, and
// says nothing about the server.
func TestDroppedCallDoesNotReachAServerOverHTTP(t *testing.T) {
	t.Parallel()
	for _, drops := range []bool{false, true} {
		var received atomic.Int32
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err == nil {
				received.Add(1)
			}
		}))
		u, err := url.Parse(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		c := newLaneCall(1, &tool.Request{Method: tool.MethodToolsCall}, json.RawMessage("{}"))
		sess := testSession()
		l := newHTTPLane(t.Context(), sess, &transport.HTTP{URL: u, Pool: srv.Client().Transport.(*http.Transport)})
		if drops && c.drop() {
			t.Error("the call counts as sent")
		}
		l.send(t.Context(), c)
		<-c.ready
		l.server.Flights.Wait()
		srv.Close()
		if len(sess.suspect) > 0 {
			t.Error("the server is suspected")
		}
		if got := received.Load() == 1; got == drops || c.sent() == drops {
			t.Errorf("dropped: %v, received: %v, counts as sent: %v", drops, got, c.sent())
		}
	}
}

func TestMessagesGoWhereTheyBelong(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":{"a":1}}`:                                                     "call",
		`{"jsonrpc":"2.0","id":8,"result":{"a":1}}`:                                                     "nobody",
		`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":7,"result":{}}]`:                   "call",
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`:                                 "changed",
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`:                  "noise",
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`: "nobody",
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7`:                "noise",
		`{"jsonrpc":"2.0","id":5,"method":"ping"}`:                                                      "answered",
		`{"jsonrpc":"2.0","id":"7","result":{"a":1}}`:                                                   "call",
		`{"jsonrpc":"2.0","id":7.5,"result":{"a":1}}`:                                                   "nobody",
		`{"jsonrpc":"2.0","id":5,"method":"x/y"}`:                                                       "answered",
		`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`:                                                "noise",
		`{"jsonrpc":"1.0","id":1,"result":{}}`:                                                          "noise",
		`{"level":"info","msg":"listening"}`:                                                            "noise",
		`{"jsonrpc":"2.0","id":1,"result":`:                                                             "noise",
		`Server listening on stdio`:                                                                     "noise",
		`[1,2`:                                                                                          "noise",
		`null`:                                                                                          "noise",
		`{"jsonrpc":"2.0","\u0069d":7,"result":{}}`:                                                     "call",
		`{"jsonrpc":"2.0","id":7,"error":{"code":1.5,"message":"x"}}`:                                   "call",
		`{"jsonrpc":"2.0","error":{"code":-32700,"message":"parse error"},"id":null}`:                   "call",
	} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			w := newMemoryWire()
			var got []string
			conn := testConn(w)
			call := newLaneCall(7, &tool.Request{Method: tool.MethodToolsCall}, json.RawMessage("{}"))
			conn.send(t.Context(), call)
			w.in <- []byte(in)
			close(w.in)
			<-conn.ended
			if len(conn.sess.changed[lists.ToolKind]) > 0 {
				got = append(got, "changed")
			}
			if len(w.out) > 1 { // the call is the first
				got = append(got, "answered")
			}
			if done := call.take().done; done != nil && !failedAtEnd(*done) {
				got = append(got, "call")
			}
			if conn.sess.noise.Load() > 0 {
				got = append(got, "noise")
			}
			if len(got) == 0 {
				got = []string{"nobody"}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("went to %v, want %s", got, want)
			}
		})
	}
}

func failedAtEnd(a response) bool {
	var f *tool.Failure
	return errors.As(a.err, &f) && f.Code == "connection_lost"
}

// FuzzStdout feeds what a child may write to its stdout. Nothing may panic or hang, and a call gets valid JSON or an
// error.
func FuzzStdout(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{"a":1}}` + "\n",
		"noise\n\n{}\r\n[{\"jsonrpc\":\"2.0\",\"id\":\"toolhub-7\",\"result\":{}}]\n",
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}` + "\n",
		`{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"","data":null}}`,
		"[[[[\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":\"toolhub-7\",\"result\":{\"\\u0000\":\"\xff\"}}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, out := io.Pipe()
		w := transport.NewLines(out, io.NopCloser(bytes.NewReader(data)), 256, nil)
		go func() { _, _ = io.Copy(io.Discard, in) }()
		conn := testConn(w)
		call := newLaneCall(7, &tool.Request{Method: tool.MethodToolsCall}, json.RawMessage("{}"))
		var reports []json.RawMessage
		call.Progress = func(p tool.Progress) { reports = append(reports, p.Params) }
		conn.send(t.Context(), call)
		<-conn.ended
		conn.release()
		done := call.take().done
		if done == nil {
			t.Fatal("the call was not finished")
		}
		for _, r := range append(reports, done.result) {
			if r != nil && (!json.Valid(r) || bytes.ContainsAny(r, "\n\r") && done.err == nil && bytes.Equal(r, done.result)) {
				t.Fatalf("a client would get %q", r)
			}
		}
		if (done.result == nil) == (done.err == nil) {
			t.Fatalf("answer %+v", done)
		}
	})
}

// FuzzParams splices generated parts into params: the parts survive byte for byte, and the whole is valid.
func FuzzParams(f *testing.F) {
	f.Add(`{"name":"x","zz":[1.50],"_meta":{"progressToken":1}}`, `{"a":1e400,"b":"\u00e9"}`, `{"k":"<>"}`)
	f.Add(`{}`, `{}`, ``)
	f.Add(`{"name":1,"name":2,"\u006eame":3}`, `{ }`, `{ }`)
	f.Fuzz(func(t *testing.T, params, arguments, meta string) {
		if !rawjson.Valid([]byte(arguments)) || !rawjson.IsObject([]byte(arguments)) || !rawjson.Valid([]byte(params)) || !rawjson.IsObject([]byte(params)) {
			return
		}
		if meta != "" && (!rawjson.Valid([]byte(meta)) || !rawjson.IsObject([]byte(meta))) {
			return
		}
		arguments = strings.TrimSpace(arguments)
		for _, h := range []*hop.Hop{nil, {Version: hop.Modern, Client: hop.ClientInfo("1")}} {
			x := &tool.Execution{Tool: &tool.Tool{Native: "n<\"é"}, Params: json.RawMessage(params),
				Arguments: json.RawMessage(arguments), Meta: json.RawMessage(meta)}
			got, err := h.CallParams(x, 1)
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(got) {
				t.Fatalf("not valid: %s", got)
			}
			if a, _ := rawjson.Get(got, "arguments"); string(a) != arguments {
				t.Fatalf("arguments %s, want %s", a, arguments)
			}
			name, _ := rawjson.Get(got, "name")
			if n, _ := rawjson.String(name); n != "n<\"é" {
				t.Fatalf("name %s", name)
			}
			m, _ := rawjson.Get(got, "_meta")
			if token, _ := rawjson.Get(m, "progressToken"); string(token) != "1" {
				t.Fatalf("_meta %s", m)
			}
			_ = rawjson.Members([]byte(params), func(one rawjson.Member) bool {
				if !one.Is("name") && !one.Is("arguments") && !one.Is("_meta") && !bytes.Contains(got, one.Value) {
					t.Fatalf("lost %s", one.Value)
				}
				return true
			})
		}
	})
}

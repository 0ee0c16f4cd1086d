package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// onCall makes an Intercept that answers tools/call with f.
func onCall(f func(w http.ResponseWriter, r *http.Request)) func(http.ResponseWriter, *http.Request, []byte) bool {
	return func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if !strings.Contains(string(body), `"method":"tools/call"`) {
			return false
		}
		f(w, r)
		return true
	}
}

func status(code int, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte("<html>no</html>"))
	}
}

func TestHTTPAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f       func(http.ResponseWriter, *http.Request)
		class   tool.ErrorClass
		unknown bool
		retry   time.Duration
		message string
	}{
		"429":   {status(429, "Retry-After", "17"), tool.ClassRateLimited, false, 17 * time.Second, "17s"},
		"403":   {status(403), tool.ClassCredentialMissing, false, 0, "403"},
		"413":   {status(413), tool.ClassInvalidArguments, false, 0, "send less"},
		"500":   {status(500), tool.ClassDependencyUnavailable, true, 0, "HTTP 500"},
		"502":   {status(502), tool.ClassDependencyUnavailable, true, 0, "HTTP 502"},
		"503":   {status(503, "Retry-After", "2"), tool.ClassDependencyUnavailable, true, 2 * time.Second, "HTTP 503"},
		"html":  {status(200, "Content-Type", "text/html"), tool.ClassDependencyUnavailable, true, 0, `"text/html"`},
		"202":   {status(202), tool.ClassDependencyUnavailable, true, 0, "content type"},
		"empty": {status(200, "Content-Type", "application/json"), tool.ClassExecutionFailed, true, 0, "no JSON-RPC response"},
		"reset": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, tool.ClassDependencyUnavailable, true, 0, "may have taken effect"},
		"short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"jsonrpc":`))
		}, tool.ClassDependencyUnavailable, true, 0, "may have taken effect"},
		"stream ends": {status(200, "Content-Type", "text/event-stream"), tool.ClassDependencyUnavailable, true, 0, "may have taken effect"},
		"wrong id": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":999,"result":{}}`))
		}, tool.ClassExecutionFailed, true, 0, "another request"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://other.example/mcp?token=canary", http.StatusTemporaryRedirect)
		}, tool.ClassDependencyUnavailable, false, 0, "redirects to http://other.example/mcp:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: onCall(c.f)})
			h := start(t, cfg)
			h.ready(t, "s")
			_, err := h.call(t.Context(), "s", "echo", `{}`)
			f := failure(t, err)
			if f.Class != c.class || f.OutcomeUnknown != c.unknown || f.RetryAfter != c.retry || !strings.Contains(f.Message, c.message) ||
				strings.Contains(f.Message, "canary") {
				t.Errorf("failure %+v", f)
			}
			if st := h.ready(t, "s"); st.Restarts != 0 {
				t.Errorf("one bad answer restarted the server: %+v", st)
			}
		})
	}
}

// TestErrorBodyWithStatus checks that a JSON-RPC error is passed on whatever its HTTP status.
func TestErrorBodyWithStatus(t *testing.T) {
	t.Parallel()
	for _, code := range []int{400, 404, 500} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			cfg, _ := overHTTP(t, "s", upstreamtest.Options{
				Script: upstreamtest.Script{Modern: true},
				Intercept: onCall(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(code)
					_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"header"}}`))
				}),
			})
			h := start(t, cfg)
			h.ready(t, "s")
			_, err := h.call(t.Context(), "s", "echo", `{}`)
			if rpc, ok := err.(*tool.RPCError); !ok || rpc.Code != tool.CodeHeaderMismatch {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestForgottenSession(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{"404": 404, "400 with a JSON-RPC error": 400} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var forgotten atomic.Bool
			cfg, handler := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
				if !forgotten.Load() || r.Header.Get("Mcp-Session-Id") != "session-1" {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`))
				return true
			}})
			h := start(t, cfg)
			h.ready(t, "s")
			forgotten.Store(true)
			handler.Forget()
			var calls sync.WaitGroup
			for range 10 {
				calls.Go(func() {
					reply, err := h.call(t.Context(), "s", "raw", `{"result":{"a":1}}`)
					if err != nil || string(reply.Result) != `{"a":1}` || reply.Mapping.SessionID != "session-2" {
						t.Errorf("reply %+v, %v", reply, err)
					}
				})
			}
			calls.Wait()
		})
	}
}

// TestForgetfulServer checks that a server which forgets every session does not cause a storm.
func TestForgetfulServer(t *testing.T) {
	t.Parallel()
	cfg, handler := overHTTP(t, "s", upstreamtest.Options{Intercept: onCall(status(404))})
	h := start(t, cfg)
	h.ready(t, "s")
	_, err := h.call(t.Context(), "s", "echo", `{}`)
	if f := failure(t, err); f.Class != tool.ClassDependencyUnavailable || f.OutcomeUnknown {
		t.Errorf("failure %+v", f)
	}
	calls := 0
	for _, r := range handler.Requests() {
		if strings.Contains(string(r.Body), "tools/call") {
			calls++
		}
	}
	if calls > 2 {
		t.Errorf("the call was sent %d times, want at most 2", calls)
	}
}

func TestPlain400IsNoLostSession(t *testing.T) {
	t.Parallel()
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: onCall(status(400))})
	h := start(t, cfg)
	h.ready(t, "s")
	_, err := h.call(t.Context(), "s", "echo", `{}`)
	if f := failure(t, err); f.Code != "http_400" {
		t.Errorf("failure %+v", f)
	}
	if st := h.ready(t, "s"); st.Restarts != 0 {
		t.Errorf("status %+v", st)
	}
}

func TestNeedsAuth(t *testing.T) {
	t.Parallel()
	for _, code := range []int{401, 403} {
		for name, sse := range map[string]bool{"http": false, "sse": true} {
			t.Run(fmt.Sprint(name, code), func(t *testing.T) {
				t.Parallel()
				cfg, handler := overHTTP(t, "s", upstreamtest.Options{SSE: sse, Intercept: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
					status(code)(w, r)
					return true
				}})
				cfg.Headers = map[string]string{"Authorization": "Bearer canary-token"}
				h := start(t, cfg)
				st := h.reaches(t, "s", tool.ServerNeedsAuth)
				if !strings.Contains(st.LastError, "refused the credentials") || !strings.Contains(st.Hint, "headers") || st.NextTry != nil {
					t.Errorf("status %+v", st)
				}
				_, err := h.call(t.Context(), "s", "echo", `{}`)
				if f := failure(t, err); f.Class != tool.ClassCredentialMissing {
					t.Errorf("failure %+v", f)
				}
				if n := len(handler.Requests()); n > 4 {
					t.Errorf("%d requests after the refusal", n)
				}
				if strings.Contains(h.log.String(), "canary") {
					t.Error("the log holds the token")
				}
			})
		}
	}
}

func TestCredentialsRunOut(t *testing.T) {
	t.Parallel()
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: onCall(status(401))})
	h := start(t, cfg)
	h.ready(t, "s")
	_, err := h.call(t.Context(), "s", "echo", `{}`)
	if f := failure(t, err); f.Class != tool.ClassSetupRequired || f.OutcomeUnknown {
		t.Errorf("failure %+v", f)
	}
	h.reaches(t, "s", tool.ServerNeedsAuth)
}

// A server that answers initialize with what cannot be used is told so, and not that it has gone, which it does next.
func TestAnswerThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	wrong := func(over upstreamtest.Options) upstream.ServerConfig {
		over.Intercept = upstreamtest.WrongVersion.Intercept()
		cfg, _ := overHTTP(t, "s", over)
		return cfg
	}
	answers := func(result string) upstream.ServerConfig {
		return upstream.ServerConfig{ID: "s", Transport: upstream.Stdio, Command: "/bin/sh", Args: []string{"-c", `read line
			echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}'
			read line
			echo '{"jsonrpc":"2.0","id":2,"result":` + result + `}'
			while read line; do :; done`}}
	}
	for name, c := range map[string]struct {
		cfg  upstream.ServerConfig
		what string
	}{
		"stdio":      {answers(`{"protocolVersion":"1999-12-31","capabilities":{},"serverInfo":{"name":"a","version":"1"}}`), `unsupported protocol version: "1999-12-31"`},
		"no version": {answers(`{"capabilities":{},"serverInfo":{"name":"a","version":"1"}}`), `unsupported protocol version: ""`},
		"http":       {wrong(upstreamtest.Options{}), `unsupported protocol version: "1999-12-31"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{c.cfg}, RetryMin: time.Minute})
			st := h.reaches(t, "s", tool.ServerBackoff)
			if !strings.Contains(st.LastError, "the answer to initialize cannot be used: ") || !strings.Contains(st.LastError, c.what) ||
				!strings.Contains(st.Hint, "between 2024-11-05 and 2026-07-28") {
				t.Errorf("error %q, hint %q", st.LastError, st.Hint)
			}
		})
	}
}

// What a server answers to the end of a session does not hide why that failed.
func TestServerThatFailsOnceInitialized(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 1)
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		switch {
		case strings.Contains(string(body), "notifications/initialized"):
			w.WriteHeader(http.StatusInternalServerError)
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusOK)
			select {
			case ended <- struct{}{}:
			default:
			}
		default:
			return false
		}
		return true
	}})
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, RetryMin: time.Minute})
	st := h.reaches(t, "s", tool.ServerBackoff)
	if !strings.Contains(st.LastError, "failed (HTTP 500)") || st.Hint != "see the server's own log" {
		t.Errorf("error %q, hint %q", st.LastError, st.Hint)
	}
	<-ended
}

func TestConnectFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f          func(http.ResponseWriter, *http.Request)
		what, hint string
	}{
		"404":  {status(404), "no MCP endpoint (HTTP 404)", "type: sse"},
		"500":  {status(500), "failed (HTTP 500)", "log"},
		"429":  {status(429, "Retry-After", "100"), "limits requests", "wait"},
		"400":  {status(400), "refused the request (HTTP 400)", "check url"},
		"html": {status(200, "Content-Type", "text/html"), `answered with content type "text/html"`, "MCP endpoint"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://a.example/b?k=canary", http.StatusTemporaryRedirect)
		}, "redirects to https://a.example/b", "set it as url"},
		"get": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusFound)
		}, "/other", "set it as url"},
		"hang": {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer to initialize within 3s", "raise timeout of"},
		"down": {nil, "connection refused", "server runs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				c.f(w, r)
				return true
			}})
			if c.f == nil {
				cfg.URL = "http://127.0.0.1:1/mcp" // nobody is given that port by chance
			}
			cfg.URL += "?apikey=canary-in-query"
			if name == "hang" {
				cfg.Timeouts.Connect = 3 * time.Second
			}
			h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, RetryMin: time.Minute})
			st := h.reaches(t, "s", tool.ServerBackoff)
			if !strings.Contains(st.LastError, c.what) || !strings.Contains(st.Hint, c.hint) {
				t.Errorf("error %q, hint %q", st.LastError, st.Hint)
			}
			if strings.Contains(st.LastError+st.Hint+h.log.String(), "canary") {
				t.Errorf("a secret is shown: %q %s", st.LastError, h.log)
			}
			if name == "429" && time.Until(*st.NextTry) < 90*time.Second {
				t.Errorf("tried again at %s although the server asked for 100 s", st.NextTry)
			}
		})
	}
}

func TestServerThatComesBack(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		return false
	}})
	h := start(t, cfg)
	h.ready(t, "s")
	down.Store(true)
	_, err := h.call(t.Context(), "s", "echo", `{}`)
	failure(t, err)
	h.reaches(t, "s", tool.ServerBackoff)
	down.Store(false)
	h.ready(t, "s")
	h.mustCall(t, "s", "echo", `{}`)
}

// TestHeadersStayHome checks that the server's headers reach it with every request, and nobody else.
func TestHeadersStayHome(t *testing.T) {
	t.Parallel()
	var strangers atomic.Int32
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		strangers.Add(1)
	}))
	defer stranger.Close()
	for _, sse := range []bool{false, true} {
		var redirect atomic.Bool
		cfg, handler := overHTTP(t, "s", upstreamtest.Options{SSE: sse, Intercept: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if redirect.Load() {
				http.Redirect(w, r, stranger.URL, http.StatusTemporaryRedirect)
			}
			return redirect.Load()
		}})
		cfg.Headers = map[string]string{"Authorization": "Bearer canary-abc", "X-Api-Key": "canary-def"}
		h := start(t, cfg)
		h.ready(t, "s")
		h.mustCall(t, "s", "echo", `{}`)
		for _, r := range handler.Requests() {
			if r.Header.Get("Authorization") != "Bearer canary-abc" || r.Header.Get("X-Api-Key") != "canary-def" {
				t.Errorf("%s without the headers", r.Method)
			}
		}
		redirect.Store(true)
		_, err := h.call(t.Context(), "s", "echo", `{}`)
		failure(t, err)
		if strings.Contains(h.log.String()+err.Error(), "canary") {
			t.Error("a header is shown")
		}
	}
	if n := strangers.Load(); n != 0 {
		t.Errorf("another host got %d requests", n)
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

func TestSSEEndpointElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{SSE: true, Intercept: func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("event: endpoint\ndata: http://other.example/steal\n\n"))
		return true
	}})
	h := start(t, cfg)
	if st := h.reaches(t, "s", tool.ServerBackoff); !strings.Contains(st.LastError, "another origin") {
		t.Errorf("status %+v", st)
	}
}

func TestHeadersOfModernCalls(t *testing.T) {
	t.Parallel()
	declaration := `{"name":"routed","inputSchema":{"type":"object","properties":{` +
		`"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},` +
		`"deep":{"type":"object","properties":{"flag":{"type":"boolean","x-mcp-header":"Flag"}}},"plain":{"type":"string"}}}}`
	cfg, handler := overHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Modern: true, Tools: []json.RawMessage{json.RawMessage(declaration)}}})
	h := start(t, cfg)
	h.ready(t, "s")
	h.mustCall(t, "s", "routed", `{"region":"Zürich","n":1.0,"deep":{"flag":true},"plain":"p"}`)
	var last http.Header // what was asked last, but for streams that the hub listens on
	for _, r := range handler.Requests() {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			last = r.Header
		}
	}
	for name, want := range map[string]string{
		"Mcp-Name": "routed", "Mcp-Param-Region": "=?base64?WsO8cmljaA==?=", "Mcp-Param-N": "1",
		"Mcp-Param-Flag": "true", "Mcp-Param-Plain": "", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Session-Id": "",
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
	} {
		if got := last.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestServerAsksDuringCall checks that a server's own requests on a call's stream are answered.
func TestServerAsksDuringCall(t *testing.T) {
	t.Parallel()
	answers := make(chan string, 2)
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if strings.Contains(string(body), `"id":"srv`) {
			answers <- string(body)
			w.WriteHeader(http.StatusAccepted)
			return true
		}
		if !strings.Contains(string(body), "tools/call") {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"jsonrpc\":\"2.0\",\"id\":\"srv1\",\"method\":\"ping\"}\n\n" +
			"data: {\"jsonrpc\":\"2.0\",\"id\":\"srv2\",\"method\":\"elicitation/create\",\"params\":{}}\n\n"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}})
	h := start(t, cfg)
	h.ready(t, "s")
	go func() { _, _ = h.call(t.Context(), "s", "echo", `{}`) }()
	got := map[string]bool{<-answers: true, <-answers: true}
	for _, want := range []string{
		`{"jsonrpc":"2.0","id":"srv1","result":{}}`,
		`{"jsonrpc":"2.0","id":"srv2","error":{"code":-32601,"message":"method not found: the client behind this call cannot be asked"}}`,
	} {
		if !got[want] {
			t.Errorf("answers %v lack %s", got, want)
		}
	}
}

// TestListeningStreamIsOpenedAgain checks that a listening stream that is cut costs neither the session nor a change.
func TestListeningStreamIsOpenedAgain(t *testing.T) {
	t.Parallel()
	for name, modern := range map[string]bool{"2025": false, "2026": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cuts atomic.Int32
			var handler *upstreamtest.Handler
			cfg, handler := overHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Modern: modern},
				Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
					listening := r.Method == http.MethodGet || strings.Contains(string(body), "subscriptions/listen")
					if !listening || cuts.Add(1) > 1 {
						return false
					}
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = w.Write([]byte(": bye\n\n"))
					return true
				}})
			h := start(t, cfg)
			h.ready(t, "s")
			handler.AddTool(upstreamtest.Tool("missed"))
			eventually(t, "the change that was missed is seen", func() bool { return strings.HasSuffix(h.names("s"), "missed") })
			if st := h.status("s"); st.Restarts != 0 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

func TestCloseFailsCallsInFlight(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			done := make(chan error, 1)
			go func() {
				_, err := h.call(t.Context(), "s", "hang", `{}`)
				done <- err
			}()
			h.of("s").reach(t, "hang", 1)
			if err := h.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if f := failure(t, <-done); f.Class != tool.ClassDependencyUnavailable {
				t.Errorf("failure %+v", f)
			}
		})
	}
}

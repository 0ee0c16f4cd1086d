package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestSessionLostInOtherWords: a session is over when the server says so, whatever its words; the calls that found it
// out run over the next one.
func TestSessionLostInOtherWords(t *testing.T) {
	t.Parallel()
	rpc := func(message string) string {
		return `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"` + message + `"}}`
	}
	for name, c := range map[string]struct {
		status int
		media  string
		body   string
	}{
		"200":               {200, "application/json", rpc("Session not found")},
		"200 in a stream":   {200, "text/event-stream", "data: " + rpc("Unknown session id") + "\n\n"},
		"200 not there yet": {200, "application/json", rpc("Server not initialized")},
		"401":               {401, "application/json", `{"error":"invalid_token"}`},
		"403":               {403, "text/plain", "who is that?"},
		"409":               {409, "text/plain", ""},
		"410":               {410, "", ""},
		"422":               {422, "text/plain", "no"},
		"500":               {500, "application/json", `{"error":"status code 400: session expired"}`},
		"503":               {503, "text/plain", "session unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var forgotten atomic.Bool
			cfg, handler := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
				if !forgotten.Load() || r.Header.Get("Mcp-Session-Id") != "session-1" {
					return false
				}
				var m struct{ ID json.RawMessage }
				_ = json.Unmarshal(body, &m)
				w.Header().Set("Content-Type", c.media)
				w.WriteHeader(c.status)
				fmt.Fprint(w, strings.ReplaceAll(c.body, "$ID", string(m.ID)))
				return true
			}})
			cfg.Headers = map[string]string{"Authorization": "Bearer K"}
			h := start(t, cfg)
			h.ready(t, "s")
			h.mustCall(t, "s", "echo", `{}`)
			forgotten.Store(true)
			handler.Forget()
			var calls sync.WaitGroup
			for range 10 {
				calls.Go(func() {
					if reply, err := h.call(t.Context(), "s", "raw", `{"result":{"a":1}}`); err != nil || string(reply.Result) != `{"a":1}` {
						t.Errorf("reply %+v, %v", reply, err)
					}
				})
			}
			calls.Wait()
		})
	}
}

// TestRefusalsThatOnlySeemToLoseASession: a server that answers a ping still knows the session.
func TestRefusalsThatOnlySeemToLoseASession(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(http.ResponseWriter, *http.Request){
		"403": status(403), "410": status(410), "500": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the browser session not found", 500)
		}, "200": func(w http.ResponseWriter, _ *http.Request) {
			answerRPC(w, 200, -32000, "the shell has no such session")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: onCall(f)})
			h := start(t, cfg)
			h.ready(t, "s")
			if _, err := h.call(t.Context(), "s", "echo", `{}`); err == nil {
				t.Error("the call has no error")
			}
			if st := h.ready(t, "s"); st.Restarts != 0 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// TestForgottenSessionKeepsTheSignIn: HTTP 401 for a session that the server has forgotten costs no token.
func TestForgottenSessionKeepsTheSignIn(t *testing.T) {
	t.Parallel()
	var forgotten atomic.Bool
	g := signedIn(t, upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if !forgotten.Load() || r.Header.Get("Mcp-Session-Id") != "session-1" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}})
	g.mustCall(t, "s", "echo", `{}`)
	forgotten.Store(true)
	g.fake.Forget()
	g.mustCall(t, "s", "echo", `{}`)
	if n := len(g.auth.Requests("/token")); n != 1 {
		t.Errorf("%d requests for a token", n)
	}
	restarts := g.status("s").Restarts
	g.auth.Expire() // now it is the token: the session goes on
	g.mustCall(t, "s", "echo", `{}`)
	if st := g.status("s"); st.Restarts != restarts || len(g.auth.Requests("/token")) != 2 {
		t.Errorf("%d requests for a token, %+v", len(g.auth.Requests("/token")), st)
	}
	g.auth.Revoke()
	_, err := g.call(t.Context(), "s", "echo", `{}`)
	if f := failure(t, err); f.Class != tool.ClassSetupRequired {
		t.Errorf("failure %+v", f)
	}
	g.reaches(t, "s", tool.ServerNeedsAuth)
}

package downstream

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// A caller that begins one session after the other loses its own ones, the longest idle first. Nobody else is kept out.
func TestOneCallerLocksNobodyOut(t *testing.T) {
	t.Parallel()
	ann, bob := []string{"Authorization", "Bearer secret-of-ann-0123"},
		[]string{"Authorization", "Bearer secret-of-bob-0123"}
	s := newServer(t, Config{HTTP: HTTPConfig{MaxSessions: 5},
		Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: ann[1][7:]}, {Name: "bob", Secret: bob[1][7:]}}}},
		&far{ended: t.TempDir()})
	url := serve(t, s) + "/mcp"
	alive := func(id string, as []string) bool {
		t.Helper()
		status, _, got := post(t, url, ping, append(as, headerSession, id)...)
		if status != http.StatusOK && status != http.StatusNotFound {
			t.Fatalf("ping: %d %v", status, got)
		}
		return status == http.StatusOK
	}
	early := open(t, url, "2025-11-25", bob...)
	var greedy []string
	for range 4 {
		greedy = append(greedy, open(t, url, "2025-11-25", ann...))
	}
	if !alive(greedy[0], ann) { // so that the second is idle for longest
		t.Error("a session ends before there are too many")
	}
	late := open(t, url, "2025-11-25", bob...)
	if alive(greedy[1], ann) {
		t.Error("another session than the one that was idle for longest has made room")
	}
	for range 50 {
		greedy = append(greedy, open(t, url, "2025-11-25", ann...))
	}
	if !alive(early, bob) || !alive(late, bob) {
		t.Error("the sessions of one caller make room for those of another one who has more")
	}
	if !alive(greedy[len(greedy)-1], ann) || alive(greedy[0], ann) {
		t.Error("a caller with more sessions than its share does not lose the oldest")
	}
	if n := s.sessions.count(); n != 5 {
		t.Errorf("%d sessions", n)
	}
}

// Calls that do not end keep nobody out either, but for their own caller.
func TestBusySessionsLockNobodyOut(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string, 10), make(chan error, 10)
	ann, bob := []string{"Authorization", "Bearer secret-of-ann-0123"},
		[]string{"Authorization", "Bearer secret-of-bob-0123"}
	s := newServer(t, Config{HTTP: HTTPConfig{MaxSessions: 2},
		Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: ann[1][7:]}, {Name: "bob", Secret: bob[1][7:]}}}},
		&far{execute: blocking(began, ended)})
	url := serve(t, s) + "/mcp"
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	var calling sync.WaitGroup
	busy := func(as []string) {
		id := open(t, url, "2025-11-25", as...)
		calling.Go(func() {
			post(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.slow"}}`,
				append(as, headerSession, id)...)
		})
		<-began
	}
	busy(ann)
	busy(ann)
	status, h, got := post(t, url, fmt.Sprintf(initialize, "2025-11-25"), ann...)
	if status != http.StatusServiceUnavailable || h.Get("Retry-After") == "" ||
		!strings.Contains(got[0], "hub.http.max_sessions") {
		t.Errorf("ann again: %d %v", status, got)
	}
	busy(bob)
	<-ended // one of ann's
	if status, _, got := post(t, url, fmt.Sprintf(initialize, "2025-11-25"),
		ann...); status != http.StatusServiceUnavailable {
		t.Errorf("ann, who has as many as bob: %d %v", status, got)
	}
	if status, got := modernCall(t, url, "1", "nope", "", ann...); status != 400 {
		t.Errorf("a client without session: %d %v", status, got)
	}
	if len(ended) != 0 {
		t.Error("more calls than one have ended")
	}
	s.Drain(cut)
	calling.Wait()
}

// Where nobody signs in, each address that requests come from has a share.
func TestOneAddressLocksNobodyOut(t *testing.T) {
	t.Parallel()
	handler := newServer(t, Config{HTTP: HTTPConfig{MaxSessions: 3}}, &far{}).Handler()
	from := func(address, body, id string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp",
			strings.NewReader(body))
		r.RemoteAddr = address
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if id != "" {
			r.Header.Set(headerSession, id)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Header().Get(headerSession)
	}
	begin := fmt.Sprintf(initialize, "2025-11-25")
	status, quiet := from("127.0.0.2:1", begin, "")
	if status != http.StatusOK {
		t.Fatalf("initialize: %d", status)
	}
	for port := range 50 {
		if status, _ := from(fmt.Sprintf("127.0.0.1:%d", port+1), begin, ""); status != http.StatusOK {
			t.Fatalf("initialize: %d", status)
		}
	}
	if status, _ := from("127.0.0.2:2", ping, quiet); status != http.StatusOK {
		t.Errorf("the other address: %d", status)
	}
}

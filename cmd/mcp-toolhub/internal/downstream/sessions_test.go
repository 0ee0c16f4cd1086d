package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// sessionsOf is a server over HTTP and stdio, and the session of each call that it has passed on.
func sessionsOf(t *testing.T, cfg Config) (*Server, <-chan tool.Session) {
	t.Helper()
	seen := make(chan tool.Session, 10)
	return newServer(t, cfg, &far{execute: func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		seen <- e.Session
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}}), seen
}

const callEcho = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"mcp.s.echo"}}`

// isOver waits for the end of a session.
func isOver(t *testing.T, s tool.Session) {
	t.Helper()
	select {
	case <-s.Ended:
	case <-time.After(time.Minute):
		t.Errorf("session %s has not ended", s.Name)
	}
}

func TestCallsBelongToSessions(t *testing.T) {
	t.Parallel()
	ann, bob := strings.Repeat("a", 16), strings.Repeat("b", 16)
	s, seen := sessionsOf(t, Config{Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: ann},
		{Name: "bob", Secret: bob}}}})
	url := serve(t, s) + "/mcp"
	as := func(secret string) []string { return []string{"Authorization", "Bearer " + secret} }
	legacy := func(secret, id string) tool.Session {
		t.Helper()
		if status, _, got := post(t, url, callEcho, append(as(secret), headerSession, id)...); status != 200 {
			t.Fatalf("call: %d %v", status, got)
		}
		return <-seen
	}
	modern := func(secret, path string) tool.Session {
		t.Helper()
		if status, got := modernCall(t, strings.TrimSuffix(url, "/mcp")+path, "1", "mcp.s.echo", "",
			as(secret)...); status != 200 {
			t.Fatalf("call: %d %v", status, got)
		}
		return <-seen
	}
	one, two := open(t, url, "2025-11-25", as(ann)...), open(t, url, "2025-06-18", as(ann)...)
	first, second, modernAnn, modernBob := legacy(ann, one), legacy(ann, two), modern(ann, "/mcp"), modern(bob, "/mcp")
	keys := map[string]bool{first.Key: true, second.Key: true, modernAnn.Key: true, modernBob.Key: true}
	if len(keys) != 4 {
		t.Errorf("four sessions have the keys %v", keys)
	}
	if again := legacy(ann, one); again.Key != first.Key || again.Ended != first.Ended {
		t.Errorf("session %+v was %+v", again, first)
	}
	if again := modern(ann, "/mcp/p/other"); again.Key != modernAnn.Key || again.Ended != nil {
		t.Errorf("caller %+v was %+v", again, modernAnn)
	}
	for _, session := range []tool.Session{first, second, modernAnn, modernBob} {
		if strings.Contains(session.Name, one) || strings.Contains(session.Name, two) ||
			strings.Contains(session.Name, ann) ||
			!strings.HasPrefix(session.Name, "http/") {
			t.Errorf("name %q", session.Name)
		}
	}
	if first.IsOver() {
		t.Error("the session is over before its end")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+ann)
	req.Header.Set(headerSession, one)
	resp, err := web().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	isOver(t, first)
	if second.IsOver() || modernAnn.IsOver() {
		t.Error("other sessions are over as well")
	}
	s.Drain(t.Context())
	isOver(t, second)
}

func TestStdioClientIsOneSession(t *testing.T) {
	t.Parallel()
	s, seen := sessionsOf(t, Config{})
	keys := map[string]bool{}
	for range 2 {
		w := dial(t, s)
		w.handshake("2025-11-25")
		w.send(callEcho)
		w.next()
		legacy := <-seen
		w.send(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"mcp.s.echo","_meta":{` + modernMeta +
			`}}}`)
		w.next()
		if modern := <-seen; modern.Key != legacy.Key || modern.Ended != legacy.Ended || legacy.IsOver() {
			t.Errorf("sessions %+v and %+v", legacy, modern)
		}
		keys[legacy.Key] = true
		if err := w.in.Close(); err != nil {
			t.Fatal(err)
		}
		isOver(t, legacy)
	}
	if len(keys) != 2 {
		t.Errorf("two clients have the keys %v", keys)
	}
}

func TestIdleSessionIsOver(t *testing.T) {
	t.Parallel()
	s, seen := sessionsOf(t, Config{HTTP: HTTPConfig{SessionIdle: 300 * time.Millisecond}})
	url := serve(t, s) + "/mcp"
	// on a busy machine it may have ended before its first call, or before it is initialized
	for status := 0; status != 200; {
		_, h, _ := post(t, url, fmt.Sprintf(initialize, "2025-11-25"))
		id := h.Get(headerSession)
		post(t, url, initialized, headerSession, id, headerVersion, "2025-11-25")
		status, _, _ = post(t, url, callEcho, headerSession, id)
	}
	isOver(t, <-seen)
}

// TestSessionsEndWhenIdle holds that a session ends when nobody has used it for the time that
// counts now, and not earlier.
func TestSessionsEndWhenIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &Server{}
		server.deps.Grants = &far{}
		table := &sessions{server: server}
		table.bound(10, 30*time.Minute)
		add := func() *httpSession {
			s := &httpSession{id: "a", caller: &caller{}, ended: make(chan struct{})}
			table.add(s)
			return s
		}
		s := add()
		after := func(d time.Duration, want bool) {
			t.Helper()
			time.Sleep(d) // virtual
			synctest.Wait()
			if (table.count() == 1) != want {
				t.Errorf("the session is there: %v", !want)
			}
		}
		after(20*time.Minute, true)
		table.use("a")
		after(45*time.Minute, true) // in use
		table.release(s)
		after(29*time.Minute, true)
		table.use("a")
		table.release(s)
		after(29*time.Minute, true)
		after(2*time.Minute, false)

		add()
		after(3*time.Minute, true)
		table.bound(10, 4*time.Minute)
		after(30*time.Second, true)
		after(time.Minute, false)
	})
}

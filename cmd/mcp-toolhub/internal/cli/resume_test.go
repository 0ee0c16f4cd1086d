//go:build e2e

package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
)

// kill ends the hub as kill -9 does.
func (p *permitted) kill() {
	p.t.Helper()
	_ = p.cmd.Process.Kill()
	<-p.read
	_ = p.cmd.Wait()
}

// standingOf opens the session's standing stream.
func standingOf(t *testing.T, w *wire) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	w.setHeaders(req)
	return w.listen(req)
}

// endSession ends the session as a client does.
func endSession(t *testing.T, w *wire) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, w.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.setHeaders(req)
	if got, err := httpDo(req); err != nil || !strings.HasPrefix(got, "204 ") {
		t.Fatalf("DELETE: %s, %v", got, err)
	}
}

// A hub that was killed goes on with the sessions of its clients: what the client said at its beginning counts, what a person
// allowed for the session does not. A session that its client ended stays gone.
func TestSessionsOutliveTheHub(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025June, rev2025} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := startPermitted(t, map[string]any{}, nil)
			w, gone := p.client(version).able().open(), p.client(version).able().open()
			if n := len(w.session); n > 2048 {
				t.Errorf("the session id has %d bytes", n)
			}
			x := &exchange{w: w, answer: answerWith("allow_session", "")}
			for range 2 {
				if got := x.call("mcp.s.echo", `{}`); !strings.Contains(got, `"status":"succeeded"`) || len(x.asked) != 1 {
					t.Errorf("before: asked %v, %s", x.asked, got)
				}
			}
			endSession(t, gone)
			p.kill()
			p.restart()
			w.url, gone.url = p.url+"/mcp", p.url+"/mcp"
			if got := await(t, standingOf(t, w)); !strings.Contains(got, "tools/list_changed") {
				t.Errorf("the first that it is told is %s", got)
			}
			if _, ok := w.tools()["mcp.s.echo"]; !ok {
				t.Error("the tools are not listed")
			}
			if got := x.call("mcp.s.echo", `{}`); !strings.Contains(got, `"status":"succeeded"`) || len(x.asked) != 2 {
				t.Errorf("after: asked %v, %s", x.asked, got)
			}
			if status, _, got := gone.post(gone.call("mcp.s.echo", `{}`, "")); status != http.StatusNotFound {
				t.Errorf("the session that was ended: %d %v", status, got)
			}
			if log := p.journal(); strings.Contains(log, w.session) {
				t.Error("the session id is in the records")
			}
		})
	}
}

// Two hubs with one key serve one session in turn; one with another key does not know it.
func TestReplicasShareSessions(t *testing.T) {
	t.Parallel()
	allow := map[string]any{"mode": "accept_all"}
	one, two, stranger := startPermitted(t, allow, nil), startPermitted(t, allow, nil), startPermitted(t, allow, nil)
	_ = two.stop()
	key, err := os.ReadFile(filepath.Join(one.state, hub.StateKey))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(two.state, hub.StateKey), key, 0o600); err != nil {
		t.Fatal(err)
	}
	two.restart()
	w := one.client(rev2025).open()
	for _, p := range []*permitted{one, two, one, two} {
		w.url = p.url + "/mcp"
		if got := w.result("mcp.s.echo", `{"text":"x"}`, ""); !strings.Contains(got, `"status":"succeeded"`) {
			t.Errorf("%s", got)
		}
	}
	w.url = stranger.url + "/mcp"
	if status, _, got := w.post(w.call("mcp.s.echo", `{}`, "")); status != http.StatusNotFound {
		t.Errorf("a hub with another key: %d %v", status, got)
	}
}

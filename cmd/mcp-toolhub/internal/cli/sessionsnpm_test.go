//go:build e2e

package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSessionsFromNPM: clients that never initialize a second time go on after the hub was killed and started again.
func TestSessionsFromNPM(t *testing.T) {
	t.Parallel()
	clients := npmClients(t)
	for kind, tool := range map[string]string{"sdk-1": "mcp.s.add", "sdk-2": "mcp.s.add", "langchain": "mcp__s__add"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := startPermittedWith(t, map[string]any{"command": "mcp-toolhub", "args": []string{"demo-server"}}, map[string]any{"mode": "accept_all"})
			restart := restarter(t, p)
			out, err := node(t, clients, "sessions.mjs", p.url+"/mcp", kind, restart.URL, tool)
			restart.Close()
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Answers, Sessions []string
				Changes           int
			}
			mustDecode(t, out, &got)
			for n, want := range []string{"41", "42", "43"} {
				if len(got.Answers) != 3 || !strings.Contains(got.Answers[n], want) {
					t.Errorf("the answers are %q", got.Answers)
				}
			}
			if len(got.Sessions) != 2 || got.Sessions[0] != got.Sessions[1] {
				t.Errorf("the sessions are %q", got.Sessions)
			}
			if kind != "langchain" && got.Changes == 0 {
				t.Error("it is told of no change")
			}
			if log := p.log(); !strings.Contains(log, "a session is taken up again") {
				t.Errorf("the log is\n%s", log)
			}
		})
	}
}

// restarter is a server: who posts there has the hub killed, and started again where it was.
func restarter(t *testing.T, p *permitted) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.kill()
		h, err := launch(p.dir, scratchEnv(p.dir), "--config", p.file, "--state-dir", p.state, "--http", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		p.runningHub = h
		p.cleanUp(h)
	}))
	t.Cleanup(server.Close)
	return server
}

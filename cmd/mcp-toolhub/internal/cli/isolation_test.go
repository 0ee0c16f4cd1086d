package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// The tokens of two people.
const annToken, bobToken = "the-token-of-ann-0123456789", "the-token-of-bob-9876543210"

// notes keeps text at the server and returns what it has kept.
func (w *wire) notes(server, text string) string {
	w.t.Helper()
	var far struct {
		StructuredContent struct{ Notes []string }
	}
	mustDecode(w.t, w.result("mcp."+server+".note", `{"text":"`+text+`"}`, ""), &far)
	return strings.Join(far.StructuredContent.Notes, " ")
}

// pids are the processes that serve the client.
func (w *wire) pids(server string) []int {
	w.t.Helper()
	var far struct {
		StructuredContent struct{ PIDs []int }
	}
	mustDecode(w.t, w.result("mcp."+server+".pids", `{}`, ""), &far)
	if len(far.StructuredContent.PIDs) == 0 {
		w.t.Fatal("no processes")
	}
	return far.StructuredContent.PIDs
}

// statusOf is what the hub tells ann of a server.
func (h *runningHub) statusOf(t *testing.T, id string) tool.ServerStatus {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/health/ready", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+annToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var health struct{ Servers []tool.ServerStatus }
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	mustDecode(t, string(body), &health)
	for _, st := range health.Servers {
		if st.Server == id {
			return st
		}
	}
	t.Fatalf("no server %s", id)
	return tool.ServerStatus{}
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, "the process is gone", func() bool { return !runs(pid) })
}

// TestIsolationOverStdio checks that the client on stdin is a session, and that nothing is left when it goes.
func TestIsolationOverStdio(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			script := upstreamtest.Script{Tools: append(upstreamtest.DefaultTools(), upstreamtest.Tool("note"))}
			w := wireHub(t, configText(t, map[string]any{"own": with(child(script), "isolation", "session")}, nil), version).open()
			w.ready("mcp.own.note")
			w.notes("own", "a")
			if got := w.notes("own", "b"); got != "a b" {
				t.Errorf("kept %q", got)
			}
			pid := w.pids("own")[0]
			if err := w.stdin.Close(); err != nil {
				t.Fatal(err)
			}
			waitGone(t, pid)
		})
	}
}

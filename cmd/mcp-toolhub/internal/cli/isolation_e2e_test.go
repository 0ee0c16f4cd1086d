//go:build e2e

package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// isolationHub is a hub with a server of its own for each session ("own"), and one for all ("all"), that hold notes. more
// are further keys of own's entry.
func isolationHub(t *testing.T, more map[string]any) *runningHub {
	t.Helper()
	script := upstreamtest.Script{Tools: append(upstreamtest.DefaultTools(), upstreamtest.Tool("note"), upstreamtest.Tool("wait"))}
	recorded := script
	recorded.Record = recordName
	own := with(child(recorded), "isolation", "session")
	for key, value := range more {
		own[key] = value
	}
	dir := t.TempDir()
	var tokens []any
	for name, token := range map[string]string{"ann": annToken, "bob": bobToken} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, map[string]any{"name": name, "token": "${file:" + file + "}"})
	}
	h := startHub(t, "hub.json", configText(t, map[string]any{"own": own, "all": child(script)},
		map[string]any{"hub": map[string]any{"auth": map[string]any{"tokens": tokens}}}))
	for _, id := range []string{"own", "all"} {
		eventually(t, "the tools are known", func() bool { return h.statusOf(t, id).Tools > 0 })
	}
	return h
}

// quit ends the client's session.
func (w *wire) quit() {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodDelete, w.url, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.setHeaders(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		w.t.Errorf("DELETE answered %s", resp.Status)
	}
}

// TestIsolationOfSessions drives an isolated server and a shared one by clients with sessions and without.
func TestIsolationOfSessions(t *testing.T) {
	t.Parallel()
	h := isolationHub(t, nil)
	one, two := h.person(t, rev2025, annToken), h.person(t, rev2025June, annToken)
	modernAnn, modernBob := h.person(t, rev2026, annToken), h.person(t, rev2026, bobToken)
	all := map[string]*wire{"one": one, "two": two, "ann": modernAnn, "bob": modernBob}
	for name, w := range all {
		w.notes("own", name+"-1")
		w.notes("all", name)
	}
	for name, w := range all {
		if got, want := w.notes("own", name+"-2"), name+"-1 "+name+"-2"; got != want {
			t.Errorf("%s has a server of its own and sees %q there, want %q", name, got, want)
		}
	}
	if again := h.person(t, rev2026, bobToken).notes("own", "bob-3"); again != "bob-1 bob-2 bob-3" {
		t.Errorf("the same caller without a session sees %q", again)
	}
	if got := one.notes("all", "x"); len(strings.Fields(got)) != 5 {
		t.Errorf("the shared server has kept %q", got)
	}
	if st := h.statusOf(t, "own"); st.Sessions != 4 || st.Isolation != "session" || st.LastError != "" {
		t.Errorf("status %+v", st)
	}
	if st := h.statusOf(t, "all"); st.Sessions != 0 || st.Isolation != "" {
		t.Errorf("status %+v", st)
	}
	seen := map[int]string{}
	for name, w := range all {
		pid := w.pids("own")[0]
		if seen[pid] != "" {
			t.Errorf("%s and %s are served by the same process", name, seen[pid])
		}
		seen[pid] = name
	}

	pid := one.pids("own")[0]
	one.quit()
	waitGone(t, pid)
	if got := two.notes("own", "two-3"); got != "two-1 two-2 two-3" {
		t.Errorf("after the end of another session two sees %q", got)
	}

	killed, other := modernAnn.pids("own")[0], two.pids("own")[0]
	process, err := os.FindProcess(killed)
	if err != nil {
		t.Fatal(err)
	}
	hanging := make(chan string, 1)
	in := h.person(t, rev2026, annToken)
	go func() { hanging <- in.result("mcp.own.hang", `{}`, "") }()
	eventually(t, "the call has come", func() bool { return h.received(`"name":"hang"`) == 1 }) // else it goes to the next process
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := await(t, hanging); !strings.Contains(got, `"error_class":"dependency_unavailable"`) {
		t.Errorf("the call in flight got %s", got)
	}
	if now := two.pids("own")[0]; now != other {
		t.Errorf("two is served by process %d, was %d", now, other)
	}
	if got := modernAnn.notes("own", "ann-3"); got != "ann-3" {
		t.Errorf("over the new connection ann sees %q", got)
	}
}

// recordName is the Record of a scripted server, in the hub's working directory.
const recordName = "received"

// received is how many messages that hold text have come to the scripted servers that record them under recordName. A call that
// is in flight in the hub need not have come to its server.
func (h *runningHub) received(text string) int {
	all, _ := os.ReadFile(filepath.Join(h.cmd.Dir, recordName)) // there is none before the first message
	return strings.Count(string(all), text)
}

// TestIsolationHasBounds checks how many connections there are at a time, and that one which is not used ends.
func TestIsolationHasBounds(t *testing.T) {
	t.Parallel()
	h := isolationHub(t, map[string]any{"max_sessions": 2, "idle_stop": "1s"})
	one, two, three := h.person(t, rev2025, annToken), h.person(t, rev2026, annToken), h.person(t, rev2026, bobToken)
	busy, end := make(chan string, 2), filepath.Join(t.TempDir(), "end")
	for _, w := range []*wire{one, two} {
		go func() { busy <- w.result("mcp.own.wait", `{"file":`+quoted(end)+`}`, "") }()
	}
	eventually(t, "two calls are in flight, each over a connection", func() bool {
		st := h.statusOf(t, "own")
		return st.InFlight == 2 && st.Sessions == 2
	})
	if got := three.result("mcp.own.note", `{"text":"x"}`, ""); !strings.Contains(got, `"error_class":"rate_limited"`) ||
		!strings.Contains(got, "max_sessions") {
		t.Errorf("a session too many got %s", got)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := await(t, busy); !strings.Contains(got, "ok") {
			t.Errorf("a long call got %s", got)
		}
	}
	pid := one.pids("own")[0]
	eventually(t, "there is room", func() bool { return h.statusOf(t, "own").Sessions == 0 })
	waitGone(t, pid)
	if got := three.notes("own", "x"); got != "x" {
		t.Errorf("three sees %q", got)
	}
}

// person is a client of h on version that holds a token.
func (h *runningHub) person(t *testing.T, version, token string) *wire {
	return wireHTTP(t, h.url+"/mcp", version, "Authorization", "Bearer "+token).open()
}

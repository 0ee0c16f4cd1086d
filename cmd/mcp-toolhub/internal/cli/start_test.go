//go:build e2e

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// The servers of the start: as many as a busy person has.
const (
	honestServers = 48
	slowestStart  = 2 * time.Second // of the honest servers
)

// startConfig is a config of fifty servers over stdio, of which one hangs, one takes an hour, and the others take up
// to slowestStart. The two come first.
func startConfig(t *testing.T, mark string) string {
	servers := map[string]any{
		"a-hangs":  child(script(upstreamtest.NeverInitialises), mark),
		"a-crawls": child(upstreamtest.Script{Delay: time.Hour}, mark),
	}
	for i := range honestServers {
		servers[honestServer(i)] = child(upstreamtest.Script{Delay: honestDelay(i)}, mark)
	}
	return configText(t, servers, map[string]any{"deferred": neverDeferred()["deferred"], "tuning": tuning{FirstListWithin: time.Nanosecond}})
}

// honestDelay is how long the i-th honest server waits before it does anything, for a network perhaps.
func honestDelay(i int) time.Duration { return slowestStart * time.Duration(i) / (honestServers - 1) }

func honestServer(i int) string { return fmt.Sprintf("honest-%02d", i) }

// startIn starts a hub in dir, which has its config, and perhaps the state of an earlier start.
func startIn(t *testing.T, dir string) *runningHub {
	t.Helper()
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	h := &runningHub{read: make(chan struct{})}
	h.cmd = exec.Command(program, "serve", "--http", "127.0.0.1:0", "--log-format", "json", "--config", filepath.Join(dir, "hub.json"))
	h.cmd.Dir, h.cmd.Env = dir, scratchEnv(dir)
	stderr, err := h.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	serving := make(chan string, 1)
	go h.readLog(stderr, serving)
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill() // how it stops is not what is looked at, and two of its servers do not stop willingly
		<-h.read
		_ = h.cmd.Wait()
	})
	h.url = await(t, serving)
	return h
}

// listsAll reports whether one list has the tools of all honest servers.
func listsAll(t *testing.T, c benchClient) bool {
	t.Helper()
	pages, err := listAll(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range honestServers {
		if !bytes.Contains(pages[0], []byte(`"mcp.`+honestServer(i)+`.echo"`)) {
			return false
		}
	}
	return true
}

// TestStart: of fifty servers the one that hangs and the one that takes an hour hold nobody up. The tools of all others are
// listed while these two start. After another start the first list has them.
func TestStart(t *testing.T) { // not parallel: it starts a hundred processes
	if testing.Short() {
		t.Skip("-short: starts fifty servers twice")
	}
	mark, dir := newMark(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hub.json"), []byte(startConfig(t, mark)), 0o600); err != nil {
		t.Fatal(err)
	}
	connect := func(h *runningHub) benchClient {
		c, err := dialHTTP(&benchIDs{}, h.url+"/mcp")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.close)
		if err := handshake(c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := startIn(t, dir)
	c := connect(first)
	eventually(t, "all honest servers are listed", func() bool { return listsAll(t, c) })
	for _, id := range []string{"a-hangs", "a-crawls"} {
		if st := first.server(t, id); st.State == tool.ServerReady {
			t.Errorf("server %s is ready", id)
		}
	}
	eventually(t, "the catalogs are kept", func() bool {
		kept, _ := filepath.Glob(filepath.Join(dir, "state", "mcp-toolhub", "catalogs", "*.catalog.json"))
		return len(kept) >= honestServers
	})
	killAll(t, first, mark)
	again := startIn(t, dir)
	if !listsAll(t, connect(again)) {
		t.Error("the first list after another start lacks tools that were known")
	}
	killAll(t, again, mark)
}

// killAll ends the hub outright and waits until nothing of it runs.
func killAll(t *testing.T, h *runningHub, mark string) {
	t.Helper()
	_ = h.cmd.Process.Kill()
	<-h.read
	_ = h.cmd.Wait()
	eventually(t, "the children are gone", func() bool { return !slices.ContainsFunc(marked(mark), runs) })
}

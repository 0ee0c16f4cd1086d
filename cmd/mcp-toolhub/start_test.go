//go:build e2e

package main

import (
	"bytes"
	"errors"
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
	crawl         = 10 * time.Second
)

// startConfig is a config of fifty servers over stdio, of which one hangs, one takes ten seconds, and the others take up
// to slowestStart. The two come first.
func startConfig(t *testing.T, mark string) string {
	servers := map[string]any{
		"a-hangs":  child(script(upstreamtest.NeverInitialises), mark),
		"a-crawls": child(upstreamtest.Script{Delay: crawl}, mark),
	}
	for i := range honestServers {
		servers[honestServer(i)] = child(upstreamtest.Script{Delay: honestDelay(i)}, mark)
	}
	return configText(t, servers, map[string]any{"deferred": neverDeferred()["deferred"], "hub": map[string]any{"first_list_within": "0s"}})
}

// honestDelay is how long the i-th honest server waits before it does anything, for a network perhaps.
func honestDelay(i int) time.Duration { return slowestStart * time.Duration(i) / (honestServers - 1) }

func honestServer(i int) string { return fmt.Sprintf("honest-%02d", i) }

// startedHub is a hub that was just started, and when.
type startedHub struct {
	*runningHub
	began time.Time
}

// startTimed starts a hub in dir, whose config and state may be from an earlier start.
func startTimed(t *testing.T, dir string) *startedHub {
	t.Helper()
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	h := &startedHub{runningHub: &runningHub{read: make(chan struct{})}}
	h.cmd = exec.Command(program, "serve", "--http", "127.0.0.1:0", "--log-format", "json", "--config", filepath.Join(dir, "hub.json"))
	h.cmd.Dir, h.cmd.Env = dir, scratchEnv(dir)
	stderr, err := h.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.began = time.Now()
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

// complete lists until the tools of all honest servers are there, and returns when that was since the start.
func (h *startedHub) complete(t *testing.T) time.Duration {
	t.Helper()
	c, err := dialHTTP(&benchIDs{}, h.url+"/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := handshake(c); err != nil {
		t.Fatal(err)
	}
	var took time.Duration
	eventually(t, "all honest servers are listed", func() bool {
		pages, err := listAll(c)
		if err != nil {
			t.Fatal(err)
		}
		took = time.Since(h.began)
		for i := range honestServers {
			if !bytes.Contains(pages[0], []byte(`"mcp.`+honestServer(i)+`.echo"`)) {
				return false
			}
		}
		return true
	})
	return took
}

// slowest is when the last of the honest servers was ready, since the start.
func (h *startedHub) slowest(t *testing.T) (last time.Duration) {
	t.Helper()
	eventually(t, "all honest servers are ready", func() bool { // which is told a moment after they are listed
		last = 0
		health, _ := h.health(t)
		for _, st := range health.Servers {
			switch {
			case st.Server == "a-hangs" || st.Server == "a-crawls":
				if st.State != tool.ServerStarting && time.Since(h.began) < crawl {
					t.Errorf("server %s is %s already", st.Server, st.State)
				}
			case st.State != tool.ServerReady:
				return false
			default:
				last = max(last, st.Since.Sub(h.began))
			}
		}
		return true
	})
	return last
}

// TestStart: of fifty servers the one that hangs and the one that takes ten seconds hold nobody up. All tools of the others
// are listed within 1.2 times of what the slowest of these takes when they are started without a hub, and where they were
// listed at an earlier start, within 100 ms of the program's own.
func TestStart(t *testing.T) { // not parallel: it measures
	if testing.Short() {
		t.Skip("-short: starts fifty servers several times")
	}
	mark := newMark(t)
	var dir string
	var hub *startedHub
	for i := range 2 * measurements { // whatever else the machine does can make a start slower, but not faster
		dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "hub.json"), []byte(startConfig(t, mark)), 0o600); err != nil {
			t.Fatal(err)
		}
		alone := startWithoutHub(t)
		hub = startTimed(t, dir)
		complete := hub.complete(t)
		slowest := hub.slowest(t)
		t.Logf("cold: complete after %s; the last server was ready after %s, and after %s without a hub", complete, slowest, alone)
		if complete > alone*12/10 {
			alone = max(alone, startWithoutHub(t)) // the machine may have become busier meanwhile
		}
		busy := alone > slowestStart*13/10 // then the hub rightly starts no more than start_parallel at a time
		fits := complete <= slowest*12/10 && (busy || complete <= alone*12/10)
		eventually(t, "the catalogs are kept", func() bool {
			kept, _ := filepath.Glob(filepath.Join(dir, "state", "mcp-toolhub", "catalogs", "*"))
			return len(kept) >= honestServers
		})
		hub.kill(t, mark)
		if fits {
			break
		}
		if i == 2*measurements-1 {
			t.Errorf("the first complete list came after %s: the last server was ready after %s, and after %s without a hub", complete, slowest, alone)
		}
	}
	limit := 100 * time.Millisecond
	if underRace {
		limit *= 10
	}
	const attempts = 5
	for i := range attempts {
		nothing := startBeside(t, hub.cmd.Path)
		hub = startTimed(t, dir)
		serving := time.Since(hub.began)
		complete := hub.complete(t)
		hub.kill(t, mark)
		t.Logf("cached: serving after %s, complete after %s; a program that does nothing takes %s", serving, complete, nothing)
		if complete <= max(limit, 2*nothing) {
			return
		}
		if i == attempts-1 {
			t.Errorf("with cached catalogs, the first complete list came after %s", complete)
		}
	}
}

// startBeside returns how long the program takes to do nothing while the honest servers start, as they do behind a hub that
// lists what is cached.
func startBeside(t *testing.T, program string) time.Duration {
	t.Helper()
	others := make(chan struct{})
	go func() {
		defer close(others)
		startWithoutHub(t)
	}()
	defer func() { <-others }()
	began := time.Now()
	if err := exec.Command(program, "version").Run(); err != nil {
		t.Error(err)
	}
	return time.Since(began)
}

// startWithoutHub starts the honest servers at once and returns how long it takes until the last of them has listed.
func startWithoutHub(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	errs := make(chan error, honestServers)
	for i := range honestServers {
		go func() { errs <- startAlone(honestDelay(i)) }()
	}
	for range honestServers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	return time.Since(began)
}

// startAlone runs a server until it has listed.
func startAlone(delay time.Duration) error {
	command, args, env := upstreamtest.Command(upstreamtest.Script{Delay: delay})
	cmd := exec.Command(command, args...)
	cmd.Env = append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c := newStdioConn(&benchIDs{}, in, out).newClient()
	if err = handshake(c); err == nil {
		_, err = listAll(c)
	}
	_ = in.Close()
	return errors.Join(err, cmd.Wait())
}

// kill ends the hub outright and waits until nothing of it runs.
func (h *startedHub) kill(t *testing.T, mark string) {
	t.Helper()
	_ = h.cmd.Process.Kill()
	<-h.read
	_ = h.cmd.Wait()
	eventually(t, "the children are gone", func() bool { return !slices.ContainsFunc(marked(mark), runs) })
}

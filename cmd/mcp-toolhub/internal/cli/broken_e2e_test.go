//go:build e2e

package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// startAtOnce runs a hub over HTTP and returns as soon as it serves, whatever its servers are at.
func startAtOnce(t testing.TB, config string, args ...string) *runningHub {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "hub.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	h := &runningHub{read: make(chan struct{})}
	args = append([]string{"serve", "--http", "127.0.0.1:0", "--log-format", "json", "--config", file}, args...)
	h.cmd = exec.Command(program, args...)
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
		if err := h.stop(); err != nil {
			t.Errorf("the hub ended with %v", err)
		}
		checkRecordsBeneath(t, dir)
		if t.Failed() {
			t.Logf("the hub's log:\n%s", h.log())
		}
	})
	h.url = await(t, serving)
	return h
}

// TestBrokenServers: whatever some servers do, the others list and answer, each state can be seen, and nothing is left.
func TestBrokenServers(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	hub := startAtOnce(t, configText(t, map[string]any{
		"mute":     with(child(script(upstreamtest.NeverInitialises), mark), "timeout", "5m"),
		"late":     with(child(script(upstreamtest.NeverInitialises), mark), "tuning", serverTuning{Connect: time.Second}),
		"listless": with(child(script(upstreamtest.SilentList), mark), "tuning", serverTuning{List: time.Second}),
		"quits":    child(script(upstreamtest.ExitsAtOnce), mark),
		"absent":   map[string]any{"command": "no-such-command-anywhere", "args": []string{mark}},
		"noisy":    child(script(upstreamtest.Noise, upstreamtest.Chatty), mark),
		"good":     child(script(upstreamtest.HasDescendant), mark),
		"web":      map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{})},
		"off":      with(child(script(), mark), "disabled", true),
	}, nil))
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	eventually(t, "the healthy servers are listed", func() bool {
		tools := w.tools()
		return tools["mcp.noisy.echo"] != "" && tools["mcp.good.echo"] != "" && tools["mcp.web.echo"] != ""
	})
	for _, id := range []string{"noisy", "good", "web"} {
		if result := w.result("mcp."+id+".echo", `{"k":1}`, ""); !strings.Contains(result, `"arguments":{"k":1}`) {
			t.Errorf("%s answered %s", id, result)
		}
	}
	if st := hub.server(t, "mute"); st.State != tool.ServerStarting {
		t.Errorf("the server that never initialises is %s: the others were to answer meanwhile", st.State)
	}
	for id, c := range map[string]struct {
		state       tool.ServerState
		error, hint string
	}{
		"late":     {tool.ServerBackoff, "no answer to initialize within 1s", "raise timeout of"},
		"listless": {tool.ServerBackoff, "within 1s", "raise timeout of"},
		"quits":    {tool.ServerBackoff, "exited with status 3", "run the command by hand"},
		"absent":   {tool.ServerBackoff, `"no-such-command-anywhere" was not found in PATH`, "install it or give the full path"},
		"noisy":    {tool.ServerReady, "", ""},
		"off":      {tool.ServerStopped, "", ""},
	} {
		var st tool.ServerStatus
		eventually(t, id+" is "+string(c.state), func() bool { st = hub.server(t, id); return st.State == c.state })
		if !strings.Contains(st.LastError, c.error) || !strings.Contains(st.Hint, c.hint) || c.error == "" && st.LastError != "" {
			t.Errorf("%s: last error %q, hint %q; want %q and %q", id, st.LastError, st.Hint, c.error, c.hint)
		}
		if (st.NextTry != nil) != (st.State == tool.ServerBackoff) || st.Since.IsZero() {
			t.Errorf("%s: %+v", id, st)
		}
	}
	if st := hub.server(t, "quits"); !strings.Contains(st.LastError, "no license key found") {
		t.Errorf("what the child said last is not in %q", st.LastError)
	}
	checkNothingIsLeft(t, hub, w, mark)
}

// checkNothingIsLeft stops the hub and looks for what it had started.
func checkNothingIsLeft(t *testing.T, hub *runningHub, w *wire, mark string) {
	t.Helper()
	var far struct {
		StructuredContent struct{ PIDs []int }
	}
	mustDecode(t, w.result("mcp.good.pids", `{}`, ""), &far)
	pids := append(marked(mark), far.StructuredContent.PIDs...)
	if runtime.GOOS == "linux" && (len(far.StructuredContent.PIDs) != 2 || len(pids) < 5) {
		t.Errorf("the hub has the children %v", pids)
	}
	if err := hub.stop(); err != nil {
		t.Errorf("the hub ended with %v", err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	for _, pid := range append(marked(mark), far.StructuredContent.PIDs...) {
		if runs(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

// TestSecondSignalKills: the hub does not wait for a call that hangs when it is told twice.
func TestSecondSignalKills(t *testing.T) {
	t.Parallel()
	g, mark := newTurnstile(t), newMark(t)
	hub := startHub(t, "hub.json", configText(t, map[string]any{"g": g.entry(),
		"stubborn": child(script(upstreamtest.Stubborn, upstreamtest.HasDescendant), mark)},
		map[string]any{"hub": map[string]any{"http": map[string]any{"drain_timeout": "10m"}}}))
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	var hanging sync.WaitGroup
	hanging.Go(func() {
		if resp, err := http.DefaultClient.Do(w.newRequest(w.call("mcp.g.gate", `{"who":"x"}`, ""))); err == nil {
			_ = resp.Body.Close()
		}
	})
	await(t, g.reached)
	_ = hub.cmd.Process.Signal(syscall.SIGTERM)
	isStopping(t, hub)
	began := time.Now()
	_ = hub.cmd.Process.Signal(syscall.SIGTERM)
	<-hub.read
	_ = hub.cmd.Wait()
	if took := time.Since(began); took > patience {
		t.Errorf("the hub took %s to end", took)
	}
	if code := exitCode(hub.cmd.ProcessState.ExitCode()); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	if want := "killed by a second signal (terminated, after terminated)"; !strings.Contains(hub.log(), want) {
		t.Errorf("the hub does not say %q", want)
	}
	hanging.Wait()
	for _, pid := range marked(mark) {
		if runs(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

// TestKilledHub: a hub that is killed outright leaves a journal with every call that was answered, and every one that may have an
// effect and has reached its server, and where the system can see to it no child.
func TestKilledHub(t *testing.T) {
	t.Parallel()
	mark, received := newMark(t), filepath.Join(t.TempDir(), "received")
	hub := startHub(t, "hub.json", configText(t, map[string]any{"far": child(upstreamtest.Script{Record: received}, mark)}, nil))
	var calling sync.WaitGroup
	answered := make(chan string, 100000)
	calling.Go(func() {
		w := wireHTTP(t, hub.url+"/mcp", rev2026)
		if resp, err := http.DefaultClient.Do(w.newRequest(w.call("mcp.far.hang", `{"text":"caller 9 call 0"}`, `"toolhub/run":"9"`))); err == nil {
			_ = resp.Body.Close()
		}
	})
	for caller := range 4 {
		w := wireHTTP(t, hub.url+"/mcp", rev2026)
		calling.Go(func() {
			for n := 0; ; n++ {
				resp, err := http.DefaultClient.Do(w.newRequest(w.call("mcp.far.echo",
					fmt.Sprintf(`{"text":"caller %d call %d","more":%q}`, caller, n, strings.Repeat("x", 500)), fmt.Sprintf(`"toolhub/run":"%d"`, caller))))
				if err != nil {
					return
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK {
					return
				}
				answered <- string(invocationID.Find(body))
			}
		})
	}
	for range 100 {
		await(t, answered)
	}
	_ = hub.cmd.Process.Kill()
	<-hub.read
	_ = hub.cmd.Wait()
	calling.Wait()
	close(answered)
	terminal := terminalRecords(t, hub.cmd.Dir)
	for id := range answered {
		if !terminal[id] {
			t.Errorf("the result of %s was answered and is not in the journal", id)
		}
	}
	if len(terminal) < 100 {
		t.Errorf("the journal holds %d results", len(terminal))
	}
	checkBegun(t, hub.cmd.Dir, readFile(t, received))
	if runtime.GOOS == "linux" {
		eventually(t, "the children are gone", func() bool {
			for _, pid := range marked(mark) {
				if runs(pid) {
					return false
				}
			}
			return true
		})
	}
}

// checkBegun holds that each call that a server has received is in the journal beneath dir as one that has started. Only the last
// call of a caller may be missing: the journal holds what begins for 2 ms. That of caller 9 began long before.
func checkBegun(t *testing.T, dir, received string) {
	t.Helper()
	text := regexp.MustCompile(`caller (\d+) call \d+`)
	begun, results := map[string]string{}, terminalRecords(t, dir)
	for line := range strings.Lines(objectsBeneath(t, dir)) {
		var r tool.Invocation
		if mustDecode(t, line, &r.Head); r.Object == tool.ObjectInvocation {
			if mustDecode(t, line, &r); r.StartedAt != nil {
				begun[text.FindString(string(r.ModelInput))] = string(r.InvocationID)
			}
		}
	}
	last, missing := map[string]string{}, map[string]bool{}
	for _, m := range text.FindAllStringSubmatch(received, -1) {
		last[m[1]] = m[0]
		if begun[m[0]] == "" {
			missing[m[0]] = true
		}
	}
	if hung := begun[last["9"]]; hung == "" || results[hung] {
		t.Errorf("the call that hangs has record %q, with an end: %t", hung, results[hung])
	}
	for _, call := range last {
		delete(missing, call)
	}
	if len(missing) > 0 || len(last) != 5 {
		t.Errorf("%v have reached the server and are not in the journal; callers %v", missing, last)
	}
}

// terminalRecords reads the journals beneath dir and returns the invocations whose result they hold.
func terminalRecords(t testing.TB, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for line := range strings.Lines(objectsBeneath(t, dir)) {
		var record struct {
			Object       tool.Object `json:"object"`
			InvocationID string      `json:"invocation_id"`
		}
		mustDecode(t, line, &record)
		if record.Object == tool.ObjectResult {
			found[record.InvocationID] = true
		}
	}
	return found
}

// script is a scripted server with a way to misbehave.
func script(b ...upstreamtest.Behaviour) upstreamtest.Script {
	return upstreamtest.Script{Behaviours: b}
}

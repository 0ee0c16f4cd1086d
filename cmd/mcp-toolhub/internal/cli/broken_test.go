package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// health is what the hub says of itself; headers come in pairs.
func (h *runningHub) health(t testing.TB, headers ...string) (downstream.Health, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/health/ready", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var health downstream.Health
	mustDecode(t, string(body), &health)
	return health, string(body)
}

// server is the state of one server.
func (h *runningHub) server(t testing.TB, id string) tool.ServerStatus {
	t.Helper()
	health, body := h.health(t)
	for _, st := range health.Servers {
		if st.Server == id {
			return st
		}
	}
	t.Fatalf("no server %q in %s", id, body)
	return tool.ServerStatus{}
}

// eventually looks again and again until ok, a look at another process, holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-again.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// marked are the processes whose command line holds mark, or nil where the system does not show that.
func marked(mark string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(mark)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// runs reports whether a process lives; one that nobody has waited for does not.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// newMark is a word that no other process has in its command line.
func newMark(t testing.TB) string {
	return fmt.Sprintf("toolhub-mark-%d-%s", os.Getpid(), filepath.Base(filepath.Dir(t.TempDir())))
}

// isStopping waits until the hub has taken notice of a signal: it refuses calls then.
func isStopping(t testing.TB, hub *runningHub) {
	t.Helper()
	eventually(t, "the hub is stopping", func() bool {
		health, _ := hub.health(t)
		return health.Status == "stopping"
	})
}

// TestStopTellsProxiesFirst: at the first signal readiness says 503, and calls are served for the drain delay. Then they get 503 and are told
// when to come again, while an open call is answered.
func TestStopTellsProxiesFirst(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := newTurnstile(t)
			hub := startHub(t, "hub.json", configText(t, map[string]any{"g": g.entry()}, map[string]any{
				"hub":    map[string]any{"http": map[string]any{"drain_delay": "3s"}},
				"policy": map[string]any{"mode": "accept_all", "tools": []any{map[string]any{"match": "*", "concurrency": "safe"}}}}))
			w, answer := wireHTTP(t, hub.url+"/mcp", version).open(), make(chan string, 1)
			go func() { answer <- w.result("mcp.g.gate", `{"who":"x"}`, "") }()
			await(t, g.reached)
			_ = hub.cmd.Process.Signal(syscall.SIGTERM)
			isStopping(t, hub)
			if got := w.result("mcp.g.echo", `{}`, ""); !strings.Contains(got, `"status":"succeeded"`) {
				t.Errorf("a call within the drain delay was answered with %s", got)
			}
			eventually(t, "calls are refused", func() bool {
				resp, err := http.DefaultClient.Do(w.newRequest(w.call("mcp.g.echo", `{}`, "")))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = resp.Body.Close() }()
				text, _ := io.ReadAll(resp.Body)
				if resp.StatusCode == http.StatusOK {
					return false
				}
				if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(text), "stopping") {
					t.Errorf("a call that came too late was answered with %s %v %s", resp.Status, resp.Header, text)
				}
				return true
			})
			close(g.lock("x"))
			if got := await(t, answer); !strings.Contains(got, `"status":"succeeded"`) {
				t.Errorf("the open call was answered with %s", got)
			}
			<-hub.read
			if err := hub.cmd.Wait(); err != nil {
				t.Errorf("the hub ended with %v", err)
			}
		})
	}
}

// TestStopAnswersOpenCalls: at the first signal a call that runs is answered, then the hub exits with 0.
func TestStopAnswersOpenCalls(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		t.Run("http "+version, func(t *testing.T) {
			t.Parallel()
			g := newTurnstile(t)
			hub := startHub(t, "hub.json", configText(t, map[string]any{"g": g.entry()}, nil))
			w, answer := wireHTTP(t, hub.url+"/mcp", version).open(), make(chan string, 1)
			go func() { answer <- w.result("mcp.g.gate", `{"who":"x"}`, "") }()
			await(t, g.reached)
			_ = hub.cmd.Process.Signal(syscall.SIGTERM)
			isStopping(t, hub)
			_, _, messages := w.post(w.call("mcp.g.echo", `{}`, ""))
			if got := strings.Join(messages, ""); !strings.Contains(got, "stopping") && !strings.Contains(got, "session not found") {
				t.Errorf("a call that came too late was answered with %s", got)
			}
			close(g.lock("x"))
			if got := await(t, answer); !strings.Contains(got, "for x") || !strings.Contains(got, `"status":"succeeded"`) {
				t.Errorf("the open call was answered with %s", got)
			}
			<-hub.read
			if err := hub.cmd.Wait(); err != nil {
				t.Errorf("the hub ended with %v", err)
			}
		})
		t.Run("stdio "+version, func(t *testing.T) {
			t.Parallel()
			g := newTurnstile(t)
			side := map[string]any{"policy": map[string]any{"mode": "accept_all", "tools": []any{map[string]any{"match": "*", "concurrency": "safe"}}}}
			w := wireHub(t, configText(t, map[string]any{"g": g.entry()}, side), version).open()
			w.ready("mcp.g.gate")
			open := w.call("mcp.g.gate", `{"who":"x"}`, "")
			w.write(open.text())
			await(t, g.reached)
			_ = w.cmd.Process.Signal(syscall.SIGTERM)
			eventually(t, "calls are refused", func() bool {
				messages := w.send(w.call("mcp.g.echo", `{}`, ""))
				return strings.Contains(messages[len(messages)-1], "stopping")
			})
			close(g.lock("x"))
			if got := w.nextWith(`"id":` + open.id + `,`); !strings.Contains(got, "for x") {
				t.Errorf("the open call was answered with %s", got)
			}
			for line := range w.lines {
				t.Logf("after the answer: %s", line)
			}
			if err := w.cmd.Wait(); err != nil {
				t.Errorf("the hub ended with %v", err)
			}
		})
	}
}

// objectsBeneath returns the objects of all journals beneath dir, one a line. Only last lines may be torn.
func objectsBeneath(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	read := map[string]bool{}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		in := filepath.Dir(path)
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") || read[in] {
			return err
		}
		read[in] = true
		return persist.Read(in, func(object json.RawMessage) bool {
			all.Write(append(object, '\n'))
			return true
		})
	}); err != nil {
		t.Error(err)
	}
	return all.String()
}

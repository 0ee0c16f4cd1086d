//go:build e2e

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// diskVariable names the environment variable with the directory on which the test binary's hub mounts a small file
// system first. It runs in a mount namespace of its own, so that nobody else has it.
const diskVariable = "TOOLHUB_TEST_DISK"

func mountSmallDisk() {
	dir := os.Getenv(diskVariable)
	if dir == "" {
		return
	}
	err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil {
		err = syscall.Mount("none", dir, "tmpfs", 0, "size=128m")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mount a small disk:", err)
		os.Exit(1)
	}
}

// startHubOnDisk runs a hub whose state is on a small disk, and returns where this process sees that disk.
func startHubOnDisk(t *testing.T, config string) (hub *runningHub, disk string) {
	t.Helper()
	dir := t.TempDir()
	file, state := filepath.Join(dir, "hub.json"), filepath.Join(dir, "disk")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	own := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	mapped := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	var failures []error
	for _, attr := range []*syscall.SysProcAttr{own, mapped} { // the first one needs root, the second one user namespaces
		cmd := exec.Command(program, "serve", "--http", "127.0.0.1:0", "--log-format", "json", "--config", file,
			"--state-dir", filepath.Join(state, "state"))
		cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, append(scratchEnv(dir), diskVariable+"="+state), attr
		if hub, err = launchCommand(cmd); err == nil {
			break
		}
		failures = append(failures, err)
	}
	if err != nil {
		t.Fatalf("a full disk cannot be had here: run the tests as root, or where unshare -Urm works: %v", errors.Join(failures...))
	}
	t.Cleanup(func() {
		if err := hub.stop(); err != nil {
			t.Errorf("the hub ended with %v", err)
		}
		if t.Failed() {
			t.Logf("the hub's log:\n%.20000s", hub.log())
		}
	})
	return hub, filepath.Join(fmt.Sprintf("/proc/%d/root", hub.cmd.Process.Pid), state)
}

// fill takes all space of a disk and returns what gives it back.
func fill(t *testing.T, disk string) (free func()) {
	t.Helper()
	name := filepath.Join(disk, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			size /= 2
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// verdict is what became of a call while the disk was full, or not.
type verdict int

const (
	served   verdict = iota // its result is in the journal
	unsaved                 // it has run, and its result says that it is not in the journal
	declined                // it has not run, and the answer says why
	nonsense
	verdicts
)

func verdictOn(answer []byte, arguments string) verdict {
	ran, lost := bytes.Contains(answer, []byte(arguments)), bytes.Contains(answer, []byte(`"journal_failed":true`))
	switch {
	case ran && lost:
		return unsaved
	case ran:
		return served
	case bytes.Contains(answer, []byte("cannot write its journal")):
		return declined
	}
	return nonsense
}

// diskRig is callers who call, whatever happens, and what they were answered.
type diskRig struct {
	stop    chan struct{}
	calling sync.WaitGroup
	phase   atomic.Int32

	mu       sync.Mutex
	answered []string // invocations whose result is said to be in the journal
	counts   [3][verdicts]int
}

// call is one caller.
func (r *diskRig) call(t *testing.T, c benchClient, i int) {
	pace := time.NewTicker(callEvery)
	defer pace.Stop()
	arguments := fmt.Sprintf(`{"caller":%d}`, i)
	params := benchCall([]string{"mcp.up.echo", "mcp.web.echo"}[i%2], arguments)
	for {
		phase := r.phase.Load()
		hangs := time.AfterFunc(patience, func() { t.Errorf("a call has no answer after %s", patience) })
		answer, err := c.request("tools/call", params)
		hangs.Stop()
		v := verdictOn(answer, `"arguments":`+arguments)
		if err != nil || v == nonsense {
			t.Errorf("a call was answered with %.500s, %v", answer, err)
			return
		}
		if r.phase.Load() != phase {
			phase = full // it has met whatever there was meanwhile
		}
		r.mu.Lock()
		r.counts[phase][v]++
		if v == served {
			r.answered = append(r.answered, string(invocationID.Find(answer)))
		}
		r.mu.Unlock()
		select {
		case <-pace.C:
		case <-r.stop:
			return
		}
	}
}

// enter begins a phase and lets it last until as many calls have come to an end in it as there are callers.
func (r *diskRig) enter(t *testing.T, phase int32) {
	t.Helper()
	r.phase.Store(phase)
	eventually(t, "calls are answered", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		n := 0
		for _, answers := range r.counts[phase] {
			n += answers
		}
		return n >= callers && (phase != full || r.counts[full][declined] >= callers)
	})
}

// TestFullDisk: while the disk of the journal is full, no call hangs: one is refused at once, or answered with the remark
// that its record is missing where it had run by then. The hub says so, goes on by itself once there is room, and has every
// record that it said it has.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: fills a disk under load")
	}
	hub, disk := startHubOnDisk(t, configText(t, map[string]any{"up": child(upstreamtest.Script{}),
		"web": map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{})}}, nil))
	r := &diskRig{stop: make(chan struct{})}
	ids := &benchIDs{}
	for i := range callers {
		c, err := dialHTTP(ids, hub.url+"/mcp")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.close)
		if err := handshake(c); err != nil {
			t.Fatal(err)
		}
		r.calling.Go(func() { r.call(t, c, i) })
	}
	end := sync.OnceFunc(func() {
		close(r.stop)
		r.calling.Wait()
	})
	t.Cleanup(end)
	r.enter(t, before)
	r.phase.Store(full) // for calls that begin before the disk is full, too
	free := fill(t, disk)
	eventually(t, "health says that the journal cannot be written", func() bool {
		health, _ := hub.health(t)
		return health.Status == "degraded" && strings.Contains(strings.Join(health.Problems, " "), "free space on the disk that holds it")
	})
	r.enter(t, full)
	checkDeclines(t, hub)
	free()
	checkServesAgain(t, hub)
	r.enter(t, after)
	end()

	t.Logf("answers [served, unsaved, declined]: %v", r.counts)
	if r.counts[before][declined]+r.counts[after][declined]+r.counts[after][unsaved] > 0 || r.counts[full][declined] < callers {
		t.Errorf("answers [served, unsaved, declined] before, while the disk was full, and after: %v", r.counts)
	}
	terminal := terminalRecords(t, copyOf(t, filepath.Join(disk, "state", "journal")))
	for _, id := range r.answered {
		if !terminal[id] {
			t.Errorf("the result of %q was answered and is not in the journal", id)
		}
	}
	if r.counts[before][served] == 0 || r.counts[after][served] == 0 {
		t.Error("no call was served")
	}
}

// TestFullDiskOfResults leaves room for the journal, and none for a large result: its caller gets it whole, the record says why, and health
// tells. With room again, the next one is stored.
func TestFullDiskOfResults(t *testing.T) {
	t.Parallel()
	hub, disk := startHubOnDisk(t, configText(t, map[string]any{"demo": map[string]any{"command": "mcp-toolhub", "args": []string{"demo-server"}}},
		map[string]any{"results": map[string]any{"max_inline_tokens": 1000},
			"persist": map[string]any{"store": "off"}})) // health would tell of the record store, too, until it is tried again
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	big := func() string { return last(w.send(w.call("mcp.demo.big", `{"bytes":8000000}`, ""))) }
	free := fill(t, disk)
	filler := filepath.Join(disk, "filler")
	info, err := os.Stat(filler)
	if err == nil {
		err = os.Truncate(filler, info.Size()-24<<10)
	}
	if err != nil {
		t.Fatal(err)
	}
	whole := big()
	if !strings.Contains(whole, `"status":"succeeded"`) || strings.Contains(whole, "toolhub://") || strings.Contains(whole, "journal_failed") ||
		len(textOf(t, w.resultOf(whole))) != 8_000_000 {
		t.Errorf("with no room for it, the caller got %d bytes: %.300s", len(whole), whole)
	}
	if health, text := hub.health(t); health.Status != "degraded" || !strings.Contains(text, "no space left on device") {
		t.Errorf("health is %s", text)
	}
	free()
	s := storedIn(t, big())
	if got := resourceText(t, last(w.send(w.readStored(s.uri)))); len(got) != s.size || len(textOf(t, got)) != 8_000_000 {
		t.Errorf("read %d bytes of %d", len(got), s.size)
	}
	if health, text := hub.health(t); health.Status != "ready" {
		t.Errorf("with room again, health is %s", text)
	}
	said, journal := 0, copyOf(t, filepath.Join(disk, "state", "journal"))
	err = persist.Read(journal, func(object json.RawMessage) bool {
		if o := string(object); strings.Contains(o, `"strategy":"inline"`) && strings.Contains(o, "no space left on device") {
			said++
		}
		return true
	})
	if err != nil || said != 1 {
		t.Errorf("the journal says so %d times: %v", said, err)
	}
}

// checkDeclines calls one after the other until the last bit of room is used up: from then on calls do not run, and all
// else works.
func checkDeclines(t *testing.T, hub *runningHub) {
	t.Helper()
	w := wireHTTP(t, hub.url+"/mcp", rev2026)
	last := nonsense
	for range 20 {
		messages := w.send(w.call("mcp.up.echo", `{"full":1}`, ""))
		if last = verdictOn([]byte(messages[0]), `"arguments":{"full":1}`); last == nonsense {
			t.Errorf("a call was answered with %.500s", messages[0])
		}
	}
	if last != declined {
		t.Errorf("calls still run on a full disk: verdict %d", last)
	}
	if tools := w.tools(); tools["mcp.up.echo"] == "" || tools["mcp.web.echo"] == "" {
		t.Errorf("%d tools are listed", len(tools))
	}
}

// checkServesAgain: the first call that begins when there is room again runs, and health is well from then on.
func checkServesAgain(t *testing.T, hub *runningHub) {
	t.Helper()
	w := wireHTTP(t, hub.url+"/mcp", rev2026)
	messages := w.send(w.call("mcp.up.echo", `{"room":1}`, ""))
	if v := verdictOn([]byte(messages[0]), `"arguments":{"room":1}`); v != served {
		t.Errorf("with room again, a call was answered with %.500s", messages[0])
	}
	var health downstream.Health
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last problems: %q", health.Problems)
		}
	})
	eventually(t, "health is well: the record store, too, is written again", func() bool {
		health, _ = hub.health(t)
		return health.Status == "ready" && len(health.Problems) == 0
	})
}

// copyOf copies the files of a directory that goes away with the hub.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := copyFile(filepath.Join(to, f.Name()), filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// While the disk of the record store is full, and that of the journal is not, calls are answered. The hub says so, and catches up once there is room.
func TestRecordsOnAFullDisk(t *testing.T) {
	t.Parallel()
	hub, disk := startHubOnDisk(t, storingConfig(t, map[string]any{"dir": filepath.Join(t.TempDir(), "journal")}, "sqlite"))
	r := &storing{&sharing{t, hub.cmd.Dir, ""}, t.TempDir()}
	state, answered := filepath.Join(disk, "state"), []tool.InvocationID{r.echoed(hub)}
	eventually(t, "the store is there", func() bool { _, err := os.Stat(filepath.Join(state, store.FileName)); return err == nil })
	free := fill(t, disk)
	eventually(t, "health says that the store cannot be written", func() bool {
		answered = append(answered, r.echoed(hub))
		health, _ := hub.health(t)
		return health.Status == "degraded" && strings.Contains(strings.Join(health.Problems, " "), "free space on the disk that holds it")
	})
	free()
	if err := hub.waitFor(regexp.MustCompile("the record store is up to date again")); err != nil {
		t.Fatal(err)
	}
	for _, name := range store.FileNames()[:2] { // SQLite would look for the path outside the hub's name space
		text, err := os.ReadFile(filepath.Join(state, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(r.state, name), string(text))
	}
	r.has(answered)
}

// The phases of the disk.
const before, full, after = 0, 1, 2

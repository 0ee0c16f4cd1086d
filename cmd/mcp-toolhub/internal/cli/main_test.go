package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store/storetest"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestMain lets the test binary stand for the program, for the scripted servers and for the benchmarks' processes.
func TestMain(m *testing.M) {
	run.Main()
	upstreamtest.Main() // ends the process where that is a scripted server
	if e2eMain() {
		return
	}
	if _, ok := os.LookupEnv("GORACE"); !ok { // under the race detector every process would wait for a second at its end
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	// Most tests wait for processes: four for each core keep it busy. -parallel says otherwise.
	_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	programs := map[string]func(){
		"mcp-toolhub": func() {
			e2eHub()
			std := stdStreams()
			std.adjust = tuned
			os.Exit(int(runLine(os.Args[1:], std)))
		},
		"xdg-open": browserOfTests,
	}
	maps.Copy(programs, e2ePrograms())
	testscript.Main(collecting{m}, programs)
}

// TestScripts runs testdata/scripts: the acceptance scenarios, through the real program.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, ".")
}

// runScripts runs the scripts in a directory beneath testdata/scripts.
func runScripts(t *testing.T, dir string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join(root, "testdata", "scripts", dir),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, "config"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("ROOT", root)
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Defer(func() { checkRecordsBeneath(t, e.WorkDir) }) // after its hubs have ended
			e.Defer(func() { stopShared(t, filepath.Join(e.WorkDir, "state", "mcp-toolhub")) })
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Geteuid() == 0, nil
			}
			err := storetest.Missing()
			if name != "postgres" || err != nil && os.Getenv(storetest.Required) != "" {
				return false, fmt.Errorf("condition %q: %w", name, err)
			}
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"database": func(ts *testscript.TestScript, _ bool, _ []string) {
				url := storetest.Database(t)
				ts.Setenv("DATABASE", url)
				ts.Setenv("GUARDED", strings.Replace(url, "hub@", "guarded:secret-word@", 1))
			},
			"starthub":  scriptStartHub,
			"stophub":   scriptStopHub,
			"waitfor":   scriptWaitFor,
			"waitready": scriptWaitReady,
			"talk":      scriptTalk,
			"pending":   scriptPending,
		},
	})
}

// checkRecordsBeneath holds that the records of every journal beneath dir are the standard's.
func checkRecordsBeneath(t testing.TB, dir string) {
	t.Helper()
	before := t.Failed()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "journal" {
			checkRecords(t, path, -1)
		}
		return nil // what cannot be read is a script's own doing
	})
	if err != nil {
		t.Error(err)
	}
	if t.Failed() && !before {
		t.Errorf("records of %s", filepath.Base(dir))
	}
}

// runningHub is a hub that serves HTTP in a process of its own.
type runningHub struct {
	url string // http://127.0.0.1:port
	cmd *exec.Cmd

	waited int // how far waitFor has read the log

	mu   sync.Mutex
	logs strings.Builder
	read chan struct{} // closed when stderr has ended
}

// launch starts "mcp-toolhub serve --http 127.0.0.1:0 args…" and returns when it serves.
func launch(dir string, env []string, args ...string) (*runningHub, error) {
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, append([]string{"serve", "--http", "127.0.0.1:0", "--log-format", "json"}, args...)...)
	cmd.Dir, cmd.Env = dir, env
	return launchCommand(cmd)
}

// launchCommand starts a hub and returns when it serves.
func launchCommand(cmd *exec.Cmd) (*runningHub, error) {
	h := &runningHub{cmd: cmd, read: make(chan struct{})}
	stderr, err := h.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	serving := make(chan string, 1)
	go h.readLog(stderr, serving)
	select {
	case h.url = <-serving:
		err := h.settle()
		if err != nil {
			_ = h.cmd.Process.Kill()
			<-h.read
			err = errors.Join(err, h.cmd.Wait())
		}
		return h, err
	case <-h.read:
		err := h.cmd.Wait()
		return nil, fmt.Errorf("the hub ended: %v\n%s", err, h.log())
	case <-time.After(2 * time.Minute):
		_ = h.cmd.Process.Kill()
		<-h.read
		return nil, fmt.Errorf("the hub does not serve after two minutes: %v\n%s", h.cmd.Wait(), h.log())
	}
}

// settle waits until no server is starting any more.
func (h *runningHub) settle() error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); <-again.C {
		resp, err := http.Get(h.url + "/health/ready")
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		if !bytes.Contains(body, []byte(`"state":"starting"`)) {
			return nil
		}
	}
	return fmt.Errorf("servers are still starting after %s", 2*patience)
}

func (h *runningHub) readLog(stderr io.Reader, serving chan<- string) {
	defer close(h.read)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		h.mu.Lock()
		fmt.Fprintln(&h.logs, lines.Text())
		h.mu.Unlock()
		var record struct{ Msg, URL string }
		from := max(bytes.IndexByte(lines.Bytes(), '{'), 0) // GODEBUG=gctrace=1 writes lines in parts, between which a record may come
		if json.Unmarshal(lines.Bytes()[from:], &record) == nil && record.Msg == "serving" {
			serving <- strings.TrimSuffix(record.URL, "/mcp")
		}
	}
}

// log is what the hub has logged so far.
func (h *runningHub) log() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.logs.String()
}

// stop ends the hub as a service manager would, and returns what it made of that.
func (h *runningHub) stop() error {
	if h.cmd.ProcessState != nil {
		return nil
	}
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	<-h.read
	return h.cmd.Wait()
}

// command runs a command of the program beside a hub, and returns what it prints.
func (h *runningHub) command(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = h.cmd.Dir, h.cmd.Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// startHub runs a hub on config, written to a file of that name's extension, with a scratch home.
func startHub(t testing.TB, name, config string, args ...string) *runningHub {
	t.Helper()
	return startHubIn(t, nil, name, config, args...)
}

// startHubIn is startHub with these variables more in the hub's environment.
func startHubIn(t testing.TB, env []string, name, config string, args ...string) *runningHub {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := launch(dir, append(scratchEnv(dir), env...), append([]string{"--config", file}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("the hub ended with %v", err)
		}
		if _, is := t.(*testing.T); is {
			checkRecordsBeneath(t, dir)
		}
		if t.Failed() {
			t.Logf("the hub's log:\n%s", h.log())
		}
	})
	return h
}

// scratchEnv is an environment whose home is dir.
func scratchEnv(dir string) []string {
	env := []string{"HOME=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config")}
	for _, name := range []string{"PATH", "TMPDIR", "SystemRoot", "GORACE"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// scriptStartHub: starthub ARGS… runs a hub in the background and sets HUB_URL.
func scriptStartHub(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("starthub cannot be negated: use exec mcp-toolhub serve")
	}
	var env []string
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "PATH", "TMPDIR", "HUB_TOKEN", "DATABASE", "GORACE"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	h, err := launch(ts.MkAbs("."), env, args...)
	ts.Check(err)
	ts.Setenv("HUB_URL", h.url)
	ts.Defer(func() { _ = h.stop() })
	hubs.Store(ts.Getenv("WORK"), h)
}

// hubs are the hubs of the scripts, by work directory.
var hubs sync.Map

// scriptWaitFor: waitfor REGEXP waits until the hub logs a line that matches, after those that earlier ones waited for.
func scriptWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	v, ok := hubs.Load(ts.Getenv("WORK"))
	if !ok || neg || len(args) != 1 {
		ts.Fatalf("usage: waitfor REGEXP, with a hub running")
	}
	ts.Check(v.(*runningHub).waitFor(regexp.MustCompile(args[0])))
}

// waitFor waits for a log line.
func (h *runningHub) waitFor(line *regexp.Regexp) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-again.C {
		text := h.log()
		if at := line.FindStringIndex(text[h.waited:]); at != nil {
			h.waited += at[1]
			return nil
		}
	}
	return fmt.Errorf("the hub did not log %q within a minute:\n%s", line, h.log())
}

// scriptWaitReady: waitready waits until no server is starting.
func scriptWaitReady(ts *testscript.TestScript, neg bool, _ []string) {
	v, ok := hubs.Load(ts.Getenv("WORK"))
	if !ok || neg {
		ts.Fatalf("waitready: no hub was started")
	}
	ts.Check(v.(*runningHub).settle())
}

// scriptStopHub: stophub ends the hub with SIGTERM, wants exit code 0, and leaves its log in the file hub.log.
func scriptStopHub(ts *testscript.TestScript, neg bool, _ []string) {
	v, ok := hubs.LoadAndDelete(ts.Getenv("WORK"))
	if !ok || neg {
		ts.Fatalf("stophub: no hub was started")
	}
	h := v.(*runningHub)
	ts.Check(h.stop())
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "hub.log"), []byte(h.log()), 0o600))
}

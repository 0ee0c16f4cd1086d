//go:build e2e

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// benchModes are the ways that messages take: what the client speaks, and what the server speaks, on protocol 2025-11-25.
var benchModes = []string{"http-http", "http-stdio", "stdio-stdio"}

// callModes are benchModes, and the same on protocol 2026-07-28.
var callModes = []string{"http-http", "http-stdio", "stdio-stdio", "http-http-2026-07-28", "http-stdio-2026-07-28", "stdio-stdio-2026-07-28"}

// benchVias are what lies between client and server: nothing, or one of the proxies.
var benchVias = []string{"direct", "splice", "sdk", "hub"}

// Ways that not every benchmark has. The last three are programs whose paths stand in environment variables.
const (
	viaRules  = "rules"  // the hub with permission
	viaBuilt  = "built"  // the same, as `go build` makes it
	viaBefore = "before" // the same of an earlier commit
	viaTBXark = "tbxark" // https://github.com/TBXark/mcp-proxy, which knows neither stdio clients nor 2026-07-28
)

// programOf is the program that is this way, or nil.
func programOf(via string) []string {
	switch via {
	case viaBuilt, viaBefore, viaTBXark:
		if path := os.Getenv("TOOLHUB_BENCH_" + strings.ToUpper(via)); path != "" {
			return []string{path}
		}
	}
	return nil
}

// benchProfileDir names the environment variable with a directory for CPU profiles of the proxies.
const benchProfileDir = "TOOLHUB_BENCH_PROFILE_DIR"

// benchSyncWithin names the environment variable with a value for persist.journal.sync_within, instead of its default.
const benchSyncWithin = "TOOLHUB_BENCH_SYNC_WITHIN"

// benchStore names the environment variable with a value for persist.store, instead of its default.
const benchStore = "TOOLHUB_BENCH_STORE"

// benchProcess is a process of a benchmark.
type benchProcess struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.Reader // nil with an HTTP door
	url    string    // of an HTTP door

	mu   sync.Mutex
	logs bytes.Buffer
	read chan struct{} // closed when stderr has ended
}

// startBenchProcess starts s, waits until it serves if its door is HTTP, and stops it when tb ends.
func startBenchProcess(tb testing.TB, s benchSpec, args ...string) *benchProcess {
	tb.Helper()
	p := launchBenchProcess(tb, s, args...)
	tb.Cleanup(func() { p.stop(tb, s) })
	return p
}

// launchBenchProcess is startBenchProcess for a caller that stops it.
func launchBenchProcess(tb testing.TB, s benchSpec, args ...string) *benchProcess {
	tb.Helper()
	cmd, err := s.command(args...)
	if err != nil {
		tb.Fatal(err)
	}
	p := &benchProcess{cmd: cmd, read: make(chan struct{})}
	cmd.Stderr = nil
	stderr, err := cmd.StderrPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	if s.Door == "stdio" {
		if p.stdout, err = cmd.StdoutPipe(); err != nil {
			tb.Fatal(err)
		}
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	serving := make(chan string, 1)
	go p.readLog(stderr, serving)
	if s.Door == "http" && s.Role != viaTBXark {
		select {
		case p.url = <-serving:
		case <-p.read:
			_ = cmd.Wait()
			tb.Fatalf("%s does not serve:\n%s", s.Role, p.log())
		}
	}
	return p
}

func (p *benchProcess) readLog(stderr io.Reader, serving chan<- string) {
	defer close(p.read)
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadBytes('\n')
		p.mu.Lock()
		if p.logs.Len() < 64<<10 {
			p.logs.Write(line)
		}
		p.mu.Unlock()
		var record struct{ Msg, URL string }
		if json.Unmarshal(line, &record) == nil && record.Msg == "serving" {
			serving <- record.URL
		}
		if err != nil {
			return
		}
	}
}

func (p *benchProcess) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logs.String()
}

// stop ends the process and everything that it started.
func (p *benchProcess) stop(tb testing.TB, s benchSpec) {
	_ = p.stdin.Close()
	if s.Program != nil && s.Door == "http" {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	if p.stdout != nil {
		go func() { _, _ = io.Copy(io.Discard, p.stdout) }()
	}
	timer := time.AfterFunc(patience, func() {
		tb.Errorf("%s did not end with its stdin", s.Role)
		_ = p.cmd.Process.Kill()
	})
	defer timer.Stop()
	<-p.read
	if err := p.cmd.Wait(); err != nil {
		tb.Errorf("%s: %v\n%s", s.Role, err, p.log())
	}
}

// cpu is the CPU time that the process has used, without its children, in seconds. ok is false on systems that do not
// tell it as Linux does.
func (p *benchProcess) cpu() (seconds float64, ok bool) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		return 0, false
	}
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, false
		}
		nanos, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(nanos, 10, 64)
		if err != nil {
			return 0, false
		}
		seconds += float64(n) / 1e9
	}
	return seconds, true
}

// memory is a value of the process in /proc/PID/status, in MB: VmRSS is what is resident, VmHWM the most that ever was.
func (p *benchProcess) memory(key string) (mb float64, ok bool) {
	return memoryOf(p.cmd.Process.Pid, key)
}

func memoryOf(pid int, key string) (mb float64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, key+":"); found {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return float64(kb) * 1024 / 1e6, err == nil
		}
	}
	return 0, false
}

// benchTarget is a way from client to server, ready for clients.
type benchTarget struct {
	tb     testing.TB
	proxy  *benchProcess // nil for direct access
	named  bool          // tools have the hub's names
	modern bool          // clients speak 2026-07-28
	urls   []string      // HTTP; one for each server where the way does not bring them together
	conn   *stdioConn    // stdio
	ids    benchIDs
}

// startBenchTarget starts servers like server, n of them, and via in front of them.
func startBenchTarget(tb testing.TB, mode, via string, server benchSpec, n int) *benchTarget {
	tb.Helper()
	door, far, _ := strings.Cut(mode, "-")
	far, revision, _ := strings.Cut(far, "-")
	t := &benchTarget{tb: tb, named: via != "direct" && via != "splice" && via != viaTBXark, modern: revision == rev2026}
	server.Door, server.Modern = far, t.modern
	if via == "direct" {
		// A client reaches a stdio server over stdio: that is what http-stdio is compared with, too.
		t.reach(startBenchProcess(tb, server))
		return t
	}
	spec := benchSpec{Role: via, Door: door, Modern: t.modern, Program: programOf(via), Profile: profileOf(tb), Probe: server.Probe}
	for range n {
		one := server
		if far == "http" {
			one = benchSpec{URL: startBenchProcess(tb, server).url}
		}
		spec.Servers = append(spec.Servers, one)
	}
	var args []string
	switch via {
	case "hub":
		args = hubArgs(tb, spec, nil)
	case viaRules, viaBuilt, viaBefore:
		spec.Role = "hub"
		args = hubArgs(tb, spec, hundredRules())
	case viaTBXark:
		args, t.urls = tbxarkArgs(tb, spec)
	}
	t.proxy = startBenchProcess(tb, spec, args...)
	t.reach(t.proxy)
	if via == "splice" {
		for i := 1; i < n; i++ {
			t.urls = append(t.urls, strings.TrimSuffix(t.proxy.url, "mcp")+benchServerID(i))
		}
	}
	return t
}

// tbxarkArgs writes the config of TBXark/mcp-proxy, and returns its command line and where its servers will be.
func tbxarkArgs(tb testing.TB, spec benchSpec) (args, urls []string) {
	tb.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	servers := serverEntries(tb, spec)
	for i := range spec.Servers {
		entry := servers[benchServerID(i)].(map[string]any)
		if entry["type"] != nil {
			entry["transportType"] = "streamable-http"
			delete(entry, "type")
		}
		urls = append(urls, "http://"+address+"/"+benchServerID(i)+"/")
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers, "mcpProxy": map[string]any{
		"baseURL": "http://" + address, "addr": address, "name": "bench", "version": "1", "type": "streamable-http"}})
	if err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(tb.TempDir(), "proxy.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	return []string{"-config", file}, urls
}

// profileOf is the file for the CPU profile of tb's proxy, or "".
func profileOf(tb testing.TB) string {
	dir := os.Getenv(benchProfileDir)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, strings.NewReplacer("/", "_").Replace(tb.Name())+".pprof")
}

// reach connects to p's door.
func (t *benchTarget) reach(p *benchProcess) {
	if p.stdout == nil {
		if t.urls == nil {
			t.urls = []string{p.url}
		}
		return
	}
	t.conn = newStdioConn(&t.ids, p.stdin, p.stdout)
	if t.conn.modern = t.modern; t.modern {
		return
	}
	if err := handshake(t.conn.newClient()); err != nil {
		t.tb.Fatalf("%v\n%s", err, p.log())
	}
}

// hundredRules is a policy of 100 rules. The one that speaks of the calls has a condition.
func hundredRules() map[string]any {
	var rules []any
	for i := range 99 {
		rules = append(rules, map[string]any{"match": fmt.Sprintf("mcp.other%d.*_file", i), "then": "ask"})
	}
	rules = append(rules, map[string]any{"match": "mcp.*", "then": "allow",
		"when": `!has(arguments.path) || arguments.path.startsWith("/srv/") || tool.read_only`})
	return map[string]any{"mode": "default", "rules": rules}
}

// serverEntries are spec's servers as a config has them, by id.
func serverEntries(tb testing.TB, spec benchSpec) map[string]any {
	tb.Helper()
	servers := make(map[string]any)
	for i, s := range spec.Servers {
		servers[benchServerID(i)] = benchEntry(tb, s)
	}
	return servers
}

// hubArgs writes the hub's config and returns its command line. All but the policy and a timeout is as a user has it without touching a
// setting. The policy says that the tools can run at the same time: nothing is known of them, and one session's calls of such tools
// run one by one.
func hubArgs(tb testing.TB, spec benchSpec, policy map[string]any) []string {
	tb.Helper()
	servers := serverEntries(tb, spec)
	for _, entry := range servers {
		// Go 1.26: a collection that begins in the moment in which a thread enters a read of stdin lasts until Go's monitor thread looks
		// for it, which may sleep for a minute by then. It happened to servers in one of 600,000 calls, with splice in front, too.
		entry.(map[string]any)["timeout"] = "5m"
	}
	if policy == nil {
		policy = map[string]any{"mode": "accept_all"} // nobody answers questions here
	}
	policy["tools"] = []any{map[string]any{"match": "*", "concurrency": "safe"}}
	config := map[string]any{"mcpServers": servers, "deferred": neverDeferred()["deferred"], "policy": policy} // lists are measured whole
	kept := map[string]any{}
	if within := os.Getenv(benchSyncWithin); within != "" {
		kept["journal"] = map[string]any{"sync_within": within}
	}
	if store := os.Getenv(benchStore); store != "" {
		kept["store"] = store
	}
	if len(kept) > 0 {
		config["persist"] = kept
	}
	text, err := json.Marshal(config)
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	file := filepath.Join(dir, "hub.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	args := []string{"serve", "--config", file, "--state-dir", filepath.Join(dir, "state"), "--log-format", "json"}
	if spec.Door == "http" {
		args = append(args, "--http", "127.0.0.1:0")
	}
	return args
}

// benchEntry is the entry of a server in the hub's config.
func benchEntry(tb testing.TB, s benchSpec) map[string]any {
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	switch {
	case len(s.Program) > 0:
		return map[string]any{"command": s.Program[0], "args": s.Program[1:]}
	case s.URL != "":
		return map[string]any{"type": "http", "url": s.URL}
	}
	return map[string]any{"command": self, "env": map[string]string{benchRole: s.text(), "GORACE": raceOptions}}
}

// client returns a client with a session of its own where there are sessions.
func (t *benchTarget) client() benchClient {
	t.tb.Helper()
	if t.conn != nil {
		return t.conn.newClient()
	}
	return t.clientAt(0)
}

// clientAt returns a client of the n-th address. It is patient: not every proxy says when it serves.
func (t *benchTarget) clientAt(n int) benchClient {
	t.tb.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); ; <-again.C {
		c, err := dialHTTP(&t.ids, t.urls[n])
		if err == nil {
			if c.modern = t.modern; !t.modern {
				err = handshake(c)
			}
			if err == nil {
				t.tb.Cleanup(c.close)
				return c
			}
			c.close()
		}
		switch {
		case t.proxy == nil:
			t.tb.Fatal(err)
		case t.proxy.url != "" || time.Now().After(deadline):
			t.tb.Fatalf("%v\n%s", err, t.proxy.log())
		}
	}
}

// tool is the name under which the tool native of the n-th server is called.
func (t *benchTarget) tool(n int, native string) string {
	if t.named {
		return benchToolName(n, native)
	}
	return native
}

// await waits until the tools of these names are listed: the hub serves before its servers are ready.
func (t *benchTarget) await(c benchClient, names ...string) {
	t.tb.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		pages, err := listAll(c)
		if err != nil {
			t.tb.Fatal(err)
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return slices.ContainsFunc(pages, func(page []byte) bool { return bytes.Contains(page, []byte(`"name":"`+name+`"`)) })
		})
		if len(names) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.tb.Fatalf("tools %q are not listed:\n%s", names, t.proxy.log())
		}
	}
}

// benchCall is the params of a call.
func benchCall(name, arguments string) string {
	return `{"name":"` + name + `","arguments":` + arguments + `}`
}

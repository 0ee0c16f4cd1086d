//go:build e2e

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
)

// eventReader reads one standing stream of events.
type eventReader struct {
	cancel context.CancelFunc
	status int
	lines  chan string // ids and data, until the stream has ended
}

// readEventsOf opens a stream, which is refused unless status is 200.
func readEventsOf(t *testing.T, url, token, last string) *eventReader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	r := &eventReader{cancel: cancel, status: resp.StatusCode, lines: make(chan string, 1000)}
	go func() {
		defer resp.Body.Close()
		defer close(r.lines)
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if text := lines.Text(); text != "" && text != ":" {
				r.lines <- text
			}
		}
	}()
	t.Cleanup(cancel)
	return r
}

// until returns what comes up to an event of that type, and its id.
func (r *eventReader) until(t *testing.T, kind string) (types []string, id string) {
	t.Helper()
	for {
		id = strings.TrimPrefix(await(t, r.lines), "id: ")
		var ev struct {
			EventID string `json:"event_id"`
			Type    string `json:"event_type"`
		}
		mustDecode(t, strings.TrimPrefix(await(t, r.lines), "data: "), &ev)
		if ev.EventID != id {
			t.Errorf("the event %s has the id %q", ev.EventID, id)
		}
		if types = append(types, ev.Type); ev.Type == kind {
			return types, id
		}
	}
}

// TestEventsOfARunningHub: a call that waits for a person is seen at once, in a stream that resumes after its last event. Reading takes a
// token with that right, which ends with the right, and answers nothing.
func TestEventsOfARunningHub(t *testing.T) {
	t.Parallel()
	tokens := []map[string]string{{"name": "ann", "token": "${env:ANN}", "events": "read"}, {"name": "bob", "token": "${env:BOB}"}}
	p := startTokens(t, tokens)
	const ann, bob = "ann-ann-ann-ann-ann", "bob-bob-bob-bob-bob"
	_, api := p.notice(t)
	for at, want := range map[[2]string]int{{p.url, ""}: 401, {p.url, "no-such-token"}: 401, {p.url, bob}: 403} {
		if got := readEventsOf(t, at[0]+"/events", at[1], "").status; got != want {
			t.Errorf("%s with %q: %d, want %d", at[0], at[1], got, want)
		}
	}
	door := readEventsOf(t, p.url+"/events", ann, "")
	local := readEventsOf(t, api+"/events", "", "")
	if door.status != 200 || local.status != 200 {
		t.Fatalf("%d, %d", door.status, local.status)
	}
	w := p.client(rev2025, "Authorization", "Bearer "+bob).open()
	answered := make(chan string, 1)
	go func() { answered <- strings.Join(w.send(w.call("mcp.s.echo", `{"text":"x"}`, "")), "\n") }()
	_, asked := door.until(t, "tool.permission.requested")
	local.until(t, "tool.permission.requested")
	v := p.pending(p.hub())
	for _, path := range []string{"/approvals", "/approvals/" + string(v.ID), "/events/" + string(v.ID)} { // reading is not answering
		if got := requested(t, p.url, [2]string{"POST", path}, "", map[string]string{"Authorization": "Bearer " + ann}); !strings.HasPrefix(got, "404 ") {
			t.Errorf("%s: %s", path, got)
		}
	}
	door.cancel()
	if _, err := p.hub().Answer(t.Context(), string(v.ID), control.Reply{Choice: "allow_once"}); err != nil {
		t.Fatal(err)
	}
	await(t, answered)
	seen, _ := local.until(t, "tool.result.created")
	again := readEventsOf(t, p.url+"/events", ann, asked)
	resumed, _ := again.until(t, "tool.result.created")
	if !slices.Equal(resumed, seen) || len(seen) < 4 {
		t.Errorf("after the question come %q, and for who resumes %q", seen, resumed)
	}

	delete(tokens[0], "events")
	p.write(map[string]any{}, map[string]any{"hub": map[string]any{"auth": map[string]any{"tokens": tokens}}})
	for range again.lines { // until it has ended
	}
	if got := readEventsOf(t, p.url+"/events", ann, "").status; got != 403 {
		t.Errorf("without the right: %d", got)
	}
}

// TestOutcomesOfTheAgentClientProtocol answers questions as a client of that protocol does, in both outcomes.
func TestOutcomesOfTheAgentClientProtocol(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"mode": "default", "ask": map[string]any{"channels": []string{"queue"}}}, nil)
	h, w := p.hub(), p.client(rev2025).open()
	_, api := p.notice(t)
	answer := func(id, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api+"/approvals/"+id, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := httpDo(req)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, c := range []struct{ outcome, want string }{
		{`{"outcome":"selected","optionId":"allow_once"}`, `"text":"1"`},
		{`{"outcome":"selected","optionId":"deny_once"}`, `approval_rejected`},
		{`{"outcome":"cancelled"}`, `approval_rejected`},
	} {
		answered := make(chan string, 1)
		go func() { answered <- strings.Join(w.send(w.call("mcp.s.echo", `{"text":"1"}`, "")), "\n") }()
		id := string(p.pending(h).ID)
		for _, bad := range []string{`{"outcome":{"outcome":"selected"}}`, `{"outcome":{"outcome":"chosen","optionId":"allow_once"}}`,
			`{"choice":"deny_once","outcome":` + c.outcome + `}`, `{"outcome":{"outcome":"selected","optionId":"reject_always"}}`} {
			if got := answer(id, bad); !strings.HasPrefix(got, "409 ") {
				t.Errorf("%s: %s", bad, got)
			}
		}
		if got := answer(id, `{"outcome":`+c.outcome+`}`); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `queue/acp`) {
			t.Errorf("%s: %s", c.outcome, got)
		}
		if got := await(t, answered); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.outcome, got)
		}
	}
}

// TestACPFromNPM: the agent of docs/acp.md, built on the npm package, sends the stream on to a client built on it. The client sees a call's
// updates, and its answer decides a call that waits.
func TestACPFromNPM(t *testing.T) {
	t.Parallel()
	clients := npmClients(t)
	if _, err := os.Stat(filepath.Join(clients, "node_modules", "@agentclientprotocol", "sdk")); err != nil {
		t.Skip(clientsDir + " has no @agentclientprotocol/sdk: npm install it there, as .ci/run does")
	}
	agent := regexp.MustCompile("(?ms)^```js\n(.*?)^```$").FindStringSubmatch(readFile(t, filepath.Join("..", "..", "..", "..", "docs", "acp.md")))
	if agent == nil {
		t.Fatal("docs/acp.md has no agent")
	}
	for kind, want := range map[string]string{"allow_once": `"text":"1"`, "reject_once": "approval_rejected", "cancelled": "approval_rejected"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := startPermitted(t, map[string]any{"mode": "default", "ask": map[string]any{"channels": []string{"queue"}}}, nil)
			c := startACP(t, clients, agent[1], p.state, kind)
			w := p.client(rev2025).open()
			eventually(t, "the client sees an update", func() bool { // the agent may not listen yet
				w.send(w.call("mcp.s.nothing", `{}`, ""))
				return strings.Contains(c.all(), `"status":"failed"`)
			})
			answered := make(chan string, 1)
			go func() { answered <- strings.Join(w.send(w.call("mcp.s.echo", `{"text":"1"}`, "")), "\n") }()
			if got := await(t, answered); !strings.Contains(got, want) {
				t.Errorf("the call was answered %s", got)
			}
			last := map[string]string{"allow_once": "completed"}[kind]
			if last == "" {
				last = "failed"
			}
			var call struct {
				Asked struct {
					ToolCall struct {
						ID string `json:"toolCallId"`
					} `json:"toolCall"`
				}
			}
			eventually(t, "the client has the end of the call", func() bool {
				for line := range strings.Lines(c.all()) {
					if strings.HasPrefix(line, `{"asked"`) && json.Unmarshal([]byte(line), &call) != nil {
						t.Fatal(line)
					}
				}
				id := call.Asked.ToolCall.ID
				return id != "" && strings.Contains(c.all(), `{"toolCallId":"`+id+`","status":"`+last+`"`)
			})
		})
	}
}

// acpClient is a client of the Agent Client Protocol, which has started an agent.
type acpClient struct {
	mu   sync.Mutex
	said strings.Builder
}

// all is what it has been told so far, one JSON object a line.
func (c *acpClient) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.String()
}

func startACP(t *testing.T, clients, agent, state, answer string) *acpClient {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.mjs")
	client := readFile(t, filepath.Join("..", "..", "..", "..", "testdata", "clients", "acp.mjs"))
	for name, text := range map[string]string{file: agent, filepath.Join(dir, "client.mjs"): client} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(clients, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "client.mjs"), file, state, answer)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, scratchEnv(dir), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	end, err := cmd.StdinPipe() // the client ends with it
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, read := &acpClient{}, make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.mu.Lock()
			c.said.WriteString(lines.Text() + "\n")
			c.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = end.Close()
		<-read
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the client was told\n%s", c.all())
		}
	})
	return c
}

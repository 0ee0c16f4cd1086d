package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/internal/sessionid"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// replicas are hubs with the same key and record, as one that is restarted is too. seen are the calls that they ran.
type replicas struct {
	key   []byte
	ended string
	seen  chan *tool.Execution
}

func newReplicas(t *testing.T) *replicas {
	return &replicas{key: bytes.Repeat([]byte{1}, seal.KeySize), ended: t.TempDir(),
		seen: make(chan *tool.Execution, 100)}
}

func (r *replicas) start(t *testing.T, cfg Config) (*Server, string) {
	f := &far{key: r.key, ended: r.ended, execute: func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		r.seen <- e
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}}
	f.offer("echo")
	// which may have prompts and resources
	f.surface.Features = tool.NewFeatures(tool.Features{Servers: []string{"s"}}, nil, nil)
	s := newServer(t, cfg, f)
	return s, serve(t, s)
}

func end(t *testing.T, url, id string, headers ...string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	setHeaders(req, append(headers, headerSession, id))
	resp, err := web().Do(req)
	if err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatalf("DELETE: %v, %v", resp, err)
	}
	resp.Body.Close()
}

// changedAt is id with another letter at i.
func changedAt(id string, i int) string {
	letter := "A"
	if id[i] == 'A' {
		letter = "B"
	}
	return id[:i] + letter + id[i+1:]
}

func setHeaders(r *http.Request, headers []string) {
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
}

func TestAnotherHubTakesASessionUp(t *testing.T) {
	t.Parallel()
	hubs := newReplicas(t)
	_, first := hubs.start(t, Config{})
	_, second := hubs.start(t, Config{})
	status, h, got := post(t, first+"/mcp", capable("2025-11-25", `{"elicitation":{},"roots":{}}`))
	id := h.Get(headerSession)
	if status != 200 || len(id) > sessionid.MaxLength {
		t.Fatalf("initialize: %d %v, an id of %d bytes", status, got, len(id))
	}
	var before *tool.Execution
	for _, url := range []string{first, second, first} {
		if status, _, got := post(t, url+"/mcp", callEcho, headerSession, id, headerVersion,
			"2025-11-25"); status != 200 {
			t.Fatalf("call: %d %v", status, got)
		}
		e := <-hubs.seen
		if strings.Contains(e.Session.Key, id) || strings.Contains(e.Session.Name, id) || e.Actor.Session == id {
			t.Error("the id itself gets further than the door")
		}
		if before == nil {
			before = e
		}
		if e.Session.Key != before.Session.Key || e.Actor != before.Actor ||
			string(e.Hop.ClientCapabilities) != `{"elicitation":{},"roots":{}}` ||
			e.Actor.Client.Name == "" || e.Actor.Client.ProtocolVersion != "2025-11-25" {
			t.Errorf("the call is of %+v with %s, before of %+v", e.Actor, e.Hop.ClientCapabilities, before.Actor)
		}
	}
	if status, _, got := post(t, second+"/mcp", ping, headerSession, id); status != 200 ||
		!strings.Contains(got[0], `"result":{}`) {
		t.Errorf("ping: %d %v", status, got)
	}
	if status, _, got := post(t, second+"/mcp", initialized, headerSession, id); status != 202 {
		t.Errorf("notification: %d %v", status, got)
	}
	if status, _, got := post(t, second+"/mcp", `{"jsonrpc":"2.0","id":"hub-1","result":{}}`, headerSession,
		id); status != 202 {
		t.Errorf("the answer to a question of another hub: %d %v", status, got)
	}
}

func TestNobodyElseTakesASessionUp(t *testing.T) {
	t.Parallel()
	hubs := newReplicas(t)
	cfg := Config{Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: "secret-of-ann-0123"},
		{Name: "bob", Secret: "secret-of-bob-0123"}}}}
	ann, bob := []string{"Authorization", "Bearer secret-of-ann-0123"},
		[]string{"Authorization", "Bearer secret-of-bob-0123"}
	_, first := hubs.start(t, cfg)
	id := open(t, first+"/mcp", "2025-11-25", ann...)
	renewed := Config{Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: "secret-of-ann-4567"}}}}
	foreign := newReplicas(t)
	foreign.key = bytes.Repeat([]byte{2}, seal.KeySize)
	_, restarted := hubs.start(t, cfg)
	_, open := hubs.start(t, Config{})
	_, changed := hubs.start(t, renewed)
	_, other := foreign.start(t, cfg)
	for name, c := range map[string]struct {
		url    string
		as     []string
		id     string
		status int
	}{
		"another caller":              {restarted + "/mcp", bob, id, 404},
		"nobody":                      {restarted + "/mcp", nil, id, 401},
		"another profile":             {restarted + "/mcp/p/other", ann, id, 404},
		"a view":                      {restarted + "/mcp/s/s", ann, id, 404},
		"a hub where nobody signs in": {open + "/mcp", nil, id, 404},
		"another token of that name": {changed + "/mcp", []string{"Authorization", "Bearer secret-of-ann-4567"}, id,
			404},
		"a hub with another key": {other + "/mcp", ann, id, 404},
		"a changed id":           {restarted + "/mcp", ann, changedAt(id, 40), 404},
		"a cut id":               {restarted + "/mcp", ann, id[:len(id)-1], 404},
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			req, err := http.NewRequestWithContext(t.Context(), method, c.url, strings.NewReader(callEcho))
			if err != nil {
				t.Fatal(err)
			}
			setHeaders(req, append(c.as, headerSession, c.id, "Content-Type", "application/json", "Accept",
				"application/json, text/event-stream"))
			resp, err := web().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("%s, %s: status %d, want %d", name, method, resp.StatusCode, c.status)
			}
		}
	}
	if len(hubs.seen)+len(foreign.seen) != 0 {
		t.Error("a call has run")
	}
	if status, _, got := post(t, restarted+"/mcp", callEcho, append(ann, headerSession, id)...); status != 200 {
		t.Errorf("its own caller: %d %v", status, got)
	}
}

func TestEndedSessionsAreNotTakenUp(t *testing.T) {
	t.Parallel()
	hubs := newReplicas(t)
	cfg := Config{HTTP: HTTPConfig{MaxSessions: 1}}
	_, first := hubs.start(t, cfg)
	evicted := open(t, first+"/mcp", "2025-11-25")
	deleted := open(t, first+"/mcp", "2025-11-25")
	end(t, first+"/mcp", deleted)
	never := open(t, first+"/mcp", "2025-11-25")
	_, second := hubs.start(t, cfg)
	end(t, second+"/mcp", never) // without a call in it before
	_, third := hubs.start(t, cfg)
	for name, id := range map[string]string{"evicted": evicted, "deleted": deleted, "deleted at once": never} {
		for hub, url := range map[string]string{"first": first, "second": second, "third": third} {
			if id == never && hub == "first" {
				continue // which has it still, and does not ask what others ended
			}
			if status, _, _ := post(t, url+"/mcp", callEcho, headerSession, id); status != 404 {
				t.Errorf("%s, at the %s hub: status %d", name, hub, status)
			}
		}
	}
}

// An idle session leaves the hub's memory, and comes back when its client goes on.
func TestIdleSessionIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	hubs := newReplicas(t)
	s, url := hubs.start(t, Config{HTTP: HTTPConfig{SessionIdle: time.Millisecond}})
	id := open(t, url+"/mcp", "2025-11-25")
	var sessions []tool.Session
	for range 2 {
		if status, _, got := post(t, url+"/mcp", callEcho, headerSession, id); status != 200 {
			t.Fatalf("call: %d %v", status, got)
		}
		e := <-hubs.seen
		isOver(t, e.Session)
		sessions = append(sessions, e.Session)
	}
	if sessions[0].Key != sessions[1].Key || sessions[0].Ended == sessions[1].Ended {
		t.Errorf("sessions %+v", sessions)
	}
	if n := s.sessions.count(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// What was not taken up with a session, its client is told as changes, on the first stream that it opens.
func TestTakenUpSessionIsToldOfChanges(t *testing.T) {
	t.Parallel()
	hubs := newReplicas(t)
	_, first := hubs.start(t, Config{})
	_, second := hubs.start(t, Config{})
	id := open(t, first+"/mcp", "2025-11-25")
	events := stream(t, http.MethodGet, second+"/mcp", "", headerSession, id, headerVersion, "2025-11-25")
	for _, want := range []string{tool.NoteToolsChanged, tool.NotePromptsChanged, tool.NoteResourcesChanged} {
		select {
		case got := <-events:
			if !strings.Contains(got, want) {
				t.Errorf("told %s, want %s", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s was not told", want)
		}
	}
}

// Requests that come at the same time take a session up once.
func TestSessionIsTakenUpOnce(t *testing.T) {
	t.Parallel()
	hubs := newReplicas(t)
	_, first := hubs.start(t, Config{})
	s, second := hubs.start(t, Config{})
	id := open(t, first+"/mcp", "2025-11-25")
	var calling sync.WaitGroup
	for i := range 20 {
		calling.Go(func() {
			call := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"mcp.s.echo"}}`, i)
			if status, _, got := post(t, second+"/mcp", call, headerSession, id); status != 200 {
				t.Errorf("call: %d %v", status, got)
			}
		})
	}
	calling.Wait()
	ended := (<-hubs.seen).Session.Ended
	for range 19 {
		if e := <-hubs.seen; e.Session.Ended != ended {
			t.Error("it was taken up twice")
		}
	}
	if n := s.sessions.count(); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// A hub that stops takes no session up, and does not say that there is none: its client would give it up.
func TestStoppingHubTakesNoSessionUp(t *testing.T) {
	t.Parallel()
	hubs := newReplicas(t)
	s, url := hubs.start(t, Config{})
	id := open(t, url+"/mcp", "2025-11-25")
	s.Drain(t.Context())
	for _, c := range [][]string{{callEcho, headerSession, id}, {fmt.Sprintf(initialize, "2025-11-25")}} {
		if status, h, got := post(t, url+"/mcp", c[0], c[1:]...); status != http.StatusServiceUnavailable ||
			h.Get("Retry-After") == "" {
			t.Errorf("status %d %v", status, got)
		}
	}
	_, again := hubs.start(t, Config{})
	if status, _, got := post(t, again+"/mcp", callEcho, headerSession, id); status != 200 {
		t.Errorf("after the restart: %d %v", status, got)
	}
}

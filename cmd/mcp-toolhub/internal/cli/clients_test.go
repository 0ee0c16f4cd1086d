package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// turnstile is a scripted server over HTTP with a tool "gate" that answers when the test lets it, and says whom it answers.
type turnstile struct {
	url     string
	reached chan string // who has come to the gate
	left    chan string // whose request has been given up

	mu   sync.Mutex
	open map[string]chan struct{}
}

func newTurnstile(t testing.TB) *turnstile {
	t.Helper()
	g := &turnstile{reached: make(chan string, 100), left: make(chan string, 100), open: map[string]chan struct{}{}}
	g.url = fakeHTTP(t, upstreamtest.Options{
		Script:    upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("gate"), upstreamtest.Tool("echo")}},
		Intercept: g.intercept,
	})
	return g
}

func (g *turnstile) entry() map[string]any { return map[string]any{"type": "http", "url": g.url} }

// lock is what holds the call of who.
func (g *turnstile) lock(who string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[who] == nil {
		g.open[who] = make(chan struct{})
	}
	return g.open[who]
}

func (g *turnstile) intercept(w http.ResponseWriter, r *http.Request, body []byte) bool {
	var m struct {
		ID     json.RawMessage
		Params struct {
			Name      string
			Arguments struct{ Who string }
		}
	}
	if r.Method != http.MethodPost || json.Unmarshal(body, &m) != nil || m.Params.Name != "gate" {
		return false
	}
	who := m.Params.Arguments.Who
	g.reached <- who
	select {
	case <-g.lock(who):
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"for %s"}]}}`, m.ID, who)
	case <-r.Context().Done():
		g.left <- who
	}
	return true
}

//go:build unix

package upstream_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// learn lets a group learn what servers offer, and closes it.
func learn(t *testing.T, store *memory, servers ...upstream.ServerConfig) {
	t.Helper()
	h := startConfig(t, upstream.Config{Servers: servers, Catalogs: store})
	for _, s := range servers {
		h.ready(t, s.ID)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// gate holds requests back while it is shut.
type gate struct {
	mu     sync.Mutex
	opened chan struct{}
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
}

func (g *gate) intercept(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	select {
	case <-opened:
		return false
	case <-r.Context().Done():
		return true
	}
}

// tools are declarations of tools of these names.
func tools(names ...string) []json.RawMessage {
	var out []json.RawMessage
	for _, name := range names {
		out = append(out, upstreamtest.Tool(name))
	}
	return out
}

// gatedHTTP is a server that answers nothing before the gate is opened.
func gatedHTTP(t *testing.T, id string, o upstreamtest.Options) (upstream.ServerConfig, *upstreamtest.Handler, *gate) {
	t.Helper()
	g := newGate()
	t.Cleanup(g.open)
	o.Intercept = g.intercept
	cfg, handler := overHTTP(t, id, o)
	return cfg, handler, g
}

func TestCatalogIsListedBeforeTheServerIsUp(t *testing.T) {
	t.Parallel()
	store := newMemory()
	cfg, fake, gate := gatedHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Instructions: "Be kind."}})
	gate.open()
	learn(t, store, cfg)
	was := store.saved()
	gate.shut()

	told := make(chan int, 100)
	h := &harness{log: &logBuffer{}}
	var err error
	h.Group, err = upstream.NewGroup(upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: store}, discard())
	if err != nil {
		t.Fatal(err)
	}
	h.OnChange(func() {
		if !h.catalog("s").Pending {
			told <- len(h.catalog("s").Tools)
		}
	})
	c := h.catalog("s") // before it is even started
	if len(c.Tools) != 13 || !c.Pending || c.Instructions != "Be kind." || c.Title != "Fake fake" {
		t.Errorf("listed %d tools, pending %v, title %q", len(c.Tools), c.Pending, c.Title)
	}
	h.Start(t.Context())
	defer func() { _ = h.Close(t.Context()) }()
	if st := h.status("s"); st.State != tool.ServerStarting || !st.Cached || st.Tools != 13 {
		t.Errorf("status %+v", st)
	}
	fake.AddTool(upstreamtest.Tool("meanwhile"))
	gate.open()
	if n := <-told; n != 14 {
		t.Errorf("%d tools once the server is up, want 14", n)
	}
	if st := h.ready(t, "s"); st.Cached {
		t.Errorf("status %+v", st)
	}
	eventually(t, "the new catalog is kept", func() bool { return store.saved() > was })
}

// TestCatalogThatIsKeptIsNotSavedAgain checks that what has not changed is confirmed, and written once only.
func TestCatalogThatIsKeptIsNotSavedAgain(t *testing.T) {
	t.Parallel()
	store := newMemory()
	cfg := stdio("s", upstreamtest.Script{})
	for range 3 {
		learn(t, store, cfg)
	}
	if n := store.saved(); n != 1 {
		t.Errorf("saved %d times, want once", n)
	}
}

func TestCorruptedCatalogIsIgnored(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{})
	store := newMemory()
	learn(t, store, cfg)
	var sound []byte
	for _, data := range store.all() {
		sound = data
	}
	for name, data := range map[string]string{
		"empty": "", "text": "hello", "cut": string(sound[:len(sound)/2]), "null": "null", "array": "[]", "no tools": `{"title":"x"}`,
		"tools no array": `{"tools":"x"}`, "tools null": `{"tools":null}`, "more": string(sound) + "x", "NUL": string(sound) + "\x00",
		"deep":          `{"tools":[` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `]}`,
		"tools no maps": `{"title":7,"instructions":{},"tools":[1,"a",null,{},{"name":7}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newMemory()
			learn(t, store, cfg)
			store.rewrite([]byte(data))
			never := upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: store}
			g, err := upstream.NewGroup(never, discard())
			if err != nil {
				t.Fatal(err)
			}
			if c := g.Catalogs()[0]; len(c.Tools) != 0 || !c.Pending {
				t.Errorf("listed %d tools, pending %v", len(c.Tools), c.Pending)
			}
			h := startConfig(t, never)
			h.ready(t, "s")
			if c := h.catalog("s"); len(c.Tools) != 13 || c.Pending {
				t.Errorf("listed %d tools, pending %v", len(c.Tools), c.Pending)
			}
			eventually(t, "what was corrupted is replaced", func() bool { return store.saved() == 2 })
			for _, data := range store.all() {
				if len(data) != len(sound) {
					t.Errorf("what was corrupted stays: %.100s", data)
				}
			}
		})
	}
}

// TestIdentity checks which changes of an entry make another server of it, and that no secret is kept.
func TestIdentity(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-77"
	child := stdio("s", upstreamtest.Script{})
	child.Env = append(child.Env, "TOKEN="+canary)
	child.Args = []string{"--key", canary}
	web, _ := overHTTP(t, "s", upstreamtest.Options{})
	web.URL += "?key=" + canary
	web.Headers = map[string]string{"Authorization": "Bearer " + canary}
	for name, c := range map[string]struct {
		base   upstream.ServerConfig
		change func(*upstream.ServerConfig)
		other  bool
	}{
		"nothing":  {child, func(*upstream.ServerConfig) {}, false},
		"command":  {child, func(c *upstream.ServerConfig) { c.Command += "x" }, true},
		"args":     {child, func(c *upstream.ServerConfig) { c.Args = []string{"--key", "another"} }, true},
		"env":      {child, func(c *upstream.ServerConfig) { c.Env = append(c.Env[:len(c.Env):len(c.Env)], "A=b") }, true},
		"cwd":      {child, func(c *upstream.ServerConfig) { c.Dir = "/tmp" }, true},
		"url":      {web, func(c *upstream.ServerConfig) { c.URL += "x" }, true},
		"headers":  {web, func(c *upstream.ServerConfig) { c.Headers = nil }, true},
		"type":     {web, func(c *upstream.ServerConfig) { c.Transport = upstream.SSE }, true},
		"id":       {child, func(c *upstream.ServerConfig) { c.ID = "renamed" }, false},
		"tags":     {child, func(c *upstream.ServerConfig) { c.Tags = []string{"x"}; c.Trust = true }, false},
		"timeouts": {web, func(c *upstream.ServerConfig) { c.Timeouts.Call = time.Hour; c.Lazy = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newMemory()
			learn(t, store, c.base)
			for key, data := range store.all() {
				if strings.Contains(key+string(data), canary) {
					t.Error("a secret of the entry is kept")
				}
			}
			next := c.base
			c.change(&next)
			g, err := upstream.NewGroup(upstream.Config{Servers: []upstream.ServerConfig{next}, Catalogs: store}, discard())
			if err != nil {
				t.Fatal(err)
			}
			if known := len(g.Catalogs()[0].Tools) > 0; known == c.other {
				t.Errorf("tools known: %v", known)
			}
		})
	}
}

// TestBackToAnEarlierEntry checks that the tools of the entry count, not those of the one before, where both are known.
func TestBackToAnEarlierEntry(t *testing.T) {
	t.Parallel()
	store := newMemory()
	first, second := stdio("s", upstreamtest.Script{}), stdio("s", upstreamtest.Script{Tools: tools("other")})
	learn(t, store, first)
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{second}, Catalogs: store})
	h.ready(t, "s")
	end := filepath.Join(t.TempDir(), "end")
	inFlight := h.waiting(t, "s", end)
	h.apply(t, first)
	if c := h.catalog("s"); len(c.Tools) != 13 || !c.Pending {
		t.Errorf("listed %d tools, pending %v", len(c.Tools), c.Pending)
	}
	touch(t, end)
	if err := <-inFlight; err != nil {
		t.Error(err)
	}
}

// only holds back requests of one method until g is opened.
func only(method string, g *gate) func(http.ResponseWriter, *http.Request, []byte) bool {
	return func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		return bytes.Contains(body, []byte(`"`+method+`"`)) && g.intercept(w, r, body)
	}
}

//go:build unix

package upstream_test

import (
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

const hour = `,"ttlMs":3600000,"cacheScope":"public"`

// TestFreshness checks what is known of keeping a server's lists: what all pages say together, counted from when they were
// asked for, and nothing where the revision does not have it or what is said is not well-formed.
func TestFreshness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script upstreamtest.Script
		method string
		ttl    time.Duration
		public bool
		none   bool
	}{
		"said":                  {script: upstreamtest.Script{Modern: true, Hints: map[string][]string{"tools": {hour}}}, ttl: time.Hour, public: true},
		"another list":          {script: upstreamtest.Script{Modern: true, Hints: map[string][]string{"tools": {hour}}, Features: full()}, method: "prompts/list"},
		"a list there is not":   {script: upstreamtest.Script{Modern: true, Hints: map[string][]string{"tools": {hour}}}, method: "prompts/list", none: true},
		"templates":             {script: upstreamtest.Script{Modern: true, Hints: map[string][]string{"resourceTemplates": {hour}}, Features: full()}, method: "resources/templates/list", ttl: time.Hour, public: true},
		"before 2026-07-28":     {script: upstreamtest.Script{Hints: map[string][]string{"tools": {hour}}}},
		"nothing":               {script: upstreamtest.Script{Modern: true}},
		"the shortest page":     {script: upstreamtest.Script{Modern: true, PageSize: 5, Hints: map[string][]string{"tools": {hour, `,"ttlMs":1800000,"cacheScope":"public"`, hour}}}, ttl: time.Hour / 2, public: true},
		"the most private page": {script: upstreamtest.Script{Modern: true, PageSize: 5, Hints: map[string][]string{"tools": {hour, `,"ttlMs":7200000,"cacheScope":"private"`}}}, ttl: time.Hour},
		"a page without":        {script: upstreamtest.Script{Modern: true, PageSize: 5, Hints: map[string][]string{"tools": {hour, ``}}}},
		"no number":             {script: upstreamtest.Script{Modern: true, Hints: map[string][]string{"tools": {`,"ttlMs":"3600000","cacheScope":"PUBLIC"`}}}},
		"before now":            {script: upstreamtest.Script{Modern: true, Hints: map[string][]string{"tools": {`,"ttlMs":-3600000,"cacheScope":["public"]`}}}},
		"for ever":              {script: upstreamtest.Script{Modern: true, Hints: map[string][]string{"tools": {`,"ttlMs":9007199254740991,"cacheScope":"public"`}}}, ttl: 1<<63 - 1, public: true},
		"beyond numbers":        {script: upstreamtest.Script{Modern: true, Hints: map[string][]string{"tools": {`,"ttlMs":1e400,"cacheScope":"public"`}}}, public: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			h := start(t, stdio("s", c.script))
			h.ready(t, "s")
			if len(c.script.Features.Prompts) > 0 {
				h.listed(t, "s", 7)
			}
			if c.method == "" {
				c.method = "tools/list"
			}
			f, ok := h.Freshness("s", c.method)
			if ok == c.none || f.Public != c.public || f.Until.IsZero() != (c.ttl == 0) {
				t.Fatalf("known is %+v, %v", f, ok)
			}
			if left, took := time.Until(f.Until), time.Since(began); c.ttl > 0 && (left > c.ttl || left < c.ttl-took-time.Second) {
				t.Errorf("after %s %s are left of %s", took, left, c.ttl)
			}
		})
	}
}

// TestFreshnessEnds checks that what a server said holds for what it listed then: not once it has told of a change, until it
// has listed that, and not while it is down; but while it sleeps.
func TestFreshnessEnds(t *testing.T) {
	t.Parallel()
	script := upstreamtest.Script{Modern: true, Features: full(), Hints: map[string][]string{"tools": {hour}, "prompts": {hour}}}
	lazy := stdio("lazy", script)
	lazy.IdleStop = 50 * time.Millisecond
	disabled := stdio("disabled", script)
	disabled.Disabled = true
	h := newHarness(t, upstream.Config{Servers: []upstream.ServerConfig{stdio("s", script), lazy, disabled}, RetryMin: time.Hour, RetryMax: time.Hour})
	h.Start(t.Context())
	h.listed(t, "s", 7)
	fresh := func(server, method string) bool {
		f, _ := h.Freshness(server, method)
		return time.Until(f.Until) > 50*time.Minute && f.Public
	}
	if !fresh("s", "tools/list") || !fresh("s", "prompts/list") || fresh("s", "resources/list") || fresh("nobody", "tools/list") || fresh("s", "nothing/list") {
		t.Error("not as said")
	}
	first, _ := h.Freshness("s", "tools/list")
	eventually(t, "the hub listens", func() bool {
		h.mustCall(t, "s", "flood", `{"n":1}`) // of a change that is none; what is told before the hub listens is told to nobody
		f, _ := h.Freshness("s", "tools/list")
		return f != first
	})
	eventually(t, "it has listed again", func() bool {
		f, _ := h.Freshness("s", "tools/list")
		return f.Until.After(first.Until)
	})
	first, _ = h.Freshness("s", "tools/list")
	n := h.Changes()
	h.mustCall(t, "s", "grow", `{"name":"more"}`)
	if f, _ := h.Freshness("s", "tools/list"); f == first {
		t.Error("what was said of a list holds after a change")
	}
	grown := time.Now()
	eventually(t, "it has listed again", func() bool {
		f, _ := h.Freshness("s", "tools/list")
		has := len(h.catalog("s").Tools) == 14
		if !has && f.Until.After(grown.Add(time.Hour)) {
			t.Error("what is said of a list is known before the list")
		}
		return has && f.Until.After(first.Until)
	})
	if h.Changes() == n {
		t.Error("a list has changed, and nobody is told")
	}
	if !fresh("s", "prompts/list") {
		t.Error("what was said of another list is forgotten")
	}
	second, _ := h.Freshness("s", "tools/list")
	h.mustCall(t, "s", "flood", `{"n":1}`) // of a change that is none
	eventually(t, "it has listed again", func() bool {
		f, _ := h.Freshness("s", "tools/list")
		return f.Until.After(second.Until)
	})
	eventually(t, "the lazy one sleeps", func() bool { return h.status("lazy").State == tool.ServerStopped && fresh("lazy", "tools/list") })
	if _, ok := h.Freshness("disabled", "tools/list"); ok {
		t.Error("a server that is disabled has a list")
	}
	_, _ = h.call(t.Context(), "s", "die", `{}`)
	eventually(t, "it is down", func() bool { return h.status("s").State == tool.ServerBackoff })
	if f, ok := h.Freshness("s", "tools/list"); !ok || f != (tool.Freshness{}) {
		t.Errorf("of a server that is down %+v is known", f)
	}
	exits := stdio("s", upstreamtest.Script{Behaviours: []upstreamtest.Behaviour{upstreamtest.ExitsAtOnce}})
	if err := h.Apply(upstream.Config{Servers: []upstream.ServerConfig{exits}}); err != nil {
		t.Fatal(err)
	}
	if f, ok := h.Freshness("s", "tools/list"); !ok || f != (tool.Freshness{}) {
		t.Errorf("of what another server listed %+v is known", f)
	}
}

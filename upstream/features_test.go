//go:build unix

package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

func raws(texts ...string) []json.RawMessage {
	out := []json.RawMessage{}
	for _, text := range texts {
		out = append(out, json.RawMessage(text))
	}
	return out
}

// full are features of every kind, in forms that a decoder and an encoder in between would change.
func full() upstreamtest.Features {
	return upstreamtest.Features{
		Prompts: raws(`{"name":"greet","z":1.50,"arguments":[{"name":"who","required":true}],"icons":[{"src":"data:,<>"}]}`,
			`{"future":{"b":1,"a":123456789012345678901234567890},"name":"\u0062ye"}`, `{"name":"three"}`),
		Resources: raws(`{"uri":"file:///a%20b","name":"a","size":1E+2,"_meta":{"k":"\u003c"}}`, `{"name":"ui","uri":"ui://x/y"}`,
			`{"uri":"three://","name":""}`),
		Templates:  raws(`{"uriTemplate":"file:///{path}","name":"any","annotations":{"x":null}}`),
		Subscribes: true, Logs: true, Completes: true,
	}
}

func declarations(offers []tool.Offer) string {
	var all []string
	for _, o := range offers {
		all = append(all, string(o.Declaration))
	}
	return strings.Join(all, "\n")
}

func texts(raw []json.RawMessage) string {
	var all []string
	for _, one := range raw {
		all = append(all, string(one))
	}
	return strings.Join(all, "\n")
}

func natives(offers []tool.Offer) string {
	var all []string
	for _, o := range offers {
		all = append(all, o.Native)
	}
	return strings.Join(all, " ")
}

// listed waits until the server id is ready, and has listed n prompts, resources and templates in all: the hub does not wait
// for these where the server is slow.
func (h *harness) listed(t testing.TB, id string, n int) {
	t.Helper()
	h.ready(t, id)
	eventually(t, "the features are listed", func() bool {
		c := h.catalog(id)
		return len(c.Prompts)+len(c.Resources)+len(c.Templates) == n
	})
}

// eachWay runs a test for servers with all features, reached in every way.
func eachWay(t *testing.T, test func(t *testing.T, w way)) {
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.script.Features = full()
			test(t, w)
		})
	}
}

func TestFeaturesAreListedUnchanged(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		w.script.PageSize = 2
		h := start(t, w.config(t, "s"))
		h.listed(t, "s", 7)
		c, f := h.catalog("s"), full()
		for _, one := range []struct {
			got  []tool.Offer
			want []json.RawMessage
		}{{c.Prompts, f.Prompts}, {c.Resources, f.Resources}, {c.Templates, f.Templates}} {
			want := texts(one.want)
			if strings.HasSuffix(w.name, "pretty") {
				want = ""
				for i, d := range one.want {
					want += strings.Repeat("\n", min(i, 1)) + compact(t, string(d))
				}
			}
			if got := declarations(one.got); got != want {
				t.Errorf("listed\n%s\nwant\n%s", got, want)
			}
		}
		if got := natives(c.Prompts) + " " + natives(c.Resources) + " " + natives(c.Templates); got !=
			"greet bye three file:///a%20b ui://x/y three:// file:///{path}" {
			t.Errorf("names %s", got)
		}
		if all := (tool.Abilities{Prompts: true, Resources: true, Subscribe: true, Completions: true, Logging: true}); c.Abilities != all {
			t.Errorf("abilities %+v", c.Abilities)
		}
		if len(c.Tools) != 13 || len(c.Excluded) != 0 {
			t.Errorf("%d tools, excluded %v", len(c.Tools), c.Excluded)
		}
	})
}

func TestServersWithoutFeatures(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("s", upstreamtest.Script{}))
	h.ready(t, "s")
	if c := h.catalog("s"); c.Abilities != (tool.Abilities{}) || len(c.Prompts)+len(c.Resources)+len(c.Templates) > 0 {
		t.Errorf("catalog %+v", c)
	}
}

// TestServersWithoutTemplates checks the many servers that have resources, and do not know the list of templates.
func TestServersWithoutTemplates(t *testing.T) {
	t.Parallel()
	f := full()
	f.Templates = nil
	h := start(t, stdio("s", upstreamtest.Script{Features: f}))
	h.listed(t, "s", 6)
	if c := h.catalog("s"); len(c.Resources) != 3 || len(c.Templates) != 0 {
		t.Errorf("catalog %+v", c)
	}
	if strings.Contains(h.log.String(), "templates/list") {
		t.Error("that is told as if something were wrong")
	}
}

func TestFeaturesChange(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		h := start(t, w.config(t, "s"))
		h.ready(t, "s")
		for list, step := range map[string]struct {
			key  string
			look func(tool.Catalog) []tool.Offer
		}{
			"prompts":           {"name", func(c tool.Catalog) []tool.Offer { return c.Prompts }},
			"resources":         {"uri", func(c tool.Catalog) []tool.Offer { return c.Resources }},
			"resourceTemplates": {"uriTemplate", func(c tool.Catalog) []tool.Offer { return c.Templates }},
		} {
			offer := fmt.Sprintf(`{"list":%q,"items":[{"%s":"new://%s"}]}`, list, step.key, list)
			eventually(t, list+" are those of now", func() bool {
				if natives(step.look(h.catalog("s"))) == "new://"+list {
					return true
				}
				h.mustCall(t, "s", "offer", offer) // again: what is told before the hub listens is told to nobody
				return false
			})
		}
		if c := h.catalog("s"); len(c.Tools) != 13 || natives(c.Prompts) != "new://prompts" {
			t.Errorf("the rest changed: %d tools, prompts %s", len(c.Tools), natives(c.Prompts))
		}
	})
}

// TestFeaturesThatCannotBeListed checks that they cost the server nothing else.
func TestFeaturesThatCannotBeListed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behaviours []upstreamtest.Behaviour
		prompts    int
		status     string // what its last error says
	}{
		"silent":   {[]upstreamtest.Behaviour{upstreamtest.SilentFeatures}, 0, "did not end within 2s"},
		"refusing": {[]upstreamtest.Behaviour{upstreamtest.RefusesFeatures}, 0, "prompts/list was refused"},
		"endless":  {[]upstreamtest.Behaviour{upstreamtest.NoTools, upstreamtest.EndlessCursor}, 0, "did not end within 4 pages"},
		"repeated": {[]upstreamtest.Behaviour{upstreamtest.NoTools, upstreamtest.RepeatedCursor}, 6, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := stdio("s", upstreamtest.Script{Features: full(), Behaviours: c.behaviours})
			if name == "silent" {
				cfg.Timeouts = upstream.Timeouts{Connect: 3 * time.Second, List: 2 * time.Second}
			}
			cfg.Limits.Pages = 4
			h := start(t, cfg)
			h.ready(t, "s")
			if name == "repeated" {
				h.listed(t, "s", 7)
			}
			got := h.catalog("s")
			if len(got.Prompts)+len(got.Excluded) != c.prompts && name != "repeated" || got.Pending {
				t.Errorf("catalog %+v", got)
			}
			if name == "repeated" && natives(got.Prompts) != "greet bye three" {
				t.Errorf("prompts %s", natives(got.Prompts))
			}
			if n := len(got.Tools); n != 13 && len(c.behaviours) == 1 {
				t.Errorf("%d tools", n)
			}
			h.mustCall(t, "s", "raw", `{"result":{}}`)
			eventually(t, "the log says what is wrong", func() bool {
				return strings.Contains(h.log.String(), "prompts/list")
			})
			eventually(t, "the status says it, too, with what to do", func() bool {
				st := h.status("s")
				return strings.Contains(st.LastError, c.status) && (st.Hint != "") == (c.status != "") && st.State == tool.ServerReady
			})
		})
	}
}

// TestListedAfterAll checks that the status of a server says that a list was refused until that is read.
func TestListedAfterAll(t *testing.T) {
	t.Parallel()
	var refused atomic.Bool
	refused.Store(true)
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Features: full()},
		Intercept: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
			id, _ := rawjson.Get(body, "id")
			if !refused.Load() || !strings.Contains(string(body), `"method":"prompts/list"`) {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no prompts today"}}`, id)
			return true
		}})
	h := start(t, cfg)
	h.ready(t, "s")
	if st := h.status("s"); !strings.Contains(st.LastError, "no prompts today") {
		t.Errorf("status %+v", st)
	}
	refused.Store(false)
	eventually(t, "there are prompts, and no error", func() bool {
		h.mustCall(t, "s", "offer", `{"list":"prompts","items":[{"name":"new"}]}`)
		return h.status("s").LastError == "" && len(h.catalog("s").Prompts) > 0
	})
}

// TestSlowListsAreReadLater checks that a server that lists slowly is used before it has.
func TestSlowListsAreReadLater(t *testing.T) {
	t.Parallel()
	opened := newGate()
	t.Cleanup(opened.open)
	slow, _ := overHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Features: full()},
		Intercept: only("prompts/list", opened)})
	slow.Timeouts.Connect = time.Second
	h := start(t, slow)
	h.ready(t, "s")
	if c := h.catalog("s"); len(c.Tools) != 13 || len(c.Prompts) != 0 {
		t.Errorf("%d tools, %d prompts", len(c.Tools), len(c.Prompts))
	}
	eventually(t, "the resources are listed", func() bool { return len(h.catalog("s").Resources) == 3 })
	opened.open()
	eventually(t, "the prompts are listed", func() bool { return len(h.catalog("s").Prompts) == 3 })
}

func TestOffersAreAdmittedOneByOne(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000)
	cfg := stdio("s", upstreamtest.Script{Features: upstreamtest.Features{
		Prompts: raws(`{"name":"ok"}`, `{}`, `{"name":""}`, `{"name":7}`, `7`, `{"name":"ok","other":1}`, `{"name":"a\u0000b"}`,
			`{"name":"`+strings.Repeat("n", 300)+`"}`, `{"name":"twice","a":1,"a":2}`, `{"name":"big","x":"`+strings.Repeat("x", 2000)+`"}`,
			`{"name":"last"}`),
		Resources: raws(`{"uri":"a://1"}`, `{"name":"no uri"}`, `{"uri":"a://1"}`, `{"uri":"deep://","x":`+deep+`}`,
			`{"uri":"long://`+strings.Repeat("u", 500)+`"}`),
		Templates: raws(`{"uri":"x://"}`, `{"uriTemplate":"t://{a}"}`),
	}})
	cfg.Limits.ToolSize = 1024
	h := start(t, cfg)
	h.listed(t, "s", 5)
	c := h.catalog("s")
	if got := natives(c.Prompts) + ", " + natives(c.Resources) + ", " + natives(c.Templates); got !=
		"ok last, a://1 long://"+strings.Repeat("u", 500)+", t://{a}" {
		t.Errorf("admitted %s", got)
	}
	if c.Prompts[0].Server != "s" || string(c.Prompts[0].Declaration) != `{"name":"ok"}` {
		t.Errorf("the first one is %+v", c.Prompts[0])
	}
	var told []string
	for _, e := range c.Excluded {
		told = append(told, e.Tool+" "+e.Code)
		if e.Reason == "" || e.Origin != "s" {
			t.Errorf("exclusion %+v", e)
		}
	}
	want := []string{`prompt #2 invalid_name`, `prompt #3 invalid_name`, `prompt #4 invalid_name`, `prompt #5 invalid_declaration`,
		`prompt "ok" duplicate_name`, `prompt "a\x00b" invalid_name`, `prompt "` + strings.Repeat("n", 80) + `…" invalid_name`,
		`prompt "twice" invalid_declaration`, `prompt "big" too_large`, `resource #2 invalid_name`, `resource "a://1" duplicate_name`,
		`resource #4 too_large`, `resource template #1 invalid_name`}
	if !slices.Equal(told, want) {
		t.Errorf("excluded\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

func TestSurplusOffersAreLeftOut(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{Tools: tools("a"), Features: full()})
	cfg.Limits.Tools = 2
	h := start(t, cfg)
	h.listed(t, "s", 5)
	c := h.catalog("s")
	if natives(c.Prompts) != "greet bye" || len(c.Resources) != 2 || len(c.Excluded) != 2 || c.Excluded[0].Tool != "(1 more prompts)" {
		t.Errorf("prompts %s, excluded %+v", natives(c.Prompts), c.Excluded)
	}
}

// TestFeaturesAreKeptForTheNextStart checks the offer on the disk: as it is written now, and as it was written before there
// was more than tools in it.
func TestFeaturesAreKeptForTheNextStart(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{Features: full(), Instructions: "Be kind."})
	store := newMemory()
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: store})
	h.listed(t, "s", 7)
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	was := store.saved()
	learn(t, store, cfg)
	if n := store.saved(); n != was || was == 0 {
		t.Errorf("saved %d times, and %d times once nothing changed", was, n-was)
	}
	h = newHarness(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: store})
	c, f := h.catalog("s"), full()
	if !c.Pending || declarations(c.Prompts) != texts(f.Prompts) || declarations(c.Resources) != texts(f.Resources) ||
		declarations(c.Templates) != texts(f.Templates) || !c.Abilities.Subscribe || !c.Abilities.Completions || len(c.Tools) != 13 {
		t.Errorf("known before the start: %+v", c)
	}
	h.Start(t.Context())
	h.listed(t, "s", 7)
	if c := h.catalog("s"); c.Pending || len(c.Prompts) != 3 || len(c.Tools) != 13 {
		t.Errorf("after the start: %+v", c)
	}
}

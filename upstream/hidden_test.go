//go:build unix

package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// sly are declarations with hidden characters: in a description, in a schema, in a title as an escape. One has none that
// are hidden.
func sly() []json.RawMessage {
	return []json.RawMessage{
		json.RawMessage(`{"name":"tags","description":"Adds.` + "\U000e0049\U000e0067" + `","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"nested","inputSchema":{"type":"object","properties":{"title":{"description":"A` + "\u202e" + `","enum":["` + "\u200b" + `"]}}}}`),
		json.RawMessage(`{"name":"title","title":"A\u200bB","inputSchema":{"type":"object"}}`),
		json.RawMessage(`{"name":"honest","description":"⚠️ two\nlines 👩‍💻","inputSchema":{"type":"object"}}`),
	}
}

// TestHiddenTextIsTold: hidden characters stay as they are, and the server's status, the log and the diagnosis tell of them;
// or they are taken out, or the tools left out, where the limits say so.
func TestHiddenTextIsTold(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]struct{ tools, findings, repaired, excluded int }{
		"":                    {4, 4, 0, 0},
		upstream.HiddenKeep:   {4, 4, 0, 0},
		upstream.HiddenStrip:  {4, 1, 3, 0},
		upstream.HiddenRefuse: {1, 1, 0, 3},
	} {
		t.Run("hidden_text "+what, func(t *testing.T) {
			t.Parallel()
			cfg := stdio("s", upstreamtest.Script{Tools: sly(), Instructions: "be\u200bware"})
			cfg.Limits.HiddenText = what
			h := start(t, cfg)
			st := h.ready(t, "s")
			if st.Tools != want.tools || len(st.Findings) != want.findings || st.Repaired != want.repaired || len(st.Excluded) != want.excluded {
				t.Errorf("status %+v, want %+v", st, want)
			}
			text, _ := json.Marshal([]any{st.Findings, st.Excluded})
			if !strings.Contains(string(text), "U+200B") || strings.ContainsAny(string(text)+h.log.String(), "\u200b\u202e\U000e0049") {
				t.Errorf("findings %s", text)
			}
			if !strings.Contains(h.log.String(), "hold hidden characters") {
				t.Error("the log does not tell")
			}
			for _, one := range h.catalog("s").Tools {
				had := string(one.Declaration)
				switch {
				case one.Native == "nested" && !strings.Contains(had, "\"enum\":[\"\u200b\"]"):
					t.Errorf("a value was changed: %q", had)
				case one.Native == "honest" && had != string(sly()[3]), what != upstream.HiddenStrip && one.Native == "title" && had != string(sly()[2]):
					t.Errorf("declaration %q", had)
				case what == upstream.HiddenStrip && (strings.ContainsAny(one.Description+one.Title, "\u200b\U000e0049") || strings.Contains(had, "\u202e")):
					t.Errorf("not stripped: %q", had)
				}
			}
			if _, text := diagnose(t, cfg); !strings.Contains(text, "U+202E") || strings.Contains(text, "\u202e") {
				t.Errorf("the diagnosis does not tell:\n%s", text)
			}
		})
	}
}

// TestChangedToolsAreNamed: a tool whose description or schema is another than at the last start is named in the log and in the
// status, and one that is as it was, or new, is not.
func TestChangedToolsAreNamed(t *testing.T) {
	t.Parallel()
	kept := newMemory()
	tools := func(description, schema string) []json.RawMessage {
		return []json.RawMessage{json.RawMessage(`{"name":"a","description":"` + description + `","inputSchema":{"type":"object"}}`),
			json.RawMessage(`{"name":"b","description":"b","inputSchema":` + schema + `}`), upstreamtest.Tool("same")}
	}
	cfg, far := overHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Tools: tools("before", `{"type":"object"}`)}})
	first := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: kept})
	if st := first.ready(t, "s"); len(st.Changed) != 0 {
		t.Errorf("changed at the first start: %q", st.Changed)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	far.ReplaceTools(append(tools("after", `{"type":"object","required":["x"]}`), upstreamtest.Tool("new"))...)
	second := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: kept})
	var st tool.ServerStatus
	eventually(t, "the changed tools are named", func() bool { st = second.status("s"); return len(st.Changed) == 2 })
	if strings.Join(st.Changed, ",") != "a,b" || !strings.Contains(second.log.String(), `tools="a, b"`) {
		t.Errorf("changed %q", st.Changed)
	}
}

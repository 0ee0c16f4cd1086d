package cli

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// A tool that is added to the table of the hub's own tools is listed, found by its name, called and recorded.
func TestHubToolIsOneEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := &app{std: streams{err: &syncBuffer{}, getenv: func(string) (string, bool) { return "", false }},
		configPath: filepath.Join(dir, "hub.yaml"), stateDir: filepath.Join(dir, "state")}
	writeFile(t, a.configPath, "mcpServers: {}")
	s, err := a.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	logger, err := newLogger(a, "error", "text")
	if err != nil {
		t.Fatal(err)
	}
	clock := &tool.HubTool{Name: "tool_clock", Title: "Clock", Description: "Tells the time.", InputSchema: `{"type":"object"}`,
		Annotations: `{"readOnlyHint":true,"openWorldHint":false}`, Listed: func(bool, bool) bool { return true },
		Run: func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
			return tool.Reply{Result: json.RawMessage(`{"content":[{"type":"text","text":"noon for ` + e.Actor.Door + `"}]}`)}, nil
		}}
	h, err := hub.New(s, logger, func(h *hub.Hub) []*tool.HubTool { return append(hub.Tools(h), clock) }, nil, &a.known, configFile{})
	if err != nil {
		t.Fatal(err)
	}
	own := hub.OwnTools{Hub: h, Profile: namespace.DefaultProfile}
	surface, err := own.Surface()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(surface.Listed, func(l tool.Listed) bool { return l.Name == "tool_clock" && l.Tool.Hub == clock }) {
		t.Errorf("not listed: %+v", surface.Listed)
	}
	if l, ok := surface.Resolve("tool_clock"); !ok || !strings.Contains(string(l.Declaration()), "Tells the time.") {
		t.Error("its name stands for nothing")
	}
	result, err := own.Call(t.Context(), "tool_clock", json.RawMessage(`{}`), func(tool.Progress) {})
	if err != nil || !strings.Contains(string(result), "noon for cli") {
		t.Errorf("%s, %v", result, err)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	recorded := ""
	if err := persist.Read(s.Journal.Dir, func(line json.RawMessage) bool {
		if strings.Contains(string(line), `"tool_id":"tool_clock"`) {
			recorded += string(line)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{`"object":"tool_invocation"`, `"object":"tool_event"`, `"status":"succeeded"`} {
		if !strings.Contains(recorded, kind) {
			t.Errorf("no %s in %s", kind, recorded)
		}
	}
}

// The names of the hub's own tools stand in few files: code asks the table for properties.
func TestNamesOfHubTools(t *testing.T) {
	t.Parallel()
	var files []string
	err := filepath.WalkDir(filepath.Join("..", "..", "..", ".."), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		bare := strings.NewReplacer("tool_search_result", "", "tool_call_update", "", `"tool_call"`, "").Replace(string(text)) // words of others
		for _, name := range hub.Tools(&hub.Hub{}) {
			if strings.Contains(bare, string(name.Name)) && !slices.Contains(files, path) {
				files = append(files, path)
			}
		}
		return err
	})
	if err != nil || len(files) == 0 || len(files) > 4 {
		t.Errorf("%q name tools of the hub: %v", files, err)
	}
}

package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
)

// What has changed after it was read and before it was watched is applied. What has not changed is not applied again.
func TestChangedBeforeItIsWatched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, text string
		applied    bool
	}{
		"nothing":               {file: "else.yaml", text: "{}"},
		"the config":            {"hub.yaml", "hub: {log: {level: debug}}\npolicy: {rule_files: {managed: rules/one.yaml}, mode: accept_all}", true},
		"a file of rules":       {"rules/one.yaml", "rules: [{match: '*', then: deny}]", true},
		"the config is emptied": {"hub.yaml", "", false},
		"an answer":             {"state/" + hub.GrantsFile, "grants: [{id: one, then: allow, tool: mcp.s.echo, actor: 'actor:http/local'}]", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, log := t.TempDir(), &syncBuffer{}
			for file, text := range map[string]string{
				"hub.yaml": "hub: {log: {level: debug}}\npolicy: {rule_files: {managed: rules/one.yaml}}", "rules/one.yaml": "rules: []"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
					t.Fatal(err)
				}
				writeFile(t, filepath.Join(dir, file), text)
			}
			a := &app{std: streams{err: log, getenv: func(string) (string, bool) { return "", false }},
				configPath: filepath.Join(dir, "hub.yaml"), stateDir: filepath.Join(dir, "state"), logFormat: "json"}
			s, err := a.load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h, err := a.buildHub(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, c.file), c.text)
			ctx, stop := context.WithCancel(t.Context())
			watched := make(chan struct{})
			go func() {
				defer close(watched)
				h.Watch(ctx, a.again(h.Settings()), nil)
			}()
			eventually(t, "the files are looked at", func() bool {
				return strings.Contains(log.String(), "remembered answers are read again") && (!c.applied || strings.Contains(log.String(), "config is applied"))
			})
			stop()
			<-watched
			if strings.Contains(log.String(), "config is applied") != c.applied {
				t.Errorf("applied, or not: %s", log)
			}
			if (len(h.Permission.Grants.List()) == 1) != (name == "an answer") || (h.ConfigProblem.Load() != nil) != (c.text == "") {
				t.Errorf("%d answers are remembered: %s", len(h.Permission.Grants.List()), log)
			}
			if err := h.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

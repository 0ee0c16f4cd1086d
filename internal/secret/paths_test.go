package secret_test

import (
	"runtime"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
)

func TestWithoutPaths(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of systems with one root")
	}
	for text, want := range map[string]string{
		`start "/usr/lib/a b/server": open /usr/lib/x: no such file`: `start "…/server": open …/x: no such file`,
		`run /usr/bin/hub approvals show x --state-dir=/tmp/a/state`: `run …/hub approvals show x --state-dir=…/state`,
		`see https://host.example/usr/lib and mcp.s.resources/read`:  `see https://host.example/usr/lib and mcp.s.resources/read`,
		`argument /options/path is missing, / and /usr are not`:      `argument /options/path is missing, / and /usr are not`,
		`"/usr/given/file" is what you wrote`:                        `"/usr/given/file" is what you wrote`,
		``:                                                           ``,
	} {
		if got := secret.WithoutPaths(text, `{"path":"/usr/given/file"}`); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

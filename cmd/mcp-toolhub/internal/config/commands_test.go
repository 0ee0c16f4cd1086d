package config_test

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

// Commands are off unless the file says so; declared tools come from the user's own configuration and from no file's say.
func TestCommands(t *testing.T) {
	t.Parallel()
	home := env(map[string]string{"HOME": "/h", "USERPROFILE": "/h", "AppData": "/h/AppData", "XDG_CONFIG_HOME": "relative"})
	s, err := config.Parse("x.yaml", []byte("hub: {toolsets: {code: {}}}"), home)
	if err != nil || s.Code.Run.Enabled || !s.Declarative.Enabled || !strings.HasSuffix(s.Declarative.Dir, "tools") {
		t.Errorf("%+v %+v %v", s.Code.Run, s.Declarative, err)
	}
	s, err = config.Parse("x.yaml", []byte("hub: {toolsets: {code: , declarative: {enabled: false}}}"), home)
	if err != nil || s.Code.Run.Enabled || s.Declarative.Enabled {
		t.Errorf("%+v %+v %v", s.Code.Run, s.Declarative, err)
	}
	for text, want := range map[string]string{
		"{code: {run_command: {timeout: 11m}}}":       "code.run_command.timeout: out of range",
		"{code: {run_command: {max_timeout: 1m}}}":    "code.run_command.max_timeout: unknown key",
		"{code: {run_command: {shell: true}}}":        "code.run_command.shell: unknown key",
		"{code: {run_command: {stdout_limit: 1GiB}}}": "code.run_command.stdout_limit: there is no such key any more",
		`{code: {run_command: {env: ["A=b"]}}}`:       "code.run_command.env[0]: not the name of a variable",
		"{declarative: {timeout: 20m}}":               "declarative.timeout: there is no such key any more",
		"{declarative: {dir: /tmp}}":                  "declarative.dir: unknown key",
		"{declarative: {root: [a]}}":                  "declarative.root: want a string",
	} {
		_, err := config.Parse("x.yaml", []byte("hub: {toolsets: "+text+"}"), home)
		if err == nil || !strings.Contains(err.Error(), "hub.toolsets."+want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

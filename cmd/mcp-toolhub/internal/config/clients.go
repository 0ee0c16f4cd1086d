package config

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// editorSetting matches the keys of VS Code's settings.json: they all hold a dot.
var editorSetting = regexp.MustCompile(`^\[|^[a-zA-Z][a-zA-Z0-9_-]*\.`)

// isEditorSetting leaves out slips such as "hub.name": nothing of the hub's own is written with a dot.
func isEditorSetting(key string) bool {
	word, _, _ := strings.Cut(key, ".")
	own := []string{"mcpServers", "servers", "inputs", "hub", "profiles", "policy", "hooks", "deferred", "results",
		"persist"}
	return editorSetting.MatchString(key) && !slices.Contains(own, word)
}

// clientFile reports whether the file at path is a client's own, by its name. Its unknown keys are the client's:
// they are tolerated.
func clientFile(path string) bool {
	names := []string{".claude.json", "claude_desktop_config.json", "settings.json", "settings.local.json", ".mcp.json",
		"mcp.json", "mcp_config.json", "mcp_settings.json", "cline_mcp_settings.json", "mcp-config.json"}
	return slices.Contains(names, strings.ToLower(filepath.Base(path)))
}

package config

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
)

// ignoredKeys returns keys of client configs that the hub accepts and does not use. Their documentation says why.
func ignoredKeys(why string, names ...string) []shape.Field {
	fields := make([]shape.Field, len(names))
	for i, name := range names {
		fields[i] = shape.Foreign(name, "Ignored: "+why+".", why)
	}
	return fields
}

const (
	notAsked  = "the hub has its own permissions"
	notHere   = "it belongs to the client and means nothing to the hub"
	noSandbox = "the hub runs the server without a sandbox"
	noOAuth   = "the hub finds out how to sign in: run mcp-toolhub login"
)

// serverClientKeys returns what clients keep in a server's entry.
func serverClientKeys() []shape.Field {
	return slices.Concat(
		ignoredKeys(notAsked, "alwaysAllow", "autoApprove"),
		ignoredKeys(notHere, "dev", "gallery", "version", "description", "name", "icon", "extensionName", "watchPaths"),
		ignoredKeys(noSandbox, "sandbox", "sandboxEnabled"),
		ignoredKeys(noOAuth, "auth", "authProviderType", "targetAudience", "targetServiceAccount", "headersHelper"))
}

// topClientKeys returns what clients keep beside their servers.
func topClientKeys() []shape.Field {
	return slices.Concat(
		ignoredKeys("servers below it are not read: move them to servers at the top", "mcp"),
		ignoredKeys(noSandbox, "sandbox"),
		ignoredKeys("servers below it are not read: move them to mcpServers at the top", "projects"),
		ignoredKeys(notHere,
			"globalShortcut", "preferences", "locale", "scale", "userThemeMode", "isDxtAutoUpdatesEnabled", // Claude Desktop
			"numStartups", "installMethod", "autoUpdates", "theme", "verbose", "tipsHistory", "userID", "oauthAccount", // Claude Code
			"hasCompletedOnboarding", "lastOnboardingVersion", "firstStartTime", "permissions", "enableAllProjectMcpServers",
			"enabledMcpjsonServers", "disabledMcpjsonServers", "env", "model",
			"general", "ui", "ide", "privacy", "context", "tools", "security", "advanced", "experimental", "telemetry", // Gemini CLI
			"selectedAuthType", "preferredEditor", "contextFileName", "usageStatisticsEnabled", "excludeTools", "coreTools"))
}

// editorSetting matches the keys of VS Code's settings.json: they all hold a dot.
var editorSetting = regexp.MustCompile(`^\[|^[a-zA-Z][a-zA-Z0-9_-]*\.`)

// isEditorSetting leaves out slips such as "hub.name": nothing of the hub's own is written with a dot.
func isEditorSetting(key string) bool {
	word, _, _ := strings.Cut(key, ".")
	own := []string{"mcpServers", "servers", "inputs", "hub", "profiles", "policy", "hooks", "deferred", "results", "persist"}
	return editorSetting.MatchString(key) && !slices.Contains(own, word)
}

// clientFile returns which unknown keys are tolerated at the top of the file at path: all of them in the files where
// clients keep their whole state, since no list of those keys stays complete for long.
func clientFile(path string) func(key string) bool {
	base := strings.ToLower(filepath.Base(path))
	states := []string{".claude.json", "claude_desktop_config.json", "settings.json", "settings.local.json"}
	whole := slices.Contains(states, base)
	return func(string) bool { return whole }
}

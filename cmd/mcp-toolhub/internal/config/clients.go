package config

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// clientKey is a key that is accepted with any value, because clients have it.
func clientKey(name, doc string) field {
	return field{name: name, doc: doc, client: true, schema: func() schema { return schema{} },
		read: func(*reader, textfile.Member) bool { return true }}
}

// ignoredKeys returns keys of client configs that the hub accepts and does not use. Their documentation says why.
func ignoredKeys(why string, names ...string) []field {
	fields := make([]field, len(names))
	for i, name := range names {
		fields[i] = clientKey(name, "Ignored: "+why+".")
		fields[i].read = func(r *reader, m textfile.Member) bool {
			r.warn(m.Position, "ignored", why)
			return true
		}
	}
	return fields
}

const (
	notApplied = "the hub does not apply it: use include and exclude of a profile"
	notAsked   = "the hub has its own permissions"
	notHere    = "it belongs to the client and means nothing to the hub"
	noSandbox  = "the hub runs the server without a sandbox"
	noOAuth    = "the hub does not sign in by itself: give headers"
)

// serverClientKeys returns what clients keep in a server's entry.
func serverClientKeys() []field {
	return slices.Concat(
		ignoredKeys(notAsked, "alwaysAllow", "autoApprove"),
		ignoredKeys(notApplied, "includeTools", "excludeTools", "disabledTools", "enabledTools", "tools"),
		ignoredKeys(notHere, "dev", "gallery", "version", "description", "name", "icon", "extensionName", "watchPaths"),
		ignoredKeys(noSandbox, "sandbox", "sandboxEnabled"),
		ignoredKeys(noOAuth, "auth", "oauth", "authProviderType", "targetAudience", "targetServiceAccount", "headersHelper"))
}

// topClientKeys returns what clients keep beside their servers.
func topClientKeys() []field {
	return slices.Concat(
		ignoredKeys("servers below it are not read: move them to servers at the top", "mcp"),
		ignoredKeys(noSandbox, "sandbox"),
		ignoredKeys("servers below it are not read: move them to mcpServers at the top", "projects"),
		ignoredKeys(notHere,
			"globalShortcut", "preferences", "locale", "scale", "userThemeMode", "isDxtAutoUpdatesEnabled", // Claude Desktop
			"numStartups", "installMethod", "autoUpdates", "theme", "verbose", "tipsHistory", "userID", "oauthAccount", // Claude Code
			"hasCompletedOnboarding", "lastOnboardingVersion", "firstStartTime", "permissions", "enableAllProjectMcpServers",
			"enabledMcpjsonServers", "disabledMcpjsonServers", "env", "model", "hooks",
			"general", "ui", "ide", "privacy", "context", "tools", "security", "advanced", "experimental", "telemetry", // Gemini CLI
			"selectedAuthType", "preferredEditor", "contextFileName", "usageStatisticsEnabled", "excludeTools", "coreTools"))
}

// editorSetting matches the keys of VS Code's settings.json: they all hold a dot.
var editorSetting = regexp.MustCompile(`^\[|^[a-zA-Z][a-zA-Z0-9_-]*\.`)

// isEditorSetting leaves out slips such as "hub.name": nothing of the hub's own is written with a dot.
func isEditorSetting(key string) bool {
	word, _, _ := strings.Cut(key, ".")
	own := []string{"mcpServers", "servers", "inputs", "hub", "profiles", "policy", "deferred", "persist"}
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

package config

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// foreignKey is a key that files of clients hold and that means nothing to the hub.
type foreignKey struct{ name, doc string }

// clientKey is a field that is accepted with any value. With a warning, the person learns that it changes nothing.
func clientKey[T any](name, doc string, warns bool) field[T] {
	told := doc
	if warns {
		told = "Ignored: " + doc + "."
	}
	return field[T]{name: name, doc: told, schema: anything{}.schema, client: true,
		read: func(r *reader, _ *textfile.Node, at textfile.Position, _ *T) bool {
			if warns {
				r.warn(at, "ignored", doc)
			}
			return true
		}}
}

const (
	notApplied = "the hub does not apply it: use include and exclude of a profile"
	notAsked   = "the hub has its own permissions"
	notHere    = "it belongs to the client and means nothing to the hub"
	noSandbox  = "the hub runs the server without a sandbox"
	noOAuth    = "the hub does not sign in by itself: give headers"
)

// serverClientKeys returns what clients keep in a server's entry.
func serverClientKeys() []foreignKey {
	return []foreignKey{
		{"alwaysAllow", notAsked}, {"autoApprove", notAsked},
		{"includeTools", notApplied}, {"excludeTools", notApplied}, {"disabledTools", notApplied},
		{"enabledTools", notApplied}, {"tools", notApplied},
		{"dev", notHere}, {"gallery", notHere}, {"version", notHere}, {"description", notHere}, {"name", notHere},
		{"icon", notHere}, {"extensionName", notHere}, {"watchPaths", notHere},
		{"sandbox", noSandbox}, {"sandboxEnabled", noSandbox},
		{"auth", noOAuth}, {"oauth", noOAuth}, {"authProviderType", noOAuth}, {"targetAudience", noOAuth},
		{"targetServiceAccount", noOAuth}, {"headersHelper", noOAuth},
	}
}

// topClientKeys returns what clients keep beside their servers.
func topClientKeys() []foreignKey {
	keys := []foreignKey{{"mcp", "servers below it are not read: move them to servers at the top"},
		{"sandbox", noSandbox}, {"projects", "servers below it are not read: move them to mcpServers at the top"}}
	for _, name := range []string{
		"globalShortcut", "preferences", "locale", "scale", "userThemeMode", "isDxtAutoUpdatesEnabled", // Claude Desktop
		"numStartups", "installMethod", "autoUpdates", "theme", "verbose", "tipsHistory", "userID", "oauthAccount", // Claude Code
		"hasCompletedOnboarding", "lastOnboardingVersion", "firstStartTime", "permissions", "enableAllProjectMcpServers",
		"enabledMcpjsonServers", "disabledMcpjsonServers", "env", "model", "hooks",
		"general", "ui", "ide", "privacy", "context", "tools", "security", "advanced", "experimental", "telemetry", // Gemini CLI
		"selectedAuthType", "preferredEditor", "contextFileName", "usageStatisticsEnabled", "excludeTools", "coreTools",
	} {
		keys = append(keys, foreignKey{name, notHere})
	}
	return keys
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

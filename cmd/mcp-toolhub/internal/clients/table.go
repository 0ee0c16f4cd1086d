// Package clients knows the MCP clients of this machine: where each keeps its servers, in which
// format and in which words. It reads those entries, puts the hub among them, and takes it out
// again. It leaves everything else in those files as it is.
package clients

import (
	"os"
	"path/filepath"

	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
)

// Env is the environment that decides where the files of clients are.
type Env struct {
	OS     string // as runtime.GOOS has it
	Lookup func(name string) (string, bool)
}

func (e Env) value(name string) string {
	value, _ := e.Lookup(name)
	return value
}

func (e Env) home(elements ...string) string {
	home := e.value("HOME")
	if e.OS == "windows" {
		home = e.value("USERPROFILE")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(append([]string{home}, elements...)...)
}

// below returns a path in the directory that the variable names. Where it names none, the path is
// in the directory otherwise of the home directory.
func (e Env) below(variable, otherwise string, elements ...string) string {
	dir := e.value(variable)
	if !filepath.IsAbs(dir) {
		dir = e.home(filepath.FromSlash(otherwise))
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, elements...)...)
}

// xdg returns a path in the directory where programs for terminals keep settings, on every system.
func (e Env) xdg(elements ...string) string {
	return e.below("XDG_CONFIG_HOME", ".config", elements...)
}

// settings returns a path in the directory where desktop programs keep settings.
func (e Env) settings(elements ...string) string {
	switch e.OS {
	case "windows":
		return e.below("APPDATA", "AppData/Roaming", elements...)
	case "darwin":
		return e.home(append([]string{"Library", "Application Support"}, elements...)...)
	}
	return e.xdg(elements...)
}

// spelling says which keys and values a client uses in its entries.
type spelling struct {
	kind           string   // key of the kind of server
	stdio, http    string   // the kinds that are written; "" for none
	command        string   // key of the program; "command" where empty
	argv           bool     // the program's key has a list, with the arguments
	env            string   // "env" where empty
	url            string   // key of an address of Streamable HTTP; "" for a client that takes none
	headers        []string // keys that lead to the headers; "headers" where empty
	timeout        string   // key of how long a call may take; "" where that is not in an entry
	off            string   // key of the names of tools that are not used
	on             string   // key of the names of the only tools that are used
	onEmpty        bool     // an empty list of those means all tools, not none
	sse            string   // key of an address of HTTP+SSE, where that is another
	chosen         string   // key of what says which servers are used
	enabling       string   // file beside the client's own that says it, too
	rules          []string // keys of what says which tools of all servers are used
	toolNames      string   // how it names a server's tools there, with * for the server
	references     references
	files          bool          // ${file:path} is a reference, too
	before, sequel splice.Object // what an entry holds besides, before and after the rest
	isHTTP         bool          // an address without a kind is one of Streamable HTTP, not of HTTP+SSE
}

// references says how texts of a client refer to variables.
type references int

const (
	braces   references = iota // ${VAR}, ${env:VAR}; ${input:id} asks the person
	bare                       // $VAR, too
	prefixed                   // ${env:VAR}, not ${VAR}
	curly                      // {env:VAR}, {file:path}
	verbatim                   // not at all
	listed                     // $VAR and ${VAR} in addresses and headers, of variables that the entry lists
	own                        // as the hub's config does
)

// Client describes one MCP client: a row of the table that All returns.
type Client struct {
	ID    string // for the command line
	Title string
	splice.Format
	splice.Place
	spelling
	paths    func(Env) []string // the client reads all; the hub writes the first that exists, otherwise the first
	blocks   func(Env) string   // directory of files that the client reads, too
	dir      string             // absolute: of the file that is read
	projects bool               // projects.*.mcpServers hold servers, too
	others   func(Env) []string // files that are like the client's, where a person uses several; they exist
	other    bool               // this is the client as it is with one of those
	tool     *clientTool
}

// clientTool is a client's own command for changing its servers.
type clientTool struct {
	program string
	add     func(name string, h Hub) []string
	remove  func(name string) []string
}

// File returns the path of the client's file, or of the one that it would read; "" where the
// environment names no home directory.
func (c *Client) File(e Env) string {
	all := c.paths(e)
	for _, path := range all {
		if path != "" {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	return all[0]
}

// Source is a file that a client reads servers from, and how it is read.
type Source struct {
	*Client
	Path string
}

// Sources returns every file that the client reads servers from. Where none exists, it is the one of File.
func (c *Client) Sources(e Env) (all []Source) {
	for _, path := range c.paths(e) {
		if _, err := os.Stat(path); err == nil {
			all = append(all, Source{c, path})
		}
	}
	for _, other := range c.Others(e) {
		all = append(all, Source{other, other.File(e)})
	}
	if c.blocks != nil {
		dir := c.blocks(e)
		files, _ := os.ReadDir(dir)
		for _, file := range files {
			if file.IsDir() {
				continue
			}
			block := *c
			switch filepath.Ext(file.Name()) {
			case ".yaml", ".yml":
			case ".json": // as Claude Desktop writes it
				block.Format, block.List = splice.JSON, false
			default:
				continue
			}
			all = append(all, Source{&block, filepath.Join(dir, file.Name())})
		}
	}
	if len(all) == 0 {
		all = []Source{{c, c.File(e)}}
	}
	return all
}

// Others returns the client as it is with each other file that a person uses beside File. Its own
// command does not change those.
func (c *Client) Others(e Env) (all []*Client) {
	if c.others == nil {
		return nil
	}
	for _, path := range c.others(e) {
		if path != c.File(e) {
			other := *c
			other.paths, other.others, other.tool, other.other = func(Env) []string { return []string{path} }, nil, nil, true
			all = append(all, &other)
		}
	}
	return all
}

// Present reports whether the client seems to be on this machine: its file is there, or the directory for it.
func (c *Client) Present(e Env) bool {
	path := c.File(e)
	if path == "" {
		return false
	}
	if _, err := os.Stat(path); err == nil {
		return true
	}
	dir, err := os.Stat(filepath.Dir(path))
	return err == nil && dir.IsDir() && filepath.Dir(path) != e.home()
}

func one(path func(Env) string) func(Env) []string {
	return func(e Env) []string { return []string{path(e)} }
}

func inHome(elements ...string) func(Env) []string {
	return one(func(e Env) string { return e.home(elements...) })
}

// inConfig is a path in the settings on Windows, and one in the XDG directory elsewhere.
func inConfig(windows []string, elsewhere ...string) func(Env) []string {
	return one(func(e Env) string {
		if e.OS == "windows" {
			return e.settings(windows...)
		}
		return e.xdg(elsewhere...)
	})
}

func inSettings(elements ...string) func(Env) []string {
	return one(func(e Env) string { return e.settings(elements...) })
}

// at returns the place of a mapping of entries.
func at(path ...string) splice.Place { return splice.Place{Path: path} }

// claudeFiles are the files that Claude Code has used, with one CLAUDE_CONFIG_DIR or another.
func claudeFiles(e Env) []string {
	all, _ := filepath.Glob(e.home(".claude*", ".claude.json"))
	if _, err := os.Stat(e.home(".claude.json")); err == nil {
		all = append(all, e.home(".claude.json"))
	}
	return all
}

// ByID returns the client of that id, nil where there is none.
func ByID(id string) *Client {
	for _, c := range All() {
		if c.ID == id {
			return &c
		}
	}
	return nil
}

// All returns every client that the hub knows. Each row's source is named in its sample, in testdata.
func All() []Client {
	return []Client{
		{ID: "claude-desktop", Title: "Claude Desktop", Format: splice.JSON, Place: at("mcpServers"),
			spelling: spelling{references: verbatim},
			paths:    inSettings("Claude", "claude_desktop_config.json")},
		{ID: "claude-code", Title: "Claude Code", Format: splice.JSON, Place: at("mcpServers"), projects: true,
			tool:     claudeTool(),
			spelling: spelling{kind: "type", stdio: "stdio", http: "http", url: "url", isHTTP: true, timeout: "timeout"},
			paths: one(func(e Env) string {
				if dir := e.value("CLAUDE_CONFIG_DIR"); dir != "" {
					return filepath.Join(dir, ".claude.json")
				}
				return e.home(".claude.json")
			}), others: claudeFiles},
		{ID: "cursor", Title: "Cursor", Format: splice.JSON, Place: at("mcpServers"),
			spelling: spelling{url: "url", isHTTP: true, references: prefixed}, paths: inHome(".cursor", "mcp.json")},
		{ID: "vscode", Title: "VS Code", Format: splice.JSON, Place: at("servers"),
			spelling: spelling{kind: "type", stdio: "stdio", http: "http", url: "url", isHTTP: true, references: prefixed},
			paths:    inSettings("Code", "User", "mcp.json")},
		{ID: "windsurf", Title: "Windsurf", Format: splice.JSON, Place: at("mcpServers"),
			spelling: spelling{url: "serverUrl", isHTTP: true, off: "disabledTools", references: prefixed, files: true},
			paths:    inHome(".codeium", "windsurf", "mcp_config.json")},
		{ID: "codex", Title: "Codex", Format: splice.TOML, Place: at("mcp_servers"),
			spelling: spelling{url: "url", isHTTP: true, headers: []string{"http_headers"}, timeout: "tool_timeout_sec",
				off: "disabled_tools", on: "enabled_tools", references: verbatim},
			paths: one(func(e Env) string { return e.below("CODEX_HOME", ".codex", "config.toml") })},
		{ID: "gemini", Title: "Gemini CLI", Format: splice.JSON, Place: at("mcpServers"),
			spelling: spelling{url: "httpUrl", sse: "url", timeout: "timeout", off: "excludeTools", on: "includeTools",
				chosen: "mcp", enabling: "mcp-server-enablement.json", references: bare},
			paths: inHome(".gemini", "settings.json")},
		{ID: "copilot", Title: "Copilot CLI", Format: splice.JSON, Place: at("mcpServers"),
			spelling: spelling{kind: "type", stdio: "local", http: "http", url: "url", isHTTP: true, timeout: "timeout",
				on: "tools", sequel: splice.Object{{Key: "tools", Value: []string{"*"}}}},
			paths: one(func(e Env) string { return e.below("COPILOT_HOME", ".copilot", "mcp-config.json") })},
		{ID: "zed", Title: "Zed", Format: splice.JSON, Place: at("context_servers"),
			spelling: spelling{url: "url", isHTTP: true, timeout: "timeout", references: verbatim,
				before: splice.Object{{Key: "source", Value: "custom"}}}, // versions of 2025 want it
			paths: inConfig([]string{"Zed", "settings.json"}, "zed", "settings.json")},
		{ID: "opencode", Title: "OpenCode", Format: splice.JSON, Place: at("mcp"),
			spelling: spelling{kind: "type", stdio: "local", http: "remote", argv: true, env: "environment", url: "url",
				isHTTP: true, references: curly, rules: []string{"tools", "permission"}, toolNames: "*_",
				sequel: splice.Object{{Key: "enabled", Value: true}}},
			paths: func(e Env) []string {
				return []string{e.xdg("opencode", "opencode.json"), e.xdg("opencode", "opencode.jsonc")}
			}},
		{ID: "goose", Title: "Goose", Format: splice.YAML, Place: at("extensions"),
			spelling: spelling{kind: "type", stdio: "stdio", http: "streamable_http", command: "cmd", env: "envs", url: "uri",
				isHTTP: true, timeout: "timeout", on: "available_tools", onEmpty: true, references: listed,
				before: splice.Object{{Key: "enabled", Value: true}, {Key: "name", Value: EntryName}},
				sequel: splice.Object{{Key: "timeout", Value: 300}}},
			paths: inConfig([]string{"Block", "goose", "config", "config.yaml"}, "goose", "config.yaml")},
		{ID: "amp", Title: "Amp", Format: splice.JSON, Place: at("amp.mcpServers"),
			spelling: spelling{url: "url", isHTTP: true, on: "includeTools", rules: []string{"amp.tools.disable"},
				toolNames: "mcp__*__"},
			paths: func(e Env) []string {
				return []string{e.xdg("amp", "settings.json"), e.xdg("amp", "settings.jsonc")}
			}},
		{ID: "cline", Title: "Cline", Format: splice.JSON, Place: at("mcpServers"),
			spelling: spelling{kind: "type", stdio: "stdio", http: "streamableHttp", url: "url", timeout: "timeout",
				references: verbatim},
			paths: func(e Env) []string {
				const file = "cline_mcp_settings.json"
				return []string{e.settings("Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", file),
					e.home(".cline", "data", "settings", file)}
			}},
		{ID: "kiro", Title: "Kiro", Format: splice.JSON, Place: at("mcpServers"),
			spelling: spelling{url: "url", isHTTP: true, timeout: "timeout", off: "disabledTools"},
			paths:    inHome(".kiro", "settings", "mcp.json")},
		{ID: "lmstudio", Title: "LM Studio", Format: splice.JSON, Place: at("mcpServers"),
			spelling: spelling{url: "url", isHTTP: true, timeout: "timeout", references: verbatim},
			paths:    inHome(".lmstudio", "mcp.json")},
		{ID: "continue", Title: "Continue", Format: splice.YAML,
			Place: splice.Place{Path: []string{"mcpServers"}, List: true},
			spelling: spelling{kind: "type", stdio: "stdio", http: "streamable-http", url: "url", isHTTP: true,
				headers: []string{"requestOptions", "headers"}},
			paths:  inHome(".continue", "config.yaml"),
			blocks: func(e Env) string { return e.home(".continue", "mcpServers") }},
	}
}

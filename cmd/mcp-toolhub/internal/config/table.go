package config

import (
	"regexp"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/limit"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// file holds the values of the file, before the checks that look at more than one value.
type file struct {
	mcpServers, servers []shape.Entry[server]
	hub                 hub
	profiles            []shape.Entry[profile]
	deferred            deferral
	results             results
	policy              shape.Located[permission]
	hooks               []shape.Located[configuredHook]
	journal             journal
	stored              storedResults
	store               shape.Located[string]
	records             persist.RecordsConfig
}

type hub struct {
	name, instructions string
	log                Log
	limits             upstream.Limits // of all servers
	env                []string        // names of variables that all programs get
	clientMessage      int64           // limits.client_message
	memory             int64           // limits.memory
	http               httpDoor
	tokens             []shape.Located[bearer]    // auth.tokens
	code               shape.Located[codeToolset] // toolsets.code
	declarative        declarativeToolset         // toolsets.declarative
	signInKey          string
	page               string // ui.approvals
	telemetry          Telemetry
}

type httpDoor struct {
	listen      shape.Located[string]
	directViews shape.Located[bool]
	downstream.HTTPConfig
}

type bearer struct {
	name, secret shape.Located[string]
	events       string
	results      string
	expires      shape.Located[string]
	profiles     shape.Located[[]shape.Located[string]]
}

type codeToolset struct {
	code.Config
	run shape.Located[command.Config]
}

type profile struct {
	style            namespace.Style
	servers          []shape.Located[string]
	include, exclude []string
	tools            []shape.Located[namespace.Override]
	deferred         deferred.Settings
	results          limit.Settings
}

type journal struct {
	persist.JournalConfig
	sync shape.Located[time.Duration]
}

const (
	maxCount = 1 << 20
	maxBytes = 1 << 40
)

var (
	expanded  = shape.Text{Expand: true}
	anyText   = shape.Text{Empty: true}
	plainText = shape.Text{}
	toolGlob  = patternOfTools{shape.Text{Check: nameGlob}}
)

// patternOfTools is a glob over canonical names. It is noted: what it matches is seen once all servers are known.
type patternOfTools struct{ shape.Text }

func (s patternOfTools) Read(r *shape.Reader, n *textfile.Node) (string, bool) {
	v, ok := s.Text.Read(r, n)
	if ok {
		r.Note(n, v)
	}
	return v, ok
}

func matchKey(to *string) shape.Field {
	return shape.Must(shape.Key("match", "Which tools, as a glob over canonical names.", toolGlob, to))
}

// fileShape is the table's root. Unknown keys of a client's own file are warnings: foreign. r is the reader that it is
// for; nil where nothing is read.
func fileShape(r *reader, foreign bool) shape.Object[file] {
	return shape.Object[file]{Fields: func(f *file) []shape.Field { return fileKeys(r, f, foreign) },
		Lenient: func(key string) bool { return foreign || isEditorSetting(key) },
		Unknown: "known here: mcpServers, servers, inputs, hub, profiles, policy, hooks, deferred, results, persist",
		Extra: shape.Schema{"patternProperties": shape.Schema{
			editorSetting.String(): shape.Schema{"description": "A setting of VS Code, ignored."}}}}
}

func fileKeys(r *reader, f *file, foreign bool) []shape.Field {
	servers := shape.Mapping[server]{Of: definedServer{serverShape(foreign), r}}
	return []shape.Field{
		shape.Foreign("$schema", "The JSON Schema of this file, for editors.", ""),
		shape.Key("inputs",
			"VS Code's input variables. ${input:ID} stands for the environment variable MCP_TOOLHUB_INPUT_<ID> "+
				"(upper case, _ for what is neither letter nor digit), otherwise for the input's default.",
			inputs{shape.List[input]{Of: shape.ObjectOf(inputKeys)}, r}, new([]input)),
		shape.Key("mcpServers", "The MCP servers, by id, in the shape of Claude Desktop, Claude Code and Cursor.",
			servers, &f.mcpServers),
		shape.Key("servers", "VS Code's name of mcpServers.",
			otherName[[]shape.Entry[server]]{servers, "mcpServers"}, &f.servers),
		shape.SectionSince("hub", "Settings of the hub itself.", goneHub(), hubKeys(&f.hub)...),
		shape.Key("profiles",
			"What clients see, by name of the profile. \"default\" is the one they get when they name none.",
			shape.Mapping[profile]{Key: profileName, Of: shape.Object[profile]{Fields: profileKeys,
				Gone: gone("write it under hooks at the top, with profile: NAME", "hooks")}}, &f.profiles),
		shape.KeyAt("policy",
			"Which calls may run, and which a person is asked about. Without this key tools that only read run where "+
				"they are the hub's or their server has trust: true; others are asked about, on stdio by the client.",
			shape.Object[permission]{Fields: policyKeys, Gone: map[string]string{
				"classifier": `write its command or url as a hook of pre_tool_use: ` +
					`"A second opinion" in docs/permission.md has an example`}}, &f.policy),
		shape.Key("hooks", "What runs beside calls, in this order: commands, HTTP endpoints and built-in hooks.",
			hooksOf(), &f.hooks),
		shape.SectionSince("deferred",
			"Which tools are held back until they are searched for. Profiles may say otherwise.",
			goneDeferred(), deferredKeys(&f.deferred)...),
		shape.Section("results", "What happens to results that are too large for a client. Profiles may differ.",
			resultsKeys(&f.results)...),
		shape.Section("persist", "What the hub keeps on disk.",
			shape.SectionSince("journal", "The record of every call, as JSON lines.",
				gone("set max_bytes: the newest ten files are kept", "max_files"), journalKeys(&f.journal)...),
			shape.Section("results", "Results that were not sent whole, for clients to read on.",
				storedResultsKeys(&f.stored)...),
			shape.KeyAt("store",
				"The record store, for mcp-toolhub calls: sqlite (default) is records.db in the state directory; "+
					"postgres://USER@HOST/DATABASE is a database that several hubs may share, with the password "+
					"by reference, ${env:NAME} or ${file:path}, or in PGPASSWORD; off keeps the journal alone.",
				recordStore{}, &f.store),
			shape.Section("records", "What the record store keeps.",
				shape.Key("max_age", `Older calls are removed from it (default "365d", at least "1m").`, keptAge(),
					&f.records.MaxAge),
				shape.Key("max_bytes",
					"What it may take on disk (default 4 GiB; PostgreSQL: no limit). Beyond that the caller with "+
						"most calls loses its oldest ones; denied and approved calls go last.",
					shape.Size[int64]{Min: 1 << 20, Max: maxBytes}, &f.records.MaxBytes))),
		shape.Foreign("mcp", "Ignored: servers below it are not read.",
			"servers below it are not read: move them to servers at the top"),
		shape.Foreign("projects", "Ignored: servers below it are not read.",
			"servers below it are not read: move them to mcpServers at the top"),
	}
}

// inputs is the list of input variables. It stands first in the table: from here on ${input:…} has a meaning.
type inputs struct {
	shape.List[input]
	of *reader
}

func (s inputs) Read(r *shape.Reader, n *textfile.Node) ([]input, bool) {
	all, sound := s.List.Read(r, n)
	for i, in := range all {
		for _, other := range all[:i] {
			if in.id.OK && in.id.Value == other.id.Value {
				shape.FaultOf(r, in.id, "two inputs of the same id, the first at "+r.Place(other.id.Position),
					"remove one of the two")
				sound = false
			}
		}
	}
	s.of.vars.inputs = all
	return all, sound
}

func inputKeys(i *input) []shape.Field {
	fields := []shape.Field{
		shape.Must(shape.KeyAt("id", "The id, for ${input:id}.", plainText, &i.id)),
		shape.KeyAt("default", "Stands in where the environment variable is not set.",
			shape.Text{Empty: true, Scalar: true}, &i.fallback),
		shape.Key("type", "How VS Code asks for it. The hub never asks.",
			shape.OneOf("promptString", "pickString", "command"), new(string)),
	}
	for _, name := range []string{"description", "password", "options", "command", "args"} {
		fields = append(fields, shape.Foreign(name, "Of VS Code's question, not used.", ""))
	}
	return fields
}

func hubKeys(h *hub) []shape.Field {
	return []shape.Field{
		shape.Section("ui", "The page for people, which `mcp-toolhub ui` opens.",
			shape.Key("approvals",
				"What it takes to answer approvals there, once for each browser: code (default) of `mcp-toolhub "+
					"ui code`; passkey, which such a code adds; off leaves them to terminals and clients.",
				shape.OneOf(console.ApproveByCode, console.ApproveByPasskey, console.ApproveOff), &h.page)),
		shape.Key("name",
			`The name that the hub tells its clients (default "mcp-toolhub"), and that records call it (default: the name of `+
				`the machine).`,
			shape.Text{Expand: true, Check: oneLine}, &h.name),
		shape.Key("instructions", "What the hub tells its clients' models about itself.", anyText, &h.instructions),
		shape.Key("env",
			"Names of variables of the hub that all programs get, besides those for proxies and CA files. A server's "+
				"own env wins.", shape.List[string]{Of: shape.Text{Check: variableKey}}, &h.env),
		shape.Section("log", "The log on stderr.",
			shape.Key("level", `What to log (default "info").`,
				shape.OneOf("debug", "info", "warn", "error"), &h.log.Level),
			shape.Key("format", `"auto" (default) is text on a terminal and JSON otherwise.`,
				shape.OneOf("auto", "text", "json"), &h.log.Format)),
		shape.Section("metrics", "What Prometheus reads.",
			shape.Key("listen",
				`An address of their own for the metrics, for instance "127.0.0.1:9464": at /metrics, for everybody `+
					"who reaches it. Without it they are at /metrics of the Streamable HTTP door, for clients that it lets in.",
				shape.Text{Expand: true, Check: listenAddress}, &h.telemetry.Metrics)),
		shape.Section("telemetry", "What is sent to a collector of OpenTelemetry where the variables OTEL_* name one.",
			shape.Key("content",
				"Whether spans have arguments and results of calls, with secrets masked (default false).",
				shape.Boolean{}, &h.telemetry.Content)),
		shape.SectionSince("limits",
			"How much servers, unless their entries say otherwise, and clients may send.",
			goneLimits(), hubLimitsKeys(h)...),
		shape.SectionSince("http", "The Streamable HTTP door.", goneHTTP(), httpKeys(&h.http)...),
		shape.Key("sign_in_key",
			"Where the key of stored sign-ins is: file (default), in the state directory, or keyring, the "+
				"system's.", shape.OneOf("file", "keyring"), &h.signInKey),
		shape.Section("auth", "Who may come in over HTTP.",
			shape.Key("tokens", "Bearer tokens. Without any, only loopback addresses can be listened on.",
				shape.ListAt(shape.ObjectOf(tokenKeys)), &h.tokens)),
		shape.Section("toolsets", "The built-in tools.",
			shape.KeyAt("code",
				"Tools for files: code.read_file, code.list_dir, code.search; with allowed_write_roots "+
					"code.write_file and code.edit_file. Off without this key.",
				shape.Object[codeToolset]{Fields: codeKeys, Gone: gone(leaveOut, "enabled")}, &h.code),
			shape.SectionWith("declarative",
				"The tools that files in mcp-toolhub/tools in your configuration directory declare.",
				goneDeclarative(), declarativeKeys(&h.declarative)...)),
	}
}

func httpKeys(h *httpDoor) []shape.Field {
	return []shape.Field{
		shape.KeyAt("listen", `Address to listen on, for instance "127.0.0.1:8808". Without it, serve speaks stdio.`,
			shape.Text{Expand: true, Check: listenAddress}, &h.listen),
		shape.Key("max_sessions",
			"Sessions at the same time (default 1000). One more ends the longest idle session of the caller with "+
				"most.",
			shape.Integer[int]{Min: 1, Max: maxCount}, &h.MaxSessions),
		shape.Key("allowed_origins", `Origins that are let in besides the hub's own: "https://app.example.com".`,
			shape.List[string]{Of: shape.Text{Expand: true, Check: origin}}, &h.AllowedOrigins),
		shape.Key("allowed_hosts", `Host names that are let in besides the address listened on: "hub.example.com".`,
			shape.List[string]{Of: shape.Text{Expand: true, Check: hostName}}, &h.AllowedHosts),
		shape.Key("public_url",
			`The https address at which people reach the hub from other machines: "https://hub.example.com". Sign-ins to `+
				"servers come back to it.", shape.Text{Expand: true, Check: publicURL}, &h.PublicURL),
		shape.KeyAt("direct_views",
			"Whether /mcp/s/SERVER serves all that one server offers, whatever profiles leave out (default true).",
			shape.Boolean{}, &h.directViews),
		shape.Key("drain_delay",
			"How long a stopping hub serves on while /health/ready says 503 (default 0 on loopback and stdio, 5s "+
				"elsewhere).",
			optional[time.Duration]{shape.Duration{Max: time.Hour}}, &h.DrainDelay),
		shape.Key("drain_timeout", "How long calls in flight may take to end at a stop (default 10s).", timeout(),
			&h.DrainTimeout),
	}
}

func tokenKeys(t *bearer) []shape.Field {
	return []shape.Field{
		shape.Must(shape.KeyAt("name", "The name of who holds the token; it becomes the actor in records.",
			shape.Text{Pattern: actorName, Want: "letters, digits and . _ @ -, 64 at most"}, &t.name)),
		shape.Must(shape.KeyAt("token", "The token, by reference: ${secret:NAME}, ${env:NAME} or ${file:path}; "+
			"16 bytes at least.", outside{}, &t.secret)),
		shape.Key("events",
			"read: its holder may read the events of all callers, at /events.",
			shape.OneOf("read"), &t.events),
		shape.Key("results",
			"read: its holder may read the stored results of all callers. By default each caller reads its own.",
			shape.OneOf("read"), &t.results),
		shape.KeyAt("expires",
			`Nobody comes in with it from then on: "2026-12-31" or "2026-12-31T12:00:00Z". While you rotate a token, `+
				"two may have one name.",
			shape.Text{Check: moment}, &t.expires),
		shape.KeyAt("profiles",
			"The profiles that its holder may open; s/SERVER is a direct view (default all).",
			shape.ListAt(plainText), &t.profiles),
	}
}

// instant reads a time, or a day in UTC.
func instant(text string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, text)
}

func moment(text string) (fault, hint string) {
	if _, err := instant(text); err != nil {
		return "it is no day or time", `write it as "2026-12-31" or "2026-12-31T12:00:00Z"`
	}
	return "", ""
}

var actorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

func codeKeys(c *codeToolset) []shape.Field {
	return []shape.Field{
		shape.Key("root",
			"The project: relative paths start here. Relative to ${workspaceFolder}; default the working directory.",
			expanded, &c.Root),
		shape.KeyAt("run_command", "Runs commands in the project: code.run_command. Off where this key is absent.",
			shape.Object[command.Config]{Fields: runCommandKeys, Gone: goneRunCommand()}, &c.run),
		shape.Key("sensitive_paths",
			"Globs of paths that these tools never open. The built-in ones (keys, .env …) are asked about.",
			shape.List[string]{Of: shape.Text{Expand: true, Check: treeGlob}}, &c.SensitivePaths),
		shape.Key("allowed_write_roots",
			"Directories for code.write_file and code.edit_file: [.] is the project. Relative to "+
				"${workspaceFolder}. Default: no such tools. Writing elsewhere is asked about.",
			shape.List[string]{Of: expanded}, &c.AllowedWriteRoots),
	}
}

func profileKeys(p *profile) []shape.Field {
	globs := shape.List[string]{Of: toolGlob}
	return []shape.Field{
		shape.Key("style", `How tools are named (default "auto").`,
			shape.OneOf(namespace.StyleAuto, namespace.StyleCanonical,
				namespace.StyleSafe, namespace.StyleShort, namespace.StyleNative), &p.style),
		shape.Key("servers", "Server ids and toolsets to show, as globs (default all). Resources are shown by server.",
			shape.ListAt(shape.Text{Check: nameGlob}), &p.servers),
		shape.Key("include", `Tools and prompts to show, as globs over canonical names: "mcp.github.*" (default all).`,
			globs, &p.include),
		shape.Key("exclude", "Tools and prompts to leave out, as globs over canonical names. Wins over include.", globs,
			&p.exclude),
		shape.Key("tools", "Changes to how tools are shown. The first that sets a field counts.",
			shape.ListAt(shape.Object[namespace.Override]{Fields: overrideKeys,
				Gone: gone("write its match under exclude of the profile", "hide")}), &p.tools),
		shape.SectionWith("deferred",
			"Which tools are held back until they are searched for, where it is otherwise than in deferred.",
			gone("write it in deferred at the top: it counts in all profiles", "tools"),
			deferralKeys(&p.deferred)...),
		shape.SectionWith("results",
			"What happens to large results, where it differs from results.",
			gone("write it in results at the top: it counts in all profiles", "tools"), resultKeys(&p.results)...),
	}
}

func overrideKeys(o *namespace.Override) []shape.Field {
	return []shape.Field{
		matchKey(&o.Match),
		shape.Key("name", "Shown instead of the tool's own name. match must then be one tool.",
			shape.Text{Pattern: shownName, Want: "letters, digits and _ . -, 64 at most"}, &o.Name),
		shape.Key("title", "Shown instead of the tool's title.", anyText, &o.Title),
		shape.Key("description", "Shown instead of the tool's description.", anyText, &o.Description),
	}
}

var shownName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func journalKeys(j *journal) []shape.Field {
	return []shape.Field{
		shape.Key("dir", "Where (default: journal in the state directory). Relative to ${workspaceFolder}.", expanded,
			&j.Dir),
		shape.Key("max_bytes", "A larger file is closed and a new one begun (default 64 MiB). The newest ten are kept.",
			shape.Size[int64]{Min: 1 << 10, Max: maxBytes}, &j.MaxBytes),
		shape.Key("max_age", `Older files are removed: "720h", "30d" (default never).`,
			shape.Duration{Min: 0, Max: 100 * 365 * 24 * time.Hour, Days: true}, &j.MaxAge),
		shape.KeyAt("sync_within",
			"How long after an answer its call's records are synced to the disk (default 20ms): what a loss of "+
				"power can cost. 0s: before the answer. They are written before it in any case.",
			shape.Duration{Min: 0, Max: time.Minute}, &j.sync),
	}
}

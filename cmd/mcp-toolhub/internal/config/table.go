package config

import (
	"regexp"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
)

// file holds the values of the file, before the checks that look at more than one value.
type file struct {
	mcpServers, servers []entry[server]
	hub                 hub
	profiles            []entry[profile]
	deferred            deferral
	policy              located[permission]
	journal             journal
}

type hub struct {
	name, instructions string
	inputTimeout       time.Duration
	log                struct{ level, format string }
	startParallel      int
	firstListWithin    located[time.Duration]
	retry              retry
	limits             hubLimits
	http               httpDoor
	tokens             []located[bearer]    // auth.tokens
	code               located[codeToolset] // toolsets.code
	declarative        commands             // toolsets.declarative
}

type retry struct {
	min, max located[time.Duration]
	budget   int
	rest     time.Duration
}

type httpDoor struct {
	listen      located[string]
	directViews located[bool]
	downstream.HTTPConfig
}

type bearer struct {
	name, secret located[string]
}

type codeToolset struct {
	run                        located[commands]
	enabled                    located[bool]
	root                       located[string]
	sensitivePaths, writeRoots []located[string]
}

type profile struct {
	style                     string
	servers, include, exclude []located[string]
	tools                     []located[override]
	deferred                  deferral
}

type override struct {
	match, name        located[string]
	title, description located[string]
	hide               located[bool]
}

type journal struct {
	dir      located[string]
	maxBytes int64
	maxFiles int
	maxAge   time.Duration
	sync     located[time.Duration]
}

const (
	maxCount = 1 << 20
	maxBytes = 1 << 40
)

var (
	expanded  = text{expand: true}
	anyText   = text{empty: true}
	plainText = text{}
)

// fileShape is the table's root. Foreign keys of a client's own settings file are warnings.
func fileShape(foreign func(key string) bool) object[file] {
	return object[file]{fields: fileKeys,
		lenient: func(key string) bool { return isEditorSetting(key) || foreign(key) },
		unknown: "known here: mcpServers, servers, inputs, hub, profiles, policy, deferred, persist",
		extra: schema{"patternProperties": schema{
			editorSetting.String(): schema{"description": "A setting of VS Code, ignored."}}}}
}

func fileKeys(f *file) []field {
	servers := mapping[server]{of: definedServer{serverShape()}}
	return append([]field{
		clientKey("$schema", "The JSON Schema of this file, for editors."),
		key("inputs", "VS Code's input variables. ${input:ID} stands for the environment variable MCP_TOOLHUB_INPUT_<ID> "+
			"(upper case, _ for what is neither letter nor digit), otherwise for the input's default.",
			inputs{list[input]{objectOf(inputKeys)}}, new([]input)),
		key("mcpServers", "The MCP servers, by id, in the shape of Claude Desktop, Claude Code and Cursor.",
			servers, &f.mcpServers),
		key("servers", "The MCP servers, by id, in the shape of VS Code. The same as mcpServers.", servers, &f.servers),
		section("hub", "Settings of the hub itself.", hubKeys(&f.hub)...),
		key("profiles", "What clients see, by name of the profile. \"default\" is the one they get when they name none.",
			mapping[profile]{of: objectOf(profileKeys), key: profileName}, &f.profiles),
		keyAt("policy", "Which calls may run, and which a person is asked about. Without this key tools that only read run where they are "+
			"the hub's or their server has trust: true; others are asked about, on stdio by the client.",
			objectOf(policyKeys), &f.policy),
		section("deferred", "Which tools are held back until they are searched for. Profiles may say otherwise.",
			deferredKeys(&f.deferred)...),
		section("persist", "What the hub keeps on disk.",
			section("journal", "The record of every call, as JSON lines.", journalKeys(&f.journal)...)),
	}, topClientKeys()...)
}

// inputs is the list of input variables. It stands first in the table: from here on ${input:…} has a meaning.
type inputs struct{ list[input] }

func (s inputs) read(r *reader, n *textfile.Node) ([]input, bool) {
	all, sound := s.list.read(r, n)
	for i, in := range all {
		for _, other := range all[:i] {
			if in.id.ok && in.id.value == other.id.value {
				faultOf(r, in.id, "two inputs of the same id, the first at "+r.place(other.id.Position), "remove one of the two")
				sound = false
			}
		}
	}
	r.vars.inputs = all
	return all, sound
}

func inputKeys(i *input) []field {
	fields := []field{
		must(keyAt("id", "The id, for ${input:id}.", plainText, &i.id)),
		keyAt("default", "Stands in where the environment variable is not set.", text{empty: true, scalar: true}, &i.fallback),
		key("type", "How VS Code asks for it. The hub never asks.",
			oneOf("promptString", "pickString", "command"), new(string)),
	}
	for _, name := range []string{"description", "password", "options", "command", "args"} {
		fields = append(fields, clientKey(name, "Of VS Code's question, not used."))
	}
	return fields
}

func hubKeys(h *hub) []field {
	return []field{
		key("name", `The name that the hub tells its clients (default "mcp-toolhub").`,
			text{expand: true, check: oneLine}, &h.name),
		key("instructions", "What the hub tells its clients' models about itself.", anyText, &h.instructions),
		section("log", "The log on stderr.",
			key("level", `What to log (default "info").`,
				oneOf("debug", "info", "warn", "error"), &h.log.level),
			key("format", `"auto" (default) is text on a terminal and JSON otherwise.`,
				oneOf("auto", "text", "json"), &h.log.format)),
		key("start_parallel", "How many servers start at the same time while the processors are busy (default 8).",
			number{1, 1000}, &h.startParallel),
		keyAt("first_list_within", "How long after the start of a server that has never listed its tools a client's list of tools, or its "+
			"call of an unknown name, waits for it (default 5s). 0s: not at all.",
			duration{min: 0, max: 10 * time.Minute}, &h.firstListWithin),
		section("retry", "How servers that failed are started again.", retryKeys(&h.retry)...),
		section("limits", "How much a server may send and list, where its entry does not say otherwise, and how much a client may send.",
			hubLimitsKeys(&h.limits)...),
		key("input_timeout", "How long a call waits for what its server asks of a client of protocol 2026-07-28 (default 10m).",
			duration{min: time.Second, max: 24 * time.Hour}, &h.inputTimeout),
		section("http", "The Streamable HTTP door.", httpKeys(&h.http)...),
		section("auth", "Who may come in over HTTP.",
			key("tokens", "Bearer tokens. Without any, only loopback addresses can be listened on.",
				listAt(objectOf(tokenKeys)), &h.tokens)),
		section("toolsets", "The built-in tools.",
			keyAt("code", "Works with files: code.read_file, code.list_dir, code.search, and code.write_file and code.edit_file where "+
				"allowed_write_roots allows them. Off where this key is absent.", objectOf(codeKeys), &h.code),
			section("declarative", "The tools that files in mcp-toolhub/tools in your configuration directory declare.",
				declarativeKeys(&h.declarative)...)),
	}
}

func retryKeys(p *retry) []field {
	pause := duration{min: 10 * time.Millisecond, max: 24 * time.Hour}
	return []field{
		keyAt("min", "The first pause (default 1s). It doubles with each failure.", pause, &p.min),
		keyAt("max", "The longest pause (default 60s).", pause, &p.max),
		key("budget", "How often one server is started within an hour before the hub rests (default 60).",
			number{1, maxCount}, &p.budget),
		key("rest", "The pause once the budget is used up (default 15m).", pause, &p.rest),
	}
}

func httpKeys(h *httpDoor) []field {
	return []field{
		keyAt("listen", `Address to listen on, for instance "127.0.0.1:8808". Without it, serve speaks stdio.`,
			text{expand: true, check: listenAddress}, &h.listen),
		key("max_body_bytes", "Largest request body (default: hub.limits.client_message, otherwise 4 MiB).",
			size{1 << 10, 1 << 30}, &h.MaxBodyBytes),
		key("max_sessions", "Sessions at the same time, on protocol revisions that have sessions (default 1000). One more ends the "+
			"session that was idle for longest, of the caller that has most.",
			number{1, maxCount}, &h.MaxSessions),
		key("session_idle", "A session without a request for so long leaves the hub's memory, and its answers for the session are forgotten "+
			"(default 30m). It comes back when its client goes on.",
			idleTime(), &h.SessionIdle),
		key("allowed_origins", `Origins that are let in besides the hub's own: "https://app.example.com".`,
			list[string]{text{expand: true, check: origin}}, &h.AllowedOrigins),
		key("allowed_hosts", `Host names that are let in besides the address listened on: "hub.example.com".`,
			list[string]{text{expand: true, check: hostName}}, &h.AllowedHosts),
		keyAt("direct_views", "Whether /mcp/s/SERVER serves all that one server offers, whatever profiles leave out (default true).",
			boolean{}, &h.directViews),
		key("drain_timeout", "How long calls in flight may take to end at a stop (default 10s).", timeout, &h.DrainTimeout),
	}
}

func tokenKeys(t *bearer) []field {
	return []field{
		must(keyAt("name", "The name of who holds the token; it becomes the actor in records.",
			text{pattern: actorName, want: "letters, digits and . _ @ -, 64 at most"}, &t.name)),
		must(keyAt("token", "The token, by reference: ${env:NAME} or ${file:path}; 16 bytes at least.", secret{}, &t.secret)),
	}
}

var actorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

func codeKeys(c *codeToolset) []field {
	return []field{
		keyAt("enabled", "Whether the toolset is on (default true).", boolean{}, &c.enabled),
		keyAt("root", "The project: relative paths start here. Relative to ${workspaceFolder}; default the working directory.",
			expanded, &c.root),
		keyAt("run_command", "Runs commands in the project: code.run_command. Off where this key is absent.",
			objectOf(runCommandKeys), &c.run),
		key("sensitive_paths", "Globs of paths that these tools never open, whoever allows it. The built-in ones (keys, .env …) are asked about.",
			listAt(text{expand: true, check: treeGlob}), &c.sensitivePaths),
		key("allowed_write_roots", "Directories in which code.write_file and code.edit_file may write: [.] is the project. Relative to "+
			"${workspaceFolder}. Without any there are no such tools. Writing elsewhere is asked about.",
			listAt(expanded), &c.writeRoots),
	}
}

func profileKeys(p *profile) []field {
	globs := listAt(text{check: nameGlob})
	return []field{
		key("style", `How tools are named (default "auto").`, oneOf(namespace.StyleAuto, namespace.StyleCanonical,
			namespace.StyleSafe, namespace.StyleShort, namespace.StyleNative), &p.style),
		key("servers", "Server ids and toolsets to show, as globs (default all). Resources are shown by server.",
			globs, &p.servers),
		key("include", `Tools and prompts to show, as globs over canonical names: "mcp.github.*" (default all).`,
			globs, &p.include),
		key("exclude", "Tools and prompts to leave out, as globs over canonical names. Wins over include.", globs, &p.exclude),
		key("tools", "Changes to how tools are shown. The first that sets a field counts.",
			listAt(objectOf(overrideKeys)), &p.tools),
		section("deferred", "Which tools are held back until they are searched for, where it is otherwise than in deferred.",
			deferralKeys(&p.deferred)...),
	}
}

func overrideKeys(o *override) []field {
	return []field{
		must(keyAt("match", "Which tools, as a glob over canonical names.", text{check: nameGlob}, &o.match)),
		keyAt("name", "Shown instead of the tool's own name. match must then be one tool.",
			text{pattern: shownName, want: "letters, digits and _ . -, 64 at most"}, &o.name),
		keyAt("title", "Shown instead of the tool's title.", anyText, &o.title),
		keyAt("description", "Shown instead of the tool's description.", anyText, &o.description),
		keyAt("hide", "Neither listed nor callable.", boolean{}, &o.hide),
	}
}

var shownName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func journalKeys(j *journal) []field {
	return []field{
		keyAt("dir", "Where (default: journal in the state directory). Relative to ${workspaceFolder}.", expanded, &j.dir),
		key("max_bytes", "A larger file is closed and a new one begun (default 64 MiB).", size{1 << 10, maxBytes}, &j.maxBytes),
		key("max_files", "Files kept (default 10).", number{1, maxCount}, &j.maxFiles),
		key("max_age", `Older files are removed: "720h", "30d" (default never).`,
			duration{min: 0, max: 100 * 365 * 24 * time.Hour, days: true}, &j.maxAge),
		keyAt("sync_within", "How long after an answer the sync of its call's records to the disk begins (default 5ms), unless one "+
			"is still under way: what a loss of power can cost. 0s: they are there before the answer. They are always written "+
			"before it, and outlive the hub.",
			duration{min: 0, max: time.Minute}, &j.sync),
	}
}

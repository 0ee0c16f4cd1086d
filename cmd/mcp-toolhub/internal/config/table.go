package config

import (
	"regexp"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
)

// file is what the file holds, before the checks that look at more than one value.
type file struct {
	mcpServers []entry[server]
	servers    []entry[server]
	hub        hub
	profiles   []entry[profile]
	deferred   deferral
	policy     located[permission]
	persist    struct{ journal journal }
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
	auth               struct{ tokens []located[bearer] }
	toolsets           builtIn
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
	name   located[string]
	secret located[string]
}

// builtIn are the built-in toolsets.
type builtIn struct {
	code        located[codeToolset]
	declarative commands
}

type codeToolset struct {
	run            located[commands]
	enabled        located[bool]
	root           located[string]
	sensitivePaths []located[string]
	writeRoots     []located[string]
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
	servers := mapping[server]{of: named[server]{"server", serverShape()}, each: sleepIfDisabled}
	fields := []field[file]{
		clientKey[file]("$schema", "The JSON Schema of this file, for editors.", false),
		key("inputs", "VS Code's input variables. ${input:ID} stands for the environment variable MCP_TOOLHUB_INPUT_<ID> "+
			"(upper case, _ for what is neither letter nor digit), otherwise for the input's default.",
			inputs{list[input]{inputShape()}}, ignored[file, []input]),
		key("mcpServers", "The MCP servers, by id, in the shape of Claude Desktop, Claude Code and Cursor.",
			servers, func(f *file) *[]entry[server] { return &f.mcpServers }),
		key("servers", "The MCP servers, by id, in the shape of VS Code. The same as mcpServers.",
			servers, func(f *file) *[]entry[server] { return &f.servers }),
		key("hub", "Settings of the hub itself.", hubShape(), func(f *file) *hub { return &f.hub }),
		key("profiles", "What clients see, by name of the profile. \"default\" is the one they get when they name none.",
			mapping[profile]{of: profileShape(), key: profileName},
			func(f *file) *[]entry[profile] { return &f.profiles }),
		key("policy", "Which calls may run, and which a person is asked about. Without this key tools that only read run where they are "+
			"the hub's or their server has trust: true; others are asked about, on stdio by the client.",
			in[permission]{policyShape()}, func(f *file) *located[permission] { return &f.policy }),
		key("deferred", "Which tools are held back until they are searched for. Profiles may say otherwise.", deferredShape(),
			func(f *file) *deferral { return &f.deferred }),
		key("persist", "What the hub keeps on disk.", persistShape(),
			func(f *file) *struct{ journal journal } { return &f.persist }),
	}
	for _, k := range topClientKeys() {
		fields = append(fields, clientKey[file](k.name, k.doc, true))
	}
	return object[file]{fields: fields,
		lenient: func(key string) bool { return isEditorSetting(key) || foreign(key) },
		unknown: "known here: mcpServers, servers, inputs, hub, profiles, policy, deferred, persist",
		extra: schema{"patternProperties": schema{
			editorSetting.String(): schema{"description": "A setting of VS Code, ignored."}}}}
}

// ignored is where the value of a key without meaning goes.
func ignored[T, V any](*T) *V { return new(V) }

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

func inputShape() object[input] {
	fields := []field[input]{
		must(key("id", "The id, for ${input:id}.", in[string]{plainText}, func(i *input) *located[string] { return &i.id })),
		key("default", "Stands in where the environment variable is not set.", in[string]{text{empty: true, scalar: true}},
			func(i *input) *located[string] { return &i.fallback }),
		key("type", "How VS Code asks for it. The hub never asks.",
			text{oneOf: []string{"promptString", "pickString", "command"}}, ignored[input, string]),
	}
	for _, name := range []string{"description", "password", "options", "command", "args"} {
		fields = append(fields, clientKey[input](name, "Of VS Code's question, not used.", false))
	}
	return object[input]{fields: fields}
}

func hubShape() object[hub] {
	return object[hub]{fields: []field[hub]{
		key("name", `The name that the hub tells its clients (default "mcp-toolhub").`,
			text{expand: true, check: oneLine}, func(h *hub) *string { return &h.name }),
		key("instructions", "What the hub tells its clients' models about itself.", anyText,
			func(h *hub) *string { return &h.instructions }),
		key("log", "The log on stderr.", object[struct{ level, format string }]{fields: []field[struct{ level, format string }]{
			key("level", `What to log (default "info").`, text{oneOf: []string{"debug", "info", "warn", "error"}},
				func(l *struct{ level, format string }) *string { return &l.level }),
			key("format", `"auto" (default) is text on a terminal and JSON otherwise.`,
				text{oneOf: []string{"auto", "text", "json"}},
				func(l *struct{ level, format string }) *string { return &l.format }),
		}}, func(h *hub) *struct{ level, format string } { return &h.log }),
		key("start_parallel", "How many servers start at the same time while the processors are busy (default 8).", number{1, 1000},
			func(h *hub) *int { return &h.startParallel }),
		key("first_list_within", "How long after the start of a server that has never listed its tools a client's list of tools, or its "+
			"call of an unknown name, waits for it (default 5s). 0s: not at all.",
			in[time.Duration]{duration{min: 0, max: 10 * time.Minute}}, func(h *hub) *located[time.Duration] { return &h.firstListWithin }),
		key("retry", "How servers that failed are started again.", retryShape(), func(h *hub) *retry { return &h.retry }),
		key("limits", "How much a server may send and list, where its entry does not say otherwise, and how much a client may send.",
			hubLimitsShape(), func(h *hub) *hubLimits { return &h.limits }),
		key("input_timeout", "How long a call waits for what its server asks of a client of protocol 2026-07-28 (default 10m).",
			duration{min: time.Second, max: 24 * time.Hour}, func(h *hub) *time.Duration { return &h.inputTimeout }),
		key("http", "The Streamable HTTP door.", httpShape(), func(h *hub) *httpDoor { return &h.http }),
		key("auth", "Who may come in over HTTP.", object[struct{ tokens []located[bearer] }]{
			fields: []field[struct{ tokens []located[bearer] }]{
				key("tokens", "Bearer tokens. Without any, only loopback addresses can be listened on.",
					list[located[bearer]]{in[bearer]{tokenShape()}},
					func(a *struct{ tokens []located[bearer] }) *[]located[bearer] { return &a.tokens }),
			}}, func(h *hub) *struct{ tokens []located[bearer] } { return &h.auth }),
		key("toolsets", "The built-in tools.", object[builtIn]{
			fields: []field[builtIn]{
				key("code", "Works with files: code.read_file, code.list_dir, code.search, and code.write_file and code.edit_file where "+
					"allowed_write_roots allows them. Off where this key is absent.",
					in[codeToolset]{codeShape()},
					func(t *builtIn) *located[codeToolset] { return &t.code }),
				key("declarative", "The tools that files in mcp-toolhub/tools in your configuration directory declare.",
					declarativeShape(), func(t *builtIn) *commands { return &t.declarative }),
			}}, func(h *hub) *builtIn { return &h.toolsets }),
	}}
}

func retryShape() object[retry] {
	pause := duration{min: 10 * time.Millisecond, max: 24 * time.Hour}
	return object[retry]{fields: []field[retry]{
		key("min", "The first pause (default 1s). It doubles with each failure.", in[time.Duration]{pause},
			func(p *retry) *located[time.Duration] { return &p.min }),
		key("max", "The longest pause (default 60s).", in[time.Duration]{pause},
			func(p *retry) *located[time.Duration] { return &p.max }),
		key("budget", "How often one server is started within an hour before the hub rests (default 60).", number{1, maxCount},
			func(p *retry) *int { return &p.budget }),
		key("rest", "The pause once the budget is used up (default 15m).", pause,
			func(p *retry) *time.Duration { return &p.rest }),
	}}
}

func httpShape() object[httpDoor] {
	return object[httpDoor]{fields: []field[httpDoor]{
		key("listen", `Address to listen on, for instance "127.0.0.1:8808". Without it, serve speaks stdio.`,
			in[string]{text{expand: true, check: listenAddress}}, func(h *httpDoor) *located[string] { return &h.listen }),
		key("max_body_bytes", "Largest request body (default: hub.limits.client_message, otherwise 4 MiB).", size{1 << 10, 1 << 30},
			func(h *httpDoor) *int64 { return &h.MaxBodyBytes }),
		key("max_sessions", "Sessions at the same time, on protocol revisions that have sessions (default 1000). One more ends the "+
			"session that was idle for longest, of the caller that has most.",
			number{1, maxCount}, func(h *httpDoor) *int { return &h.MaxSessions }),
		key("session_idle", "A session without a request for so long leaves the hub's memory, and its answers for the session are forgotten "+
			"(default 30m). It comes back when its client goes on.",
			idleTime(), func(h *httpDoor) *time.Duration { return &h.SessionIdle }),
		key("allowed_origins", `Origins that are let in besides the hub's own: "https://app.example.com".`,
			list[string]{text{expand: true, check: origin}}, func(h *httpDoor) *[]string { return &h.AllowedOrigins }),
		key("allowed_hosts", `Host names that are let in besides the address listened on: "hub.example.com".`,
			list[string]{text{expand: true, check: hostName}}, func(h *httpDoor) *[]string { return &h.AllowedHosts }),
		key("direct_views", "Whether /mcp/s/SERVER serves all that one server offers, whatever profiles leave out (default true).",
			in[bool]{boolean{}}, func(h *httpDoor) *located[bool] { return &h.directViews }),
		key("drain_timeout", "How long calls in flight may take to end at a stop (default 10s).", timeout,
			func(h *httpDoor) *time.Duration { return &h.DrainTimeout }),
	}}
}

func tokenShape() object[bearer] {
	return object[bearer]{fields: []field[bearer]{
		must(key("name", "The name of who holds the token; it becomes the actor in records.",
			in[string]{text{pattern: actorName, want: "letters, digits and . _ @ -, 64 at most"}},
			func(t *bearer) *located[string] { return &t.name })),
		must(key("token", "The token, by reference: ${env:NAME} or ${file:path}; 16 bytes at least.", in[string]{secret{}},
			func(t *bearer) *located[string] { return &t.secret })),
	}}
}

var actorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

func codeShape() object[codeToolset] {
	return object[codeToolset]{fields: []field[codeToolset]{
		key("enabled", "Whether the toolset is on (default true).", in[bool]{boolean{}},
			func(c *codeToolset) *located[bool] { return &c.enabled }),
		key("root", "The project: relative paths start here. Relative to ${workspaceFolder}; default the working directory.",
			in[string]{expanded}, func(c *codeToolset) *located[string] { return &c.root }),
		key("run_command", "Runs commands in the project: code.run_command. Off where this key is absent.", in[commands]{runCommandShape()},
			func(c *codeToolset) *located[commands] { return &c.run }),
		key("sensitive_paths", "Globs of paths that these tools never open, whoever allows it. The built-in ones (keys, .env …) are asked about.",
			list[located[string]]{in[string]{text{expand: true, check: treeGlob}}},
			func(c *codeToolset) *[]located[string] { return &c.sensitivePaths }),
		key("allowed_write_roots", "Directories in which code.write_file and code.edit_file may write: [.] is the project. Relative to "+
			"${workspaceFolder}. Without any there are no such tools. Writing elsewhere is asked about.",
			list[located[string]]{in[string]{expanded}},
			func(c *codeToolset) *[]located[string] { return &c.writeRoots }),
	}}
}

func profileShape() object[profile] {
	globs := list[located[string]]{in[string]{text{check: nameGlob}}}
	return object[profile]{fields: []field[profile]{
		key("style", `How tools are named (default "auto").`, text{oneOf: []string{string(namespace.StyleAuto),
			string(namespace.StyleCanonical), string(namespace.StyleSafe), string(namespace.StyleShort),
			string(namespace.StyleNative)}}, func(p *profile) *string { return &p.style }),
		key("servers", "Server ids and toolsets to show, as globs (default all). Resources are shown by server.", globs,
			func(p *profile) *[]located[string] { return &p.servers }),
		key("include", `Tools and prompts to show, as globs over canonical names: "mcp.github.*" (default all).`, globs,
			func(p *profile) *[]located[string] { return &p.include }),
		key("exclude", "Tools and prompts to leave out, as globs over canonical names. Wins over include.", globs,
			func(p *profile) *[]located[string] { return &p.exclude }),
		key("tools", "Changes to how tools are shown. The first that sets a field counts.",
			list[located[override]]{in[override]{overrideShape()}}, func(p *profile) *[]located[override] { return &p.tools }),
		key("deferred", "Which tools are held back until they are searched for, where it is otherwise than in deferred.",
			object[deferral]{fields: deferralFields()}, func(p *profile) *deferral { return &p.deferred }),
	}}
}

func overrideShape() object[override] {
	return object[override]{fields: []field[override]{
		must(key("match", "Which tools, as a glob over canonical names.", in[string]{text{check: nameGlob}},
			func(o *override) *located[string] { return &o.match })),
		key("name", "Shown instead of the tool's own name. match must then be one tool.",
			in[string]{text{pattern: shownName, want: "letters, digits and _ . -, 64 at most"}},
			func(o *override) *located[string] { return &o.name }),
		key("title", "Shown instead of the tool's title.", in[string]{anyText},
			func(o *override) *located[string] { return &o.title }),
		key("description", "Shown instead of the tool's description.", in[string]{anyText},
			func(o *override) *located[string] { return &o.description }),
		key("hide", "Neither listed nor callable.", in[bool]{boolean{}}, func(o *override) *located[bool] { return &o.hide }),
	}}
}

var shownName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func persistShape() object[struct{ journal journal }] {
	return object[struct{ journal journal }]{fields: []field[struct{ journal journal }]{
		key("journal", "The record of every call, as JSON lines.", object[journal]{fields: []field[journal]{
			key("dir", "Where (default: journal in the state directory). Relative to ${workspaceFolder}.", in[string]{expanded},
				func(j *journal) *located[string] { return &j.dir }),
			key("max_bytes", "A larger file is closed and a new one begun (default 64 MiB).", size{1 << 10, maxBytes},
				func(j *journal) *int64 { return &j.maxBytes }),
			key("max_files", "Files kept (default 10).", number{1, maxCount}, func(j *journal) *int { return &j.maxFiles }),
			key("max_age", `Older files are removed: "720h", "30d" (default never).`,
				duration{min: 0, max: 100 * 365 * 24 * time.Hour, days: true},
				func(j *journal) *time.Duration { return &j.maxAge }),
			key("sync_within", "How long after an answer the sync of its call's records to the disk begins (default 5ms), unless one "+
				"is still under way: what a loss of power can cost. 0s: they are there before the answer. They are always written "+
				"before it, and outlive the hub.",
				in[time.Duration]{duration{min: 0, max: time.Minute}}, func(j *journal) *located[time.Duration] { return &j.sync }),
		}}, func(p *struct{ journal journal }) *journal { return &p.journal }),
	}}
}

package config

import (
	"math"
	"regexp"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// server is one entry of mcpServers or servers.
type server struct {
	kind                    located[string] // type
	command, cwd, envFile   located[string]
	args                    located[[]string]
	env, headers            located[[]entry[string]]
	url, httpURL, serverURL located[string]
	clientTimeout           located[int64]
	disabled, trust         bool
	tags                    []string
	validate                string
	maxParallel, maxQueued  int
	start, whenDown         string
	limits                  limits
	idleStop                located[time.Duration]
	isolation               string
	sessionIdle             located[time.Duration]
	maxSessions             located[int]
	timeouts                timeouts
}

type timeouts struct {
	connect, list time.Duration
	call, callMax located[time.Duration]
	tools         []toolTimeout
}

type toolTimeout struct {
	match         string
	call, callMax located[time.Duration]
}

// serverTypes are the values of type. All but stdio and sse mean Streamable HTTP.
func serverTypes() []string {
	return []string{"stdio", "http", "streamable-http", "streamableHttp", "sse"}
}

func serverShape() object[server] {
	pairs := func(s shape[string], check func(string) (string, string)) shape[located[[]entry[string]]] {
		return in[[]entry[string]]{mapping[string]{of: s, key: check}}
	}
	fields := []field[server]{
		key("type", "How the server is reached. Default: stdio with a command, http with a url (sse where the url ends in /sse).",
			in[string]{text{oneOf: serverTypes()}}, func(s *server) *located[string] { return &s.kind }),
		key("command", `The program, found in PATH or a path. "mcp-toolhub" is the hub's own program.`,
			in[string]{text{expand: true, check: noNUL}}, func(s *server) *located[string] { return &s.command }),
		key("args", "Its arguments.", in[[]string]{list[string]{text{expand: true, empty: true, scalar: true, check: noNUL}}},
			func(s *server) *located[[]string] { return &s.args }),
		key("env", "Variables for the program, besides PATH, HOME, TMPDIR and locale. null leaves one out.",
			pairs(envValue{}, variableKey), func(s *server) *located[[]entry[string]] { return &s.env }),
		key("envFile", "A file of further variables, NAME=value on each line. env wins.", in[string]{expanded},
			func(s *server) *located[string] { return &s.envFile }),
		key("cwd", "The program's working directory. Relative to ${workspaceFolder}; default the hub's own.",
			in[string]{text{expand: true, check: noNUL}}, func(s *server) *located[string] { return &s.cwd }),
		key("url", "The address of a remote server, http or https.", in[string]{text{expand: true, check: webURL}},
			func(s *server) *located[string] { return &s.url }),
		key("httpUrl", "Gemini CLI's url of a Streamable HTTP server.", in[string]{text{expand: true, check: webURL}},
			func(s *server) *located[string] { return &s.httpURL }),
		key("serverUrl", "Windsurf's url.", in[string]{text{expand: true, check: webURL}},
			func(s *server) *located[string] { return &s.serverURL }),
		key("headers", "HTTP headers for every request to this server, and to no other.",
			pairs(text{expand: true, empty: true, scalar: true, check: headerValue}, headerName),
			func(s *server) *located[[]entry[string]] { return &s.headers }),
		key("disabled", "Whether to leave the server alone.", boolean{}, func(s *server) *bool { return &s.disabled }),
		key("trust", "Whether you vouch for what this server says of its tools (read-only, idempotent …).", boolean{},
			func(s *server) *bool { return &s.trust }),
		key("tags", "Words given to every tool of this server.", list[string]{plainText},
			func(s *server) *[]string { return &s.tags }),
		key("validate", "What happens to arguments that a tool's input schema refuses (default reject).",
			text{oneOf: []string{"off", "warn", "reject"}}, func(s *server) *string { return &s.validate }),
		key("max_parallel", "Calls that this server executes at the same time (default 100). Others wait for their turn.",
			number{1, maxCount}, func(s *server) *int { return &s.maxParallel }),
		key("max_queued", "Calls that may wait for this server (default 1000). Further ones are refused.",
			number{1, maxCount}, func(s *server) *int { return &s.maxQueued }),
		key("start", "When the server is started: with the hub (eager, the default), or by the first call to one of its tools "+
			"(lazy), once it is known which tools it has.",
			text{oneOf: []string{"eager", "lazy"}}, func(s *server) *string { return &s.start }),
		key("idle_stop", "A server that no call has needed for so long is stopped until the next one (default never).",
			in[time.Duration]{idleTime()}, func(s *server) *located[time.Duration] { return &s.idleStop }),
		key("isolation", "Whether all clients share one connection to the server (shared, the default), or each client session has "+
			"its own (session): for servers with state, such as browsers. On protocol 2026-07-28, which has no sessions, each "+
			"caller (token) has its own.",
			text{oneOf: []string{"shared", "session"}}, func(s *server) *string { return &s.isolation }),
		key("session_idle", "With isolation: session, a connection that its session has not called for so long ends (default 10m).",
			in[time.Duration]{idleTime()}, func(s *server) *located[time.Duration] { return &s.sessionIdle }),
		key("max_sessions", "With isolation: session, connections at the same time (default 20). Calls of further sessions are refused.",
			in[int]{number{1, maxCount}}, func(s *server) *located[int] { return &s.maxSessions }),
		key("when_down", "Whether the tools of a server that is down stay listed (list, the default) or not (hide).",
			text{oneOf: []string{"list", "hide"}}, func(s *server) *string { return &s.whenDown }),
		key("limits", "How much the server may send and list. What is not given here is as in hub.limits.", limitsShape(),
			func(s *server) *limits { return &s.limits }),
		key("timeouts", "How long the hub waits for this server.", timeoutsShape(),
			func(s *server) *timeouts { return &s.timeouts }),
		key("timeout", "A client's timeout of a call, in milliseconds (below 1000: in seconds). timeouts.call is the hub's own.",
			in[int64]{integer{1, math.MaxInt32}}, func(s *server) *located[int64] { return &s.clientTimeout }),
	}
	for _, k := range serverClientKeys() {
		fields = append(fields, clientKey[server](k.name, k.doc, true))
	}
	return object[server]{fields: fields, unknown: "known here: command, args, env, cwd, type, url, headers, disabled, " +
		"trust, tags, timeouts, validate, max_parallel, max_queued, start, idle_stop, isolation, session_idle, max_sessions, when_down, limits",
		extra: schema{"anyOf": []schema{{"required": []string{"command"}}, {"required": []string{"url"}},
			{"required": []string{"httpUrl"}}, {"required": []string{"serverUrl"}}}}}
}

// idleTime is the shape of how long something may go unused.
func idleTime() duration { return duration{min: time.Second, max: 30 * 24 * time.Hour} }

func timeoutsShape() object[timeouts] {
	return object[timeouts]{fields: []field[timeouts]{
		key("connect", "Start and initialize (default 30s).", timeout, func(t *timeouts) *time.Duration { return &t.connect }),
		key("list", "All pages of one list, of tools or resources for instance (default 30s).", timeout, func(t *timeouts) *time.Duration { return &t.list }),
		key("call", "A call without progress (default 60s).", in[time.Duration]{timeout},
			func(t *timeouts) *located[time.Duration] { return &t.call }),
		key("call_max", "A call that reports progress, in all (default 30m).", in[time.Duration]{timeout},
			func(t *timeouts) *located[time.Duration] { return &t.callMax }),
		key("tools", "Other timeouts for some tools. The first match counts.", list[toolTimeout]{object[toolTimeout]{
			fields: []field[toolTimeout]{
				must(key("match", "The tools, by the server's own names, as a glob (* ? [a-z]).", text{check: pathGlob},
					func(t *toolTimeout) *string { return &t.match })),
				key("call", "A call without progress.", in[time.Duration]{timeout},
					func(t *toolTimeout) *located[time.Duration] { return &t.call }),
				key("call_max", "A call that reports progress, in all.", in[time.Duration]{timeout},
					func(t *toolTimeout) *located[time.Duration] { return &t.callMax }),
			}}}, func(t *timeouts) *[]toolTimeout { return &t.tools }),
	}}
}

// sleepIfDisabled lets the variables of a disabled server be unset.
func sleepIfDisabled(r *reader, m textfile.Member) func() {
	before := r.dormant
	if d := m.Value.Member("disabled"); d != nil && d.Kind == textfile.Bool {
		r.dormant, _ = boolean{}.read(r, d)
	}
	return func() { r.dormant = before }
}

// unset is the value of a variable that null leaves out: no variable can hold a NUL.
const unset = "\x00"

// envValue is the value of a variable of a child process.
type envValue struct{}

var envText = text{expand: true, empty: true, scalar: true, check: noNUL}

func (envValue) read(r *reader, n *textfile.Node) (string, bool) {
	if n.Kind == textfile.Null {
		return unset, true
	}
	if n.Kind == textfile.Text && bareVariable.MatchString(n.Text) {
		r.warn(n.Position, "begins with $ and is passed on as it stands", "write ${NAME} if it is to stand for a variable")
	}
	return envText.read(r, n)
}

var bareVariable = regexp.MustCompile(`^\$[A-Z_][A-Z0-9_]*$`)

func (envValue) schema(defs) schema {
	return schema{"type": []string{"string", "number", "boolean", "null"}}
}

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

// serverShape is an entry of mcpServers or servers.
func serverShape() object[server] {
	return object[server]{fields: serverKeys, unknown: "known here: command, args, env, cwd, type, url, headers, disabled, " +
		"trust, tags, timeouts, validate, max_parallel, max_queued, start, idle_stop, isolation, session_idle, max_sessions, when_down, limits",
		extra: schema{"anyOf": []schema{{"required": []string{"command"}}, {"required": []string{"url"}},
			{"required": []string{"httpUrl"}}, {"required": []string{"serverUrl"}}}}}
}

func serverKeys(s *server) []field {
	return append([]field{
		keyAt("type", "How the server is reached. Default: stdio with a command, http with a url (sse where the url ends in /sse).",
			oneOf("stdio", "http", "streamable-http", "streamableHttp", "sse"), &s.kind),
		keyAt("command", `The program, found in PATH or a path. "mcp-toolhub" is the hub's own program.`,
			text{expand: true, check: noNUL}, &s.command),
		keyAt("args", "Its arguments.", list[string]{text{expand: true, empty: true, scalar: true, check: noNUL}}, &s.args),
		keyAt("env", "Variables for the program, besides PATH, HOME, TMPDIR and locale. null leaves one out.",
			mapping[string]{of: envValue{}, key: variableKey}, &s.env),
		keyAt("envFile", "A file of further variables, NAME=value on each line. env wins.", expanded, &s.envFile),
		keyAt("cwd", "The program's working directory. Relative to ${workspaceFolder}; default the hub's own.",
			text{expand: true, check: noNUL}, &s.cwd),
		keyAt("url", "The address of a remote server, http or https.", text{expand: true, check: webURL}, &s.url),
		keyAt("httpUrl", "Gemini CLI's url of a Streamable HTTP server.", text{expand: true, check: webURL}, &s.httpURL),
		keyAt("serverUrl", "Windsurf's url.", text{expand: true, check: webURL}, &s.serverURL),
		keyAt("headers", "HTTP headers for every request to this server, and to no other.",
			mapping[string]{of: text{expand: true, empty: true, scalar: true, check: headerValue}, key: headerName}, &s.headers),
		key("disabled", "Whether to leave the server alone.", boolean{}, &s.disabled),
		key("trust", "Whether you vouch for what this server says of its tools (read-only, idempotent …).",
			boolean{}, &s.trust),
		key("tags", "Words given to every tool of this server.", list[string]{plainText}, &s.tags),
		key("validate", "What happens to arguments that a tool's input schema refuses (default reject).",
			oneOf("off", "warn", "reject"), &s.validate),
		key("max_parallel", "Calls that this server executes at the same time (default 100). Others wait for their turn.",
			number{1, maxCount}, &s.maxParallel),
		key("max_queued", "Calls that may wait for this server (default 1000). Further ones are refused.",
			number{1, maxCount}, &s.maxQueued),
		key("start", "When the server is started: with the hub (eager, the default), or by the first call to one of its tools "+
			"(lazy), once it is known which tools it has.",
			oneOf("eager", "lazy"), &s.start),
		keyAt("idle_stop", "A server that no call has needed for so long is stopped until the next one (default never).",
			idleTime(), &s.idleStop),
		key("isolation", "Whether all clients share one connection to the server (shared, the default), or each client session has "+
			"its own (session): for servers with state, such as browsers. On protocol 2026-07-28, which has no sessions, each "+
			"caller (token) has its own.",
			oneOf("shared", "session"), &s.isolation),
		keyAt("session_idle", "With isolation: session, a connection that its session has not called for so long ends (default 10m).",
			idleTime(), &s.sessionIdle),
		keyAt("max_sessions", "With isolation: session, connections at the same time (default 20). Calls of further sessions are refused.",
			number{1, maxCount}, &s.maxSessions),
		key("when_down", "Whether the tools of a server that is down stay listed (list, the default) or not (hide).",
			oneOf("list", "hide"), &s.whenDown),
		section("limits", "How much the server may send and list. What is not given here is as in hub.limits.",
			limitsKeys(&s.limits)...),
		section("timeouts", "How long the hub waits for this server.", timeoutsKeys(&s.timeouts)...),
		keyAt("timeout", "A client's timeout of a call, in milliseconds (below 1000: in seconds). timeouts.call is the hub's own.",
			integer{1, math.MaxInt32}, &s.clientTimeout),
	}, serverClientKeys()...)
}

// idleTime is the shape of how long something may go unused.
func idleTime() duration { return duration{min: time.Second, max: 30 * 24 * time.Hour} }

func timeoutsKeys(t *timeouts) []field {
	return []field{
		key("connect", "Start and initialize (default 30s).", timeout, &t.connect),
		key("list", "All pages of one list, of tools or resources for instance (default 30s).", timeout, &t.list),
		keyAt("call", "A call without progress (default 60s).", timeout, &t.call),
		keyAt("call_max", "A call that reports progress, in all (default 30m).", timeout, &t.callMax),
		key("tools", "Other timeouts for some tools. The first match counts.",
			list[toolTimeout]{objectOf(toolTimeoutKeys)}, &t.tools),
	}
}

func toolTimeoutKeys(t *toolTimeout) []field {
	return []field{
		must(key("match", "The tools, by the server's own names, as a glob (* ? [a-z]).", text{check: pathGlob}, &t.match)),
		keyAt("call", "A call without progress.", timeout, &t.call),
		keyAt("call_max", "A call that reports progress, in all.", timeout, &t.callMax),
	}
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

func (envValue) schema() schema {
	return schema{"type": []string{"string", "number", "boolean", "null"}}
}

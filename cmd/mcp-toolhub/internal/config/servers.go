package config

import (
	"math"
	"regexp"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// server is one entry of mcpServers or servers.
type server struct {
	kind                    shape.Located[string] // type
	command, cwd, envFile   shape.Located[string]
	args                    shape.Located[[]string]
	env, headers            shape.Located[[]shape.Entry[string]]
	url, httpURL, serverURL shape.Located[string]
	clientTimeout           shape.Located[int64]
	disabled, trust         bool
	tools                   toolUse
	tags                    []string
	validate                string
	validateOutput          string
	maxParallel, maxQueued  int
	start, whenDown         string
	limits                  upstream.Limits
	idleStop                shape.Located[time.Duration]
	isolation, scheduling   string
	sessionIdle             shape.Located[time.Duration]
	maxSessions             shape.Located[int]
	oauth                   shape.Located[oauth]
	timeouts                timeouts
	secrets                 []string        // values by ${secret:…} and ${file:…}
	missing                 textfile.Faults // references of the entry that have no value: the server is left out
}

type timeouts struct {
	connect, list time.Duration
	call, callMax shape.Located[time.Duration]
	tools         []toolTimeout
}

type toolTimeout struct {
	match         string
	call, callMax shape.Located[time.Duration]
}

// toolUse names the tools of a server that are used, and those that are not, in the words of several clients.
type toolUse struct{ enabled, included, only, disabled, excluded []shape.Located[string] }

// toolUseKeys takes names, and globs, without the server's id.
func toolUseKeys(u *toolUse) []shape.Field {
	names := shape.ListAt(shape.Text{Check: nameGlob})
	return []shape.Field{
		shape.Key("disabledTools", "Tools that nobody can see or call, by the server's own names, as globs (* ?).", names, &u.disabled),
		shape.Key("enabledTools", "The only tools that can be seen and called, by the server's own names, as globs (default all).", names, &u.enabled),
		shape.Key("excludeTools", "Gemini CLI's disabledTools.", names, &u.excluded),
		shape.Key("includeTools", "Gemini CLI's enabledTools.", names, &u.included),
		shape.Key("tools", "Copilot CLI's enabledTools.", names, &u.only),
	}
}

// serverShape is an entry of mcpServers or servers.
func serverShape() shape.Object[server] {
	return shape.Object[server]{Fields: serverKeys, Unknown: "known here: command, args, env, cwd, type, url, headers, disabled, " +
		"disabledTools, enabledTools, trust, tags, timeouts, validate, validate_output, max_parallel, max_queued, scheduling, start, idle_stop, isolation, " +
		"session_idle, max_sessions, when_down, oauth, limits",
		Extra: shape.Schema{"anyOf": []shape.Schema{{"required": []string{"command"}}, {"required": []string{"url"}},
			{"required": []string{"httpUrl"}}, {"required": []string{"serverUrl"}}}}}
}

func serverKeys(s *server) []shape.Field {
	return append([]shape.Field{
		shape.KeyAt("type", "How the server is reached. Default: stdio with a command, http with a url (sse where the url ends in /sse).",
			shape.OneOf("stdio", "http", "streamable-http", "streamableHttp", "sse"), &s.kind),
		shape.KeyAt("command", `The program, found in PATH or a path. "mcp-toolhub" is the hub's own program.`,
			shape.Text{Expand: true, Check: noNUL}, &s.command),
		shape.KeyAt("args", "Its arguments.", shape.List[string]{Of: shape.Text{Expand: true, Empty: true, Scalar: true, Check: noNUL}}, &s.args),
		shape.KeyAt("env", "Variables for the program, besides PATH, HOME, TMPDIR and locale. null leaves one out.",
			shape.Mapping[string]{Of: envValue{}, Key: variableKey}, &s.env),
		shape.KeyAt("envFile", "A file of further variables, NAME=value on each line. env wins.", expanded, &s.envFile),
		shape.KeyAt("cwd", "The program's working directory. Relative to ${workspaceFolder}; default the hub's own.",
			shape.Text{Expand: true, Check: noNUL}, &s.cwd),
		shape.KeyAt("url", "The address of a remote server, http or https.", shape.Text{Expand: true, Check: webURL}, &s.url),
		shape.KeyAt("httpUrl", "Gemini CLI's url of a Streamable HTTP server.", shape.Text{Expand: true, Check: webURL}, &s.httpURL),
		shape.KeyAt("serverUrl", "Windsurf's url.", shape.Text{Expand: true, Check: webURL}, &s.serverURL),
		shape.KeyAt("headers", "HTTP headers for every request to this server, and to no other.",
			shape.Mapping[string]{Of: shape.Text{Expand: true, Empty: true, Scalar: true, Check: headerValue}, Key: headerName}, &s.headers),
		shape.KeyAt("oauth", "How the hub signs in to the server, where that is not found out by itself.", oauthOf(), &s.oauth),
		shape.Key("disabled", "Whether to leave the server alone.", shape.Boolean{}, &s.disabled),
		shape.Key("trust", "Whether you vouch for what this server says of its tools (read-only, idempotent …).",
			shape.Boolean{}, &s.trust),
		shape.Key("tags", "Words given to every tool of this server.", shape.List[string]{Of: plainText}, &s.tags),
		shape.Key("validate", "What happens to arguments that a tool's input schema refuses (default reject).",
			shape.OneOf("off", "warn", "reject"), &s.validate),
		shape.Key("validate_output", "What happens to results whose structuredContent a tool's output schema refuses (default warn: they pass, "+
			"and the record says what is wrong).",
			shape.OneOf("off", "warn", "fail"), &s.validateOutput),
		shape.Key("max_parallel", "Calls that this server executes at the same time (default 100). Others wait for their turn.",
			shape.Integer[int]{Min: 1, Max: maxCount}, &s.maxParallel),
		shape.Key("max_queued", "Calls that may wait for this server (default 1000). Further ones are refused.",
			shape.Integer[int]{Min: 1, Max: maxCount}, &s.maxQueued),
		shape.Key("scheduling", "Whether calls that are not known to be safe run one at a time where they concern the same thing (targets, the default), "+
			"or always alone (strict), as Agent Tool has it for tools that say nothing.",
			shape.OneOf("targets", "strict"), &s.scheduling),
		shape.Key("start", "When the server is started: with the hub (eager, the default), or by the first call to one of its tools "+
			"(lazy), once it is known which tools it has.",
			shape.OneOf("eager", "lazy"), &s.start),
		shape.KeyAt("idle_stop", "A server that no call has needed for so long is stopped until the next one (default never).",
			idleTime(), &s.idleStop),
		shape.Key("isolation", "Whether all clients share one connection to the server (shared, the default), or each client session has "+
			"its own (session): for servers with state, such as browsers. On protocol 2026-07-28, which has no sessions, each "+
			"caller (token) has its own.",
			shape.OneOf("shared", "session"), &s.isolation),
		shape.KeyAt("session_idle", "With isolation: session or oauth: {identity: caller}, a connection that its session or caller has not called for so long "+
			"ends (default 10m).",
			idleTime(), &s.sessionIdle),
		shape.KeyAt("max_sessions", "With isolation: session, connections at the same time (default 20); with oauth: {identity: caller}, too (default 1000). Calls of "+
			"further sessions or callers are refused.",
			shape.Integer[int]{Min: 1, Max: maxCount}, &s.maxSessions),
		shape.Key("when_down", "Whether the tools of a server that is down stay listed (list, the default) or not (hide).",
			shape.OneOf("list", "hide"), &s.whenDown),
		shape.SectionWith("limits", "How much the server may send. What is not given here is as in hub.limits.",
			goneLimits(), limitsKeys(&s.limits)...),
		shape.Section("timeouts", "How long the hub waits for this server.", timeoutsKeys(&s.timeouts)...),
		shape.KeyAt("timeout", "A client's timeout of a call, in milliseconds (below 1000: in seconds). timeouts.call is the hub's own.",
			shape.Integer[int64]{Min: 1, Max: math.MaxInt32}, &s.clientTimeout),
	}, append(toolUseKeys(&s.tools), serverClientKeys()...)...)
}

// timeout is the shape of every timeout.
func timeout() shape.Duration { return shape.Duration{Min: time.Millisecond, Max: 24 * time.Hour} }

// idleTime is the shape of how long something may go unused.
func idleTime() shape.Duration { return shape.Duration{Min: time.Second, Max: 30 * 24 * time.Hour} }

func timeoutsKeys(t *timeouts) []shape.Field {
	return []shape.Field{
		shape.Key("connect", "Start and initialize (default 30s).", timeout(), &t.connect),
		shape.Key("list", "All pages of one list, of tools or resources for instance (default 30s).", timeout(), &t.list),
		shape.KeyAt("call", "A call without progress (default 60s).", timeout(), &t.call),
		shape.KeyAt("call_max", "A call that reports progress, in all (default 30m).", timeout(), &t.callMax),
		shape.Key("tools", "Other timeouts for some tools. The first match counts.",
			shape.List[toolTimeout]{Of: shape.ObjectOf(toolTimeoutKeys)}, &t.tools),
	}
}

func toolTimeoutKeys(t *toolTimeout) []shape.Field {
	return []shape.Field{
		shape.Must(shape.Key("match", "The tools, by the server's own names, as a glob (* ? [a-z]).", shape.Text{Check: pathGlob}, &t.match)),
		shape.KeyAt("call", "A call without progress.", timeout(), &t.call),
		shape.KeyAt("call_max", "A call that reports progress, in all.", timeout(), &t.callMax),
	}
}

// unset is the value of a variable that null leaves out: no variable can hold a NUL.
const unset = "\x00"

// envValue is the value of a variable of a child process.
type envValue struct{}

var envText = shape.Text{Expand: true, Empty: true, Scalar: true, Check: noNUL}

func (envValue) Read(r *shape.Reader, n *textfile.Node) (string, bool) {
	if n.Kind == textfile.Null {
		return unset, true
	}
	if n.Kind == textfile.Text && bareVariable.MatchString(n.Text) {
		r.Warn(n.Position, "begins with $ and is passed on as it stands", "write ${NAME} if it is to stand for a variable")
	}
	return envText.Read(r, n)
}

var bareVariable = regexp.MustCompile(`^\$[A-Z_][A-Z0-9_]*$`)

func (envValue) Schema() shape.Schema {
	return shape.Schema{"type": []string{"string", "number", "boolean", "null"}}
}

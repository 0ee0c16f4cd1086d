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
	upstream.ServerConfig                       // what needs no place, and nothing else of the entry
	kind                  shape.Located[string] // type
	command, cwd, envFile shape.Located[string]
	args                  shape.Located[[]string]
	env, headers          shape.Located[[]shape.Entry[string]]
	url                   shape.Located[string]
	enabledTools          []shape.Located[string] // by the server's own names, as are those below
	disabledTools         []shape.Located[string]
	start                 string
	idleStop              shape.Located[time.Duration]
	isolation             string
	maxSessions           shape.Located[int]
	oauth                 shape.Located[oauth]
	timeout, timeoutMax   shape.Located[time.Duration]
	missing               textfile.Faults // references of the entry that have no value: the server is left out
}

// serverShape is an entry of mcpServers or servers. Of a client's own file unknown keys are warnings. In the
// hub's file, where people paste entries of other clients, so are those that no slip could have made of a key.
func serverShape(foreign bool) shape.Object[server] {
	known := shape.ObjectOf(serverKeys).Known()
	others := func(key string) bool { return foreign || textfile.Nearest(key, known) == "" }
	return shape.Object[server]{Fields: serverKeys, Lenient: others, Retired: goneServer(),
		Gone: gone("write policy: {tools: [{match: mcp.SERVER.*, concurrency: exclusive}]}", "scheduling"),
		Unknown: "known here: command, args, env, cwd, type, url, headers, disabled, disabledTools, enabledTools, " +
			"protocol, trust, tags, timeout, timeout_max, validate, max_parallel, start, idle_stop, isolation, max_sessions, " +
			"oauth, limits",
		Extra: shape.Schema{"anyOf": []shape.Schema{{"required": []string{"command"}}, {"required": []string{"url"}},
			{"required": []string{httpURL}}, {"required": []string{"serverUrl"}}}}}
}

func serverKeys(s *server) []shape.Field {
	names := shape.ListAt(shape.Text{Check: nameGlob})
	return []shape.Field{
		shape.KeyAt("type",
			"How the server is reached. Default: stdio with a command, http with a url, sse if that ends in /sse.",
			shape.OneOf("stdio", "http", "streamable-http", "streamableHttp", "sse"), &s.kind),
		shape.KeyAt("command", `The program, found in PATH or a path. "mcp-toolhub" is the hub's own program.`,
			shape.Text{Expand: true, Check: noNUL}, &s.command),
		shape.KeyAt("args", "Its arguments.", shape.List[string]{Of: shape.Text{Expand: true, Empty: true, Scalar: true,
			Check: noNUL}}, &s.args),
		shape.KeyAt("env", "Variables for the program, besides PATH, HOME, locale, those for proxies and CA files, and "+
			"hub.env. null leaves one out.",
			shape.Mapping[string]{Of: envValue{}, Key: variableKey}, &s.env),
		shape.KeyAt("envFile", "A file of further variables, NAME=value on each line. env wins.", expanded, &s.envFile),
		shape.KeyAt("cwd", "The program's working directory. Relative to ${workspaceFolder}; default the hub's own.",
			shape.Text{Expand: true, Check: noNUL}, &s.cwd),
		shape.KeyAt("url", "The address of a remote server, http or https.", shape.Text{Expand: true, Check: webURL},
			&s.url).Or(httpURL, "serverUrl"),
		shape.KeyAt("headers", "HTTP headers for every request to this server, and to no other.",
			shape.Mapping[string]{Of: shape.Text{Expand: true, Empty: true, Scalar: true, Check: headerValue},
				Key: headerName}, &s.headers),
		shape.KeyAt("oauth", "How the hub signs in, where that is not found by itself.", oauthOf(),
			&s.oauth),
		shape.Key("protocol", "The revision of the protocol to speak (default the newest that the server takes).",
			shape.OneOf("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"), &s.Protocol),
		shape.Key("disabled", "Whether to leave the server alone.", shape.Boolean{}, &s.Disabled),
		shape.Key("trust", "Whether you vouch for what this server says of its tools (read-only, idempotent …).",
			shape.Boolean{}, &s.Trust),
		shape.Key("tags", "Words given to every tool of this server.", shape.List[string]{Of: plainText}, &s.Tags),
		shape.Key("validate", "What happens to arguments that a tool's input schema refuses (default reject).",
			shape.OneOf("off", "warn", "reject"), &s.Validate),
		shape.Key("max_parallel",
			"Calls that this server executes at the same time (default 100). Others wait for their turn.",
			shape.Integer[int]{Min: 1, Max: maxCount}, &s.MaxParallel),
		shape.Key("start",
			"eager (default): the server starts with the hub. lazy: its first call starts it, once its tools are "+
				"known.",
			shape.OneOf("eager", "lazy"), &s.start),
		shape.KeyAt("idle_stop", "Stop the server after so long without a call, until the next one (default "+
			"never). With isolation: session or oauth: {identity: caller} it ends each connection (default 10m).",
			idleTime(), &s.idleStop),
		shape.Key("isolation",
			"shared: all clients share one connection. session: each client session has its own, for servers with "+
				"state such as browsers; on protocol 2026-07-28 each token has one. Default: shared, but session for a "+
				"command that asks its clients for something, such as their roots.",
			shape.OneOf("shared", "session"), &s.isolation),
		shape.KeyAt("max_sessions",
			"Connections at the same time with isolation: session (default 20) or oauth: {identity: caller} "+
				"(default 1000). Further calls are refused.",
			shape.Integer[int]{Min: 1, Max: maxCount}, &s.maxSessions),
		shape.SectionSince("limits", "How much the server may send. What is not given here is as in hub.limits.",
			goneLimits(), limitsKeys(&s.Limits)...),
		shape.KeyAt("timeout",
			"How long a call may take without progress (default 30m). Where it is longer than 30s, the start of the "+
				"server and its lists may take as long. A number is a client's: milliseconds, or seconds below 1000.",
			callTimeout{timeout()}, &s.timeout),
		shape.KeyAt("timeout_max", "How long a call that reports progress may take in all (default 30m).",
			timeout(), &s.timeoutMax),
		shape.Key("disabledTools", "Tools that nobody can see or call, by the server's own names, as globs (* ?).",
			names, &s.disabledTools).Or("excludeTools"),
		shape.Key("enabledTools",
			"The only tools that can be seen and called, by the server's own names, as globs (default all).", names,
			&s.enabledTools).Or("includeTools", "tools"),
	}
}

// httpURL is Gemini CLI's word for the url of a Streamable HTTP server.
const httpURL = "httpUrl"

// timeout is the shape of every timeout.
func timeout() shape.Duration { return shape.Duration{Min: time.Millisecond, Max: 24 * time.Hour} }

// idleTime is the shape of how long something may go unused.
func idleTime() shape.Duration { return shape.Duration{Min: time.Second, Max: 30 * 24 * time.Hour} }

// callTimeout is a duration, or a number without a unit. Gemini CLI, Claude Code and Amazon Q mean milliseconds, Cline
// and Roo Code seconds; no call can be meant to end within less than a second, so a small number is seconds.
type callTimeout struct{ shape.Duration }

func (s callTimeout) Read(r *shape.Reader, n *textfile.Node) (time.Duration, bool) {
	if n.Kind != textfile.Integer {
		return s.Duration.Read(r, n)
	}
	v, ok := shape.Integer[int64]{Min: 1, Max: math.MaxInt32}.Read(r, n)
	d := time.Duration(v) * time.Millisecond
	if ok && v < 1000 {
		d = time.Duration(v) * time.Second
		r.Warn(n.Position, "read as seconds", `say it with a unit: "`+shape.Short(d)+`"`)
	}
	return min(d, s.Max), ok
}

func (s callTimeout) Schema() shape.Schema {
	return shape.Schema{"anyOf": []shape.Schema{s.Duration.Schema(), {"type": "integer", "minimum": 1}}}
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
		r.Warn(n.Position, "begins with $ and is passed on as it stands",
			"write ${NAME} if it is to stand for a variable")
	}
	return envText.Read(r, n)
}

var bareVariable = regexp.MustCompile(`^\$[A-Z_][A-Z0-9_]*$`)

func (envValue) Schema() shape.Schema {
	return shape.Schema{"type": []string{"string", "number", "boolean", "null"}}
}

package upstream

import (
	"path"
	"time"
)

// Transport says how a server is reached.
type Transport string

const (
	Stdio          Transport = "stdio" // a child process
	StreamableHTTP Transport = "http"
	SSE            Transport = "sse" // the HTTP+SSE transport of protocol 2024-11-05
)

// ServerConfig is one upstream server. The zero value of each optional field means its default.
type ServerConfig struct {
	ID        string // [a-z0-9][a-z0-9_-]*
	Transport Transport

	Command string   // stdio: found in PATH, or a path. "mcp-toolhub" is the running program itself.
	Args    []string // stdio
	Env     []string // stdio: NAME=value, sorted, added to the allow-listed environment
	Dir     string   // stdio: working directory; "" is the hub's own

	URL     string            // http, sse
	Headers map[string]string // http, sse: sent with every request to this server's origin, and to no other

	Disabled bool
	Trust    bool     // the operator vouches for this server's annotations
	Tags     []string // given to every tool of the server
	Validate string   // "off", "warn" or "reject" (default)

	// Lazy servers are started by the first call to one of their tools, as soon as it is known which tools they have.
	Lazy bool

	IdleStop     time.Duration // a server that no call has needed for so long is stopped until the next one; 0: never
	HideWhenDown bool          // its tools are not listed while it is not ready

	// Isolated servers have state that is their client's own: each client session gets a connection of its own, made by its
	// first call, with a child process of its own where there is one.
	Isolated    bool
	SessionIdle time.Duration // such a connection that no call has needed for so long ends; default 10m
	MaxSessions int           // such connections at the same time; default 20

	MaxParallel int // calls that this server executes at the same time; for whoever schedules them
	MaxQueued   int // calls that may wait for it

	Limits   Limits
	Timeouts Timeouts
	Tools    []ToolTimeout // per-tool call timeouts; the first match counts
}

// Timeouts bound the hub's waiting for one server. Zero means the default.
type Timeouts struct {
	Connect time.Duration // start and initialize; default 30s
	List    time.Duration // all pages of one list; default 30s
	Call    time.Duration // a call without progress; default 60s
	CallMax time.Duration // a call that reports progress, in all; default 30m
}

// ToolTimeout is the Call timeout of the tools whose own name matches Pattern (path.Match syntax).
type ToolTimeout struct {
	Pattern string
	Call    time.Duration
	CallMax time.Duration
}

// Config is the whole group of servers.
type Config struct {
	Servers       []ServerConfig
	StartParallel int    // servers that start at the same time while processors are busy; default 8. One that takes over 5s no longer counts.
	Self          string // path of the running program, for Command "mcp-toolhub"
	Version       string // of the hub, told to servers as clientInfo
	Origin        string // path of the config file; a hub that one of the servers is names it where it refuses to start

	// RetryMin and RetryMax bound the pause before a failed server is started again: it doubles from RetryMin (default
	// 1s) to RetryMax (default 60s), with jitter.
	RetryMin time.Duration
	RetryMax time.Duration

	// RetryBudget is how often a server is started within an hour (default 60). Then the pause is RetryRest (default 15m).
	RetryBudget int
	RetryRest   time.Duration

	// FirstListWithin is how long AwaitFirstLists waits for a server that was started and has never listed; 0: not at all.
	FirstListWithin time.Duration

	// Memory is how many bytes the large messages of all servers may take at the same time, from when they are received to when
	// the client has them. Default: a quarter of the memory of the machine or cgroup, at most 2 GiB.
	Memory int64

	Catalogs Catalogs // keeps what servers offered, for the next start; nil keeps nothing
}

// Catalogs keeps catalogs by a digest of the server's configuration. Its methods are called concurrently.
type Catalogs interface {
	Load(key string) (data []byte, ok bool)
	Save(key string, data []byte) error
}

// HubCommand as ServerConfig.Command means the running program itself.
const HubCommand = "mcp-toolhub"

const (
	defaultConnect       = 30 * time.Second
	defaultList          = 30 * time.Second
	defaultCall          = 60 * time.Second
	defaultCallMax       = 30 * time.Minute
	defaultStartParallel = 8
	defaultRetryMin      = time.Second
	defaultRetryMax      = time.Minute
	defaultRetryBudget   = 60
	defaultRetryRest     = 15 * time.Minute
	defaultSessionIdle   = 10 * time.Minute
	defaultMaxSessions   = 20
)

// withDefaults returns c with every zero value replaced by its default.
func (c Config) withDefaults() Config {
	c.StartParallel = orDefault(c.StartParallel, defaultStartParallel)
	c.RetryMin = orDefault(c.RetryMin, defaultRetryMin)
	c.RetryMax = max(orDefault(c.RetryMax, defaultRetryMax), c.RetryMin)
	c.RetryBudget = orDefault(c.RetryBudget, defaultRetryBudget)
	c.RetryRest = orDefault(c.RetryRest, defaultRetryRest)
	return c
}

// withDefaults returns t with every zero value replaced by its default.
func (t Timeouts) withDefaults() Timeouts {
	t.Connect = orDefault(t.Connect, defaultConnect)
	t.List = orDefault(t.List, defaultList)
	t.Call = orDefault(t.Call, defaultCall)
	t.CallMax = max(orDefault(t.CallMax, defaultCallMax), t.Call)
	return t
}

// callLimits returns the Call and CallMax timeouts of the tool that the server calls native.
func (c ServerConfig) callLimits(native string) (call, callMax time.Duration) {
	t := c.Timeouts.withDefaults()
	for _, own := range c.Tools {
		if ok, err := path.Match(own.Pattern, native); err == nil && ok {
			call = orDefault(own.Call, t.Call)
			return call, max(orDefault(own.CallMax, t.CallMax), call)
		}
	}
	return t.Call, t.CallMax
}

// CallTimeout is how long a call of the tool that the server calls native may take in all.
func (c ServerConfig) CallTimeout(native string) time.Duration {
	_, most := c.callLimits(native)
	return most
}

// MessageLimit is how many bytes an answer of the server may have: a longer one fails its call.
func (c ServerConfig) MessageLimit() int { return c.Limits.withDefaults(c.Transport).Message }

func (c ServerConfig) sessionIdle() time.Duration {
	return orDefault(c.SessionIdle, defaultSessionIdle)
}

func (c ServerConfig) maxSessions() int { return orDefault(c.MaxSessions, defaultMaxSessions) }

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

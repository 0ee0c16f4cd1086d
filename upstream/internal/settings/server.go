package settings

import (
	"net/http"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
)

// Transport says how a server is reached.
type Transport string

const (
	Stdio          Transport = "stdio" // a child process
	StreamableHTTP Transport = "http"
	SSE            Transport = "sse" // the HTTP+SSE transport of protocol 2024-11-05
)

// Server is one upstream server. The zero value of each optional field means its default; WithDefaults fills them in.
type Server struct {
	ID        string // [a-z0-9][a-z0-9_-]*
	Transport Transport

	Command string   // stdio: found in PATH, or a path. "mcp-toolhub" is the running program itself.
	Args    []string // stdio
	Env     []string // stdio: NAME=value, sorted, added to the allow-listed environment
	Dir     string   // stdio: working directory; "" is the hub's own

	Passed   []string `json:"-"` // NAME=value: variables of the hub that all programs get; Env wins
	Withheld []string `json:"-"` // stdio: names of variables of the hub that servers of this kind use, and it does not get

	URL     string            // http, sse
	Headers map[string]string // http, sse: sent with every request to this server's origin, and to no other
	OAuth   OAuth             // http, sse
	SignIn  string            // which sign-in is in force, "" for none: with another one the server is started anew
	// whose sign-in that is, where OAuth.PerCaller; "" is the person of this machine (tool.Local)
	Person string

	LoginCommand string // what a person runs to sign in; "" is mcp-toolhub login ID

	// digest of what the entry says of env, headers and sign-in, references as they are written
	Account string   `json:"-"`
	Secrets []string `json:"-"` // values that the entry has by ${secret:…} and ${file:…}: secrets, wherever they stand

	Protocol string // the revision to speak; "" is the newest that the server takes

	Disabled bool
	Missing  Missing  // references of the entry that have no value: the server is not started
	Hub      bool     // it is a hub, and this its client on the command line: what it says under toolhub/ stays
	Trust    bool     // the operator vouches for this server's annotations
	Tags     []string // given to every tool of the server
	Validate string   // "off", "warn" or "reject" (default)

	// Lazy servers are started by the first call to one of their tools, as soon as it is known which tools they have.
	Lazy bool

	IdleStop time.Duration // a server that no call has needed for so long is stopped until the next one; 0: never

	// Isolated servers have state that is their client's own: each client session gets a connection of
	// its own, made by its first call, with a child process of its own where there is one.
	Isolated    bool
	Shared      bool          // never isolated, not even if it asks its clients
	SessionIdle time.Duration // such a connection that no call has needed for so long ends; default 10m
	MaxSessions int           // such connections at the same time; default 20, and 1000 where each person has one

	MaxParallel int // calls that this server executes at the same time; for the scheduler

	Limits   Limits
	Timeouts Timeouts
}

// Missing says which references of an entry have no value, such as a variable that is not set. The
// zero value is nothing.
type Missing struct {
	What string // with its place
	Hint string // what to do about it
}

// IsOff reports whether the config keeps the server from being started.
func (s Server) IsOff() bool { return s.Disabled || s.Missing.What != "" }

// Timeouts bound the hub's waiting for one server. Zero means the default.
type Timeouts struct {
	Connect time.Duration // start and initialize; default 30s
	List    time.Duration // all pages of one list; default 30s
	Call    time.Duration // a call without progress; default 30m
	CallMax time.Duration // a call that reports progress, in all; default 30m
}

// SignsIn reports whether the hub may sign in to the server: nothing else is given for that.
func (s Server) SignsIn() bool {
	if s.Transport == Stdio {
		return false
	}
	for name := range s.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return false
		}
	}
	return true
}

// For returns s for the sign-in of one person, where each caller has their own; otherwise s.
func (s Server) For(person string) Server {
	if s.OAuth.PerCaller {
		s.Person = person
	}
	return s
}

// HubCommand as Server.Command means the running program itself.
const HubCommand = "mcp-toolhub"

const (
	defaultConnect     = 30 * time.Second
	defaultList        = 30 * time.Second
	defaultCall        = 30 * time.Minute // clients wait for less, and cancel
	defaultCallMax     = 30 * time.Minute
	defaultSessionIdle = 10 * time.Minute
	defaultMaxSessions = 20
	defaultMaxPeople   = 1000
)

// WithDefaults returns s with the default in place of each zero timeout, limit and bound of sessions.
func (s Server) WithDefaults() Server {
	s.SessionIdle = OrDefault(s.SessionIdle, defaultSessionIdle)
	if s.OAuth.PerCaller && !s.Isolated {
		s.MaxSessions = OrDefault(s.MaxSessions, defaultMaxPeople)
	}
	s.MaxSessions = OrDefault(s.MaxSessions, defaultMaxSessions)
	s.Timeouts.Connect = OrDefault(s.Timeouts.Connect, defaultConnect)
	s.Timeouts.List = OrDefault(s.Timeouts.List, defaultList)
	s.Timeouts.Call = OrDefault(s.Timeouts.Call, defaultCall)
	s.Timeouts.CallMax = s.CallTimeout()
	s.Limits = s.Limits.withDefaults(s.Transport)
	return s
}

// CallTimeout returns how long a call may take in all.
func (s Server) CallTimeout() time.Duration {
	return max(OrDefault(s.Timeouts.CallMax, defaultCallMax), OrDefault(s.Timeouts.Call, defaultCall))
}

// OrDefault returns v, or def where v is not positive.
func OrDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Entry is what of s may be secret.
func (s Server) Entry() secret.Entry {
	signIn := []string{"CLIENT_SECRET=" + s.OAuth.ClientSecret, "CLIENT_KEY=" + s.OAuth.ClientKey,
		"PROVIDER_SECRET=" + s.OAuth.Provider.ClientSecret}
	return secret.Entry{Secrets: s.Secrets, URL: s.URL, Headers: s.Headers, Args: s.Args,
		Env: slices.Concat(s.Env, s.Passed, signIn)}
}

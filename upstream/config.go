package upstream

import (
	"context"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// The settings of one server. They live below, where the packages that serve one connection can read them.
type (
	ServerConfig     = settings.Server           // one server
	Missing          = settings.Missing          // references of its entry that have no value
	Transport        = settings.Transport        // how it is reached
	Timeouts         = settings.Timeouts         // how long the hub waits for it
	Limits           = settings.Limits           // how much it may send and list
	OAuth            = settings.OAuth            // how the hub signs in to it
	IdentityProvider = settings.IdentityProvider // that has a say in that
)

// Secrets returns the secrets in the entry of a server that have to be masked in texts of others, too.
func Secrets(cfg ServerConfig) []string { return cfg.Entry().Known() }

// Values of the settings of one server.
const (
	Stdio          = settings.Stdio
	StreamableHTTP = settings.StreamableHTTP
	SSE            = settings.SSE
	HubCommand     = settings.HubCommand
	OmitResource   = settings.OmitResource
	HiddenKeep     = settings.HiddenKeep
	HiddenStrip    = settings.HiddenStrip
	HiddenRefuse   = settings.HiddenRefuse
)

// Config is the whole group of servers.
type Config struct {
	Servers []ServerConfig
	// servers that start at the same time; default 16. One that takes over 5s does not count any more.
	StartParallel int
	Self          string // path of the running program, for Command "mcp-toolhub"
	Version       string // of the hub, told to servers as clientInfo
	Origin        string // path of the config file; a hub that one of the servers is names it where it refuses to start

	// RetryMin and RetryMax bound the pause before a failed server is started again: it doubles from RetryMin (default
	// 1s) to RetryMax (default 60s), with jitter.
	RetryMin time.Duration
	RetryMax time.Duration

	// RetryBudget says how often a server is started within an hour (default 60). Then the pause is
	// RetryRest (default 15m).
	RetryBudget int
	RetryRest   time.Duration

	// FirstListWithin says how long AwaitFirstLists waits for a server that was started and has never
	// listed; 0: not at all.
	FirstListWithin time.Duration

	// Memory says how many bytes the messages over 1 MiB of all servers may take at the same time,
	// from when they are received to when the client has them. Default: a quarter of the memory of
	// the machine or cgroup, at most 96 MiB.
	Memory int64

	SignIns *signin.Store // sign-ins to servers; nil: nobody signs in

	Catalogs Catalogs // keeps what servers offered, for the next start; nil keeps nothing

	// Observe is told of each request that the hub sends to a server on its own: the handshake, lists,
	// the log level and pings. end is called with the error of the answer, or nil. It is called
	// concurrently. Nil: nobody is told.
	Observe func(ctx context.Context, server, method string) (end func(error))
}

// Catalogs keeps catalogs by a digest of the server's configuration. Its methods are called concurrently.
type Catalogs interface {
	Load(key string) (data []byte, ok bool)
	Save(key string, data []byte) error
}

const (
	defaultStartParallel = 16
	defaultRetryMin      = time.Second
	defaultRetryMax      = time.Minute
	defaultRetryBudget   = 60
	defaultRetryRest     = 15 * time.Minute
)

// withDefaults returns c with every zero value replaced by its default.
func (c Config) withDefaults() Config {
	c.StartParallel = settings.OrDefault(c.StartParallel, defaultStartParallel)
	c.RetryMin = settings.OrDefault(c.RetryMin, defaultRetryMin)
	c.RetryMax = max(settings.OrDefault(c.RetryMax, defaultRetryMax), c.RetryMin)
	c.RetryBudget = settings.OrDefault(c.RetryBudget, defaultRetryBudget)
	c.RetryRest = settings.OrDefault(c.RetryRest, defaultRetryRest)
	return c
}

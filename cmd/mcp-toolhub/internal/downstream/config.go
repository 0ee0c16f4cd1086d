package downstream

import (
	"cmp"
	"net"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Config holds the settings of the side that faces clients. The zero value of each optional field means its default.
type Config struct {
	Name         string // serverInfo.name; default "mcp-toolhub"
	Version      string // serverInfo.version
	Instructions string // given to clients at initialize and discover

	MaxMessageBytes int64 // of one message of a client on stdio, with its line break; default 64 MiB

	// a call waits so long for its client's next request, protocol 2026-07-28; default 10m, otherwise in tests
	InputTimeout time.Duration

	HTTP HTTPConfig
	Auth AuthConfig
}

// HTTPConfig bounds the Streamable HTTP door.
type HTTPConfig struct {
	Listen       string // host:port, set by serve --http or the config
	MaxBodyBytes int64  // of a request; default 4 MiB
	// at the same time, older protocol revisions; default 1000. One more ends one of the caller
	// that has most.
	MaxSessions int
	// a session without request or open call for so long ends until its client goes on; default 30m
	SessionIdle time.Duration
	// Origin values that are let in besides the hub's own, for instance "https://app.example.com"
	AllowedOrigins []string
	// where people and authorization servers reach the hub from elsewhere, without a slash at its
	// end; "" for nowhere
	PublicURL     string
	AllowedHosts  []string      // Host names that are let in besides the address that the hub listens on
	NoDirectViews bool          // /mcp/s/SERVER is not served
	DrainTimeout  time.Duration // calls in flight at a stop have this long to end; default 10s

	// DrainDelay is the time between the readiness that says no and the first call that is refused;
	// nil: 0 where Listen is loopback, else 5s.
	DrainDelay *time.Duration
}

// drainDelay returns DrainDelay, or its default.
func (c *HTTPConfig) drainDelay() time.Duration {
	if c.DrainDelay != nil {
		return *c.DrainDelay
	}
	if host, _, err := net.SplitHostPort(c.Listen); err != nil || isLoopback(host) {
		return 0
	}
	return 5 * time.Second
}

// AuthConfig says who may come in over HTTP. Without tokens only a loopback address can be listened on.
type AuthConfig struct {
	Tokens []Token
}

// lets reports whether a caller that earlier let in as name may stay: with the same token, or without any as before.
func (c AuthConfig) lets(name string, earlier AuthConfig) bool {
	was, known := earlier.secretOf(name)
	return known && was == "" && len(c.Tokens) == 0 ||
		slices.ContainsFunc(c.Tokens, func(t Token) bool { return t.Name == name && t.Secret == was })
}

// secretOf returns the first secret that name signs in with; where there are no tokens all are
// localActor, and have none.
func (c AuthConfig) secretOf(name string) (secret string, known bool) {
	for _, t := range c.Tokens {
		if t.Name == name {
			return t.Secret, true
		}
	}
	return "", len(c.Tokens) == 0 && name == localActor
}

// Token is a bearer token. Its name is the actor of the calls made with it.
type Token struct {
	Name    string
	Secret  string    // never printed
	Expires time.Time // nobody comes in with it from then on; zero for never
	Events  bool      // its holder may read the events of all callers
	Results bool      // its holder may read the stored results of all callers

	Profiles []string // the profiles that its holder may open, and direct views by their DirectView; nil: all
}

// opens reports whether the holder of the token name may open a profile or direct view.
func (c AuthConfig) opens(name, view string) bool {
	return !slices.ContainsFunc(c.Tokens, func(t Token) bool {
		return t.Name == name && t.Profiles != nil && !slices.Contains(t.Profiles, view)
	})
}

// ReadsResults reports whether a caller may read the stored results of all callers.
func (c AuthConfig) ReadsResults(caller tool.Actor) bool {
	return caller.Door == httpActor && slices.ContainsFunc(c.Tokens,
		func(t Token) bool { return t.Name == caller.Name && t.Results })
}

// readsEvents reports whether name may read the events of all callers, with the token of earlier.
func (c AuthConfig) readsEvents(name string, earlier AuthConfig) bool {
	return c.lets(name, earlier) && slices.ContainsFunc(c.Tokens,
		func(t Token) bool { return t.Name == name && t.Events })
}

func (c Config) withDefaults() Config {
	def := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	c.Name = cmp.Or(c.Name, "mcp-toolhub")
	def(&c.MaxMessageBytes, 64<<20)
	def(&c.HTTP.MaxBodyBytes, 4<<20)
	def((*int64)(&c.InputTimeout), int64(10*time.Minute))
	def((*int64)(&c.HTTP.SessionIdle), int64(30*time.Minute))
	def((*int64)(&c.HTTP.DrainTimeout), int64(10*time.Second))
	if c.HTTP.MaxSessions <= 0 {
		c.HTTP.MaxSessions = 1000
	}
	return c
}

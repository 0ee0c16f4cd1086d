package facts

import (
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// State is the state of a tool in the hub at one moment, for one caller. The zero value is that of
// a tool that can be called.
type State struct {
	Gone     bool             // its origin does not offer it any more: it is known from records only
	Hidden   bool             // it exists, and this surface does not offer it
	Setup    string           // what is missing before it can be called: a credential, a setting; "" for nothing
	Server   tool.ServerState // of its origin; "" counts as ready
	Deferred bool             // this surface does not list it, and finds it

	Aliases    []string      // other names under which the tool answers
	AlwaysLoad bool          // never deferred
	Timeout    time.Duration // of one call; 0: not bounded

	MaxInlineChars int    // of a result that reaches the model as it is; 0: not bounded, or not known
	Excess         string // what becomes of a longer one: ExcessCut or ExcessRefused; "" where it is not bounded

	Progress  bool // a tool of the hub's own reports progress
	Partial   bool // parts of its result are there before the whole
	Artifacts bool // its calls make artifacts, or what its results name is taken in as such
	Apart     bool // each client session has a connection of its own to the server

	Credentials []string // names of the credentials that its origin gets, never the values
}

// Values of result_size_policy: how a result that is longer than MaxInlineChars is treated.
const (
	ExcessCut     = "cut_above_limit"     // the rest is left out, and the result says so
	ExcessRefused = "refused_above_limit" // the call fails

	passThrough = "pass_through"
)

// lifecycle infers the state of the tool from its declaration alone.
func (d *derivation) lifecycle() Fact[string] {
	if d.deprecated {
		return Fact[string]{Deprecated, Declared, "its declaration says so"}
	}
	return Fact[string]{Available, Inferred, "its origin offers it"}
}

// IsOutOfUse reports whether the operator has taken the tool out of use. Such a tool is not to be
// called, whatever the rules say.
func (f *Facts) IsOutOfUse() bool {
	return f.Lifecycle.Value == Disabled && f.Lifecycle.Origin == Configured
}

// In returns the facts of the tool in a state: equal to f but for the lifecycle, and for what
// records say of the state. What the operator has taken out of use stays so; a state that keeps a
// tool from being called comes before deprecated, and that before deferred.
func (f *Facts) In(s State) *Facts {
	out := *f
	out.Lifecycle = f.in(s)
	out.state, out.stands = s, &standing{since: f.stands.since}
	return &out
}

func (f *Facts) in(s State) Fact[string] {
	own := f.Lifecycle
	switch {
	case s.Gone:
		return Fact[string]{Retired, Inferred, "its origin does not offer it any more"}
	case f.IsOutOfUse():
		return own
	case s.Hidden:
		return Fact[string]{Disabled, Configured, "this surface does not offer it"}
	case s.Server == tool.ServerStopped:
		return Fact[string]{Disabled, Configured, "its server is stopped"}
	case s.Setup != "":
		return Fact[string]{RequiresSetup, Inferred, s.Setup}
	case s.Server == tool.ServerNeedsAuth:
		return Fact[string]{RequiresSetup, Inferred, "its server refuses the credentials"}
	case s.Server == tool.ServerBackoff:
		return Fact[string]{RequiresSetup, Inferred, "its server does not start"}
	case own.Value == Deprecated:
		return own
	case s.Deferred:
		return Fact[string]{Deferred, Configured, "this surface defers it"}
	}
	return own
}

package facts

import "github.com/mcp-toolhub/mcp-toolhub/internal/tool"

// State is the state of a tool in the hub at one moment, for one caller. The zero value is that of
// a tool that can be called.
type State struct {
	Hidden   bool             // it exists, and this surface does not offer it
	Server   tool.ServerState // of its origin; "" counts as ready
	Deferred bool             // this surface does not list it, and finds it
}

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

// LifecycleIn is the lifecycle of the tool in a state. What the operator has taken out of use stays
// so; a state that keeps a tool from being called comes before deprecated, and that before deferred.
func (f *Facts) LifecycleIn(s State) Fact[string] {
	own := f.Lifecycle
	switch {
	case f.IsOutOfUse():
		return own
	case s.Hidden:
		return Fact[string]{Disabled, Configured, "this surface does not offer it"}
	case s.Server == tool.ServerStopped:
		return Fact[string]{Disabled, Configured, "its server is stopped"}
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

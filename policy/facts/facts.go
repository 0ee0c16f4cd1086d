// Package facts derives what a tool can do: whether it reads, writes or destroys, whether it
// reaches the network or files, how risky it is, and which of its arguments name paths, URLs,
// commands or resources.
//
// Every fact is fail-closed: the worse is assumed until an annotation or the operator says the
// better. A fact has one of three origins: the server declared it (annotations), the hub inferred
// it, or the operator configured it. Annotations of a server without trust tighten and never loosen;
// those of built-in toolsets and of trusted servers do both. Words of names, descriptions and
// schemas tighten and never loosen. The operator's configuration overrides everything else.
//
// The package decides nothing: it hands facts to policy, and to people as the standard's records.
package facts

import (
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Origin is the origin of a fact.
type Origin string

const (
	Declared   Origin = "declared"   // the tool's own annotations or schema say so
	Inferred   Origin = "inferred"   // the fail-closed default, tightened by words of name, description and schema
	Configured Origin = "configured" // the operator says so
)

// Fact is one fact about a tool, with its origin and the reason in a few words for people.
type Fact[T any] struct {
	Value  T      `json:"value"`
	Origin Origin `json:"origin"`
	Why    string `json:"why,omitempty"`
}

// Values of Facts.Risk: the risk levels of the standard.
const (
	RiskLow      = "low"
	RiskMedium   = "medium"
	RiskHigh     = "high"
	RiskCritical = "critical"
)

// Values of Facts.Lifecycle: the lifecycle states of the standard.
const (
	Available     = "available"
	Disabled      = "disabled"
	RequiresSetup = "requires_setup"
	Deferred      = "deferred"
	Deprecated    = "deprecated"
)

// Values of Facts.Concurrency.
const (
	ConcurrencySafe = "safe" // calls run beside each other
	// a call has its targets alone; where they are not known, one call of each caller runs
	ConcurrencyByTarget  = "by_target"
	ConcurrencyExclusive = "exclusive" // a call has its server alone
)

// Values of Facts.Interrupt: the standard's interrupt behaviour.
const (
	InterruptCancel = "cancel" // the client's cancellation reaches the server
	InterruptBlock  = "block"  // the call is let finish: what ends is the client's wait
)

// Facts are all that is known about one tool. They are immutable, and safe to read concurrently.
type Facts struct {
	Tool    tool.Name
	Server  string
	Trusted bool // annotations may loosen: a built-in toolset, or a server that the operator trusts

	ReadOnly    Fact[bool] // changes nothing outside the hub
	Destructive Fact[bool] // may remove or replace what is there; never true where ReadOnly is
	Idempotent  Fact[bool] // a second equal call changes nothing more
	OpenWorld   Fact[bool] // deals with things that no one has bounded: the web, people, other systems
	Network     Fact[bool] // something shows that it reaches other machines, besides its own server
	Filesystem  Fact[bool] // reads or writes files
	Command     Fact[bool] // runs commands, code or queries that the caller writes

	Concurrency Fact[string] // how its calls run beside others
	Interrupt   Fact[string] // what a cancellation of the client does

	Risk   Fact[string]
	Access Fact[[]string] // access kinds: read write delete execute network filesystem browser message
	// create update delete send execute upload; unknown where nothing is known; none of a reader
	WriteEffects Fact[[]string]
	Kind         Fact[string] // the standard's tool_kind
	Lifecycle    Fact[string]

	Arguments []Argument // those that name something outside, in the order of the schema
	Sensitive []string   // JSON pointers of arguments that hold secrets: shown masked, recorded redacted

	// SensitiveResult are JSON pointers into the structuredContent of results to what is secret: recorded redacted.
	SensitiveResult []string

	Tags []string // sorted: exactly one of readonly and write, and what else holds

	declared *tool.Tool
	hinted   bool // its declaration says that it is read-only, true or not
	options  Options
	stands   *standing
	pointers map[string]bool // of the schema's properties, and of those that the operator speaks of
}

// Argument is one argument that names something outside the call.
type Argument struct {
	Pointer string // JSON pointer into the arguments; "*" stands for every element of an array
	Kind    string // one of the Argument kinds
	Write   bool   // the tool writes there, as far as can be told
	Origin  Origin
	Why     string
}

// Kinds of Argument.
const (
	ArgumentPath     = "path"
	ArgumentURL      = "url"
	ArgumentHost     = "host"
	ArgumentCommand  = "command"  // a program, an argv or a shell text
	ArgumentCode     = "code"     // a program text: JavaScript, SQL …
	ArgumentResource = "resource" // an id of something that its server keeps
	ArgumentNone     = "none"     // only in overrides: names nothing outside
)

// Options hold what a declaration cannot say. The zero value is right for a tool of a server without trust.
type Options struct {
	Trust     bool       // the operator vouches for the annotations of this server
	Overrides []Override // of Config.Tools; the first that sets a fact counts for that fact

	Execution Execution
}

// Of derives the facts of t, and keeps t and o. It never fails: of a declaration that cannot be read nothing is known.
func Of(t *tool.Tool, o Options) *Facts {
	d := &derivation{tool: t, options: o, trusted: o.Trust || t.Name.Source() != tool.SourceMCP}
	d.read()
	f := &Facts{Tool: t.Name, Server: t.Server, Trusted: d.trusted, declared: t, hinted: isTrue(d.hints.readOnly),
		options: o,
		stands:  &standing{since: time.Now().UTC()}}
	d.derive(f)
	return f
}

// Has reports whether the tool has the tag.
func (f *Facts) Has(tag string) bool {
	_, found := slices.BinarySearch(f.Tags, tag)
	return found
}

// Declares reports whether the schema or the operator describes the argument at the JSON pointer;
// "*" stands for every element of an array. An argument that is not declared may be anything.
func (f *Facts) Declares(pointer string) bool { return f.pointers[pointer] }

// Schema is the tool's input schema as its origin declared it.
func (f *Facts) Schema() []byte {
	if f.declared == nil { // facts of a tool of which nothing is known
		return nil
	}
	return f.declared.InputSchema
}

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
// so; a state that keeps a tool from being called comes before deprecated, and that before
// deferred.
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

package facts

import (
	"cmp"
	"encoding/json"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Execution is what the hub's settings say of the calls of one tool, for the records alone. With the
// zero value nothing is known.
type Execution struct {
	Timeout     time.Duration // of one call; 0: not bounded
	Progress    bool          // a tool of the hub's own reports progress
	Partial     bool          // parts of its result are there before the whole
	Artifacts   bool          // its calls make artifacts, or what its results name is taken in as such
	Credentials []string      // names of the credentials that its origin gets, never the values
}

// standing is one version of a tool, as records name it.
type standing struct {
	once   sync.Once
	digest string // of the version
	since  time.Time
}

// StandingKey implements tool.Standing: it is another one for each version of the tool.
func (f *Facts) StandingKey() string {
	f.stands.once.Do(func() {
		text, err := json.Marshal(f.Version(time.Time{}))
		if err != nil {
			text = []byte(f.Tool) // cannot be: raw members are objects
		}
		f.stands.digest = tool.Digest(text)
	})
	return f.stands.digest
}

// StandingRecords implements tool.Standing.
func (f *Facts) StandingRecords() []tool.Record { return []tool.Record{f.Version(f.stands.since)} }

// Objects are the standard's objects about the tool: those that a reader of the journal derives.
func (f *Facts) Objects() []json.RawMessage {
	return f.Version(f.stands.since).Objects(f.StandingKey())
}

// Version is the version of the tool that is known since that time.
func (f *Facts) Version(since time.Time) *tool.Version {
	t, e := f.declared, f.options.Execution
	v := &tool.Version{Head: tool.HeadOf(tool.ObjectVersion), Tool: f.Tool, Server: f.Server, Native: t.Native,
		Method: t.Method, Hub: t.Hub != nil, Since: since, Runtime: t.Runtime, Internal: t.Internal,
		SchemaDigest: t.SchemaDigest, SourceDigest: t.SourceDigest, Tags: f.Tags, Sensitive: f.Sensitive,
		Validate: cmp.Or(t.Validate, tool.ValidateReject), TimeoutMS: e.Timeout.Milliseconds(), Credentials: e.Credentials,
		Progress: e.Progress, Partial: e.Partial, Artifacts: e.Artifacts}
	if rawjson.IsObject(t.Declaration) && rawjson.Valid(t.Declaration) {
		v.Declaration = t.Declaration
	}
	for _, a := range f.Arguments {
		v.Targets = append(v.Targets, tool.TargetField{Pointer: a.Pointer, Kind: a.Kind, Write: a.Write,
			FactOrigin: tool.FactOrigin{Origin: string(a.Origin), Why: a.Why}})
	}
	v.Facts = map[string]tool.VersionFact{
		"is_read_only": recorded(f.ReadOnly), "is_destructive": recorded(f.Destructive),
		"is_idempotent": recorded(f.Idempotent), "is_open_world": recorded(f.OpenWorld),
		"network":    recorded(f.Network),
		"filesystem": recorded(f.Filesystem), "command": recorded(f.Command), "concurrency": recorded(f.Concurrency),
		"interrupt_behavior": recorded(f.Interrupt), "risk_level": recorded(f.Risk), "tool_kind": recorded(f.Kind),
		"lifecycle": recorded(f.Lifecycle), "access_kinds": recordedList(f.Access),
		"write_effects": recordedList(f.WriteEffects),
	}
	return v
}

func recorded[T bool | string](f Fact[T]) tool.VersionFact {
	return tool.VersionFact{Value: f.Value, FactOrigin: tool.FactOrigin{Origin: string(f.Origin), Why: f.Why}}
}

func recordedList(f Fact[[]string]) tool.VersionFact {
	return tool.VersionFact{Values: f.Value, FactOrigin: tool.FactOrigin{Origin: string(f.Origin), Why: f.Why}}
}

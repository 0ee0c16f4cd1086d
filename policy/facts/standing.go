package facts

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// standing is one version of a tool, as records name it.
type standing struct {
	once   sync.Once
	digest string // of the records
	since  time.Time
}

// Namespace is the standard's tool_namespace: the tools of one server or toolset.
type Namespace struct {
	tool.Head
	ID     string `json:"namespace_id"`
	Source string `json:"source"`
	Server string `json:"server_id,omitempty"`
}

// StandingKey implements tool.Standing: it is another one for each version of the tool's records.
func (f *Facts) StandingKey() string {
	f.stands.once.Do(func() {
		text, err := json.Marshal(f.records())
		if err != nil {
			text = []byte(f.Tool) // cannot be: raw members are objects
		}
		f.stands.digest = tool.Digest(text)
	})
	return f.stands.digest
}

// StandingRecords implements tool.Standing: the tool's records, and the event that it is declared.
// The contracts are parts of the declaration.
func (f *Facts) StandingRecords() []tool.Record {
	digest := f.StandingKey()
	return append(f.records(), tool.Event{Head: tool.HeadOf(tool.ObjectEvent),
		EventID:   tool.EventID("evt_" + digest[:min(26, len(digest))]),
		EventType: tool.EventToolDeclared, Source: tool.EventSource, Subject: string(f.Tool), Time: f.stands.since,
		ToolID: f.Tool,
		Data:   map[string]any{"digest": digest}})
}

// StandsOn returns the namespace, which the records name.
func (f *Facts) StandsOn() tool.Standing {
	n := Namespace{Head: tool.HeadOf(tool.ObjectNamespace), ID: f.namespace(), Source: f.Tool.Source()}
	if n.Source == tool.SourceMCP {
		n.Server = f.Server
	}
	return n
}

func (f *Facts) records() []tool.Record {
	return []tool.Record{f.Declaration(), f.Interface(), f.ExecutionProfile(), f.PermissionProfile(),
		f.SchedulerPolicy()}
}

// StandingKey implements tool.Standing.
func (n Namespace) StandingKey() string { return "namespace " + n.ID }

// StandingRecords implements tool.Standing.
func (n Namespace) StandingRecords() []tool.Record { return []tool.Record{n} }

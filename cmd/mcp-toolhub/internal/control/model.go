package control

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// Model is the one read model of a running hub. Commands, the health answer and this API read the
// hub through it. Each method returns the state of this moment, as a copy that holds no secret. All
// are safe for concurrent use.
type Model interface {
	// Servers returns the state of each toolset and server, with the calls that run there or wait
	// (tool.Traffic). The tools of a server that it shows as ready are on the surfaces already.
	Servers() []tool.ServerStatus

	// Problems returns what makes the hub itself unwell, a sentence each. There are none where all is well.
	Problems() []string

	// Warnings returns the entries of the config that have no effect, a sentence each.
	Warnings() []string

	// Surface returns where each tool stands on the surface that the caller sees in a profile.
	Surface(profile string, caller tool.Actor) ([]Tool, error)

	// Show returns what a command shows of a tool, by any of its names in a profile.
	Show(profile, name string, asJSON bool) ([]byte, error)

	// Decision returns what a command shows of the decision about a call.
	Decision(context.Context, Call) (string, error)

	// Approvals returns the open approvals, Approval one that is open or was settled a short time ago.
	Approvals() []approval.View
	Approval(id approval.ID) (approval.View, error)

	// Watch sends the open approvals, then each change, until ctx ends or the hub does.
	Watch(ctx context.Context) <-chan approval.Event

	// Grants returns the remembered answers: those for good, and those for sessions of this hub.
	Grants() []Grant

	// Spans returns how the time of one of the latest calls was spent; nil where it is none of them.
	Spans(tool.InvocationID) *telemetry.Spans

	// Report says for a bug report how the hub is.
	Report() Report

	// Events answers with a stream of what is recorded of calls.
	Events(http.ResponseWriter, *http.Request)
}

// Tool says where a tool stands on a surface, and why.
type Tool struct {
	ID     string `json:"tool_id"`
	Name   string `json:"name,omitempty"` // "" where the surface does not show it
	State  string `json:"state"`          // loaded, deferred, blocked or excluded
	Why    string `json:"why"`
	Server string `json:"server,omitempty"`
}

// Call is a call that a person asks about, and whether they want the answer as JSON.
type Call struct {
	Tool    tool.Name       `json:"tool"`
	Profile string          `json:"profile"`
	Actor   tool.Actor      `json:"actor"`
	Input   json.RawMessage `json:"input"`
	JSON    bool            `json:"json"`
}

// Report says how a hub is. It has nothing of calls.
type Report struct {
	PID      int                 `json:"pid"`
	Config   string              `json:"config"`
	Shared   bool                `json:"shared"`          // the hub serves no client of its own
	Apart    string              `json:"apart,omitempty"` // see Hub
	Version  string              `json:"version"`
	Started  time.Time           `json:"started"`
	Status   string              `json:"status"` // as in the answer of /health/ready
	Sessions int                 `json:"sessions"`
	Servers  []tool.ServerStatus `json:"servers"`
	Problems []string            `json:"problems,omitempty"`
	Warnings []string            `json:"warnings,omitempty"`
	Log      []string            `json:"log,omitempty"` // the latest lines

	// Readers are tools that look as if they only read, and are not known to, by server.
	Readers map[string][]tool.Name `json:"readers,omitempty"`
}

// Grant is a remembered answer.
type Grant struct {
	ID      string         `json:"id"`
	Then    string         `json:"then"`
	Tool    string         `json:"tool"`
	Actor   string         `json:"actor"`
	Targets []policy.Scope `json:"targets,omitempty"`
	Exact   string         `json:"exact,omitempty"`
	Session bool           `json:"session"` // ends with the caller's session
	By      string         `json:"by,omitempty"`
	Created time.Time      `json:"created"`
	Expires *time.Time     `json:"expires,omitempty"`
}

// Grants converts remembered answers to those of the model.
func Grants(all []policy.Grant) []Grant {
	out := make([]Grant, 0, len(all))
	for i := range all {
		g := &all[i]
		v := Grant{ID: g.ID, Then: string(g.Then), Tool: string(g.Tool), Actor: g.Actor, Targets: g.Scopes,
			Exact: g.Exact, By: g.By, Created: g.Created}
		_, v.Session = g.Session()
		if !g.Expires.IsZero() {
			v.Expires = &g.Expires
		}
		out = append(out, v)
	}
	return out
}

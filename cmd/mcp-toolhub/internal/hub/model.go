package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// Model is the read model of a hub. It implements control.Model, which says what its methods return.
type Model struct{ *Hub }

// Servers returns the states of all servers; the sources of the hub's own tools come first.
func (m Model) Servers() []tool.ServerStatus {
	var all []tool.ServerStatus
	for _, c := range m.Surfaces.Now().Own.Catalogs() {
		all = append(all, tool.ServerStatus{Server: c.Server, Transport: "builtin", State: tool.ServerReady,
			Since:      m.started,
			ServerName: "mcp-toolhub", ServerVersion: Version(), Tools: len(c.Tools), Excluded: c.Excluded})
	}
	all = append(all, m.Group.Statuses()...)
	for i := range all {
		st, load := &all[i], m.pipeline.Load(all[i].Server)
		st.Calls, st.Errors, st.InFlight, st.Queued = load.Calls, load.Errors, load.Running, load.Queued
	}
	if !m.Surfaces.upToDate() {
		m.Surfaces.Refresh() // after the look at the states: the group itself reports changes a moment later
	}
	return all
}

// Milliseconds returns d as a number of milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Problems says what is wrong with the hub itself now.
func (m Model) Problems() []string {
	var all []string
	if err := m.journal.Healthy(); err != nil {
		all = append(all, err.Error())
	}
	if m.records != nil {
		if err := m.records.Healthy(); err != nil {
			all = append(all, "the record store is behind, calls are answered and stand in the journal: "+err.Error())
		}
	}
	all = append(all, m.Results.Problems()...)
	for _, problem := range []*atomic.Pointer[string]{&m.ConfigProblem, &m.Permission.problem, &m.chainProblem} {
		if p := problem.Load(); p != nil {
			all = append(all, *p)
		}
	}
	return all
}

// Warnings returns the entries of the config that match nothing, or do not hold: a rule that denies
// and is misspelt denies nothing.
func (m Model) Warnings() []string {
	var all []string
	for _, s := range m.Settings().Strays {
		all = append(all, s.Error())
	}
	if m.records != nil && m.records.Surplus() > 0 {
		all = append(all, store.FullAdvice)
	}
	return append(all, m.strayPatterns()...)
}

// Surface says of each tool where the caller finds it in a profile, and why.
func (m Model) Surface(profile string, caller tool.Actor) ([]control.Tool, error) {
	surface, err := m.Surfaces.Surface(profile, caller)
	if err != nil {
		return nil, err
	}
	record, _ := m.Surfaces.loader.Record(surface)
	reasons := make(map[tool.Name]string)
	for _, loaded := range record.LoadedTools {
		reasons[loaded.ToolID] = loaded.Reason
	}
	var all []control.Tool
	for _, l := range surface.Listed {
		all = append(all, control.Tool{ID: string(l.Tool.Name), Name: l.Name, State: "loaded",
			Why: cmp.Or(reasons[l.Tool.Name], "listed"), Server: l.Tool.Server})
	}
	for _, l := range surface.Deferred {
		all = append(all, control.Tool{ID: string(l.Tool.Name), Name: l.Name, State: "deferred",
			Why: record.SurfaceReason, Server: l.Tool.Server})
	}
	for _, e := range surface.Excluded {
		state := "excluded"
		if e.Code == tool.CodePolicyBlocked {
			state = "blocked"
		}
		all = append(all, control.Tool{ID: e.Tool, State: state, Why: e.Code + ": " + e.Reason, Server: e.Origin})
	}
	for _, e := range m.Surfaces.leftOut(profile) {
		all = append(all, control.Tool{ID: e.Tool, State: "excluded", Why: e.Reason, Server: e.Origin})
	}
	return all, nil
}

func (m Model) Show(profile, name string, asJSON bool) ([]byte, error) {
	own := OwnTools{Hub: m.Hub, Profile: profile}
	surface, err := own.Surface()
	if err != nil {
		return nil, err
	}
	l, ok := surface.Resolve(name)
	if !ok {
		l, ok = own.Find(name)
	}
	if !ok {
		return nil, fmt.Errorf("no tool %q: %s", name, own.Missing(name))
	}
	return own.Shown(l, asJSON)
}

func (m Model) Decision(ctx context.Context, c control.Call) (string, error) {
	x, err := Explained(ctx, m.Hub, c.Tool, policy.Request{Actor: c.Actor,
		Profile: cmp.Or(c.Profile, namespace.DefaultProfile), Input: c.Input})
	if err != nil {
		return "", err
	}
	if c.JSON {
		text, err := json.MarshalIndent(x, "", "  ")
		return string(text), err
	}
	var text strings.Builder
	err = x.WriteText(&text)
	return text.String(), err
}

func (m Model) Approvals() []approval.View { return m.Permission.approvals.List() }

func (m Model) Approval(id approval.ID) (approval.View, error) { return m.Permission.approvals.Get(id) }

func (m Model) Watch(ctx context.Context) <-chan approval.Event {
	return m.Permission.approvals.Watch(ctx)
}

func (m Model) Spans(id tool.InvocationID) *telemetry.Spans {
	if m.telemetry == nil {
		return nil
	}
	return m.telemetry.Spans(id)
}

func (m Model) Report() control.Report {
	health := m.server.Health()
	r := control.Report{Version: Version(), Started: m.started, Status: health.Status,
		Sessions: health.Sessions + m.guests.count(),
		Servers:  health.Servers, Problems: health.Problems, Warnings: health.Warnings}
	r.Readers = make(map[string][]tool.Name)
	for _, one := range (&Look{Gate: m.Surfaces.Now().Gate, Catalogs: m.Group.Catalogs()}).Readers() {
		r.Readers[one.Server] = one.Tools
	}
	if m.telemetry != nil {
		r.Log = m.telemetry.Log()
	}
	return r
}

func (m Model) Grants() []control.Grant { return control.Grants(m.Permission.Grants.List()) }

func (m Model) Events(w http.ResponseWriter, r *http.Request) {
	m.events.Serve(w, r, func() bool { return true })
}

// InState returns the servers that are in that state.
func (m Model) InState(state tool.ServerState) (ids []string) {
	for _, st := range m.Group.Statuses() {
		if st.State == state {
			ids = append(ids, st.Server)
		}
	}
	return ids
}

// Health returns the health of a hub whose config's own warnings were printed when it was read.
func (m Model) Health() downstream.Health {
	health := m.server.Health()
	health.Warnings = m.strayPatterns()
	return health
}

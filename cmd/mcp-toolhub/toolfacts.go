package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// factsRecord is what tools show -o json prints: the tool as clients see it, and the standard's records of it.
type factsRecord struct {
	Tool              json.RawMessage         `json:"tool"`
	Declaration       facts.Declaration       `json:"tool_declaration"`
	Interface         facts.Interface         `json:"tool_interface"`
	ExecutionProfile  facts.ExecutionProfile  `json:"tool_execution_profile"`
	PermissionProfile facts.PermissionProfile `json:"tool_permission_profile"`
	InputContract     facts.InputContract     `json:"tool_input_contract"`
	OutputContract    facts.OutputContract    `json:"tool_output_contract"`
	SchedulerPolicy   facts.SchedulerPolicy   `json:"tool_scheduler_policy"`
	ExternalMappings  []tool.ExternalMapping  `json:"external_mappings"`
}

// shown is what clients of this config are offered: a client on stdio of which nothing is known. The commands themselves see
// everything, deferred or not.
func (o ownTools) shown() (*tool.Surface, tool.SurfaceRecord, error) {
	surface, err := o.hub.Surface(o.profile, tool.Actor{Name: "local", Door: "stdio"})
	if err != nil {
		return nil, tool.SurfaceRecord{}, err
	}
	record, _ := o.hub.loader.Record(surface)
	return surface, record, nil
}

// factsOf are the facts of a tool as it stands on the surface that clients are offered.
func (o ownTools) factsOf(t *tool.Tool) (*facts.Facts, error) {
	surface, record, err := o.shown()
	if err != nil {
		return nil, err
	}
	_, offered := surface.Resolve(string(t.Name))
	state := facts.State{Deferred: surface.IsDeferred(t.Name), Hidden: !offered}
	for _, name := range surface.NamesOf(t.Name) {
		if name != t.Native && name != string(t.Name) {
			state.Aliases = append(state.Aliases, name)
		}
	}
	for _, loaded := range record.LoadedTools {
		state.AlwaysLoad = state.AlwaysLoad || loaded.ToolID == t.Name && loaded.Reason == "always_load"
	}
	for _, st := range o.hub.statuses() {
		if st.Server == t.Server && st.State != tool.ServerStopped { // one that sleeps is started by a call
			state.Server = st.State
		}
	}
	o.bound(t, &state)
	return o.hub.gate.Load().Facts(t).In(state), nil
}

// bound completes the state by what bounds calls of the tool, and by what its origin is given to sign in with.
func (o ownTools) bound(t *tool.Tool, state *facts.State) {
	settings, own := o.hub.settings.Load(), o.hub.builtin.Load()
	var env []string
	switch source := t.Name.Source(); {
	case source == code.Name && own.code != nil:
		state.Timeout, state.MaxInlineChars = own.code.Bounds(t.Native)
		state.Excess = facts.ExcessCut
		if own.code.RunsCommands() && t.Name == runCommand {
			env = own.code.Env()
		}
	case source == declarative.Name && own.declared != nil:
		state.Timeout, state.MaxInlineChars = own.declared.Bounds(t.Native)
		state.Excess = facts.ExcessRefused
		env = own.declared.Env()[t.Name]
	case source == tool.SourceMCP:
		for _, sc := range settings.Upstream.Servers {
			if sc.ID == t.Server {
				state.Timeout, state.MaxInlineChars, state.Excess = sc.CallTimeout(t.Native), sc.MessageLimit(), facts.ExcessRefused
			}
		}
		state.Credentials = settings.Credentials[t.Server]
	}
	for _, name := range env {
		if command.Secret(name) {
			state.Credentials = append(state.Credentials, "env:"+name)
		}
	}
}

// find is the tool of that name, also one that the policy hides from clients.
func (o ownTools) find(name string) (*tool.Listed, bool) {
	t := o.hub.named(o.profile, localActor().Client, name)
	if t == nil {
		return nil, false
	}
	return &tool.Listed{Name: string(t.Name), Tool: t, Declaration: t.Declaration}, true
}

func (c *toolsCmd) printFacts(o ownTools, l *tool.Listed) error {
	f, err := o.factsOf(l.Tool)
	if err != nil {
		return failed(err)
	}
	return c.printJSON(factsRecord{Tool: l.Declaration, Declaration: f.Declaration(), Interface: f.Interface(), ExecutionProfile: f.ExecutionProfile(),
		PermissionProfile: f.PermissionProfile(), InputContract: f.InputContract(), OutputContract: f.OutputContract(),
		SchedulerPolicy: f.SchedulerPolicy(), ExternalMappings: f.ExternalMappings()})
}

// summarizeFacts prints what matters of the facts for people.
func (c *toolsCmd) summarizeFacts(o ownTools, t *tool.Tool) error {
	f, err := o.factsOf(t)
	if err != nil {
		return failed(err)
	}
	fmt.Fprintf(c.std.out, "lifecycle: %s (%s: %s)\ntags: %s\nrisk: %s (%s)\nread-only: %t (%s: %s)\n", f.Lifecycle.Value, f.Lifecycle.Origin,
		printable(f.Lifecycle.Why), printable(strings.Join(f.Tags, " ")), f.Risk.Value, f.Risk.Origin,
		f.ReadOnly.Value, f.ReadOnly.Origin, printable(f.ReadOnly.Why))
	return nil
}

// placed is where a tool stands on a surface, and why.
type placed struct {
	Tool   string `json:"tool_id"`
	Name   string `json:"name,omitempty"`
	State  string `json:"state"` // loaded, deferred, blocked or excluded
	Why    string `json:"why"`
	Server string `json:"server,omitempty"`
}

// places says of each tool where it stands on the surface that clients are offered, and why.
func (o ownTools) places() ([]placed, error) {
	surface, record, err := o.shown()
	if err != nil {
		return nil, err
	}
	reasons := make(map[tool.Name]string)
	for _, loaded := range record.LoadedTools {
		reasons[loaded.ToolID] = loaded.Reason
	}
	var all []placed
	for _, l := range surface.Listed {
		why := reasons[l.Tool.Name]
		if why == "" {
			why = "listed"
		}
		all = append(all, placed{string(l.Tool.Name), l.Name, "loaded", why, l.Tool.Server})
	}
	for _, l := range surface.Deferred {
		all = append(all, placed{string(l.Tool.Name), l.Name, "deferred", record.SurfaceReason, l.Tool.Server})
	}
	for _, e := range surface.Excluded {
		state := "excluded"
		if e.Code == tool.CodePolicyBlocked {
			state = "blocked"
		}
		all = append(all, placed{e.Tool, "", state, e.Code + ": " + e.Reason, e.Origin})
	}
	for _, p := range o.hub.settings.Load().Profiles {
		if p.Name != o.profile {
			continue
		}
		for _, c := range o.hub.catalogs() {
			for _, t := range c.Tools {
				if why := p.LeavesOut(c.Server, string(t.Name)); why != "" {
					all = append(all, placed{string(t.Name), "", "excluded", why, c.Server})
				}
			}
		}
	}
	return all, nil
}

func (c *toolsCmd) printPlaces(all []placed) error {
	t := newTable("TOOL", "STATE", "WHY")
	for _, p := range all {
		t.add(printable(p.Tool), p.State, printable(p.Why))
	}
	return c.printTable(t)
}

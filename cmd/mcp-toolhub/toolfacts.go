package main

import (
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/limit"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// factsRecord is the output of tools show -o json: the tool as clients see it, and the standard's records of it.
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

	// Unlisted names the known clients to which the tool is listed without its outputSchema.
	Unlisted []string `json:"output_schema_not_listed_to,omitempty"`
}

// stranger returns an unknown client on stdio. "tools list --why" and the facts show what such a client would see. The
// commands themselves see every tool, deferred or not.
func stranger() tool.Actor { return tool.Actor{Name: "local", Door: "stdio"} }

// factsNamed returns the facts of a tool by its canonical name; nil where there is none.
func (h *hub) factsNamed(name tool.Name) *facts.Facts {
	if t := h.surfaces.present(name); t != nil {
		return h.surfaces.now().gate.Facts(t)
	}
	return nil
}

// factsOf returns the facts of a tool as it stands on the surface of a stranger.
func (o ownTools) factsOf(t *tool.Tool) (*facts.Facts, error) {
	surface, err := o.hub.surfaces.Surface(o.profile, stranger())
	if err != nil {
		return nil, err
	}
	record, _ := o.hub.surfaces.loader.Record(surface)
	_, offered := surface.Resolve(string(t.Name))
	state := o.hub.surfaces.now().state(t)
	state.Deferred, state.Hidden = surface.IsDeferred(t.Name), !offered
	for _, name := range surface.NamesOf(t.Name) {
		if name != t.Native && name != string(t.Name) {
			state.Aliases = append(state.Aliases, name)
		}
	}
	for _, loaded := range record.LoadedTools {
		state.AlwaysLoad = state.AlwaysLoad || loaded.ToolID == t.Name && loaded.Reason == "always_load"
	}
	for _, st := range (model{o.hub}).Servers() {
		if st.Server == t.Server && st.State != tool.ServerStopped { // one that sleeps is started by a call
			state.Server = st.State
		}
	}
	return o.hub.surfaces.now().gate.Facts(t).In(state), nil
}

// state is what holds of a tool for every caller: what bounds its calls, and what its origin is given to sign in with.
func (c *configured) state(t *tool.Tool) (state facts.State) {
	settings, own := c.settings, c.own
	var env []string
	switch source := t.Name.Source(); {
	case t.Hub != nil:
		state.Progress = t.Hub.Batches || t.Hub.Forwards // that of its calls
		state.Partial = t.Hub.Batches                    // the results of its calls
	case source == code.Name && own.code != nil:
		state.Timeout, state.MaxInlineChars = own.code.Bounds(t.Native)
		state.Excess, state.Progress = facts.ExcessCut, own.code.Reports(t.Native)
		state.Artifacts = own.code.MakesArtifacts(t.Native)
		if own.code.RunsCommands() && t.Name == runCommand {
			env = own.code.Env()
		}
	case source == declarative.Name && own.declared != nil:
		state.Timeout, state.MaxInlineChars = own.declared.Bounds(t.Native)
		state.Excess, state.Progress = facts.ExcessRefused, true
		env = own.declared.Env()[t.Name]
	case source == tool.SourceMCP:
		for _, sc := range settings.Upstream.Servers {
			if sc.ID == t.Server {
				state.Apart = sc.Isolated
				state.Timeout, state.MaxInlineChars, state.Excess = sc.CallTimeout(t.Native), sc.MessageLimit(),
					facts.ExcessRefused
			}
		}
		state.Credentials = settings.Credentials[t.Server]
	}
	state.Artifacts = state.Artifacts || settings.Results.TakesIn(t.Name)
	for _, name := range env {
		if secret.Variable(name) {
			state.Credentials = append(state.Credentials, "env:"+name)
		}
	}
	return state
}

// find returns the tool of that name, also one that the policy hides from clients.
func (o ownTools) find(name string) (*tool.Listed, bool) {
	t := o.hub.surfaces.named(o.profile, localActor().Client, name)
	if t == nil && o.hub.hubTool(tool.Name(name)) != nil {
		t = o.hub.surfaces.ownTool(tool.Name(name), o.profile, stranger().Client)
	}
	if t == nil {
		return nil, false
	}
	return &tool.Listed{Name: string(t.Name), Tool: t, Declaration: t.Declaration}, true
}

// shown is what tools show prints of a tool.
func (o ownTools) shown(l *tool.Listed, asJSON bool) ([]byte, error) {
	f, err := o.factsOf(l.Tool)
	if err != nil {
		return nil, err
	}
	unlisted := o.withoutOutputSchema(l.Tool)
	if !asJSON {
		return shownText(l, f, unlisted...)
	}
	return json.MarshalIndent(factsRecord{Tool: l.Declaration, Declaration: f.Declaration(), Interface: f.Interface(),
		ExecutionProfile:  f.ExecutionProfile(),
		PermissionProfile: f.PermissionProfile(), InputContract: f.InputContract(), OutputContract: f.OutputContract(),
		SchedulerPolicy: f.SchedulerPolicy(), ExternalMappings: f.ExternalMappings(),
		Unlisted: unlisted}, "", "  ")
}

// withoutOutputSchema returns the known clients to which a tool is listed without its outputSchema,
// because its results may be cut.
func (o ownTools) withoutOutputSchema(t *tool.Tool) (clients []string) {
	if t.OutputSchema == nil {
		return nil
	}
	for _, name := range append(limit.Clients(), "other clients") {
		caller := stranger()
		caller.Client.Name = name
		surface, err := o.hub.surfaces.Surface(o.profile, caller)
		if err != nil {
			continue
		}
		if r := surface.Results; r != nil && r.For(t.Name).Cuts() {
			clients = append(clients, name)
		}
	}
	return clients
}

// showTool answers a "tools show" of another process. It is nil where the caller sees no tool of
// that name in the profile.
func (h *hub) showTool(profile string, caller tool.Actor, name string, asJSON bool) ([]byte, error) {
	caller.Client = localActor().Client // what a command shows does not depend on which connection it asks over
	surface, err := h.surfaces.Surface(profile, caller)
	if err != nil {
		return nil, err
	}
	l, ok := surface.Resolve(name)
	if !ok {
		return nil, nil
	}
	return ownTools{hub: h, profile: profile}.shown(l, asJSON)
}

func (c *toolsCmd) printPlaces(all []control.Tool) error {
	t := newTable("TOOL", "STATE", "WHY")
	for _, p := range all {
		t.add(printable(p.ID), p.State, printable(p.Why))
	}
	return c.printTable(t)
}

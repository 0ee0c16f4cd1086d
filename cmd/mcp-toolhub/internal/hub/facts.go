package hub

import (
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
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

// Stranger returns an unknown client on stdio. "tools list --why" and the facts show what such a client would see. The
// commands themselves see every tool, deferred or not.
func Stranger() tool.Actor { return tool.Actor{Name: "local", Door: "stdio"} }

// factsNamed returns the facts of a tool by its canonical name; nil where there is none.
func (h *Hub) factsNamed(name tool.Name) *facts.Facts {
	if t := h.Surfaces.present(name); t != nil {
		return h.Surfaces.Now().Gate.Facts(t)
	}
	return nil
}

// state is what holds of a tool for every caller: what bounds its calls, and what its origin is given to sign in with.
func (c *Configured) state(t *tool.Tool) (state facts.State) {
	settings, own := c.Settings, c.Own
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

// showTool answers a "tools show" of another process. It is nil where the caller sees no tool of
// that name in the profile.
func (h *Hub) showTool(profile string, caller tool.Actor, name string, asJSON bool) ([]byte, error) {
	caller.Client = LocalActor().Client // what a command shows does not depend on which connection it asks over
	surface, err := h.Surfaces.Surface(profile, caller)
	if err != nil {
		return nil, err
	}
	l, ok := surface.Resolve(name)
	if !ok {
		return nil, nil
	}
	return OwnTools{Hub: h, Profile: profile}.Shown(l, asJSON)
}

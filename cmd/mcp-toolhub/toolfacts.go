package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

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

// factsOf are the facts of a tool as it stands on the surface.
func (o ownTools) factsOf(surface *tool.Surface, t *tool.Tool) *facts.Facts {
	state := facts.State{Deferred: surface.IsDeferred(t.Name)}
	for _, st := range o.hub.statuses() {
		if st.Server == t.Server {
			state.Server = st.State
		}
	}
	return o.hub.gate.Load().Facts(t).In(state)
}

func (a *app) printFacts(o ownTools, surface *tool.Surface, l *tool.Listed) error {
	f := o.factsOf(surface, l.Tool)
	return a.printJSON(factsRecord{Tool: l.Declaration, Declaration: f.Declaration(), Interface: f.Interface(), ExecutionProfile: f.ExecutionProfile(),
		PermissionProfile: f.PermissionProfile(), InputContract: f.InputContract(), OutputContract: f.OutputContract(),
		SchedulerPolicy: f.SchedulerPolicy(), ExternalMappings: f.ExternalMappings()})
}

// summarizeFacts prints what matters of the facts for people.
func (a *app) summarizeFacts(o ownTools, t *tool.Tool) {
	f := o.hub.gate.Load().Facts(t)
	fmt.Fprintf(a.std.out, "tags: %s\nrisk: %s (%s)\nread-only: %t (%s: %s)\n", printable(strings.Join(f.Tags, " ")), f.Risk.Value, f.Risk.Origin,
		f.ReadOnly.Value, f.ReadOnly.Origin, printable(f.ReadOnly.Why))
}

// placed is where a tool stands on a surface, and why.
type placed struct {
	Tool   string `json:"tool_id"`
	Name   string `json:"name,omitempty"`
	State  string `json:"state"` // loaded, deferred, blocked or excluded
	Why    string `json:"why"`
	Server string `json:"server,omitempty"`
}

// explainTools prints of each tool where it stands, and why.
func (a *app) explainTools(t toolbox, f toolFlags) error {
	own, ok := t.(ownTools)
	if !ok {
		return &exitError{exitUsage, errors.New("--why is for the config's own servers: leave --url out")}
	}
	surface, err := own.surface()
	if err != nil {
		return failed(err)
	}
	record, _ := own.hub.loader.Record(surface)
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
	if f.format == "json" {
		return a.printJSON(all)
	}
	w := tabwriter.NewWriter(a.std.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "TOOL\tSTATE\tWHY")
	for _, p := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", printable(p.Tool), p.State, printable(p.Why))
	}
	if err := w.Flush(); err != nil {
		return failed(err)
	}
	return nil
}

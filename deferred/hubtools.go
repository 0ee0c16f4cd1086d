package deferred

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// The names of this package's tools.
const (
	SearchName tool.Name = "tool_search"
	callName   tool.Name = "tool_call"
)

const searchIntro = "Finds tools that are not listed. Search here before you say that something cannot be done, " +
	"or when you need a tool of one of the servers below. query is words for what you want to do; select:NAME,NAME " +
	"for tools whose names you know; or regex:PATTERN. The answer has the best tool's declaration, signatures of the " +
	"next ones, and names of more. Call any that has a selection_ref with tool_call; select:NAME gets the declaration " +
	"of another."

const searchSchema = `{"type":"object","properties":{` +
	`"query":{"type":"string","minLength":1,"maxLength":10000,"description":"What you want to do, select:NAME,NAME, or ` +
	`regex:PATTERN (RE2)."},` +
	`"servers":{"type":"array","items":{"type":"string"},"maxItems":100,"description":"Only tools of these servers."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":50,"description":"How many tools at most; default 25, of which 10 ` +
	`can be called at once."}},` +
	`"required":["query"]}`

const callSchema = `{"type":"object","properties":{` +
	`"name":{"type":"string","minLength":1,"description":"The tool's name, as tool_search gave it."},` +
	`"arguments":{"type":"object","description":"The tool's own arguments."},` +
	`"selection_ref":{"type":"string","description":"As tool_search gave it."}},` +
	`"required":["name"]}`

// HubTools returns the tools that find and call deferred tools. Their calls go to the loader that loader returns then.
func HubTools(loader func() *Loader) []*tool.HubTool {
	defers := func(defers, _ bool) bool { return defers }
	return []*tool.HubTool{{
		Name: SearchName, Title: "Search tools", Description: searchIntro, InputSchema: searchSchema,
		Annotations: `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`,
		Describe:    describe, Listed: defers, Finds: true, Whole: true, Kind: "retrieval",
		Run: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) { return loader().search(ctx, e) },
	}, {
		Name: callName, Title: "Call a tool", InputSchema: callSchema, Annotations: `{"openWorldHint":true}`,
		Description: "Calls a tool that tool_search found, with arguments that fit its inputSchema. The result is " +
			"that tool's own.",
		Listed: defers, Forwards: true, Run: refuseCall,
	}}
}

// refuseCall answers a call of callName that names itself, or no tool. Any other is a call of the tool that it names.
func refuseCall(context.Context, *tool.Execution) (tool.Reply, error) {
	return tool.Reply{Mapping: mapping(callName)},
		refused("tool_call calls other tools, not itself: give the name of a tool that tool_search found")
}

func mapping(name tool.Name) tool.ExternalMapping {
	return tool.ExternalMapping{Source: tool.OwnServer, ToolName: string(name)}
}

// ownTools returns the hub's own tools for a surface that defers these tools. It leaves out what the policy excludes. A
// direct view has the batch tool alone.
func (p *splitting) ownTools(deferred []tool.Listed) map[string]*tool.Listed {
	about := func(server string) (title, says string) {
		if o := p.origins[server]; o != nil {
			title, says = o.catalog.Title, o.says
		}
		return title, says
	}
	own := make(map[string]*tool.Listed, len(p.hubTools))
	for _, t := range p.hubTools {
		if p.full.Withholds(t.Name) || strings.HasPrefix(p.full.Profile, tool.DirectPrefix) && !t.Batches {
			continue
		}
		description := t.Description
		if t.Describe != nil {
			description = t.Describe(deferred, about)
		}
		own[string(t.Name)] = listHubTool(t, description)
	}
	return own
}

func listHubTool(t *tool.HubTool, description string) *tool.Listed {
	name := string(t.Name)
	d := fmt.Appendf(nil, `{"name":%s,"title":%s,"description":%s,"inputSchema":%s,"annotations":%s`,
		rawjson.Quote(name), rawjson.Quote(t.Title), rawjson.Quote(description), t.InputSchema, t.Annotations)
	if !t.Reads { // the preview of a result names that tool when there is something to read
		d = append(d, `,"_meta":{"anthropic/alwaysLoad":true}`...)
	}
	d = append(d, '}')
	return &tool.Listed{Name: name, Changed: d, Tool: &tool.Tool{Name: t.Name, Server: tool.OwnServer, Native: name,
		Declaration: d, InputSchema: json.RawMessage(t.InputSchema), SchemaDigest: tool.Digest([]byte(t.InputSchema)),
		Title:       t.Title,
		Description: description, Hub: t}}
}

// reserved holds the folded names of the hub's own tools.
type reserved map[string]bool

func reserve(tools []*tool.HubTool) reserved {
	r := make(reserved, len(tools))
	for _, t := range tools {
		r[foldName(string(t.Name))] = true
	}
	return r
}

// resembles reports whether a name could be taken for one of the hub's own tools.
func (r reserved) resembles(name string) bool { return len(name) <= maxReserved && r[foldName(name)] }

const maxReserved = 32 // bytes: the folding of longer names is not worth its time

func foldName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' {
			return -1
		}
		return r
	}, name))
}

// shownName returns the name that a surface shows for a tool.
func (r reserved) shownName(l *tool.Listed) string {
	if r.resembles(l.Name) && l.Tool.Hub == nil {
		return string(l.Tool.Name)
	}
	return l.Name
}

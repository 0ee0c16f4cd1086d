package deferred

import "github.com/mcp-toolhub/mcp-toolhub/internal/tool"

// clientRule describes how one client takes many tools.
type clientRule struct {
	name string // see tool.Client.Is

	// cap is the number of tools that it takes at once; 0: unknown.
	cap int

	// defers says that the client itself shows its model a part of the tools and has it search the rest. Two layers of
	// search are worse than one, so such a client gets the whole list up to a budget that is patience times as large.
	defers bool

	// whole: it gets the whole list, however long and in every mode. It needs all and shows it to no model.
	whole bool
}

// patience multiplies the budget for a client that defers by itself: a tool that it keeps from its
// model costs only the name.
const patience = 20

// clientRules returns the known clients. The first row that matches counts. Only the budget limits
// a client without a row.
func clientRules() []clientRule {
	return []clientRule{
		{name: "claude-code", defers: true}, // measured with 2.1: names first, schemas by its own search
		{name: "codex", defers: true},       // all models of 0.169 have supports_search_tool
		// a hub that is a client of this one and defers itself, and the command line
		{name: "mcp-toolhub", whole: true},
		{name: "cursor", cap: 40},
		{name: "visual studio code", cap: 128}, // a request of its models takes no more
		{name: "visual-studio-code", cap: 128},
		{name: "code - oss", cap: 128},
		{name: "vscodium", cap: 128},
	}
}

// ruleOf returns the rule for a client; the zero value if there is none.
func ruleOf(rules []clientRule, client tool.Client) clientRule {
	for _, r := range rules {
		if client.Is(r.name) {
			return r
		}
	}
	return clientRule{}
}

package tool

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Habits say how one client program treats what the hub sends it, as far as that is known. The zero value says nothing.
// How it takes names is in package namespace.
type Habits struct {
	Program string // see Client.Is

	// MaxTools is the number of tools that it takes at once; 0: unknown.
	MaxTools int

	// ListsWithin is how long its first list of tools may take: it lists once, and gives up a server
	// whose start takes longer. 0: it lists again.
	ListsWithin time.Duration

	// Searches says that it shows its model a part of the tools and has it search the rest. Two layers of search are
	// worse than one, so such a client gets a longer list.
	Searches bool

	// TakesAll: it gets the whole list, however long and in every mode. It needs all and shows it to no model.
	TakesAll bool

	// ShowsBoth says that its model sees the content and the structuredContent of a result.
	ShowsBoth bool

	// ShowsMeta says that its model sees the _meta of a result, ShowsErrorMeta that of a result with isError.
	ShowsMeta, ShowsErrorMeta bool
}

// Habits returns what is known of the client. The first row that matches counts.
func (c Client) Habits() Habits {
	for _, h := range knownClients() {
		if c.Is(h.Program) {
			h.Searches = h.Searches && (h.Program != Codex || codexSearches(c.Model))
			return h
		}
	}
	return Habits{}
}

// Codex is the program whose model decides whether it searches.
const Codex = "codex"

// codexSearches reports whether Codex lets the model search for tools: gpt-5.5 and later ones.
func codexSearches(model string) bool {
	_, version, _ := strings.Cut(model, "gpt-")
	var major, minor int
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	return model == "" || major > 5 || major == 5 && minor >= 5
}

// knownClients returns the clients whose habits are known, as measured with the version that a row names.
var knownClients = sync.OnceValue(func() []Habits {
	return []Habits{
		{Program: "claude-code", Searches: true},                        // 2.1: names first, schemas by its own search
		{Program: Codex, Searches: true, ListsWithin: 25 * time.Second}, // 0.171, by model; it waits for 30 s
		// a hub that is a client of this one and defers itself, and the command line
		{Program: "mcp-toolhub", TakesAll: true},
		{Program: "cursor", MaxTools: 40},
		{Program: "visual studio code", MaxTools: 128}, // a request of its models takes no more
		{Program: "visual-studio-code", MaxTools: 128},
		{Program: "code - oss", MaxTools: 128},
		{Program: "vscodium", MaxTools: 128},
		{Program: "gemini-cli", ShowsErrorMeta: true}, // 0.61
		// 0.24: has a search of its own
		{Program: "qwen-cli-mcp-client", Searches: true, ListsWithin: 25 * time.Second, ShowsBoth: true,
			ShowsErrorMeta: true},
		// 3.0: the whole result goes to the model
		{Program: "cline", ListsWithin: 25 * time.Second, ShowsBoth: true, ShowsMeta: true},
		{Program: "@cline/core", ListsWithin: 25 * time.Second, ShowsBoth: true, ShowsMeta: true},
		{Program: "continue-cli", ListsWithin: 25 * time.Second}, // 1.5
		{Program: "continue", ListsWithin: 15 * time.Second},     // the editors wait for 20 s
		{Program: "github-copilot", ShowsBoth: true},             // Copilot CLI 1.0.102
		{Program: "copilot", ShowsBoth: true},
		{Program: "@langchain/mcp-adapters", ShowsMeta: true}, // 1.1: turns a text with _meta into JSON
		// Mastra 2.0 shows the whole result. It calls itself as its program calls the server.
		{Program: "mastra", ShowsMeta: true},
		{Program: "toolhub", ShowsMeta: true},
	}
})

package tool

import "context"

// OwnServer is the Server of the hub's own tools. No server can have this id.
const OwnServer = "hub"

// HubTool is a tool that the hub itself adds to surfaces, such as the search of deferred tools. The
// program has one table of them. Code elsewhere asks an entry for its properties, and never for its
// name. It is immutable.
type HubTool struct {
	Name        Name
	Title       string
	Description string
	InputSchema string // a JSON object, as Annotations is
	Annotations string

	// Describe returns the description on a surface that defers tools; nil: Description. about
	// returns the title of a server, and what the server says of itself in one line.
	Describe func(deferred []Listed, about func(server string) (title, says string)) string

	// Listed reports whether a surface lists the tool, given whether it defers tools and whether it
	// may cut results. The name resolves on every surface of a profile, unless the policy hides the
	// tool.
	Listed func(defers, cuts bool) bool

	// Run executes a call of the tool.
	Run func(ctx context.Context, e *Execution) (Reply, error)

	Finds    bool // it finds deferred tools: a client that sees it needs not wait for servers that still start
	Whole    bool // nothing is ever cut from its results, and none is stored
	Reads    bool // it reads stored results
	Forwards bool // its call is a call of the tool that its arguments name, and needs no permission of its own
	// its arguments hold calls, each an invocation of its own: it needs neither permission nor a
	// place of its own
	Batches bool
	Kind    string // its execution kind among the facts; "": that of any tool of the hub
}

// Execute runs a call of the tool.
func (t *HubTool) Execute(ctx context.Context, e *Execution) (Reply, error) { return t.Run(ctx, e) }

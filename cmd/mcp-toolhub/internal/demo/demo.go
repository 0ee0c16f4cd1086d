// Package demo is the server of `mcp-toolhub demo-server`: a small MCP server that does what it
// says, one tool, resource or prompt for each thing that a client can be tried with. It speaks the
// protocol with a session (to 2025-11-25) and the one without (2026-07-28), reads and writes no
// file and opens no connection.
package demo

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const instructions = "A server to try MCP clients with. Each tool shows one thing: add structured output, echo " +
	"what arrived, " +
	"countdown progress and cancellation, fail an error, ask_name an elicitation, log a log message, big a " +
	"large result, " +
	"grow and shrink a changing list of tools. There are a resource, a resource template and a prompt, both with " +
	"completion."

// newServer returns a fresh server that names version as its own. Sessions of one server share the
// tools that grow added.
func newServer(version string) *mcp.Server {
	s := mcp.NewServer(
		&mcp.Implementation{Name: "mcp-toolhub-demo", Title: "mcp-toolhub demo server", Version: version},
		&mcp.ServerOptions{Instructions: instructions, CompletionHandler: complete},
	)
	addCalculation(s)
	addConversation(s)
	addText(s)
	g := &garden{server: s}
	g.addTools()
	addResources(s)
	addPrompt(s)
	return s
}

// Run serves one client over in and out, a message a line, until in ends or ctx does, and closes
// both. It returns nil when in ended, and an error that wraps ctx's when that was first. Calls that
// run then are canceled and waited for.
func Run(ctx context.Context, in io.ReadCloser, out io.WriteCloser, version string) error {
	err := newServer(version).Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	if errors.Is(err, io.ErrUnexpectedEOF) { // the client went away in the middle of a line
		return nil
	}
	return err
}

// garden is the part of the server's list of tools that changes.
type garden struct {
	server *mcp.Server

	mu      sync.Mutex
	sprouts int
}

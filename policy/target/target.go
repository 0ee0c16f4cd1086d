// Package target finds what a call is aimed at: the paths, URLs, hosts, commands and resources that its arguments name, each
// normalised so that two spellings of one thing are equal. Policy judges by what it returns, grants are bound to it, and
// built-in tools resolve once more at use, because a file system does not stand still between check and use.
//
// The package opens nothing for its caller but in OpenRead and OpenWrite, follows no redirect and asks no name server.
package target

import (
	"context"
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// Kind says what a target is.
type Kind string

const (
	Path     Kind = "path"
	URL      Kind = "url"
	Command  Kind = "command"
	Resource Kind = "resource"
)

// Target is one thing that a call is aimed at.
type Target struct {
	Kind     Kind   `json:"kind"`
	Argument string `json:"argument"` // JSON pointer into the arguments
	Given    string `json:"given"`    // as the caller wrote it
	Resolved string `json:"resolved"` // normalised; see Plan.Resolve

	Host       string `json:"host,omitempty"`       // of a URL: lower case, ASCII, no trailing dot, IP addresses in their usual form
	Executable string `json:"executable,omitempty"` // of a command: the program; "" where it cannot be told, which is any program
	Write      bool   `json:"write"`                // the call may write there
	Remote     bool   `json:"remote,omitempty"`     // a path on another machine: nothing here was looked at
	Notes      []Note `json:"notes,omitempty"`      // what is odd about it
	Fault      string `json:"fault,omitempty"`      // why it cannot be normalised; such a target is never within anything
}

// Note is something odd about a target that a person should see.
type Note string

// Root is where the arguments of a call are looked up.
type Root struct {
	Dir    string // absolute: where relative paths start; "" where that is not known
	Home   string // what ~ stands for; "" where that is not known
	Remote bool   // paths are those of another machine: they are cleaned, and nothing is looked up
}

// Plan says which arguments of one tool are targets. It is immutable and safe for concurrent use.
type Plan struct {
	arguments []facts.Argument
}

// Find returns the plan of the tool that f is about. It is made once per tool.
func Find(f *facts.Facts) *Plan { return &Plan{arguments: f.Arguments} }

// Resolve returns the targets of one call, in the order of the tool's schema; an error where arguments is no JSON object.
// A target that cannot be normalised is among them, with a Fault: it must not vanish.
func (p *Plan) Resolve(ctx context.Context, arguments json.RawMessage, root Root) ([]Target, error) {
	return resolve(ctx, p, arguments, root)
}

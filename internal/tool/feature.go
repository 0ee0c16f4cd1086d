package tool

import (
	"cmp"
	"encoding/json"
)

// Offer is a prompt, a resource or a resource template as its server listed it. It is immutable once published.
type Offer struct {
	Server string

	// Native is the prompt's name, the resource's URI, or the template's URI template, decoded.
	Native string

	// Declaration is the whole object, byte for byte.
	Declaration json.RawMessage
}

// Feature is an Offer as one surface shows it.
type Feature struct {
	Offer
	Shown string // the name or URI that clients see in place of Native

	// Declaration is the offer's, with Shown in its place; all else byte for byte.
	Declaration json.RawMessage
}

// Abilities says what a server, or a surface of several, can do besides tools.
type Abilities struct {
	Prompts     bool
	Resources   bool // templates, too
	Subscribe   bool // to single resources
	Completions bool
	Logging     bool

	Tasks         Tasks // of protocol 2025-11-25
	TaskExtension bool  // the extension TaskExtension, of 2026-07-28

	// Experimental and Extensions are the members of these names of a server's capabilities, JSON
	// objects as it wrote them; "" where it wrote none. They say nothing of a surface of several
	// servers.
	Experimental string `json:",omitempty"`
	Extensions   string `json:",omitempty"`
}

// Tasks says what a server of 2025-11-25 can do with tasks.
type Tasks struct {
	Calls  bool // tools/call as a task
	List   bool
	Cancel bool
}

// Or returns what either can do.
func (a Abilities) Or(b Abilities) Abilities {
	return Abilities{Prompts: a.Prompts || b.Prompts, Resources: a.Resources || b.Resources, Subscribe: a.Subscribe ||
		b.Subscribe,
		Completions: a.Completions || b.Completions, Logging: a.Logging || b.Logging, Tasks: a.Tasks.or(b.Tasks),
		TaskExtension: a.TaskExtension || b.TaskExtension, Experimental: cmp.Or(a.Experimental, b.Experimental),
		Extensions: cmp.Or(a.Extensions, b.Extensions)}
}

func (t Tasks) or(o Tasks) Tasks {
	return Tasks{Calls: t.Calls || o.Calls, List: t.List || o.List, Cancel: t.Cancel || o.Cancel}
}

// Features holds what a surface offers besides tools, at one moment. It is immutable and safe for concurrent use.
type Features struct {
	Prompts   []Feature
	Resources []Feature
	Templates []Feature
	Excluded  []Exclusion // what it does not offer, and why; Tool says "prompt" or "resource" and which

	Abilities Abilities
	Servers   []string // of the surface, in its order
	// one sentence that names all servers; "" where Instructions are those of the only server, as
	// it wrote them
	Headline     string
	Instructions string // of the servers, each labelled with its server where there are several

	prompts map[string]*Feature
	owner   func(uri string) (servers []string, native string)
}

// NewFeatures returns f with the means to resolve names. prompts maps every name that a prompt goes by to an index in
// f.Prompts. owner returns the servers of a resource, and its URI as they know it.
func NewFeatures(f Features, prompts map[string]int, owner func(uri string) (servers []string,
	native string)) *Features {
	f.prompts, f.owner = make(map[string]*Feature, len(prompts)), owner
	for name, i := range prompts {
		f.prompts[name] = &f.Prompts[i]
	}
	return &f
}

// Prompt returns the prompt that name stands for on this surface, by any of its names.
func (f *Features) Prompt(name string) (*Feature, bool) {
	p, ok := f.prompts[name]
	return p, ok
}

// Owner returns the servers of the surface that list a resource or have a template for it, and its
// URI as they know it. There are several where several claim it, and none where none does.
func (f *Features) Owner(uri string) (servers []string, native string) {
	if f.owner == nil {
		return nil, uri
	}
	return f.owner(uri)
}

// Request is a request of a client, other than tools/call, that goes on to one server: resources/read, prompts/get and
// their like.
type Request struct {
	Server string
	Method string

	// Params is the params object as the client sent it, with names and URIs as the server knows
	// them. Whoever sends it on replaces _meta.
	Params json.RawMessage

	Meta         json.RawMessage // see Execution
	Hop          Hop
	Session      Session
	Ask          Asker              // see Execution
	InputByRetry bool               // see Execution
	Notify       func(Notification) // see Execution
	Progress     func(Progress)     // nil where nobody asked for it

	// Unknown says that the hub does not know the method, and looks at nothing in the result. Name is then the client's
	// Mcp-Name header.
	Unknown bool
	Name    string
}

// Notification is a notification of a server: a log message, a changed resource, the state of a
// task or an elicitation, or one that the hub does not know.
type Notification struct {
	Server  string
	Session string // key of the session to whose own connection it belongs; "" where the connection is shared
	Method  string
	Params  json.RawMessage // nil where there are none
}

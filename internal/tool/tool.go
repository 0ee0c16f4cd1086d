package tool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// SchemaVersion is the Agent Tool version that every record of the hub names.
const SchemaVersion = "0.2.0"

// Name is a canonical tool name, unique in the whole hub: mcp.<server>.<tool> for a tool of an upstream server,
// <toolset>.<tool> for a built-in one. Permission, hooks, routing, records and replay use it and nothing else. It
// doubles as the standard's tool_id.
type Name string

// UnknownTool is the tool_id of an invocation whose requested name belongs to no tool. The standard requires a tool_id
// even then; the name that was asked for is in the invocation's external mappings.
const UnknownTool Name = "hub.unknown_tool"

// SourceMCP is the first word of the canonical name of every tool of an upstream MCP server.
const SourceMCP = "mcp"

// MCPName builds the canonical name of tool native on server. Server ids hold no dot, so the second
// dot ends the server.
func MCPName(server, native string) Name { return Name(SourceMCP + "." + server + "." + native) }

// Source returns the first word of the name: "mcp" or the name of a toolset.
func (n Name) Source() string {
	source, _, _ := strings.Cut(string(n), ".")
	return source
}

// Validate says what happens to arguments that the input schema refuses.
type Validate string

const (
	ValidateReject Validate = "reject" // the call ends as schema_validation_failed before anything runs (default)
	ValidateWarn   Validate = "warn"   // the call goes on; an event records the fault
	ValidateOff    Validate = "off"    // the schema is not looked at
)

// Tool is one callable tool as a catalog admitted it. It is immutable once published.
type Tool struct {
	Name   Name
	Server string // id of the upstream server; the toolset's name for a built-in tool
	Native string // the origin's own name, sent to it in tools/call

	// Declaration is the tool's object as its origin listed it, byte for byte, except for what Repairs names.
	Declaration       json.RawMessage
	DeclarationDigest [sha256.Size]byte // zero where nobody has computed it

	// InputSchema and OutputSchema are members of Declaration; OutputSchema is nil where the tool has none.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	SchemaDigest string // Digest of InputSchema
	OutputDigest string // Digest of OutputSchema
	SourceDigest string // of the file that declares the tool and says what it runs; "" where none does
	// ServerDigest is "@" and a digest of the upstream server's address, or command and arguments,
	// and account; "" without one.
	ServerDigest string

	// Internal are the arguments that hooks and people may set and models neither see nor send, as
	// JSON pointers where "*" stands for every element of an array. Runtime is InputSchema with
	// them, nil where there are none.
	Internal      []string
	Runtime       json.RawMessage
	RuntimeDigest string

	Title       string // decoded, for people
	Description string // decoded, for people and search
	Tags        []string
	Validate    Validate // "" means ValidateReject
	Repairs     []Repair
	TextTells   bool // a toolset's: the texts of its results tell all that structuredContent tells

	Hub *HubTool // its entry in the table of the hub's own tools; nil for the tools of servers and toolsets

	Method bool // it is no tool but a method of its server, and Native is the method's name: see MethodOf
}

// MethodOf returns the tool that a method of a server other than tools/call is for permission and
// records. A known method is one of the protocol, which only reads. Of an unknown one nobody knows
// what it does.
func MethodOf(server, method string, known bool) *Tool {
	if len(method) > maxMethod {
		method = strings.ToValidUTF8(method[:maxMethod], "") + "…"
	}
	t := &Tool{Name: MCPName(server, method), Server: server, Native: method, Method: true, Validate: ValidateOff,
		Declaration: json.RawMessage(`{"annotations":{"readOnlyHint":true,"openWorldHint":false}}`)}
	if !known {
		t.Declaration, t.Tags = json.RawMessage(`{"annotations":{"readOnlyHint":false}}`),
			[]string{"unknown", "network"}
	}
	return t
}

const maxMethod = 200 // bytes of a method's name that a client has chosen

// Version changes with the input schema, with the server, and with what the tool runs, as far as
// the hub knows that. What was permitted of a tool was permitted of one version.
func (t *Tool) Version() string { return cmp.Or(t.SourceDigest, t.SchemaDigest) + t.ServerDigest }

// RuntimeSchema returns the schema of the arguments that the tool is called with, and its digest.
func (t *Tool) RuntimeSchema() (schema json.RawMessage, digest string) {
	if t.Runtime == nil {
		return t.InputSchema, t.SchemaDigest
	}
	return t.Runtime, t.RuntimeDigest
}

// Repair is a change that admission made to a declaration so that it breaks neither the hub nor a client.
type Repair struct {
	Part   string `json:"part"`   // the member that was changed, for instance "inputSchema"
	Reason string `json:"reason"` // what was wrong and what stands there now, one sentence
}

// Exclusion names a tool that a catalog or a surface does not offer, and says why.
type Exclusion struct {
	Tool   string `json:"tool"`           // canonical name where there is one, otherwise the origin's
	Origin string `json:"origin"`         // server id or toolset
	Code   string `json:"code"`           // machine-readable, for instance "duplicate_name", "invalid_schema"
	Reason string `json:"reason"`         // one sentence that ends in what to do
	Twin   string `json:"twin,omitempty"` // the other origin, for a name that two tools claim
}

// Catalog holds everything that one origin offers at one moment. It is immutable once published.
type Catalog struct {
	Server       string // server id, or the name of a built-in toolset
	Source       string // SourceMCP, or the name of a built-in toolset
	Tools        []*Tool
	Excluded     []Exclusion
	Tags         []string // of the server's config entry
	Title        string   // the server's own title or name, decoded
	Instructions string   // the server's own instructions, decoded
	Prompts      []Offer
	Resources    []Offer
	Templates    []Offer
	Abilities    Abilities
	Pending      bool // the origin has not answered yet: Tools may be empty or from a cache

	// Needs says what a person has to do before the origin works again, for instance "a sign-in: …"; "" for nothing. It
	// holds no secret.
	Needs string
}

// Client describes the program on the other end of a downstream session. Every field is the
// client's own claim: it may choose a naming style, never a permission.
type Client struct {
	Name            string
	Version         string
	ProtocolVersion string // negotiated, for instance "2025-11-25"
	Apps            bool   // it shows user interfaces of tools (the extension MCP Apps)
	Names           string // the naming style that it asks for with its address; "" where it asks for none
	Model           string // that it works with; "" where it has not said so
}

// ClientRef is what a client calls itself, as records have it.
type ClientRef struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
}

// Is reports whether the client claims to be the program of that name, given in lower case. Its name may go on after a
// character that ends the word: "zed-nightly" is Zed, "zedtool" is not.
func (c Client) Is(program string) bool {
	name := strings.ToLower(strings.TrimSpace(c.Name[:min(len(c.Name), 64)]))
	rest, ok := strings.CutPrefix(name, program)
	if !ok || rest == "" {
		return ok
	}
	next := rest[0]
	return (next < 'a' || next > 'z') && (next < '0' || next > '9')
}

// Actor is the caller as rules and records name it.
type Actor struct {
	Name    string // name of the bearer token, or "local" where there is no authentication
	Door    string // "stdio", "http" or "cli"
	Session string // downstream session id; empty where the protocol has none
	Address string // the host that the request came from, without its port; empty but for HTTP
	Client  Client
}

// IsRemote reports whether the caller may be on another machine: who comes in over HTTP with a token.
func (a Actor) IsRemote() bool { return a.Door == "http" && a.Name != Local }

// Ref returns the actor_ref of records.
func (a Actor) Ref() string { return "actor:" + a.Door + "/" + a.Name }

// Digest returns the hex SHA-256 of b: a schema, a declaration or a surface.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

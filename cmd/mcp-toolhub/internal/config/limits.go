package config

import (
	"cmp"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
)

// limits bound what one server may send and list. Zero: not given.
type limits struct {
	message, catalog, toolSize int64
	pages, tools, schemaDepth  int
	hiddenText                 string
}

// hubLimits are those of all servers, and of clients.
type hubLimits struct {
	limits
	clientMessage int64
	memory        int64
}

// Bounds of the limits. Below the least no server can say who it is; beyond the most something else would break.
const (
	minMessage     = 1 << 10
	maxMessage     = 1 << 30   // several copies of a message are held
	maxPages       = 100_000   // each is a request
	maxCatalog     = 256 << 20 // the most that is kept for the next start
	maxTools       = 100_000   // each list of tools is made anew for each naming style
	minSchemaDepth = 4
	minMemory      = 8 << 20
	maxMemory      = 1 << 40
)

func limitsKeys(l *limits) []shape.Field {
	return []shape.Field{
		shape.Key("message", "Largest message of a server: an answer to a call, most often (default 256 MiB over Streamable HTTP, "+
			"64 MiB over stdio and sse).", shape.Size{Min: minMessage, Max: maxMessage}, &l.message),
		shape.Key("pages", "Pages of one list, of tools or resources for instance (default 1000).", shape.Number{Min: 1, Max: maxPages}, &l.pages),
		shape.Key("catalog", "Size of all pages of one list together (default 64 MiB).", shape.Size{Min: minMessage, Max: maxCatalog}, &l.catalog),
		shape.Key("tools", "Tools of a server, and prompts, resources and resource templates, of each as many (default 10000). "+
			"Further ones are left out.", shape.Number{Min: 1, Max: maxTools}, &l.tools),
		shape.Key("tool_size", "Size of the declaration of one tool, schemas and all, or of one prompt or resource (default 1 MiB). "+
			"A larger one is left out.", shape.Size{Min: minMessage, Max: upstream.MaxToolSize}, &l.toolSize),
		shape.Key("schema_depth", "Levels of objects and arrays in a tool's schema (default 128). A deeper one is replaced by "+
			"{\"type\":\"object\"}.", shape.Number{Min: minSchemaDepth, Max: upstream.MaxSchemaDepth}, &l.schemaDepth),
		shape.Key("hidden_text", "What becomes of characters that nobody sees in descriptions and titles: keep (default) them and tell of them, "+
			"strip them, or refuse what holds them.",
			shape.OneOf(upstream.HiddenKeep, upstream.HiddenStrip, upstream.HiddenRefuse), &l.hiddenText),
	}
}

func hubLimitsKeys(l *hubLimits) []shape.Field {
	return append(limitsKeys(&l.limits),
		shape.Key("client_message", "Largest message of a client (default 64 MiB over stdio, 4 MiB over HTTP). "+
			"hub.http.max_body_bytes says otherwise for HTTP.", shape.Size{Min: minMessage, Max: maxMessage}, &l.clientMessage),
		shape.Key("memory", "Memory for large messages of all servers together (default: a quarter of the memory of the machine or cgroup, "+
			"at most 2 GiB). A message that finds no room waits, and then its call fails.", shape.Size{Min: minMemory, Max: maxMemory}, &l.memory))
}

// serverLimits are those of a server's entry, and where it is silent those of the hub.
func serverLimits(own, hub limits) upstream.Limits {
	return upstream.Limits{
		Message: int(cmp.Or(own.message, hub.message)), Catalog: int(cmp.Or(own.catalog, hub.catalog)),
		ToolSize: int(cmp.Or(own.toolSize, hub.toolSize)), Pages: cmp.Or(own.pages, hub.pages),
		Tools: cmp.Or(own.tools, hub.tools), SchemaDepth: cmp.Or(own.schemaDepth, hub.schemaDepth),
		HiddenText: cmp.Or(own.hiddenText, hub.hiddenText),
	}
}

// limitClients sets how large a client's messages may be.
func limitClients(c *downstream.Config, l hubLimits) {
	c.MaxMessageBytes = l.clientMessage
	c.HTTP.MaxBodyBytes = cmp.Or(c.HTTP.MaxBodyBytes, l.clientMessage)
}

package settings

import "fmt"

// Limits bound what one server may send and list. Zero means the default. The defaults let the
// largest real servers pass with room to spare: 344 tools in half a megabyte. The config file sets
// Message and HiddenText.
type Limits struct {
	// Message is the size in bytes of one message, with the line break or the event fields around it: default 64 MiB on
	// stdio and HTTP+SSE, where one server's messages share a stream, and 256 MiB over Streamable HTTP.
	Message int
	Pages   int // of one list; default 1000
	Catalog int // bytes of all pages of one list; default 64 MiB
	// tools of one server, and prompts, resources, templates, of each; further ones are left out;
	// default 10,000
	Tools       int
	ToolSize    int // bytes of the declaration of one of them, which is left out above that; default 1 MiB
	SchemaDepth int // levels of an input or output schema; a deeper one is not used; default 128

	// what becomes of hidden characters in descriptions and titles: HiddenKeep (default), HiddenStrip
	// or HiddenRefuse
	HiddenText string
}

// Values of Limits.HiddenText: what becomes of hidden characters in descriptions and titles.
const (
	HiddenKeep   = "keep"   // they stay, and are reported
	HiddenStrip  = "strip"  // they are taken out
	HiddenRefuse = "refuse" // the tool is left out
)

const (
	defaultStreamMessage = 64 << 20
	defaultHTTPMessage   = 256 << 20
	defaultPages         = 1000
	defaultCatalog       = 64 << 20
	defaultTools         = 10_000
	defaultToolSize      = 1 << 20
	defaultSchemaDepth   = 128
)

// Names of the limits in the config file, for messages.
const (
	LimitMessage    = "limits.message"
	LimitHiddenText = "limits.hidden_text"
	LimitMemory     = "hub.limits.memory" // of the hub, not of one server
)

func (l Limits) withDefaults(t Transport) Limits {
	message := defaultStreamMessage
	if t == StreamableHTTP {
		message = defaultHTTPMessage
	}
	l.Message = OrDefault(l.Message, message)
	l.Pages = OrDefault(l.Pages, defaultPages)
	l.Catalog = OrDefault(l.Catalog, defaultCatalog)
	l.Tools = OrDefault(l.Tools, defaultTools)
	l.ToolSize = OrDefault(l.ToolSize, defaultToolSize)
	l.SchemaDepth = OrDefault(l.SchemaDepth, defaultSchemaDepth)
	return l
}

// Raise says what to do about a limit of this name that was hit.
func Raise(limit string) string {
	return fmt.Sprintf("raise %s in the server's entry of the hub's config, or hub.%s for all servers", limit, limit)
}

// SizeText writes a number of bytes as the config file does.
func SizeText(n int) string {
	switch {
	case n > 0 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n > 0 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

package config

import (
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// Bounds of the limits. Below the least no server can say who it is; beyond the most something else would break.
const (
	minMessage = 1 << 10
	maxMessage = 1 << 30 // several copies of a message are held
	minMemory  = 8 << 20
	maxMemory  = 1 << 40
)

// limitsKeys bound what one server may send and list.
func limitsKeys(l *upstream.Limits) []shape.Field {
	return []shape.Field{
		shape.Key("message",
			"Largest message of a server (default 256 MiB over Streamable HTTP, 64 MiB over stdio and sse).",
			shape.Size[int]{Min: minMessage, Max: maxMessage}, &l.Message),
		shape.Key("hidden_text",
			"What happens to invisible characters in descriptions and titles: keep (default) them and tell of "+
				"them, strip them, or refuse what holds them.",
			shape.OneOf(upstream.HiddenKeep, upstream.HiddenStrip, upstream.HiddenRefuse), &l.HiddenText),
	}
}

func hubLimitsKeys(h *hub) []shape.Field {
	return append(limitsKeys(&h.limits),
		shape.Key("client_message", "Largest message of a client (default 64 MiB over stdio, 4 MiB over HTTP).",
			shape.Size[int64]{Min: minMessage, Max: maxMessage}, &h.clientMessage),
		shape.Key("memory",
			"Memory for all messages over 1 MiB (default 96 MiB, or a quarter of the machine or cgroup if that is "+
				"less). One message may have three quarters. Others wait.",
			shape.Size[int64]{Min: minMemory, Max: maxMemory}, &h.memory))
}

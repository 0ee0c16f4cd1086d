package deferred

import (
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// history remembers the input schemas that tools had, so that a caller who has an older one can be
// told what is different. It is guarded by the loader's mu.
type history struct {
	latest map[tool.Name]*tool.Tool
	past   map[tool.Name][]*tool.Tool // older ones, the latest last
}

// Bounds of what is remembered: tools, and older schemas of one.
const (
	maxRemembered = 20000
	maxPast       = 3
)

func newHistory() history {
	return history{latest: make(map[tool.Name]*tool.Tool), past: make(map[tool.Name][]*tool.Tool)}
}

// note takes in what an origin offers now. Tools that it offers no more are remembered as they were.
func (h *history) note(tools []*tool.Tool) {
	for _, t := range tools {
		old := h.latest[t.Name]
		if old == nil && len(h.latest) >= maxRemembered {
			*h = newHistory()
		}
		if old != nil && old.SchemaDigest != t.SchemaDigest {
			past := append(h.past[t.Name], old)
			h.past[t.Name] = past[max(0, len(past)-maxPast):]
		}
		h.latest[t.Name] = t
	}
}

// schemaOf returns the input schema that a tool had when its digest was one that is says; nil where
// it is not remembered.
func (l *Loader) schemaOf(name tool.Name, is func(digest string) bool) json.RawMessage {
	l.mu.Lock()
	past := l.history.past[name]
	l.mu.Unlock()
	for i := len(past) - 1; i >= 0; i-- {
		if is(past[i].SchemaDigest) {
			return past[i].InputSchema
		}
	}
	return nil
}

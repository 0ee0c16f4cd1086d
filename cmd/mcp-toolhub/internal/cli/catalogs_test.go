package cli

import (
	"net/http"
)

// as opens a session as the client of that name.
func (w *wire) as(client string) {
	w.t.Helper()
	status, h, messages := w.post(w.initialize(client))
	if w.session = h.Get("Mcp-Session-Id"); status != http.StatusOK || w.session == "" {
		w.t.Fatalf("initialize as %s: %d %v", client, status, messages)
	}
}

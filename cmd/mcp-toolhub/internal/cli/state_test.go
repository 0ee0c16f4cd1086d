package cli

import (
	"testing"
)

// modernPerson is a client of 2026-07-28 that holds a token and can be asked for anything.
func (h *runningHub) modernPerson(t *testing.T, path, token string) *wire {
	return wireHTTP(t, h.url+path, rev2026, "Authorization", "Bearer "+token).able()
}

//go:build e2e && unix

package upstream_test

import (
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestChangedServerIsRememberedUnderItsNewIdentity checks that a change of the entry which leaves the tools as they
// were does not cost the next start its catalog.
func TestChangedServerIsRememberedUnderItsNewIdentity(t *testing.T) {
	t.Parallel()
	store := newMemory()
	first := stdio("s", upstreamtest.Script{})
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{first}, Catalogs: store})
	h.ready(t, "s")
	eventually(t, "the catalog is kept", func() bool { return len(store.all()) == 1 })
	h.apply(t, changed(first, 1))
	h.ready(t, "s")
	eventually(t, "a catalog is kept for each identity", func() bool { return len(store.all()) == 2 })
}

//go:build unix

package upstream_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestIsolationOverAnyTransport checks that sessions come and go over every transport and generation of the protocol.
func TestIsolationOverAnyTransport(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, isolated(w.config(t, "s")))
			if err := h.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			ann, bob := newVisitor("ann"), newVisitor("bob")
			for _, v := range []*visitor{ann, bob, ann} {
				if got := v.mustCall(t, h, "raw", `{"result":{"for":"`+v.session.Name+`"}}`).Result; !strings.Contains(string(got), v.session.Name) {
					t.Errorf("%s got %s", v.session.Name, got)
				}
			}
			if n := h.status("s").Sessions; n != 2 {
				t.Errorf("%d connections", n)
			}
			ann.end()
			eventually(t, "one is left", func() bool { return h.status("s").Sessions == 1 })
			bob.mustCall(t, h, "raw", `{"result":{}}`)
		})
	}
}

// TestSessionsKnowTheServer checks that what one connection has learnt of the server's generation is not asked again by
// each: a server that does not answer the question costs seconds.
func TestSessionsKnowTheServer(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "record")
	h := start(t, isolated(stdio("s", upstreamtest.Script{Record: record})))
	h.reaches(t, "s", tool.ServerStopped)
	newVisitor("ann").mustCall(t, h, "raw", `{"result":{}}`)
	newVisitor("bob").mustCall(t, h, "raw", `{"result":{}}`)
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if asked, begun := bytes.Count(data, []byte(`"server/discover"`)), bytes.Count(data, []byte(`"initialize"`)); asked != 1 || begun != 3 {
		t.Errorf("asked %d times in %d connections", asked, begun)
	}
}

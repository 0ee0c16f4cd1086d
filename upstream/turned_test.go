package upstream_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestServerComesBackAsAnotherGeneration checks that a server is asked for its generation again when it is reconnected to,
// and once only for each connection. The fakes of 2026-07-28 answer initialize, too.
func TestServerComesBackAsAnotherGeneration(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		before, after := versionOf(first), versionOf(!first)
		t.Run("stdio "+before, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := upstreamtest.Script{Modern: first, Turned: filepath.Join(dir, "turned"), Record: filepath.Join(dir, "record")}
			h := start(t, stdio("s", script))
			if st := h.ready(t, "s"); st.ProtocolVersion != before {
				t.Fatalf("it speaks %s", st.ProtocolVersion)
			}
			if err := os.WriteFile(script.Turned, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _ = h.call(t.Context(), "s", "die", `{}`)
			eventually(t, "it is back as the other", func() bool { return h.status("s").ProtocolVersion == after })
			h.ready(t, "s")
			for range 3 {
				h.mustCall(t, "s", "raw", `{"result":{"content":[]}}`)
			}
			if n := strings.Count(strings.Join(gotBy(t, nil, script.Record), "\n"), `"server/discover"`); n != 2 {
				t.Errorf("asked %d times in two connections", n)
			}
		})
		t.Run("http "+before, func(t *testing.T) {
			t.Parallel()
			var now atomic.Pointer[upstreamtest.Handler]
			handlers := map[bool]*upstreamtest.Handler{}
			for _, modern := range []bool{false, true} {
				handlers[modern] = upstreamtest.NewHandler(upstreamtest.Options{Script: upstreamtest.Script{Modern: modern},
					Intercept: refuseOthers(modern)})
				t.Cleanup(handlers[modern].Close)
			}
			now.Store(handlers[first])
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().ServeHTTP(w, r) }))
			t.Cleanup(srv.Close)
			t.Cleanup(srv.CloseClientConnections)
			h := start(t, upstream.ServerConfig{ID: "s", Transport: upstream.StreamableHTTP, URL: srv.URL})
			if st := h.ready(t, "s"); st.ProtocolVersion != before {
				t.Fatalf("it speaks %s", st.ProtocolVersion)
			}
			now.Store(handlers[!first])
			handlers[first].Cut()
			srv.CloseClientConnections()
			eventually(t, "it is back as the other", func() bool {
				_, err := h.call(t.Context(), "s", "raw", `{"result":{"content":[]}}`)
				return h.status("s").ProtocolVersion == after && err == nil
			})
		})
	}
}

func versionOf(modern bool) string {
	if modern {
		return "2026-07-28"
	}
	return "2025-11-25"
}

// refuseOthers refuses requests of the other generation than modern as servers of one generation do.
func refuseOthers(modern bool) func(w http.ResponseWriter, r *http.Request, body []byte) bool {
	return func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		is := r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28"
		if modern || !is || r.Method != http.MethodPost {
			return false
		}
		http.Error(w, "Bad Request: Server not initialized", http.StatusBadRequest)
		return true
	}
}

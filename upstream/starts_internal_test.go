package upstream

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestStartsAreBounded checks that no more servers start at the same time than StartParallel, and that all do in the end.
func TestStartsAreBounded(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	cfg := Config{StartParallel: 2}
	for i := range 6 {
		far := upstreamtest.NewHandler(upstreamtest.Options{
			Intercept: func(_ http.ResponseWriter, _ *http.Request, body []byte) bool {
				if strings.Contains(string(body), `"initialize"`) {
					for n := now.Add(1); ; {
						if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
							break
						}
					}
				}
				if strings.Contains(string(body), `"tools/list"`) {
					now.Add(-1)
				}
				return false
			}})
		srv := httptest.NewServer(far)
		t.Cleanup(func() {
			far.Close()
			srv.CloseClientConnections()
			srv.Close()
		})
		cfg.Servers = append(cfg.Servers, ServerConfig{ID: fmt.Sprintf("s%d", i), Transport: StreamableHTTP, URL: srv.URL})
	}
	g, err := NewGroup(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	g.Start(t.Context())
	if err := g.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := most.Load(); n < 1 || n > 2 {
		t.Errorf("%d servers started at the same time, want at most 2", n)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

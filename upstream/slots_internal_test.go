package upstream

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestSlots: how many servers are starting after a while, of many that take long, by how busy the processors are.
func TestSlots(t *testing.T) {
	t.Parallel()
	const parallel, servers = 3, 40
	for name, c := range map[string]struct {
		busy  float64 // share of all processors
		known bool
		least int // of the servers that have begun to start after slotTime/2
		most  int
	}{
		"idle":    {0.1, true, servers, servers},
		"busy":    {0.9, true, parallel, parallel},
		"unknown": {0, false, parallel, parallel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s := newSlots(parallel, func() (time.Duration, bool) {
					return time.Duration(c.busy * float64(runtime.GOMAXPROCS(0)) * float64(time.Since(began))), c.known
				})
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				var mu sync.Mutex
				starting := 0
				for range servers {
					running.Go(func() {
						free, ok := s.take(ctx)
						if !ok {
							return
						}
						defer free()
						mu.Lock()
						starting++
						mu.Unlock()
						<-ctx.Done()
					})
				}
				check := func(at time.Duration, least, most int) {
					<-time.After(at - time.Since(began))
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					if starting < least || starting > most {
						t.Errorf("after %s %d servers have begun to start, want %d to %d", at, starting, least, most)
					}
				}
				check(slotTime/2, c.least, c.most)
				check(slotTime*3/2, min(2*parallel, servers), max(2*parallel, c.most))
				cancel()
				running.Wait()
				if n := len(s.places); n != 0 {
					t.Errorf("%d places are still taken", n)
				}
			})
		})
	}
}

// TestStartsAreBounded checks that no more servers start at the same time than StartParallel where nobody knows of idle
// processors, and that all do in the end.
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
	g.slots.processorTime = func() (time.Duration, bool) { return 0, false }
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

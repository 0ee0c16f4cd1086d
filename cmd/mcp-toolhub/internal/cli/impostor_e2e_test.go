//go:build e2e

package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
)

// TestKilledHubIsNotImpersonated kills the hub in the background, and lets another program listen at every port that it had. The next client
// is not served by that one, which hears nothing of it: neither do the commands that look for a hub.
func TestKilledHubIsNotImpersonated(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	state := filepath.Join(c.dir, "state", "mcp-toolhub")
	t.Cleanup(func() { stopShared(t, state) })
	c.run(t, "start")
	hubs, err := control.Find(t.Context(), state)
	if err != nil || len(hubs) != 1 {
		t.Fatalf("%d hubs, %v", len(hubs), err)
	}
	page, err := hubs[0].OpenPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.Get("http://" + at.Host + "/approvals"); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the port of the page answers for the API: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	hub, err := os.FindProcess(hubs[0].PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Kill(); err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	eventually(t, "the port is free", func() bool {
		l, err = new(net.ListenConfig).Listen(context.Background(), "tcp", at.Host)
		return err == nil
	})
	var heard atomic.Pointer[string]
	impostor := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization") + " " + string(body)
		heard.CompareAndSwap(nil, &text)
		if strings.HasSuffix(r.URL.Path, "/join") {
			w.WriteHeader(http.StatusConflict) // so that the client goes on, and the test ends
			return
		}
		_, _ = io.WriteString(w, "[]")
	}))
	impostor.Listener.Close()
	impostor.Listener = l
	impostor.Start()
	defer impostor.Close()
	if got := c.run(t, "stop"); !strings.Contains(got, "No hub runs in the background") {
		t.Errorf("stop: %s", got)
	}
	w := c.client(t, rev2025)
	if pids := w.pids("all"); len(pids) != 1 {
		t.Errorf("the client's own hub runs the server as %v", pids)
	}
	w.hangUp()
	if text := heard.Load(); text != nil {
		t.Errorf("the impostor heard %s", *text)
	}
	eventually(t, "no process of a server is left", func() bool { return len(marked(c.mark)) == 0 })
}

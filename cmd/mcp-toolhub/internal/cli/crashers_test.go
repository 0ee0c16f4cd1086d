//go:build e2e

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// crasher is a server that crashes when it is told to.
type crasher struct {
	id    string
	entry map[string]any
	// crash lets the server crash, which is ready, and returns when the hub has seen it or is about to.
	crash func(c *crasher, hub *runningHub) error
}

// crashers are children with and without descendants, and servers over HTTP.
func crashers(t *testing.T, mark string) []*crasher {
	kill := func(c *crasher, hub *runningHub) error {
		st, err := c.status(hub)
		if err != nil {
			return err
		}
		p, err := os.FindProcess(st.PID)
		if err != nil || st.PID == 0 {
			return fmt.Errorf("find process %d: %w", st.PID, err)
		}
		return p.Kill()
	}
	die := func(c *crasher, hub *runningHub) error {
		_, err := c.call(hub, "die", `{}`)
		return err
	}
	var far *upstreamtest.Handler
	all := []*crasher{
		{id: "killed", entry: child(upstreamtest.Script{}, mark), crash: kill},
		{id: "modern", entry: child(upstreamtest.Script{Modern: true}, mark), crash: kill},
		{id: "family", entry: child(script(upstreamtest.HasDescendant), mark), crash: kill},
		{id: "dies", entry: child(upstreamtest.Script{}, mark), crash: die},
		{id: "forgets", crash: func(*crasher, *runningHub) error { far.Forget(); return nil }},
		{id: "stream", entry: map[string]any{"type": "sse", "url": fakeHTTP(t, upstreamtest.Options{SSE: true})}, crash: die},
		resets(t),
	}
	for _, c := range all {
		if c.id == "forgets" {
			var url string
			url, far = fakeHandler(t, upstreamtest.Options{})
			c.entry = map[string]any{"type": "http", "url": url}
		}
	}
	return all
}

// resets is a server over HTTP that breaks every connection until the hub has given it up.
func resets(t *testing.T) *crasher {
	var broken atomic.Bool
	reset := upstreamtest.Resets.Intercept()
	url := fakeHTTP(t, upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		return broken.Load() && reset(w, r, body)
	}})
	return &crasher{id: "resets", entry: map[string]any{"type": "http", "url": url}, crash: func(c *crasher, hub *runningHub) error {
		broken.Store(true)
		defer broken.Store(false)
		return c.until("the hub has given it up", func() (bool, error) {
			if _, err := c.call(hub, "echo", `{}`); err != nil {
				return false, err
			}
			st, err := c.status(hub)
			return st.State == tool.ServerBackoff, err
		})
	}}
}

// round is one crash and recovery.
func (c *crasher) round(hub *runningHub) error {
	before, err := c.status(hub)
	if err != nil {
		return err
	}
	answer, err := c.call(hub, "pids", `{}`)
	if err != nil {
		return err
	}
	processes := digits.FindAllString(pidList.FindString(answer), -1)
	if err := c.crash(c, hub); err != nil {
		return err
	}
	err = c.until("it has recovered", func() (bool, error) {
		answer, err := c.call(hub, "echo", `{"k":1}`)
		if err != nil || !strings.Contains(answer, `"arguments":{"k":1}`) {
			return false, err
		}
		now, err := c.status(hub)
		return now.State == tool.ServerReady && now.Restarts > before.Restarts, err
	})
	if err != nil || c.entry["command"] == nil || runtime.GOOS != "linux" {
		return err
	}
	return c.until(fmt.Sprintf("its processes %q are gone", processes), func() (bool, error) {
		return !slices.ContainsFunc(processes, func(text string) bool {
			pid, err := strconv.Atoi(text)
			return err != nil || runs(pid)
		}), nil
	})
}

// until tries again and again until ok.
func (c *crasher) until(what string, ok func() (bool, error)) error {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-again.C {
		if done, err := ok(); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: not within %s", what, patience)
}

// status is what the hub says of the server.
func (c *crasher) status(hub *runningHub) (tool.ServerStatus, error) {
	resp, err := http.Get(hub.url + "/health/ready")
	if err != nil {
		return tool.ServerStatus{}, err
	}
	defer resp.Body.Close()
	var health downstream.Health
	if err := json.NewDecoder(resp.Body).Decode(&health); err != nil {
		return tool.ServerStatus{}, err
	}
	for _, st := range health.Servers {
		if st.Server == c.id {
			return st, nil
		}
	}
	return tool.ServerStatus{}, fmt.Errorf("no server %q in health", c.id)
}

// call calls a tool and returns what came, be it a failure.
func (c *crasher) call(hub *runningHub, name, args string) (string, error) {
	v := &visitor{w: &wire{version: rev2026, url: hub.url + "/mcp"}}
	req, err := v.request(context.Background(), http.MethodPost, v.w.call("mcp."+c.id+"."+name, args, ""))
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

var (
	pidList = regexp.MustCompile(`"pids":\[[^\]]*\]`)
	digits  = regexp.MustCompile(`[0-9]+`)
)

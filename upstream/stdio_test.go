//go:build unix

package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

func TestVersionsOnStdio(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script  upstreamtest.Script
		version string
		asked   int // for its generation, in all
	}{
		"older":            {upstreamtest.Script{}, "2025-11-25", 2},
		"modern":           {upstreamtest.Script{Modern: true}, "2026-07-28", 2},
		"ignores discover": {upstreamtestScript(upstreamtest.IgnoresDiscover), "2025-11-25", 1},
		"deaf by discover": {upstreamtestScript(upstreamtest.DeafByDiscover), "2025-11-25", 1},
		"exits on it":      {upstreamtestScript(upstreamtest.ExitsOnDiscover), "2025-11-25", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.script.Record = filepath.Join(t.TempDir(), "record")
			cfg := stdio("s", c.script)
			if c.asked == 1 {
				cfg.Timeouts.Connect = 6 * time.Second // a third of it is how long the question waits
			}
			h := start(t, cfg)
			st := h.ready(t, "s")
			if st.ProtocolVersion != c.version || st.ServerName != "fake" || st.ServerVersion != "1.2.3" || st.PID == 0 || st.Tools != 13 {
				t.Errorf("status %+v", st)
			}
			// A restart has learnt: what cost time or a process is not asked again.
			_, _ = h.call(t.Context(), "s", "die", `{}`)
			eventually(t, "restarted", func() bool { return h.status("s").Restarts > st.Restarts })
			h.ready(t, "s")
			if n := strings.Count(strings.Join(gotBy(t, nil, c.script.Record), "\n"), `"server/discover"`); n != c.asked {
				t.Errorf("asked %d times in two connections, want %d", n, c.asked)
			}
		})
	}
}

func TestCommandNotFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cfg       upstream.ServerConfig
		what, how string
	}{
		"no program of this system": {upstream.ServerConfig{Command: script}, "could not be started: exec format error", "by hand"},
		"too much for a program": {upstream.ServerConfig{Command: "/bin/sh", Env: []string{"X=" + strings.Repeat("x", 5<<20)}},
			"could not be started: argument list too long", "shorten args and env"},
		"in PATH":    {upstream.ServerConfig{Command: "npx", Env: []string{"PATH=" + dir}}, `command "npx" was not found in PATH`, "install Node.js or give the full path"},
		"unknown":    {upstream.ServerConfig{Command: "no-such-program", Env: []string{"PATH=" + dir}}, `"no-such-program" was not found in PATH`, "install it or give the full path"},
		"path":       {upstream.ServerConfig{Command: filepath.Join(dir, "none")}, "does not exist", "check command"},
		"forbidden":  {upstream.ServerConfig{Command: plain}, "may not be run", "executable"},
		"empty":      {upstream.ServerConfig{}, "no command given", "set command"},
		"no dir":     {upstream.ServerConfig{Command: "/bin/sh", Dir: filepath.Join(dir, "none")}, "working directory", "check command and cwd"},
		"no program": {upstream.ServerConfig{Command: upstream.HubCommand, Env: []string{"PATH=" + dir}}, "was not found", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.cfg.ID, c.cfg.Transport = "s", upstream.Stdio
			h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{c.cfg}, RetryMin: time.Minute})
			st := h.reaches(t, "s", tool.ServerBackoff)
			if !strings.Contains(st.LastError, c.what) || !strings.Contains(st.Hint, c.how) {
				t.Errorf("error %q, hint %q", st.LastError, st.Hint)
			}
		})
	}
}

func TestHubCommandIsTheProgramItself(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{})
	self := cfg.Command
	cfg.Command = upstream.HubCommand
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, Self: self})
	h.ready(t, "s")
}

func TestPagesOfTools(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.script.PageSize = 4
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			if got := h.names("s"); got != "echo raw fail answer progress sleep hang die big grow flood canceled pids" {
				t.Errorf("tools %q", got)
			}
		})
	}
}

func TestRepeatedCursorAndNoTools(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			repeated, none := w, w
			repeated.script.Behaviours = []upstreamtest.Behaviour{upstreamtest.RepeatedCursor}
			repeated.script.PageSize = 100
			none.script.Behaviours = []upstreamtest.Behaviour{upstreamtest.NoTools}
			h := start(t, repeated.config(t, "repeated"), none.config(t, "none"))
			h.ready(t, "repeated")
			h.ready(t, "none")
			if c := h.catalog("none"); len(c.Tools) != 0 || c.Pending {
				t.Errorf("catalog without tools %+v", c)
			}
		})
	}
}

func TestListChanged(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			for i := range 3 {
				name := fmt.Sprintf("new%d", i)
				h.mustCall(t, "s", "grow", `{"name":"`+name+`"}`)
				eventually(t, "the new tool is listed", func() bool {
					if strings.Contains(h.names("s"), name) {
						return true
					}
					// Listening on HTTP may not have begun: what is told before that is told to nobody.
					h.mustCall(t, "s", "flood", `{"n":1}`)
					return false
				})
			}
		})
	}
}

// TestListChangedFlood checks that a flood costs the server few listings and calls none of their answers.
func TestListChangedFlood(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "record")
	began := time.Now()
	h := start(t, stdio("s", upstreamtest.Script{Record: record}))
	h.ready(t, "s")
	h.mustCall(t, "s", "flood", `{"n":20000}`)
	h.mustCall(t, "s", "grow", `{"name":"late"}`)
	eventually(t, "the last change is seen", func() bool { return strings.HasSuffix(h.names("s"), "late") })
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	most := int(time.Since(began)/(250*time.Millisecond)) + 3
	if n := strings.Count(string(data), `"tools/list"`); n > most {
		t.Errorf("%d listings, want at most %d", n, most)
	}
}

func TestNoiseIsCountedAndLogged(t *testing.T) {
	t.Parallel()
	began := time.Now()
	h := start(t, stdio("s", upstreamtestScript(upstreamtest.Noise)))
	h.ready(t, "s")
	for range 50 {
		h.mustCall(t, "s", "progress", `{"n":3}`)
	}
	most := 5 + int(time.Since(began)/(10*time.Second)) // one record now and then where it goes on for long
	if n := strings.Count(h.log.String(), "dropped output"); n == 0 || n > most {
		t.Errorf("%d records of dropped output, want at most %d", n, most)
	}
}

func TestStderrGoesToTheLog(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{
		Behaviours: []upstreamtest.Behaviour{upstreamtest.Chatty},
		Stderr:     []string{"hello \x1b[31mred\x1b[0m\x07 key=canary-123456", strings.Repeat("long ", 5000)},
	})
	cfg.Env = append(cfg.Env, "API_KEY=canary-123456")
	began := time.Now()
	h := start(t, cfg)
	h.ready(t, "s")
	eventually(t, "dropped lines are told", func() bool {
		_ = h.Close(t.Context())
		return strings.Contains(h.log.String(), "lines dropped")
	})
	log := h.log.String()
	if !strings.Contains(log, `msg="hello red key=[masked]" server=s stream=stderr`) {
		t.Error("the first line is not in the log as it should be")
	}
	if strings.Contains(log, "canary") || strings.Contains(log, "\x1b") {
		t.Error("the log holds a secret or a terminal sequence")
	}
	most := 200 + int(20*time.Since(began).Seconds()) // so many come through in the time that the server took for them
	if n := strings.Count(log, "stream=stderr"); n > most {
		t.Errorf("%d lines of stderr in the log, want at most %d", n, most)
	}
}

func TestEnvironmentIsAllowListed(t *testing.T) {
	t.Setenv("HUB_SECRET_CANARY", "not-for-children")
	t.Setenv("LC_TIME", "C")
	out := filepath.Join(t.TempDir(), "env")
	h := start(t, upstream.ServerConfig{ID: "s", Transport: upstream.Stdio, Command: "sh",
		Args: []string{"-c", "env > " + out + "; exit 1"}, Env: []string{"NAMED=yes", "HOME=/elsewhere"}})
	h.reaches(t, "s", tool.ServerBackoff)
	env, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NAMED=yes\n", "HOME=/elsewhere\n", "PATH=", "LC_TIME=C\n"} {
		if !strings.Contains(string(env), want) {
			t.Errorf("the child's environment lacks %q", want)
		}
	}
	if strings.Contains(string(env), "HUB_SECRET_CANARY") {
		t.Error("the child got a variable that its entry does not name")
	}
}

// alive reports whether a process exists and is no zombie of ours.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func pidsOf(t *testing.T, h *harness, id string) []int {
	t.Helper()
	content, _ := rawjson.Get(h.mustCall(t, id, "pids", `{}`), "structuredContent")
	raw, _ := rawjson.Get(content, "pids")
	var pids []int
	if err := json.Unmarshal(raw, &pids); err != nil || len(pids) != 2 {
		t.Fatalf("pids %s: %v", raw, err)
	}
	return pids
}

// gone reports that neither process is left. A descendant is reaped by init, which may take a moment or, in a container
// without one, for ever: a zombie counts as gone.
func gone(pids []int) bool {
	for _, pid := range pids {
		if !alive(pid) {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || !strings.Contains(string(stat), ") Z ") {
			return false
		}
	}
	return true
}

func TestCloseEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	for _, b := range []upstreamtest.Behaviour{"", upstreamtest.Stubborn, upstreamtest.StopsReading} {
		t.Run(string(b), func(t *testing.T) {
			t.Parallel()
			h := start(t, stdio("s", upstreamtestScript(b, upstreamtest.HasDescendant)))
			h.ready(t, "s")
			var pids []int
			if b == upstreamtest.StopsReading {
				pids = []int{h.status("s").PID}
			} else {
				pids = pidsOf(t, h, "s")
			}
			within := patience
			if b != "" {
				within = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(context.Background(), within)
			defer cancel()
			err := h.Close(ctx)
			if slow := b != ""; (err != nil) != slow {
				t.Errorf("close: %v", err)
			}
			eventually(t, "all processes are gone", func() bool { return gone(pids) })
			if st := h.status("s"); st.State != tool.ServerStopped || st.PID != 0 {
				t.Errorf("status %+v", st)
			}
			_, err = h.call(t.Context(), "s", "echo", `{}`)
			failure(t, err)
			if err := h.Close(t.Context()); err != nil {
				t.Errorf("close again: %v", err)
			}
		})
	}
}

func TestKilledChildComesBack(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("s", upstreamtestScript(upstreamtest.HasDescendant)))
	h.ready(t, "s")
	pids := pidsOf(t, h, "s")
	done := make(chan error, 1)
	go func() {
		_, err := h.call(t.Context(), "s", "hang", `{}`)
		done <- err
	}()
	h.of("s").reach(t, "hang", 1)
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f := failure(t, <-done)
	if f.Class != tool.ClassDependencyUnavailable || !f.OutcomeUnknown {
		t.Errorf("failure %+v", f)
	}
	eventually(t, "the descendant is gone, too", func() bool { return gone(pids) })
	eventually(t, "the server answers again", func() bool {
		reply, err := h.call(t.Context(), "s", "raw", `{"result":{}}`)
		return err == nil && string(reply.Result) == "{}"
	})
	if st := h.ready(t, "s"); st.Restarts == 0 || st.PID == pids[0] {
		t.Errorf("status %+v", st)
	}
	if !strings.Contains(h.log.String(), "signal: killed") {
		t.Error("the log does not say how the child ended")
	}
}

func TestDisabledServer(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{})
	cfg.Disabled = true
	h := start(t, cfg)
	if err := h.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := h.status("s"); st.State != tool.ServerStopped || h.catalog("s").Pending {
		t.Errorf("status %+v", st)
	}
	_, err := h.call(t.Context(), "s", "echo", `{}`)
	if f := failure(t, err); f.Code != "server_stopped" {
		t.Errorf("failure %+v", f)
	}
}

// A server that ends while its tools are listed is down for the reason for which it ended, not for what a caller would be told.
func TestAChildThatEndsWhileItIsListed(t *testing.T) {
	t.Parallel()
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{stdio("s", upstreamtest.Script{Quits: "tools/list"})}, RetryMin: time.Minute})
	st := h.reaches(t, "s", tool.ServerBackoff)
	want := "exited with status 7; its stderr says: fake server: out of paper (before it had listed its tools)"
	if !strings.HasSuffix(st.LastError, want) || st.Hint != "see the server's messages in the log" {
		t.Errorf("error %q, hint %q; want %q", st.LastError, st.Hint, want)
	}
}

func TestCatalogStaysWhileServerIsDown(t *testing.T) {
	t.Parallel()
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{stdio("s", upstreamtest.Script{})}, RetryMin: time.Minute})
	h.ready(t, "s")
	_, _ = h.call(t.Context(), "s", "die", `{}`)
	st := h.reaches(t, "s", tool.ServerBackoff)
	if c := h.catalog("s"); len(c.Tools) != 13 || c.Pending {
		t.Errorf("%d tools, pending %v", len(c.Tools), c.Pending)
	}
	if !strings.Contains(st.LastError, "exited with status 7") {
		t.Errorf("status %+v", st)
	}
}

func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	told := make(chan string, 1000)
	g, err := upstream.NewGroup(upstream.Config{Servers: []upstream.ServerConfig{stdio("s", upstreamtest.Script{})}}, discard())
	if err != nil {
		t.Fatal(err)
	}
	g.OnChange(func() { told <- string(g.Statuses()[0].State) })
	g.Start(t.Context())
	defer func() { _ = g.Close(context.Background()) }()
	for state := range told {
		if state == string(tool.ServerReady) {
			return
		}
	}
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	_, err := upstream.NewGroup(upstream.Config{Servers: []upstream.ServerConfig{
		{ID: "a", Transport: upstream.Stdio}, {ID: "a", Transport: upstream.Stdio}, {ID: "b", Transport: "pigeon"},
		{ID: "c", Transport: upstream.StreamableHTTP, URL: "ftp://user:canary@host/?k=canary"},
	}}, discard())
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"a": the id is used twice`, `unknown transport "pigeon"`, `"ftp://host/"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the error holds a secret: %q", err)
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

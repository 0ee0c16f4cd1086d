package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// guardDir names the directory that the little hub of TestHubKilled writes its process ids to.
const guardDir = "MCP_TOOLHUB_GUARD_TEST_DIR"

// wrapped is a fake server that a shell starts, as npx starts node. Before it, the shell runs prepare, with the file of
// further process ids as $PIDS.
func wrapped(id, pids, prepare, start string, s upstreamtest.Script) upstream.ServerConfig {
	cfg := stdio(id, s)
	cfg.Args = []string{"-c", prepare + "\n" + start + "\nexit $?", cfg.Command}
	cfg.Command = "sh"
	cfg.Env = append(cfg.Env, "PIDS="+pids)
	return cfg
}

// docker behaves as docker does: a container is no child of the client, which has its stdin and stdout, and outlives it.
const docker = `#!/bin/sh
at=${0%/*}
case $1 in
run)
	name=nameless
	while shift; do
		case $1 in
		--name) name=$2; shift ;;
		-*) ;;
		*) break ;;
		esac
	done
	mkfifo "$at/$name.in" "$at/$name.out" || exit 125
	env -u MCP_TOOLHUB_CHILD setsid "$@" <"$at/$name.in" >"$at/$name.out" 2>/dev/null &
	echo $! >"$at/$name.pid"
	cat "$at/$name.out" &
	cat >"$at/$name.in"
	wait ;;
kill) kill -9 "-$(cat "$at/$2.pid")" && rm "$at/$2".* ;;
esac
`

// contained is a fake server in a container.
func contained(id, pids string, options ...string) upstream.ServerConfig {
	cfg := stdio(id, upstreamtestScript(upstreamtest.Stubborn))
	cfg.Args = slices.Concat([]string{"run", "-i", "--rm"}, options, []string{cfg.Command}, cfg.Args)
	cfg.Command = filepath.Join(pids, "docker")
	if _, err := os.Stat(cfg.Command); err != nil {
		if err := os.WriteFile(cfg.Command, []byte(docker), 0o700); err != nil {
			panic(err)
		}
	}
	return cfg
}

// families are servers with descendants of every kind. pids is the directory for what the servers cannot tell
// themselves.
func families(pids string) []upstream.ServerConfig {
	stubborn := upstreamtestScript(upstreamtest.Stubborn, upstreamtest.HasDescendant)
	strayed := filepath.Join(pids, "strayed")
	return []upstream.ServerConfig{
		stdio("plain", stubborn),
		wrapped("wrapped", "", "", `"$0"`, stubborn),
		wrapped("strays", strayed, `setsid sleep 300 & echo $! > "$PIDS"`, `"$0"`, stubborn),
		wrapped("left", "", "", `setsid --wait "$0"`, upstreamtestScript(upstreamtest.Stubborn)), // the server itself leaves
		contained("contained", pids),
		contained("named", pids, "--name", "by-hand"),
	}
}

// familyPIDs are the processes of families, all of them.
func familyPIDs(g *upstream.Group, pids string) ([]int, error) {
	var all []int
	for _, st := range g.Statuses() {
		all = append(all, st.PID)
		reply, err := g.Execute(context.Background(), execution(st.Server, "pids", `{}`))
		if err != nil {
			return nil, err
		}
		content, _ := rawjson.Get(reply.Result, "structuredContent")
		raw, _ := rawjson.Get(content, "pids")
		var own []int
		if err := json.Unmarshal(raw, &own); err != nil || len(own) == 0 {
			return nil, fmt.Errorf("pids %s: %w", raw, err)
		}
		all = append(all, own...)
	}
	data, err := os.ReadFile(filepath.Join(pids, "strayed"))
	if err != nil {
		return nil, err
	}
	strayed, err := strconv.Atoi(strings.TrimSpace(string(data)))
	return append(all, strayed), err
}

// TestLittleHub is no test: it is the hub that TestHubKilled kills.
func TestLittleHub(t *testing.T) {
	dir := os.Getenv(guardDir)
	if dir == "" {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := startConfig(t, upstream.Config{Servers: families(dir), Self: self})
	for _, s := range families(dir) {
		h.ready(t, s.ID)
	}
	pids, err := familyPIDs(h.Group, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "part"), []byte(strings.Trim(fmt.Sprint(pids), "[]")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "part"), filepath.Join(dir, "pids")); err != nil {
		t.Fatal(err)
	}
	<-t.Context().Done() // that is, until it is killed
}

// childrenOf are the processes whose parent is pid.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var children []int
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
	}
	return children
}

// TestHubKilled checks that a hub which is killed with -9 leaves nothing behind: no child, no grandchild, none that has
// left its process group, and no container.
func TestHubKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hub := exec.Command(self, "-test.run=^TestLittleHub$", "-test.timeout=5m")
	hub.Env = append(os.Environ(), guardDir+"="+dir)
	var out logBuffer
	hub.Stdout, hub.Stderr = &out, &out
	if err := hub.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = hub.Process.Kill()
			_ = hub.Wait()
			t.Log(out.String())
		}
	}()
	var data []byte
	eventually(t, "the hub has started its servers", func() bool {
		data, err = os.ReadFile(filepath.Join(dir, "pids"))
		return err == nil
	})
	var pids []int
	for word := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(word)
		if err != nil || pid < 2 {
			t.Fatalf("process ids %s", data)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 16 {
		t.Fatalf("process ids %v", pids)
	}
	children := childrenOf(t, hub.Process.Pid)
	if len(children) != 7 {
		t.Errorf("the hub has the children %v: want six servers and the guard", children)
	}
	pids = append(pids, children...)
	if err := hub.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all processes are gone", func() bool { return gone(pids) })
	_ = hub.Wait()
	ended = true
}

// TestCloseEndsStrays checks that an orderly stop, too, reaches what has left the process group, and containers, with and
// without a guard process.
func TestCloseEndsStrays(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, self := range map[string]string{"guarded": self, "unguarded": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h := startConfig(t, upstream.Config{Servers: families(dir), Self: self})
			for _, s := range families(dir) {
				h.ready(t, s.ID)
			}
			pids, err := familyPIDs(h.Group, dir)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_ = h.Close(ctx) // the servers do not end by themselves
			eventually(t, "all processes are gone", func() bool { return gone(pids) })
		})
	}
}

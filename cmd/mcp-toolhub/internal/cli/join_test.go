package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// company are clients on stdio that one hub serves: each starts a process of its own, with the same config.
type company struct {
	dir, config, mark string
	servers           map[string]any // of the config
}

func newCompany(t *testing.T) *company {
	t.Helper()
	c := &company{dir: t.TempDir(), mark: newMark(t)}
	script := upstreamtest.Script{Tools: append(upstreamtest.DefaultTools(), upstreamtest.Tool("note"), upstreamtest.Tool("wait"),
		upstreamtest.Tool("calls"), upstreamtest.Tool("ask"), upstreamtest.Tool("say")), Features: upstreamtest.Features{Logs: true}}
	c.servers = map[string]any{"all": child(script, c.mark), "own": with(child(script, c.mark), "isolation", "session")}
	c.config = configText(t, c.servers, neverDeferred())
	return c
}

// client starts one more client, whose session is open.
func (c *company) client(t *testing.T, version string, args ...string) *wire {
	t.Helper()
	w := wireHubIn(t, c.dir, c.config, version, args...).open()
	w.ready("mcp.all.echo", "mcp.own.echo")
	return w
}

// sharedBy are the processes of the server that all share.
func sharedBy(all ...*wire) []int {
	var pids []int
	for _, w := range all {
		pids = append(pids, w.pids("all")...)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// TestOneHubForAllClients: three clients on stdio that start at the same moment have one hub, and each server runs once. What belongs
// to a session stays apart. Nothing is left when they have gone.
func TestOneHubForAllClients(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	versions := []string{rev2025, rev2026, rev2025June}
	all := make([]*wire, len(versions))
	if err := os.WriteFile(filepath.Join(c.dir, "hub.json"), []byte(c.config), 0o600); err != nil {
		t.Fatal(err)
	}
	var starting sync.WaitGroup
	for i, version := range versions {
		starting.Go(func() { all[i] = c.client(t, version) })
	}
	starting.Wait()
	if pids := sharedBy(all...); len(pids) != 1 {
		t.Errorf("the shared server runs as %v", pids)
	}
	var notes []string
	for i, w := range all {
		notes = append(notes, w.notes("own", fmt.Sprint(i)))
		w.notes("all", fmt.Sprint(i))
	}
	if !slices.Equal(notes, []string{"0", "1", "2"}) {
		t.Errorf("isolated servers have kept %q", notes)
	}
	if got := all[0].notes("all", "x"); len(strings.Fields(got)) != 4 {
		t.Errorf("the shared server has kept %q", got)
	}
	for _, w := range all {
		w.hangUp()
	}
	eventually(t, "no process of a server is left", func() bool { return len(marked(c.mark)) == 0 })
}

// TestAClientDiesWithItsHub: a client that is killed while its process becomes the hub, in place of one that was killed, leaves nothing behind.
func TestAClientDiesWithItsHub(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	first, second := c.client(t, rev2025), c.client(t, rev2025)
	if err := first.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	second.dies()
	eventually(t, "no process of a server is left", func() bool { return len(marked(c.mark)) == 0 })
}

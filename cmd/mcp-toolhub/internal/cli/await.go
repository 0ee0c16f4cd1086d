package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// withHub runs do with a hub that has what the command wants, or that cannot get it.
func (a *app) withHub(ctx context.Context, w hub.Want, do func(*hub.Hub) error) error {
	s, err := a.load(ctx)
	if err != nil {
		return err
	}
	a.warn(s)
	if s.Warnings = nil; s.Log.Level == "" || s.Log.Level == "info" {
		s.Log.Level = "error" // the command prints itself what is wrong with servers
	}
	if w.Change != nil {
		w.Change(s)
	}
	h, err := a.buildHub(s, nil)
	if err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	h.Group.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	err = func() error {
		if !w.All && (w.Tool == "" || h.Has(w)) {
			if err := h.LetSleep(); err != nil {
				return err
			}
		}
		h.Group.Start(context.WithoutCancel(ctx))
		stop := a.showStarting(h)
		defer stop()
		if err := h.Await(ctx, w, changed); err != nil {
			return exitInterrupted.errorf("interrupted while servers were starting")
		}
		stop()
		h.Surfaces.Refresh()
		return do(h)
	}()
	if closeErr := h.Close(untilKilled(ctx)); err == nil && closeErr != nil {
		err = closeErr
	}
	return err
}

// showStarting says on a terminal which servers the command waits for, from a second on. The
// function that it returns ends that; it may be called twice.
func (a *app) showStarting(h *hub.Hub) (stop func()) {
	began, shown := time.Now(), false
	end := hub.Beside(time.Second, func() {
		if waited := time.Since(began).Round(time.Second); waited > 0 {
			shown = true
			a.std.wait(fmt.Sprintf("waiting for %s (%.0f s)",
				strings.Join(hub.Model{Hub: h}.InState(tool.ServerStarting), ", "), waited.Seconds()))
		}
	})
	return func() {
		if end(); shown {
			shown = false
			a.std.wait("")
		}
	}
}

// printMissing says which servers of the surface have not listed their tools, and why. On a
// terminal it also says whose tools are those of an earlier start.
func (a *app) printMissing(h *hub.Hub, surface *tool.Surface) {
	var known []string
	for _, st := range h.Group.Statuses() {
		switch {
		case surface.Features != nil && !slices.Contains(surface.Features.Servers, st.Server):
		case st.State == tool.ServerReady:
		case st.Cached && st.Known:
			known = append(known, st.Server)
		case st.LastError != "":
			a.std.note("missing: the tools of %s: %s; %s", st.Server, printable(st.LastError), printable(st.Hint))
		case st.State == tool.ServerStarting:
			a.std.note("missing: the tools of %s, which has not answered within %s: mcp-toolhub servers waits for it",
				st.Server, hub.UnlistedWait)
		}
	}
	if len(known) > 0 && isTerminal(a.std.err) {
		a.std.note("as listed at an earlier start: %s (--connect asks again)", strings.Join(known, ", "))
	}
}

// printAway says which servers of a hub that runs have not listed their tools, and why.
func (c *toolsCmd) printAway(ctx context.Context, running *control.Client) {
	r, err := running.Report(ctx)
	if err != nil {
		return
	}
	for _, st := range r.Servers {
		if st.LastError != "" && !st.Known {
			c.std.note("missing: the tools of %s: %s; %s", st.Server, printable(st.LastError), printable(st.Hint))
		}
	}
}

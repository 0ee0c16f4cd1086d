package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// want says what a command needs from the servers that its hub starts.
type want struct {
	// all starts every server. Otherwise a server whose tools are known from an earlier start is
	// left alone until one of them is called.
	all bool

	tool    string // any name of the one tool that the command needs; "" where it wants all
	profile string // of tool

	change func(*config.Settings) // may be nil
}

// unlistedWait bounds the wait for servers that have never listed their tools, where others have:
// they may be new, or may never answer.
const unlistedWait = 5 * time.Second

// withHub runs do with a hub that has what the command wants, or that cannot get it.
func (a *app) withHub(ctx context.Context, w want, do func(*hub) error) error {
	h, err := a.openHub(ctx, func(s *config.Settings) {
		a.quiet(s)
		if w.change != nil {
			w.change(s)
		}
	})
	if err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	h.group.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	err = func() error {
		if !w.all && (w.tool == "" || h.has(w)) {
			if err := h.letSleep(); err != nil {
				return failed(err)
			}
		}
		h.group.Start(context.WithoutCancel(ctx))
		stop := a.showStarting(h)
		defer stop()
		if err := h.await(ctx, w, changed); err != nil {
			return &exitError{exitInterrupted, errors.New("interrupted while servers were starting")}
		}
		stop()
		h.surfaces.refresh()
		return do(h)
	}()
	if closeErr := h.close(untilKilled(ctx)); err == nil && closeErr != nil {
		err = failed(closeErr)
	}
	return err
}

// letSleep makes servers whose tools are known sleep until one of them is called. It is called
// before the servers start.
func (h *hub) letSleep() error {
	c := h.settings().Upstream
	c.Servers = slices.Clone(c.Servers)
	for i := range c.Servers {
		c.Servers[i].Lazy = true
	}
	return h.group.Apply(c)
}

// await waits until the command has what it wants, or no server is starting any more. The error is that of ctx.
func (h *hub) await(ctx context.Context, w want, changed <-chan struct{}) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	all := make(chan error, 1)
	go func() { all <- h.group.WaitReady(waiting) }()
	var enough <-chan time.Time
	if !w.all && slices.ContainsFunc(h.group.Statuses(), func(st tool.ServerStatus) bool { return st.Known }) {
		timer := time.NewTimer(unlistedWait)
		defer timer.Stop()
		enough = timer.C
	}
	for !h.hasSurely(w) {
		select {
		case <-changed:
		case <-enough:
			if h.has(w) || !slices.ContainsFunc(model{h}.inState(tool.ServerStarting),
				func(id string) bool { return isOf(w.tool, id) }) {
				return nil
			}
		case err := <-all:
			return err
		}
	}
	return nil
}

// has reports whether the tool that the command needs is there.
func (h *hub) has(w want) bool {
	return w.tool != "" && h.surfaces.named(w.profile, tool.Client{}, w.tool) != nil
}

// hasSurely reports whether the tool is there, and no server that is starting can change that. The
// tool's own server may offer it no more, and a name that is not canonical may come to stand for
// two tools.
func (h *hub) hasSurely(w want) bool {
	t := h.surfaces.present(tool.Name(w.tool))
	return t != nil && !slices.Contains(model{h}.inState(tool.ServerStarting), t.Server)
}

// isOf reports whether name is the canonical name of a tool of the server.
func isOf(name, server string) bool { return strings.HasPrefix(name, string(tool.MCPName(server, ""))) }

// showStarting says on a terminal which servers the command waits for, from a second on. The
// function that it returns ends that; it may be called twice.
func (a *app) showStarting(h *hub) (stop func()) {
	if !isTerminal(a.std.err) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var showing sync.WaitGroup
	showing.Go(func() {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for n := 1; ; n++ {
			select {
			case <-second.C:
				// The cursor goes back to the beginning: what is logged meanwhile is written over the line.
				fmt.Fprintf(a.std.err, "\r\x1b[K%s\r",
					summary(fmt.Sprintf("waiting for %s (%d s)", strings.Join(model{h}.inState(tool.ServerStarting),
						", "), n), 79))
			case <-ctx.Done():
				if n > 1 {
					fmt.Fprint(a.std.err, "\r\x1b[K")
				}
				return
			}
		}
	})
	return func() {
		cancel()
		showing.Wait()
	}
}

// printMissing says which servers of the surface have not listed their tools, and why. On a
// terminal it also says whose tools are those of an earlier start.
func (a *app) printMissing(h *hub, surface *tool.Surface) {
	var known []string
	for _, st := range h.group.Statuses() {
		if surface.Features != nil && !slices.Contains(surface.Features.Servers, st.Server) {
			continue
		}
		switch {
		case st.State == tool.ServerReady:
		case st.Cached && st.Known:
			known = append(known, st.Server)
		case st.LastError != "":
			fmt.Fprintf(a.std.err, "missing: the tools of %s: %s; %s\n", st.Server, printable(st.LastError),
				printable(st.Hint))
		case st.State == tool.ServerStarting:
			fmt.Fprintf(a.std.err,
				"missing: the tools of %s, which has not answered within %s: mcp-toolhub servers waits for it\n",
				st.Server, unlistedWait)
		}
	}
	if len(known) > 0 && isTerminal(a.std.err) {
		fmt.Fprintf(a.std.err, "as listed at an earlier start: %s (--connect asks again)\n", strings.Join(known, ", "))
	}
}

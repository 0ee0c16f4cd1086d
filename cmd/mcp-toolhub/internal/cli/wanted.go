package cli

import (
	"context"
	"slices"
	"strings"
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

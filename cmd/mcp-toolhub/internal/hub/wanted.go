package hub

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Want says what a command needs from the servers that its hub starts.
type Want struct {
	// All starts every server. Otherwise a server whose tools are known from an earlier start is
	// left alone until one of them is called.
	All bool

	Tool    string // any name of the one tool that the command needs; "" where it wants all
	Profile string // of tool

	Change func(*config.Settings) // may be nil
}

// UnlistedWait bounds the wait for servers that have never listed their tools, where others have:
// they may be new, or may never answer.
const UnlistedWait = 5 * time.Second

// LetSleep makes servers whose tools are known sleep until one of them is called. It is called
// before the servers start.
func (h *Hub) LetSleep() error {
	c := h.Settings().Upstream
	c.Servers = slices.Clone(c.Servers)
	for i := range c.Servers {
		c.Servers[i].Lazy = true
	}
	return h.Group.Apply(c)
}

// Await waits until the command has what it wants, or no server is starting any more. The error is that of ctx.
func (h *Hub) Await(ctx context.Context, w Want, changed <-chan struct{}) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	all := make(chan error, 1)
	go func() { all <- h.Group.WaitReady(waiting) }()
	var enough <-chan time.Time
	if !w.All && slices.ContainsFunc(h.Group.Statuses(), func(st tool.ServerStatus) bool { return st.Known }) {
		timer := time.NewTimer(UnlistedWait)
		defer timer.Stop()
		enough = timer.C
	}
	for !h.hasSurely(w) {
		select {
		case <-changed:
		case <-enough:
			if h.Has(w) || !slices.ContainsFunc(Model{Hub: h}.InState(tool.ServerStarting),
				func(id string) bool { return isOf(w.Tool, id) }) {
				return nil
			}
		case err := <-all:
			return err
		}
	}
	return nil
}

// Has reports whether the tool that the command needs is there.
func (h *Hub) Has(w Want) bool {
	return w.Tool != "" && h.Surfaces.named(w.Profile, tool.Client{}, w.Tool) != nil
}

// hasSurely reports whether the tool is there, and no server that is starting can change that. The
// tool's own server may offer it no more, and a name that is not canonical may come to stand for
// two tools.
func (h *Hub) hasSurely(w Want) bool {
	t := h.Surfaces.present(tool.Name(w.Tool))
	return t != nil && !slices.Contains(Model{Hub: h}.InState(tool.ServerStarting), t.Server)
}

// isOf reports whether name is the canonical name of a tool of the server.
func isOf(name, server string) bool { return strings.HasPrefix(name, string(tool.MCPName(server, ""))) }

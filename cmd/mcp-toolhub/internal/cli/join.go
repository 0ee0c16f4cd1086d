package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/relay"
)

// serveClient serves the client on stdin and stdout. If a hub of the same settings runs on this
// machine, that hub serves the client, so each server runs once for all clients. When that hub
// ends, another one takes its place, or this process does.
func (c *serveCmd) serveClient(ctx context.Context, s *config.Settings) error {
	var client *relay.Relay // nil until a hub was joined
	for brief := 0; ; {
		unlock := hub.LockHubs(s.StateDir)
		var hub *control.Joined
		var err error
		if brief < maxBrief {
			hub, err = c.findHub(ctx, s)
		}
		switch {
		case err != nil:
			unlock()
			return err
		case hub == nil && client == nil:
			return c.serve(ctx, s, c.std, unlock)
		case hub == nil:
			return c.serveRelayed(ctx, s, client, unlock)
		}
		unlock()
		if client == nil {
			client = relay.New(c.std.in, c.std.out)
		}
		joined := time.Now()
		gone, err := c.relayed(ctx, client, hub)
		if gone || err != nil {
			return err
		}
		if brief++; time.Since(joined) > briefly {
			brief = 0
		}
		if s, err = c.load(ctx); err != nil { // it may be another one by now
			return err
		}
	}
}

// If maxBrief hubs in a row end within the time briefly after the client has joined them, this
// process becomes the client's hub.
const (
	briefly  = 10 * time.Second
	maxBrief = 5
)

// findHub joins the first hub that takes the client in. It returns nil where none does.
func (c *serveCmd) findHub(ctx context.Context, s *config.Settings) (*control.Joined, error) {
	hubs, err := control.Find(ctx, s.StateDir)
	if err != nil {
		return nil, nil // this one can serve
	}
	logger, err := newLogger(c.app, cmp.Or(c.logLevel, s.Log.Level), cmp.Or(c.logFormat, s.Log.Format))
	if err != nil {
		return nil, exitUsage.of(err)
	}
	mine := hub.Fingerprint(s, c.style)
	for _, h := range hubs {
		joined, err := h.Join(ctx, mine, c.profile)
		if err == nil {
			logger.Info("a hub that runs already serves this client", "pid", h.PID())
			return joined, nil
		}
		logger.Debug("a hub that runs does not serve this client", "pid", h.PID(), "reason", err)
	}
	return nil, nil
}

// relayed connects the client to the hub of another process. After a first signal it waits until
// the hub has answered all it has; a second signal ends it at once.
func (c *serveCmd) relayed(ctx context.Context, client *relay.Relay, hub *control.Joined) (gone bool, err error) {
	defer hub.Close()
	defer context.AfterFunc(ctx, client.End)()
	defer context.AfterFunc(untilKilled(ctx), func() { _ = hub.Close() })()
	return client.Over(ctx, hub)
}

// serveRelayed makes this process the hub of its client, which the hub of another process has served until now.
func (c *serveCmd) serveRelayed(ctx context.Context, s *config.Settings, client *relay.Relay, began func()) error {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	std := c.std
	std.in, std.out = inR, outW
	if client, ok := c.std.out.(syscall.Conn); ok { // it tells whether the client was killed
		std.out = struct {
			io.Writer
			syscall.Conn
		}{outW, client}
	}
	var relaying sync.WaitGroup
	defer relaying.Wait()
	defer outW.Close()
	relaying.Go(func() {
		_, _ = client.Over(ctx, pipes{outR, inW})
		_, _ = outR.Close(), inW.Close() // the client cannot be written to: the hub is not to wait for it
	})
	return c.serve(ctx, s, std, began)
}

// pipes connect the relay to the hub of this process.
type pipes struct {
	*io.PipeReader
	*io.PipeWriter
}

func (p pipes) CloseWrite() error { return p.PipeWriter.Close() }

// serveShared runs a hub that serves no client on stdin. It serves clients that join it, and over
// HTTP if the config has an address.
func (c *serveCmd) serveShared(ctx context.Context, s *config.Settings) error {
	unlock := hub.LockHubs(s.StateDir)
	if hub, _ := hub.SharedHub(ctx, s); hub != nil {
		unlock()
		return fmt.Errorf("a shared hub of this config runs already, as process %d: mcp-toolhub stop ends it",
			hub.PID())
	}
	return c.serve(ctx, s, c.std, unlock)
}

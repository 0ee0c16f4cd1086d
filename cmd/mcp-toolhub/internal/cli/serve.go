package cli

import (
	"context"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/connuser"
	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
)

const serveHelp = `Serve the tools of all configured servers to MCP clients.

Without --http the hub speaks MCP on stdin and stdout: this is what a client's config
starts. Where a hub of the same config runs on this machine, that one serves the client,
so each server runs once. With --http, or hub.http.listen in the config, it listens for any number of
clients: on /mcp for the default profile, /mcp/p/NAME for the others, and
/mcp/s/SERVER for all that one server offers, under the server's own names. With --shared it
waits for clients that start the hub with the same config, and serves them: see start.

A first SIGINT or SIGTERM lets open calls end, then stops everything that was started.
A second one kills.`

// serveCmd runs the command "serve".
type serveCmd struct {
	*app
	address, profile, server, style string
	stdio, alone, shared, join      bool
	anew                            bool // with shared: also in the place of a hub that start has started

	apart string // why no hub of the config that runs serves the client; "" where none runs
}

func serveCommand(a *app) *cobra.Command {
	c := &serveCmd{app: a}
	cmd := leaf("serve", "Serve the tools of all servers, over stdio or HTTP", serveHelp, c.run,
		"mcp-toolhub serve --config mcp-toolhub.yaml",
		"mcp-toolhub serve --config mcp-toolhub.yaml --http 127.0.0.1:8808")
	cmd.Flags().StringVar(&c.address, "http", "", "listen on `host:port` instead of speaking stdio")
	cmd.Flags().BoolVar(&c.stdio, "stdio", false, "speak stdio even where the config has hub.http.listen")
	cmd.MarkFlagsMutuallyExclusive("http", "stdio")
	cmd.Flags().BoolVar(&c.alone, "alone", false,
		"serve the client on stdin by this process, also where a hub of the same config runs")
	cmd.Flags().BoolVar(&c.join, "join", false, "be a client of the hub that runs, and never a hub")
	_ = cmd.Flags().MarkHidden("join") // for tools and others, which speak MCP with it
	cmd.Flags().BoolVar(&c.anew, "anew", false, "with --shared, take the place of the hub that start has started")
	_ = cmd.Flags().MarkHidden("anew") // for restart
	cmd.MarkFlagsMutuallyExclusive("http", "alone", "join")
	cmd.Flags().BoolVar(&c.shared, "shared", false,
		"serve no client on stdin: clients that start the hub with the same config join this one")
	cmd.Flags().StringVar(&c.profile, "profile", namespace.DefaultProfile, "the `profile` that a stdio client sees")
	cmd.Flags().StringVar(&c.server, "server", "", "a stdio client sees this `server` alone, under its own names")
	cmd.MarkFlagsMutuallyExclusive("profile", "server")
	for _, other := range []string{"stdio", "alone", "profile", "server"} {
		cmd.MarkFlagsMutuallyExclusive("shared", other)
	}
	a.completeFlag(cmd, "profile", profileNames)
	a.completeFlag(cmd, "server", serverNames)
	cmd.Flags().StringVar(&c.style, "names", "",
		"write tools' names in this `style` instead of the profile's: canonical, safe, short or native")
	return cmd
}

func (c *serveCmd) run(ctx context.Context) error {
	if c.style != "" {
		if err := namespace.Style(c.style).Check(); err != nil {
			return exitUsage.errorf("--names: %w", err)
		}
	}
	if c.server != "" {
		c.profile = downstream.DirectView(c.server)
	}
	// A write to stdout or stderr whose reader is gone is an error like any other. Without this, Go ends the process
	// by SIGPIPE there: a client that is killed would take the hub with it, and so the calls of others.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	defer runtime.KeepAlive(hub.RelaxCollector())
	s, err := c.load(ctx)
	// A hub that was started by a hub joins none: it could join that very one.
	joins := c.join || !c.shared && c.address == "" && !c.alone && !run.IsNested()
	switch {
	case joins && (err != nil || c.listen(s) == ""):
		return c.serveClient(ctx, s, err)
	case err != nil:
		return err
	case c.shared:
		return c.serveShared(ctx, s)
	}
	return c.serve(ctx, s, c.std, func() {})
}

// listen is the address at which the hub serves; "" where it serves the client on stdin.
func (c *serveCmd) listen(s *config.Settings) string {
	if c.address != "" || c.stdio {
		return c.address
	}
	return s.Downstream.HTTP.Listen
}

// serve runs the hub of the settings. It calls began once clients of other processes can join it, or it has failed.
func (c *serveCmd) serve(ctx context.Context, s *config.Settings, std streams, began func()) (err error) {
	defer began()
	if c.takeLogin(ctx) {
		if s, err = c.load(ctx); err != nil {
			return err
		}
	}
	s.Downstream.HTTP.Listen = c.listen(s)
	address := s.Downstream.HTTP.Listen
	observed, problems := telemetry.New(ctx, telemetry.Options{Version: hub.Version(), Getenv: c.std.getenv,
		Metrics: address != "" || s.Telemetry.Metrics != "", Content: s.Telemetry.Content})
	h, err := c.buildHub(s, observed)
	if err != nil {
		_ = observed.Close(ctx) // there is nothing to send
		return err
	}
	kill := untilKilled(ctx)
	defer func() {
		closeErr := h.Close(kill)
		if err := observed.Close(kill); err != nil {
			h.Logger.Warn("telemetry that was left is not sent: the collector has not taken it in time", "error", err)
		}
		switch {
		case kill.Err() != nil:
			err = exitInterrupted.of(context.Cause(kill))
		case err == nil && closeErr != nil:
			err = closeErr
		}
	}()
	listener, err := h.Listen(address)
	if err != nil {
		return err
	}
	// of hub.http.listen the config warns
	if c.address != "" && len(s.Downstream.Auth.Tokens) == 0 && !connuser.Known() {
		h.Logger.Warn(config.EveryUserMayCall, "change", "hub.auth.tokens")
	}
	return h.Serve(ctx, kill, hub.Door{Listener: listener, Shared: c.shared, Alone: c.alone, Apart: c.apart,
		Wish: c.wish(s.Path), In: std.in, Out: std.out, Moved: std.in != c.std.in, Problems: problems,
		Read:    c.again(h.Settings()),
		Hangups: hangups(ctx),
		Began: func() {
			began()
			c.sayHowToConnect(h.Settings(), listener)
		}})
}

// sayHowToConnect tells a person at the terminal what to do with the hub. listener is nil where it speaks stdio.
func (c *serveCmd) sayHowToConnect(s *config.Settings, listener net.Listener) {
	if !isTerminal(c.std.err) {
		return // the log has the address
	}
	if listener == nil {
		if c.shared {
			c.std.note("Clients that start the hub with this config join this one. Ctrl-C ends it.")
		} else if isTerminal(c.std.in) {
			c.std.note(
				"The hub waits for a client on stdin, which is this terminal. A client starts it with this command. " +
					"To serve\n" +
					"clients that connect: mcp-toolhub serve --http 127.0.0.1:8808. Ctrl-D ends it.")
		}
		return
	}
	address := hub.ListenURL(listener)
	header := ""
	if len(s.Downstream.Auth.Tokens) > 0 {
		header = ` --header "Authorization: Bearer TOKEN"`
	}
	c.std.note(
		"Connect clients to %s, for instance: claude mcp add --transport http toolhub %s%s\nCtrl-C ends the hub.",
		address, address, header)
}

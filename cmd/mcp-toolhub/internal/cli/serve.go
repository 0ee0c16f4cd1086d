package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/connuser"
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

const serveExample = `  mcp-toolhub serve --config mcp-toolhub.yaml
  mcp-toolhub serve --config mcp-toolhub.yaml --http 127.0.0.1:8808`

// serveCmd runs the command "serve".
type serveCmd struct {
	*app
	address, profile, style string
	stdio, alone, shared    bool
}

func serveCommand(a *app) *cobra.Command {
	c := &serveCmd{app: a}
	var server string
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the tools of all servers, over stdio or HTTP", Long: serveHelp,
		Example: serveExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.style != "" {
				if err := namespace.Style(c.style).Check(); err != nil {
					return fmt.Errorf("--names: %w", err)
				}
			}
			if server != "" {
				c.profile = downstream.DirectView(server)
			}
			return c.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&c.address, "http", "", "listen on `host:port` instead of speaking stdio")
	cmd.Flags().BoolVar(&c.stdio, "stdio", false, "speak stdio even where the config has hub.http.listen")
	cmd.MarkFlagsMutuallyExclusive("http", "stdio")
	cmd.Flags().BoolVar(&c.alone, "alone", false,
		"serve the client on stdin by this process, also where a hub of the same config runs")
	cmd.MarkFlagsMutuallyExclusive("http", "alone")
	cmd.Flags().BoolVar(&c.shared, "shared", false,
		"serve no client on stdin: clients that start the hub with the same config join this one")
	cmd.Flags().StringVar(&c.profile, "profile", namespace.DefaultProfile, "the `profile` that a stdio client sees")
	cmd.Flags().StringVar(&server, "server", "", "a stdio client sees this `server` alone, under its own names")
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
	surviveClients()
	defer runtime.KeepAlive(relaxCollector())
	s, err := c.load(ctx)
	if err != nil {
		return err
	}
	switch {
	case c.shared:
		return c.serveShared(ctx, s)
	case c.mayJoin(c.listen(s)):
		return c.serveClient(ctx, s)
	}
	return c.serve(ctx, s, c.std, func() {})
}

// surviveClients makes a write to stdout or stderr, whose reader is gone, an error like any other.
// Without it, Go ends the process by SIGPIPE there: a client that is killed would take the hub with
// it, and so the calls of others.
func surviveClients() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

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
	s.Downstream.HTTP.Listen = c.listen(s)
	address := s.Downstream.HTTP.Listen
	observed, problems := telemetry.New(ctx, telemetry.Options{Version: version(), Getenv: c.std.getenv,
		Metrics: address != "" || s.Telemetry.Metrics != "", Content: s.Telemetry.Content})
	h, err := c.buildHub(s, observed)
	if err != nil {
		_ = observed.Close(ctx) // there is nothing to send
		return err
	}
	h.surfaces.style = c.style
	kill := untilKilled(ctx)
	defer func() {
		closeErr := h.close(kill)
		if err := observed.Close(kill); err != nil {
			h.logger.Warn("telemetry that was left is not sent: the collector has not taken it in time", "error", err)
		}
		switch {
		case kill.Err() != nil:
			err = &exitError{exitInterrupted, context.Cause(kill)}
		case err == nil && closeErr != nil:
			err = failed(closeErr)
		}
	}()
	listener, err := h.listen(address)
	if err != nil {
		return failed(err)
	}
	// of hub.http.listen the config warns
	if c.address != "" && len(s.Downstream.Auth.Tokens) == 0 && !connuser.Known() {
		h.logger.Warn(config.EveryUserMayCall, "change", "hub.auth.tokens")
	}
	endMetrics, err := h.serveMetrics()
	if err != nil {
		return failed(err)
	}
	defer endMetrics()
	h.observe(problems)
	h.desk.Open()
	h.guests = &guests{hub: h, style: c.style, logger: h.logger, here: make(map[net.Conn]bool)}
	h.permission.api.Join, h.permission.api.Page = h.guests.join, h.page
	h.permission.api.PageAt = h.pageAt
	if c.shared {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		h.permission.api.Config, h.permission.api.Stop = absolute(s.Path), stop
	}
	h.surfaces.started.begin()
	defer h.surfaces.started.end()
	sayMode(h.logger, h.settings())
	h.group.Start(context.WithoutCancel(ctx)) // close ends it, after the calls in flight
	if err := h.permission.serve(ctx, h.settings()); err != nil {
		return failed(err)
	}
	began() // after the start: calls of a client that joins wait for the servers then
	watching, stopWatching := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { boundMemory(watching, h.group.Memory()) })
	background.Go(func() {
		newConfigWatch(h, c.again(h.settings())).run(watching, hangups(watching))
	})
	background.Go(func() { model{h}.sayStrays(watching) })
	background.Go(func() { h.keepChains(watching) })
	defer func() {
		stopWatching()
		background.Wait()
	}()
	c.sayHowToConnect(h.settings(), listener)
	switch {
	case listener != nil:
		return h.serveHTTP(ctx, kill, listener)
	case c.shared:
		return h.serveGuests(ctx, kill)
	}
	return h.serveStdio(ctx, kill, std, c.profile, std.in != c.std.in)
}

// sayHowToConnect tells a person at the terminal what to do with the hub. listener is nil where it speaks stdio.
func (c *serveCmd) sayHowToConnect(s *config.Settings, listener net.Listener) {
	if !isTerminal(c.std.err) {
		return // the log has the address
	}
	if listener == nil {
		if c.shared {
			fmt.Fprintln(c.std.err, "Clients that start the hub with this config join this one. Ctrl-C ends it.")
		} else if isTerminal(c.std.in) {
			fmt.Fprintln(c.std.err,
				"The hub waits for a client on stdin, which is this terminal. A client starts it with this command. "+
					"To serve\n"+
					"clients that connect: mcp-toolhub serve --http 127.0.0.1:8808. Ctrl-D ends it.")
		}
		return
	}
	address := listenURL(listener)
	header := ""
	if len(s.Downstream.Auth.Tokens) > 0 {
		header = ` --header "Authorization: Bearer TOKEN"`
	}
	fmt.Fprintf(c.std.err,
		"Connect clients to %s, for instance: claude mcp add --transport http toolhub %s%s\nCtrl-C ends the hub.\n",
		address, address, header)
}

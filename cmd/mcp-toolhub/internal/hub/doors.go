package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
)

// slogError returns a standard logger for libraries that want one; its lines become warnings.
func slogError(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelWarn) }

// Listen opens the HTTP door at address; "" has none.
func (h *Hub) Listen(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	if err := h.Settings().Downstream.CheckListen(address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w: choose another address with hub.http.listen, or for serve with --http",
			address, err)
	}
	h.listens = listenOrigin(l)
	return l, nil
}

// ListenURL returns an address at which clients on this machine reach the default profile.
func ListenURL(l net.Listener) string { return listenOrigin(l) + "/mcp" }

// listenOrigin returns scheme, host and port at which the hub is reached on this machine.
func listenOrigin(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return "http://" + l.Addr().String()
	}
	return "http://" + net.JoinHostPort("127.0.0.1", port)
}

// serveStdio serves the one client on stdin and stdout until it closes them or a signal comes.
func (h *Hub) serveStdio(ctx, kill context.Context, d Door) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- h.server.ServeStdio(serving, d.In, d.Out, downstream.Stdio{Profile: d.Profile, Moved: d.Moved})
	}()
	select {
	case err := <-ended:
		h.endGuests(kill)
		return err
	case <-ctx.Done():
	}
	h.drain(kill)
	stop()
	select {
	case <-ended:
	case <-kill.Done(): // a client that does not read keeps nobody waiting
	}
	return nil
}

// serveHTTP serves clients on l until a signal comes.
func (h *Hub) serveHTTP(ctx, kill context.Context, l net.Listener) error {
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	server := &http.Server{
		Handler:           h.server.Handler(),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       downstream.ConnContext,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slogError(h.Logger),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	h.Logger.Info("serving", "url", "http://"+l.Addr().String()+"/mcp", "profiles", h.Surfaces.Now().Profiles())
	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	h.server.AnnounceStop(kill)
	h.Logger.Info("stopping: open calls may end", "limit", h.server.DrainTimeout().String())
	h.drain(kill)
	stop(downstream.HubStops()) // standing streams end with it, and calls that are cut off
	closing, cancel := context.WithTimeout(kill, time.Second)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// drain lets open calls end. Those that wait for a person are cancelled: nobody could answer what survives no restart.
func (h *Hub) drain(kill context.Context) {
	h.Permission.approvals.Close()
	h.desk.Close()
	h.endGuests(kill)
	limit, cancel := context.WithTimeout(kill, h.server.DrainTimeout())
	defer cancel()
	h.server.Drain(limit)
}

// Door says how a hub serves: at its listener, or the client on in and out, or only clients that join.
type Door struct {
	Listener net.Listener // nil for none
	Shared   bool         // without a listener: serve those that join
	Alone    bool         // nobody joins
	Apart    string       // why it serves its client beside another hub of the config; "" where it does not

	control.Wish // of this process; Style is that of names in place of the profile's, Profile the client's on in and out

	In    io.Reader
	Out   io.Writer
	Moved bool // the hub of another process has served that client until now

	Problems []string                         // of the telemetry
	Read     func() (*config.Settings, error) // reads the config file again
	Hangups  <-chan os.Signal                 // each asks for a reload
	Began    func()                           // is called once clients of other processes can join
}

// restart starts a server anew, also one that sleeps.
func (h *Hub) restart(server string) error {
	if !slices.Contains(h.Settings().Upstream.IDs(), server) {
		return fmt.Errorf("there is no server %q: it has %s", server, strings.Join(h.Settings().Upstream.IDs(), ", "))
	}
	h.Logger.Info("a person restarts a server", "server", server)
	if err := h.steering.apply(h.Settings().Upstream, server); err != nil {
		return err
	}
	return h.steering.apply(h.Settings().Upstream, "")
}

// Serve starts the servers, and serves clients until ctx ends. kill cuts the polite part short.
func (h *Hub) Serve(ctx, kill context.Context, d Door) error {
	h.Surfaces.style = d.Style
	endMetrics, err := h.serveMetrics()
	if err != nil {
		return err
	}
	defer endMetrics()
	h.observe(d.Problems)
	h.desk.Open()
	h.guests = &guests{hub: h, own: d.Wish, alone: d.Alone, onStdin: !d.Shared && d.Listener == nil,
		logger: h.Logger, here: make(map[net.Conn]bool)}
	h.Permission.api.Join, h.Permission.api.Page = h.guests.join, h.page
	h.Permission.api.PageAt = h.pageAt
	if d.Shared || d.Listener != nil {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		h.Permission.api.Stop = stop
	}
	h.Permission.api.Config, h.Permission.api.Apart, h.Permission.api.Restart = d.Config, d.Apart, h.restart
	h.Permission.api.Version, h.Permission.api.Launched = d.Version, d.Shared
	sayMode(h.Logger, h.Settings())
	h.Group.Start(context.WithoutCancel(ctx)) // close ends it, after the calls in flight
	if err := h.Permission.serve(ctx, h.Settings()); err != nil {
		return err
	}
	d.Began() // after the start: calls of a client that joins wait for the servers then
	watching, stopWatching := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { boundMemory(watching, h.Group.Memory()) })
	background.Go(func() { h.Watch(watching, d.Read, d.Hangups) })
	background.Go(func() { // once all servers have answered or failed, it is known which patterns match no tool
		if h.Group.WaitReady(watching) == nil {
			for _, w := range (Model{Hub: h}).strayPatterns() {
				h.Logger.Warn("config", "warning", w)
			}
		}
	})
	background.Go(func() { every(watching, evidence.Every, h.extendChains) })
	defer func() {
		stopWatching()
		background.Wait()
	}()
	switch {
	case d.Listener != nil:
		return h.serveHTTP(ctx, kill, d.Listener)
	case d.Shared:
		return h.serveGuests(ctx, kill)
	}
	return h.serveStdio(ctx, kill, d)
}

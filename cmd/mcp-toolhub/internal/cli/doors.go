package cli

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
)

// slogError returns a standard logger for libraries that want one; its lines become warnings.
func slogError(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelWarn) }

// listen opens the HTTP door at address; "" has none.
func (h *hub) listen(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	if err := h.settings().Downstream.CheckListen(address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w: choose another address with hub.http.listen, or for serve with --http", address, err)
	}
	h.listens = listenOrigin(l)
	return l, nil
}

// listenURL returns an address at which clients on this machine reach the default profile.
func listenURL(l net.Listener) string { return listenOrigin(l) + "/mcp" }

// listenOrigin returns scheme, host and port at which the hub is reached on this machine.
func listenOrigin(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return "http://" + l.Addr().String()
	}
	return "http://" + net.JoinHostPort("127.0.0.1", port)
}

// serveStdio serves the one client on stdin and stdout until it closes them or a signal comes.
func (h *hub) serveStdio(ctx, kill context.Context, std streams, profile string, moved bool) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- h.server.ServeStdio(serving, std.in, std.out, profile, moved) }()
	select {
	case err := <-ended:
		h.endGuests(kill)
		if err != nil {
			return failed(err)
		}
		return nil
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
func (h *hub) serveHTTP(ctx, kill context.Context, l net.Listener) error {
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	server := &http.Server{
		Handler:           h.server.Handler(),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       downstream.ConnContext,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slogError(h.logger),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	h.logger.Info("serving", "url", "http://"+l.Addr().String()+"/mcp", "profiles", h.surfaces.now().profiles())
	select {
	case err := <-ended:
		return failed(fmt.Errorf("serve HTTP: %w", err))
	case <-ctx.Done():
	}
	h.server.AnnounceStop(kill)
	h.logger.Info("stopping: open calls may end", "limit", h.server.DrainTimeout().String())
	h.drain(kill)
	stop(downstream.HubStops()) // standing streams end with it, and calls that are cut off
	closing, cancel := context.WithTimeout(kill, time.Second)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return failed(fmt.Errorf("serve HTTP: %w", err))
	}
	return nil
}

// drain lets open calls end. Those that wait for a person are cancelled: nobody could answer what survives no restart.
func (h *hub) drain(kill context.Context) {
	h.permission.approvals.Close()
	h.desk.Close()
	h.endGuests(kill)
	limit, cancel := context.WithTimeout(kill, h.server.DrainTimeout())
	defer cancel()
	h.server.Drain(limit)
}

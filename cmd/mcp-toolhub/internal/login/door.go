package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// door is a listener on loopback that serves the pages while visits are open that need it.
type door struct {
	address string // without a slash at its end
	port    int    // that was asked for; 0: any; pageOnly
	users   int
	server  *http.Server
	closing func() (context.Context, context.CancelFunc)
}

// pageOnly stands for any port where no browser comes back to.
const pageOnly = -1

// doorAt returns the door at a port of the loopback interface, 0 for any, and opens it where it is
// not open. d.mu is held.
func (d *Desk) doorAt(ctx context.Context, port int) (*door, error) {
	if one := d.doors[port]; one != nil {
		one.users++
		return one, nil
	}
	wanted := []int{max(port, 0)}
	if port == 0 { // at the ports of earlier sign-ins the hub is registered already
		wanted = append(d.opts.Store.Ports(), 0)
	}
	var socket net.Listener
	err := errors.New("no port")
	for i := 0; i < len(wanted) && err != nil; i++ {
		socket, err = signin.ListenAt(wanted[i])
	}
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	host := socket.Addr().String()
	one := &door{address: "http://" + host, port: port, users: 1,
		closing: func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		}}
	one.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(d.opts.Logger.Handler(), slog.LevelDebug),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Host != host { // another name may be made to lead here (DNS rebinding)
				http.Error(w, "this page is not known under that host name", http.StatusForbidden)
				return
			}
			d.ServeHTTP(w, r)
		})}
	d.doors[port] = one
	d.running.Go(func() { _ = one.server.Serve(socket) }) // until leave
	return one, nil
}

// leave closes a door that no visit needs any more, once the last page has left. d.mu is held.
func (d *Desk) leave(one *door) {
	if one.users--; one.users > 0 {
		return
	}
	delete(d.doors, one.port)
	d.running.Go(func() {
		ctx, cancel := one.closing()
		defer cancel()
		_ = one.server.Shutdown(ctx)
		_ = one.server.Close()
	})
}

// closeWithin bounds the time in which the last page reaches the browser.
const closeWithin = time.Second

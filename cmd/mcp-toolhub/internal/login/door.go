package login

import (
	"context"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// door serves the pages on loopback while visits are open that need it.
type door struct {
	*signin.Loopback
	port  int // that was asked for; 0: any; pageOnly
	users int
	close func()
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
	server, err := signin.Serve(d, d.opts.Logger, wanted...)
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	d.doors[port] = &door{server, port, 1, func() { server.Close(context.WithoutCancel(ctx)) }}
	return d.doors[port], nil
}

// leave closes a door that no visit needs any more, once the last page has left. d.mu is held.
func (d *Desk) leave(one *door) {
	if one.users--; one.users == 0 {
		delete(d.doors, one.port)
		d.running.Go(one.close)
	}
}

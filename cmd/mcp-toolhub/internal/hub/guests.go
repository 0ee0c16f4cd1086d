package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/relay"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// Absolute returns the path from the root; path itself where the working directory is gone.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// LockHubs makes other processes wait with their search for a hub until unlock is called. Without
// that, two that start together would both become hubs. A hub that takes the place of another one
// holds the lock until that has ended. A lock that cannot be had is no error: then there may be two hubs.
func LockHubs(state string) (unlock func()) {
	for range 3 { // a hub that ends has 10 seconds for its calls by default
		if unlock, err := statefile.Lock(filepath.Join(state, "run", "serve")); err == nil {
			return sync.OnceFunc(unlock)
		}
	}
	return func() {}
}

// guests are the clients of other processes that a hub serves. Its zero value takes nobody in.
type guests struct {
	hub     *Hub
	own     control.Wish // what this process would want of another hub
	alone   bool         // takes nobody in
	onStdin bool         // the hub's process has a client of its own
	logger  *slog.Logger
	serving sync.WaitGroup

	mu    sync.Mutex
	here  map[net.Conn]bool
	ended bool // nobody is taken in any more
}

// join implements control.Join. The config's path decides: whatever else differs, there is one hub.
func (g *guests) join(w control.Wish) (func(context.Context, io.Reader, net.Conn), string, error) {
	switch {
	case !sameFile(g.own.Config, w.Config):
		return nil, "", errors.New("it serves another config")
	case g.alone:
		return nil, "", errors.New("it serves its own client alone")
	case g.own.Rules != w.Rules:
		return nil, "", fmt.Errorf("its --rules is %q, not %q", g.own.Rules, w.Rules)
	case g.own.Style != w.Style:
		return nil, "", fmt.Errorf("its --names is %q, not %q", g.own.Style, w.Style)
	}
	if err := g.hub.server.CheckProfile(w.Profile); err != nil {
		return nil, "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return nil, "", errors.New("this hub is stopping")
	}
	serve := func(ctx context.Context, in io.Reader, conn net.Conn) { g.serve(ctx, in, conn, w) }
	return serve, g.differences(w), nil
}

// differences says what of the client's process does not count, because the hub's is in force.
func (g *guests) differences(theirs control.Wish) string {
	var all, names []string
	s := g.hub.Settings()
	for name, value := range theirs.Variables {
		if known, ok := s.Variables[name]; ok && value != known && value != unsetVariable() {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		all = append(all, fmt.Sprintf("the hub's values of %s are in force, not those of this client",
			strings.Join(names, ", ")))
	}
	if g.own.Version != theirs.Version {
		all = append(all, fmt.Sprintf("the hub is version %s, this client %s: mcp-toolhub restart starts the hub anew",
			g.own.Version, theirs.Version))
	}
	if g.own.Dir != theirs.Dir {
		for _, sc := range s.Upstream.Servers {
			if sc.Transport == upstream.Stdio && sc.Dir == "" && !sc.Disabled {
				all = append(all, fmt.Sprintf("%s runs in %s, as its entry has no cwd", sc.ID, g.own.Dir))
			}
		}
	}
	return strings.Join(all, "; ")
}

// unsetVariable is the digest of a variable that is not set.
func unsetVariable() string {
	sum := sha256.Sum256(nil)
	return hex.EncodeToString(sum[:])
}

// sameFile reports whether two absolute paths lead to one file.
func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return a == b
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// serve serves a client until the client has gone, or until the hub ends and has answered everything that it has read.
func (g *guests) serve(ctx context.Context, in io.Reader, conn net.Conn, w control.Wish) {
	g.mu.Lock()
	if g.ended {
		g.mu.Unlock()
		return
	}
	g.here[conn] = true
	g.serving.Add(1)
	defer g.serving.Done()
	g.mu.Unlock()
	of := downstream.Stdio{Profile: w.Profile, Moved: true}
	if w.Command {
		of.Actor = LocalActor()
		of.Actor.Client = tool.Client{}
	}
	err := g.hub.server.ServeStdio(ctx, in, conn, of)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.here, conn)
	if err != nil && !(g.ended && errors.Is(err, os.ErrDeadlineExceeded)) {
		g.logger.Warn("a client that joined is not served any more", "error", err)
	}
	if g.ended && ctx.Err() == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = conn.Write(relay.Moved)
	}
}

// count returns how many clients are served that are not here over HTTP.
func (g *guests) count() int {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.here)
	if g.onStdin {
		n++
	}
	return n
}

// end refuses further clients, and reads nothing more from those who are there. It returns when
// they have their answers, or when limit ends.
func (g *guests) end(limit context.Context) {
	g.mu.Lock()
	g.ended = true
	for conn := range g.here {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
	}
	g.mu.Unlock()
	left := make(chan struct{})
	go func() {
		defer close(left)
		g.serving.Wait()
	}()
	select {
	case <-left:
	case <-limit.Done():
	}
}

// Running returns the hubs of the config that run: first the one that serves no client of its own, then the oldest.
func Running(ctx context.Context, state, path string) ([]*control.Client, error) {
	all, err := control.Find(ctx, state)
	return slices.DeleteFunc(all, func(one *control.Client) bool { return !sameFile(one.Config(), Absolute(path)) }), err
}

// SharedHub returns the hub of the config that serves no client of its own; nil where none runs.
func SharedHub(ctx context.Context, s *config.Settings) (*control.Client, error) {
	all, err := Running(ctx, s.StateDir, s.Path)
	if err != nil || len(all) == 0 || !all[0].Shared() {
		return nil, err
	}
	return all[0], nil
}

// serveGuests serves the clients that join until a signal comes, or somebody stops the hub.
func (h *Hub) serveGuests(ctx, kill context.Context) error {
	if !h.Permission.queueOpen() {
		return errors.New("no client could join this hub: policy.ask.channels has no queue: add that, or set " +
			"hub.http.listen")
	}
	h.Logger.Info("serving clients that join")
	<-ctx.Done()
	h.drain(kill)
	return nil
}

// endGuests lets the calls of clients of other processes end, which go to another hub then.
func (h *Hub) endGuests(kill context.Context) {
	limit, cancel := context.WithTimeout(kill, h.server.DrainTimeout())
	defer cancel()
	h.guests.end(limit)
}

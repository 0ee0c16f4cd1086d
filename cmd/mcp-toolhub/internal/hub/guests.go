package hub

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/relay"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// Fingerprint returns a digest that is equal for two processes only if their hubs would do the
// same. It covers this program, the files that the settings come from, the variables that those
// refer to, the programs of servers and the directories where they run, the environment of
// commands, and style, the value of --names.
func Fingerprint(s *config.Settings, style string) string {
	program, _ := os.Executable()
	same := struct {
		Program, Version, Path, Style string
		Files, Variables              map[string]string
		Starts                        []string
	}{program, Version(), Absolute(s.Path), style, s.Digests, s.Variables, nil}
	for _, rules := range s.RuleFiles {
		text, _ := os.ReadFile(rules) // those of --rules are not among the digests
		same.Starts = append(same.Starts, Absolute(rules), digestOf(text))
	}
	wd, _ := os.Getwd()
	for _, server := range s.Upstream.Servers {
		// an empty variable is among Variables like one that is not set
		same.Starts = append(same.Starts, strconv.FormatBool(server.IsOff()))
		if server.Transport != upstream.Stdio || server.Disabled {
			continue
		}
		starts := server.Command
		if found, err := exec.LookPath(starts); err == nil {
			starts = found
		}
		same.Starts = append(same.Starts, starts, cmp.Or(server.Dir, wd))
	}
	same.Starts = append(same.Starts, commandEnvironment(s)...)
	text, _ := json.Marshal(same) // strings alone
	return digestOf(text)
}

// Absolute returns the path from the root; path itself where the working directory is gone.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// commandEnvironment returns the environment of the commands that hooks, code.run_command and
// declared tools run; nil where none of them runs any.
func commandEnvironment(s *config.Settings) (env []string) {
	declared, _ := filepath.Glob(filepath.Join(s.Declarative.Dir, "*.json"))
	runs := s.Code.Enabled && s.Code.Run.Enabled || s.Declarative.Enabled && s.Declarative.Dir != "" &&
		len(declared) > 0
	named := slices.Concat(s.Code.Run.Bounds.Env, s.Declarative.Bounds.Env)
	for _, h := range s.Hooks.All {
		runs = runs || len(h.Command) > 0 || h.Shell != ""
		named = append(named, h.Env...)
	}
	if bounds, err := command.NewBounds(command.Config{Environ: os.Environ()}); runs && err == nil {
		env, _ = bounds.Environment(named...)
	}
	return env
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// LockHubs makes other processes wait with their search for a hub until unlock is called. Without
// that, two that start together would both become hubs. A lock that cannot be had is no error: then
// there may be two hubs.
func LockHubs(state string) (unlock func()) {
	unlock, err := statefile.Lock(filepath.Join(state, "run", "serve"))
	if err != nil {
		return func() {}
	}
	return sync.OnceFunc(unlock)
}

// guests are the clients of other processes that a hub serves. Its zero value takes nobody in.
type guests struct {
	hub     *Hub
	style   string
	logger  *slog.Logger
	serving sync.WaitGroup

	mu    sync.Mutex
	here  map[net.Conn]bool
	ended bool // nobody is taken in any more
}

var errOtherSettings = errors.New("this hub has another config, program, environment or directory")

// join implements control.Join.
func (g *guests) join(theirs, profile string) (func(context.Context, io.Reader, net.Conn), error) {
	if Fingerprint(g.hub.Settings(), g.style) != theirs {
		return nil, errOtherSettings
	}
	if err := g.hub.server.CheckProfile(profile); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return nil, errors.New("this hub is stopping")
	}
	return func(ctx context.Context, in io.Reader, conn net.Conn) { g.serve(ctx, in, conn, profile) }, nil
}

// serve serves a client until the client has gone, or until the hub ends and has answered everything that it has read.
func (g *guests) serve(ctx context.Context, in io.Reader, conn net.Conn, profile string) {
	g.mu.Lock()
	if g.ended {
		g.mu.Unlock()
		return
	}
	g.here[conn] = true
	g.serving.Add(1)
	defer g.serving.Done()
	g.mu.Unlock()
	err := g.hub.server.ServeStdio(ctx, in, conn, profile, true)
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

// SharedHub returns the hub of the config that serves no client of its own; nil where none runs.
func SharedHub(ctx context.Context, s *config.Settings) (*control.Client, error) {
	all, err := control.Find(ctx, s.StateDir)
	i := slices.IndexFunc(all, func(one *control.Client) bool { return one.Config() == Absolute(s.Path) })
	if err != nil || i < 0 {
		return nil, err
	}
	return all[i], nil
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

package main

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
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/relay"
	"github.com/mcp-toolhub/mcp-toolhub/internal/guard"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// fingerprint tells two hubs apart that would not do the same. It is made of this program, the files that the settings come from, the variables
// that they refer to, the programs of the servers, the directories where those run, the environment of commands, and style, that of --names.
func fingerprint(s *config.Settings, style string) string {
	program, _ := os.Executable()
	same := struct {
		Program, Version, Path, Style string
		Files, Variables              map[string]string
		Starts                        []string
	}{program, version(), s.Path, style, s.Digests, s.Variables, nil}
	for _, rules := range s.RuleFiles {
		text, _ := os.ReadFile(rules) // those of --rules are not among the digests
		same.Starts = append(same.Starts, rules, digestOf(text))
	}
	wd, _ := os.Getwd()
	for _, server := range s.Upstream.Servers {
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

// commandEnvironment is the environment of the commands that hooks, code.run_command and declared tools run; nil where there are none.
func commandEnvironment(s *config.Settings) (env []string) {
	declared, _ := filepath.Glob(filepath.Join(s.Declarative.Dir, "*.json"))
	runs := s.Code.Enabled && s.Code.Run.Enabled || s.Declarative.Enabled && s.Declarative.Dir != "" && len(declared) > 0
	named := slices.Concat(s.Code.Run.Bounds.Env, s.Declarative.Bounds.Env)
	for _, h := range s.Hooks {
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

// serveClient serves the client on stdin and stdout. A hub of the same settings that runs on this machine does it, where there is one: so
// the servers run once for all clients. When that hub ends, the next one does, or this process.
func (c *serveCmd) serveClient(ctx context.Context, s *config.Settings) error {
	var client *relay.Relay // nil until a hub was joined
	for brief := 0; ; {
		unlock := lockHubs(s.StateDir)
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

// A client whose hubs ended soon after it had joined them, one after the other, gets a hub of its own.
const (
	briefly  = 10 * time.Second
	maxBrief = 5
)

// lockHubs keeps other processes from looking for a hub until this one has found one, or is one. Without the lock there may be two.
func lockHubs(state string) (unlock func()) {
	unlock, err := statefile.Lock(filepath.Join(state, "run", "serve"))
	if err != nil {
		return func() {}
	}
	return sync.OnceFunc(unlock)
}

// findHub joins a hub that takes the client in; nil where there is none.
func (c *serveCmd) findHub(ctx context.Context, s *config.Settings) (*control.Joined, error) {
	hubs, err := control.Find(ctx, s.StateDir)
	if err != nil {
		return nil, nil // this one can serve
	}
	logger, err := newLogger(c.std, cmp.Or(c.logLevel, s.Log.Level), cmp.Or(c.logFormat, s.Log.Format))
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	mine := fingerprint(s, c.style)
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

// relayed serves the client by a hub of another process. A signal lets the hub answer what it has; a second one does not.
func (c *serveCmd) relayed(ctx context.Context, client *relay.Relay, hub *control.Joined) (gone bool, err error) {
	defer hub.Close()
	defer context.AfterFunc(ctx, client.End)()
	defer context.AfterFunc(untilKilled(ctx), func() { _ = hub.Close() })()
	gone, err = client.Over(ctx, hub)
	if err != nil {
		err = failed(err)
	}
	return gone, err
}

// serveRelayed makes this process the hub of its client, which another one has served before.
func (c *serveCmd) serveRelayed(ctx context.Context, s *config.Settings, client *relay.Relay, began func()) error {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	std := c.std
	std.in, std.out = inR, outW
	var relaying sync.WaitGroup
	defer relaying.Wait()
	defer outW.Close()
	relaying.Go(func() { _, _ = client.Over(ctx, pipes{outR, inW}) })
	return c.serve(ctx, s, std, began)
}

// pipes are the way to the hub of this process.
type pipes struct {
	*io.PipeReader
	*io.PipeWriter
}

func (p pipes) CloseWrite() error { return p.PipeWriter.Close() }

// guests are the clients of other processes that a hub serves. Its zero value takes nobody in.
type guests struct {
	hub     *hub
	style   string
	logger  *slog.Logger
	serving sync.WaitGroup

	mu    sync.Mutex
	here  map[net.Conn]bool
	ended bool // nobody is taken in any more
}

var errOtherSettings = errors.New("this hub has another config, program, environment or directory")

// join is the control.Join of the hub.
func (g *guests) join(theirs, profile string) (func(context.Context, io.Reader, net.Conn), error) {
	if fingerprint(g.hub.settings(), g.style) != theirs {
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

// serve serves a client until it has gone, or the hub ends and has answered what it has read.
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

// end takes nobody in any more, and reads nothing more from those who are there. It returns once they have their answers, or limit is over.
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

// mayJoin reports whether the client may be served by another hub. A hub that a hub has started could join that one.
func (c *serveCmd) mayJoin(address string) bool {
	return address == "" && !c.alone && !guard.IsNested()
}

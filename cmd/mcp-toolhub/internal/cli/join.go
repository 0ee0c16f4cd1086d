package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/version"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/relay"
	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
)

// serveClient serves the client on stdin and stdout. If a hub of the same config runs on this
// machine, that hub serves the client, so each server runs once for all clients. When that hub
// ends, another one takes its place, or this process does. s is nil where the config cannot be
// read, for the reason unread: a hub that runs has it as it was before.
func (c *serveCmd) serveClient(ctx context.Context, s *config.Settings, unread error) error {
	state, err := c.findState()
	if err != nil {
		return err
	}
	var client *relay.Relay // nil until a hub was joined
	tookOver := false
	for brief := 0; ; {
		unlock := hub.LockHubs(state)
		var running *control.Joined
		var older *control.Client
		if brief < maxBrief {
			running, older, err = c.findHub(ctx, state, s)
		}
		switch {
		case err != nil:
		case running == nil && s == nil:
			err = unread
		case running == nil && c.join:
			err = errors.New("no hub of this config runs")
		case running == nil && client == nil:
			return c.serve(ctx, s, c.std, unlock)
		case running == nil:
			return c.serveRelayed(ctx, s, client, unlock)
		}
		unlock()
		if err != nil {
			return err
		}
		if older != nil && s != nil && !tookOver {
			tookOver = true
			if c.takeOver(ctx, s, older) {
				_ = running.Close()
				continue
			}
		}
		if client == nil {
			client = relay.New(c.std.in, c.std.out)
		}
		joined := time.Now()
		gone, err := c.relayed(ctx, client, running)
		if gone || err != nil {
			return err
		}
		if brief++; time.Since(joined) > briefly {
			brief = 0
		}
		s, unread = c.load(ctx) // it may be another one by now
	}
}

// If maxBrief hubs in a row end within the time briefly after the client has joined them, this
// process becomes the client's hub.
const (
	briefly  = 10 * time.Second
	maxBrief = 5
)

// wish says what this process wants of a hub, and what it is as a hub.
func (c *serveCmd) wish(path string) control.Wish {
	wd, _ := os.Getwd()
	w := control.Wish{Config: hub.Absolute(path), Style: c.style, Profile: c.profile, Dir: wd, Command: c.join,
		Version: hub.Version()}
	if c.rules != "" {
		w.Rules = hub.Absolute(c.rules)
	}
	return w
}

// findHub joins the first hub of the config that takes the client in. It returns nil where none
// does. older is that hub if its program is older than this one. s may be nil.
func (c *serveCmd) findHub(ctx context.Context, state string, s *config.Settings) (_ *control.Joined,
	older *control.Client, err error) {
	level, format, path := c.logLevel, c.logFormat, ""
	if s != nil {
		level, format, path = cmp.Or(level, s.Log.Level), cmp.Or(format, s.Log.Format), s.Path
	} else if path, err = c.configFile(); err != nil {
		return nil, nil, err
	}
	hubs, err := hub.Running(ctx, state, path)
	if err != nil {
		return nil, nil, nil // this one can serve
	}
	logger, err := newLogger(c.app, cmp.Or(level, "info"), cmp.Or(format, "auto"))
	if err != nil {
		return nil, nil, exitUsage.of(err)
	}
	wish := c.wish(path)
	if s != nil {
		wish.Variables = s.Variables
	}
	c.apart = ""
	for _, h := range hubs {
		joined, err := h.Join(ctx, wish)
		if err == nil {
			logger.Info("a hub that runs already serves this client", "pid", h.PID())
			if joined.Note != "" {
				logger.Warn(joined.Note, "pid", h.PID())
			}
			if isNewer(hub.Version(), h.Version()) && !c.join {
				older = h
			}
			return joined, older, nil
		}
		logger.Info("a hub that runs does not serve this client", "pid", h.PID(), "reason", err)
		c.apart = cmp.Or(c.apart, err.Error())
	}
	return nil, nil, nil
}

// takeOver lets a hub of this program take the place of an older one that nobody has to start by
// hand. It reports whether that worked.
func (c *serveCmd) takeOver(ctx context.Context, s *config.Settings, older *control.Client) bool {
	start := startCmd{c.app}
	done, err := false, error(nil)
	if older.Launched() {
		_, err = start.launch(ctx, s, false)
		done = err == nil
	} else if older.Shared() {
		done, err = start.startService(ctx, c.std.note)
	}
	if err != nil {
		c.std.warn("the hub that runs is older than this program, and goes on: %v", err)
	}
	return done
}

// isNewer reports whether one version is that of a later release than another.
func isNewer(one, other string) bool {
	one, other = "go"+strings.TrimPrefix(one, "v"), "go"+strings.TrimPrefix(other, "v")
	return version.IsValid(one) && version.IsValid(other) && version.Compare(one, other) > 0
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
// HTTP if the config has an address. It takes the place of one that start has started with an older program.
func (c *serveCmd) serveShared(ctx context.Context, s *config.Settings) error {
	unlock := hub.LockHubs(s.StateDir) // until this hub serves: nobody else takes the place of the one that ends
	running, _ := hub.SharedHub(ctx, s)
	switch {
	case running == nil:
	case c.anew || running.Launched() && isNewer(hub.Version(), running.Version()):
		c.std.note("this hub takes the place of process %d, of version %s", running.PID(), running.Version())
		if err := running.Stop(ctx); err != nil {
			unlock()
			return err
		}
	default:
		unlock()
		return fmt.Errorf("a shared hub of this config runs already, as process %d: mcp-toolhub stop ends it",
			running.PID())
	}
	return c.serve(ctx, s, c.std, unlock)
}

// takeLogin gives the hub the environment of the person's login shell, so that it does not matter
// whether a terminal or a desktop program starts it: the shell's PATH, with what only this process has
// at the end, and variables that are not set here. It reports whether anything has changed. A hub
// that serves its client alone keeps what its client gave it.
func (c *serveCmd) takeLogin(ctx context.Context) (changed bool) {
	shell, _ := c.std.getenv("SHELL")
	self, err := os.Executable()
	if err != nil || c.alone || run.IsNested() || !filepath.IsAbs(shell) || runtime.GOOS == "windows" {
		return false
	}
	env, err := run.LoginEnvironment(ctx, shell, self)
	if err != nil {
		c.std.warn("servers get the PATH of this process: %v", err)
		return false
	}
	ofShell := []string{"PWD", "OLDPWD", "SHLVL", "_"}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		have, set := c.std.getenv(name)
		if name == "PATH" {
			value = joinPaths(value, have)
		} else if set || slices.Contains(ofShell, name) {
			continue
		}
		changed = changed || value != have
		_ = os.Setenv(name, value) // fails only for a name that no shell has
	}
	return changed
}

// joinPaths returns the directories of both, each once.
func joinPaths(first, second string) string {
	var all []string
	for _, dir := range slices.Concat(filepath.SplitList(first), filepath.SplitList(second)) {
		if !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return strings.Join(all, string(filepath.ListSeparator))
}

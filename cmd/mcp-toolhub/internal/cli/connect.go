package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

const connectHelp = `Write the hub into the config of MCP clients, and show what changes before.

Only the entry "toolhub" is put into the file: comments, formatting, mode and owner stay. The old
file is kept beside it (.before-toolhub). Claude Code is told by claude mcp add, if that is in
PATH and there is no token. --replace also takes out the servers that are the same in both
configs. Run it again to change something: what no flag names stays. undo brings the file back.

Clients: `

const undoHelp = `Take out of MCP clients what connect has put there, and bring back what it has replaced.

Without CLIENT it undoes the last connect alone, for all clients that it has changed. Run it again
to undo the one before. With CLIENT or --all nothing is left of any connect. If nobody else has
written the file since, it is what it was before, byte for byte.`

// connectCmd runs the commands "connect" and "undo".
type connectCmd struct {
	*app
	all, http, stdio, replace, dryRun, yes bool
	profile                                string   // "" is that of an earlier connect
	keep                                   []string // ids of servers that clients keep, whatever replace says
}

func clientIDs() []string {
	var ids []string
	for _, c := range clients.All() {
		ids = append(ids, c.ID)
	}
	return ids
}

// clientList returns the ids of all clients, on lines of a help text.
func clientList() string {
	ids := clientIDs()
	return strings.Join(ids[:8], ", ") + ",\n" + strings.Join(ids[8:], ", ") + "."
}

func connectCommand(a *app) *cobra.Command {
	c := connectCmd{app: a}
	cmd := leaf("connect CLIENT…", "Write the hub into the config of MCP clients", connectHelp+clientList(),
		c.connect, "mcp-toolhub connect cursor vscode", "mcp-toolhub connect --all --replace --dry-run")
	cmd.ValidArgs = clientIDs()
	cmd.Flags().BoolVar(&c.all, "all", false,
		"every client that is on this machine; one whose file cannot be changed is left out")
	cmd.Flags().BoolVar(&c.http, "http", false, "clients reach a hub that runs at the config's hub.http.listen")
	cmd.Flags().BoolVar(&c.stdio, "stdio", false, "each client starts a hub, or joins one (default)")
	cmd.MarkFlagsMutuallyExclusive("http", "stdio")
	cmd.Flags().StringVar(&c.profile, "profile", "",
		"the `profile` that the clients see (default: that of an earlier connect, or "+namespace.DefaultProfile+")")
	a.completeFlag(cmd, "profile", profileNames)
	cmd.Flags().BoolVar(&c.replace, "replace", false, "take out the servers that the hub serves")
	c.stepFlags(cmd)
	return cmd
}

func undoCommand(a *app) *cobra.Command {
	c := connectCmd{app: a}
	cmd := leaf("undo [CLIENT…]", "Take the hub out of clients: undo the last connect", undoHelp, c.undo,
		"mcp-toolhub undo", "mcp-toolhub undo cursor")
	cmd.ValidArgs = clientIDs()
	cmd.Aliases = []string{"disconnect"}
	cmd.Flags().BoolVar(&c.all, "all", false, "every client that connect has changed")
	c.stepFlags(cmd)
	return cmd
}

func (c *connectCmd) stepFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
}

func (a *app) clientEnv() clients.Env { return clients.Env{OS: runtime.GOOS, Lookup: a.std.getenv} }

// named returns the clients of the command line.
func (c *connectCmd) named(ids []string) ([]*clients.Client, error) {
	if c.all == (len(ids) > 0) {
		return nil, exitUsage.errorf("name clients, or give --all")
	}
	var found []*clients.Client
	for _, id := range ids {
		one := clients.ByID(id)
		if one == nil {
			return nil, exitUsage.errorf("client %q is not known: known are %s", id, strings.Join(clientIDs(), ", "))
		}
		if !slices.ContainsFunc(found, func(have *clients.Client) bool { return have.ID == id }) {
			found = append(found, one)
		}
	}
	return found, nil
}

func (c *connectCmd) connect(ctx context.Context, ids []string) error {
	rows, err := c.named(ids)
	if err != nil {
		return err
	}
	if c.all {
		for _, one := range clients.All() {
			if one.Present(c.clientEnv()) {
				rows = append(append(rows, &one), one.Others(c.clientEnv())...)
			}
		}
		if len(rows) == 0 {
			return errNoClient
		}
	}
	s, err := c.load(ctx)
	if err != nil {
		return err
	}
	c.warn(s)
	if c.profile != "" &&
		!slices.ContainsFunc(s.Profiles, func(p namespace.Profile) bool { return p.Name == c.profile }) {
		return exitUsage.errorf("--profile %q: the config has no such profile", c.profile)
	}
	if c.http && !c.dryRun && s.Downstream.HTTP.Listen != "" {
		if s, err = giveToken(ctx, c.app, s, s.Downstream.HTTP.Listen); err != nil {
			return err
		}
	}
	served, err := c.served(s)
	if err != nil {
		return err
	}
	return c.step(ctx, func(record *clients.Connections) (plans []*clients.Plan, err error) {
		var leftOut []string
		for _, row := range rows {
			h, planErr := c.hub(s, row.ID, row.Hub(c.clientEnv()))
			h.IsOwn = address{s.Downstream.HTTP.PublicURL, s.Downstream.HTTP.Listen}.has
			if errors.As(planErr, new(*exitError)) {
				return nil, planErr
			}
			var p *clients.Plan
			if planErr == nil {
				p, planErr = record.Connect(row, h, func(have *clients.Server) bool {
					return c.replace && slices.ContainsFunc(served, have.Same)
				})
			}
			if planErr != nil { // all that is wrong, at once
				err = errors.Join(err, planErr)
				leftOut = append(leftOut, fmt.Sprintf("warning: %s is left out: %s", row.Title, planErr))
				continue
			}
			plans = append(plans, p)
		}
		if c.all && err != nil { // one client holds the others up only where somebody has named it
			fmt.Fprintln(c.std.err, strings.Join(leftOut, "\n"))
			if err = nil; len(plans) == 0 {
				err = errNoClient
			}
		}
		return plans, err
	})
}

// errNotConnected means that connect has changed no client.
var errNotConnected = errors.New("no client is connected: there is nothing to take out")

// errNoClient means that connect --all has found none.
var errNoClient = errors.New("no client whose file can be changed was found on this machine: name one")

// served returns the servers that the hub serves, with their secrets, for comparison. One that
// needs a setup first is not among them. Without --replace there is nothing to compare.
func (c *connectCmd) served(s *config.Settings) ([]clients.Server, error) {
	if !c.replace {
		return nil, nil
	}
	now := configEdit{app: c.app, target: s.Path}
	if err := now.open(); err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(clients.ReadHub(now.file, s.Path), func(one clients.Server) bool {
		return one.Disabled || slices.Contains(c.keep, one.Name) || slices.ContainsFunc(s.Upstream.Servers,
			func(sc upstream.ServerConfig) bool { return sc.ID == one.Name && sc.IsOff() })
	})
	for i := range all {
		all[i].Reveal(now.stored)
	}
	return all, nil
}

func configFormat(path string) splice.Format {
	if ext := strings.ToLower(filepath.Ext(path)); ext == ".json" || ext == ".jsonc" {
		return splice.JSON
	}
	return splice.YAML
}

// hub returns the command or address by which the client will reach the hub. Flags that were not given
// are as in have, the entry of an earlier connect, which may be nil. The error is an exitError unless
// it is about this client alone.
func (c *connectCmd) hub(s *config.Settings, client string, have *clients.Server) (clients.Hub, error) {
	profile, http := cmp.Or(c.profile, namespace.DefaultProfile), c.http
	if have != nil {
		profile = cmp.Or(c.profile, have.Profile(), namespace.DefaultProfile)
		http = http || have.URL != "" && !c.stdio
	}
	if !http {
		command, args := ownCommand()
		h := clients.Hub{Command: command,
			Args: slices.Concat(args, []string{"serve", "--stdio"}, hubFlags(c.app, s))}
		if profile != namespace.DefaultProfile {
			h.Args = append(h.Args, "--profile", profile)
		}
		return h, nil
	}
	host, port, err := net.SplitHostPort(s.Downstream.HTTP.Listen)
	if err != nil || port == "0" {
		return clients.Hub{}, exitUsage.errorf(
			"--http: the config names no address: set hub.http.listen, such as 127.0.0.1:8808")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	h := clients.Hub{URL: "http://" + net.JoinHostPort(host, port) + "/mcp"}
	if profile != namespace.DefaultProfile {
		h.URL += "/p/" + profile
	}
	tokens := slices.DeleteFunc(slices.Clone(s.Downstream.Auth.Tokens),
		func(t downstream.Token) bool { return !t.Expires.IsZero() })
	own := slices.IndexFunc(tokens, func(t downstream.Token) bool { return t.Name == client })
	switch {
	case own >= 0:
		h.Token = tokens[own].Secret
	case len(tokens) == 1:
		h.Token = tokens[0].Secret
	case len(tokens) > 1:
		return h, fmt.Errorf("the config has several tokens and none of the name %q: add one to hub.auth.tokens",
			client)
	}
	return h, nil
}

// hubFlags are the flags of this command line for a hub that another process starts, wherever that
// runs.
func hubFlags(a *app, s *config.Settings) []string {
	flags := []string{"--config", hub.Absolute(s.Path)}
	if a.stateDir != "" {
		flags = append(flags, "--state-dir", s.StateDir)
	}
	if a.rules != "" {
		flags = append(flags, "--rules", hub.Absolute(a.rules))
	}
	return flags
}

// ownCommand returns the program by which clients start the hub, and its first arguments. npx keeps
// programs in its cache, from where they go.
func ownCommand() (program string, args []string) {
	program = ownProgram()
	if !strings.Contains(filepath.ToSlash(program), "/_npx/") {
		return program, nil
	}
	name := "mcp-toolhub"
	if version, ok := strings.CutPrefix(hub.Version(), "v"); ok {
		name += "@" + version
	}
	return "npx", []string{"-y", name}
}

// ownProgram returns the path of this program: the one in PATH, which stays the same after an
// upgrade, otherwise the program's own.
func ownProgram() string {
	self, err := os.Executable()
	if err != nil {
		return "mcp-toolhub"
	}
	if found, err := exec.LookPath("mcp-toolhub"); err == nil {
		a, _ := os.Stat(found)
		b, _ := os.Stat(self)
		if path, err := filepath.Abs(found); err == nil && os.SameFile(a, b) {
			return path
		}
	}
	return self
}

func (c *connectCmd) undo(ctx context.Context, ids []string) error {
	if c.all || len(ids) > 0 {
		if _, err := c.named(ids); err != nil {
			return err
		}
	}
	return c.takeOut(ctx, ids, !c.all && len(ids) == 0)
}

// takeOut takes the hub out of clients; with last out of those of the last connect.
func (c *connectCmd) takeOut(ctx context.Context, ids []string, last bool) error {
	return c.step(ctx, func(record *clients.Connections) (plans []*clients.Plan, err error) {
		if last || c.all {
			if ids = record.IDs(last); len(ids) == 0 {
				return nil, errNotConnected
			}
		}
		for _, id := range ids {
			of, planErr := record.Disconnect(clients.ByID(id), last)
			err = errors.Join(err, planErr)
			plans = append(plans, of...)
		}
		return plans, err
	})
}

// step makes plans, shows them, asks the person, and carries out all of them or none.
func (c *connectCmd) step(ctx context.Context, plan func(*clients.Connections) ([]*clients.Plan, error)) error {
	state, err := c.findState()
	if err != nil {
		return err
	}
	record, unlock, err := clients.OpenConnections(state, c.clientEnv())
	if err != nil {
		return err
	}
	defer unlock()
	plans, err := plan(record)
	if errors.Is(err, errNotConnected) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w\nnothing was written", err)
	}
	changes := 0
	for _, p := range plans {
		if p.Nothing() {
			c.std.say("%s: nothing to do: %s", p.ID, p.Doc.Path)
			continue
		}
		changes++
		c.show(p)
		if p.Kept != "" {
			c.std.warn("%s: what its file held before an earlier connect stays in %s: undo does not bring it back",
				p.Title, p.Kept)
		}
	}
	if c.dryRun {
		return nil
	}
	if changes > 0 {
		if ok, err := c.agree(ctx, c.yes, fmt.Sprintf("Change %s? [Y/n]: ",
			textfile.Count(changes, "client"))); err != nil || !ok {
			return err
		}
	}
	if err := record.Do(ctx, plans); err != nil {
		return err
	}
	for _, p := range plans {
		if p.Failed != nil {
			c.std.warn("%s: its file was written directly: %s", p.Title, p.Failed)
		}
		if !p.Nothing() {
			c.std.note("%s: done: restart it, or reload its servers", p.Title)
		}
	}
	return nil
}

// show prints what a plan changes.
func (c *connectCmd) show(p *clients.Plan) {
	for _, words := range p.Commands {
		line := make([]string, len(words))
		for i, word := range words {
			line[i] = hub.ShellWord(word)
		}
		c.std.say("%s: runs %s", p.ID, printable(p.Mask(strings.Join(line, " "))))
	}
	if len(p.Commands) > 0 {
		return
	}
	c.printDiff(p.Doc.Path, p.Doc.Raw, p.After, p.Mask)
}

// agree is confirm unless the command line says yes, for commands with --dry-run.
func (a *app) agree(ctx context.Context, yes bool, question string) (bool, error) {
	if yes {
		return true, nil
	}
	ok, err := a.confirm(ctx, printable(question))
	if errors.Is(err, errNobody) {
		err = exitUsage.errorf("%w, or --dry-run to see what would change", errNobody)
	}
	return ok, err
}

// errNobody means that there is no terminal.
var errNobody = errors.New("nobody can be asked here: give --yes")

// confirm asks the person at the terminal. It fails where nobody can be asked.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	t := a.terminal()
	if t == nil {
		return false, exitUsage.of(errNobody)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.yes(ctx, question)
}

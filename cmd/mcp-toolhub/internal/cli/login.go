package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/login"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

const loginHelp = `Sign in to a server that asks for it, in the browser, and say which tools came.

The hub registers itself at the authorization server, and opens your browser. If it cannot
register itself, you are asked for a client that you registered by hand. The sign-in is kept in
the state directory, sealed. A hub that runs uses it at once.

On a machine without a browser use --no-browser: you enter a code on another device, or open
the address on another machine, and paste the address of 127.0.0.1 at which the browser ends.

With --url, or hub.http.public_url in the config, you sign in on a page of the hub that runs
there. Its token is read from $MCP_TOOLHUB_TOKEN.

A server with oauth: {identity: caller} takes a sign-in of each caller. --as NAME makes that of
the holder of a token; without it you sign in as the person of this machine.`

const logoutHelp = `Sign out of a server: forget the sign-in and revoke it at the authorization server.

A hub that runs stops using it at once. --as NAME signs out the holder of a token, where each
caller signs in.`

// loginTime bounds the wait for a person.
const loginTime = 10 * time.Minute

// loginCmd runs the commands "login" and "logout".
type loginCmd struct {
	*app
	scopes    []string
	noBrowser bool
	hubURL    string // of the hub on whose page to sign in; "" for none
	as        string // "" is the person of this machine, or all
}

// asFlag adds the flag --as.
func (c *loginCmd) asFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.as, "as", "", "for the `holder` of this token, where each caller signs in")
}

func loginCommand(a *app) *cobra.Command {
	c := &loginCmd{app: a}
	cmd := leaf("login SERVER", "Sign in to a server", loginHelp, c.login, "mcp-toolhub login github")
	cmd.ValidArgsFunction = a.complete(nil, serverNames)
	cmd.Flags().StringSliceVar(&c.scopes, "scope", nil,
		"ask for this `scope`, besides what the server asks for; may be repeated")
	c.asFlag(cmd)
	cmd.Flags().BoolVar(&c.noBrowser, "no-browser", false, "open no browser here: sign in on another device")
	cmd.Flags().StringVar(&c.hubURL, "url", "",
		"sign in on a page of the hub at this `URL` (default: hub.http.public_url, if a hub is there)")
	return cmd
}

func logoutCommand(a *app) *cobra.Command {
	c := &loginCmd{app: a}
	cmd := leaf("logout SERVER", "Sign out of a server", logoutHelp, c.logout, "mcp-toolhub logout github")
	cmd.ValidArgsFunction = a.complete(nil, serverNames)
	c.asFlag(cmd)
	return cmd
}

// find returns the settings of a server that the hub may sign in to, and where sign-ins are kept.
// The settings name that server alone.
func (c *loginCmd) find(ctx context.Context, id string) (upstream.Config, upstream.ServerConfig, error) {
	s, err := c.load(ctx)
	if err != nil {
		return upstream.Config{}, upstream.ServerConfig{}, err
	}
	c.warn(s)
	c.hubURL = s.Downstream.HTTP.PublicURL
	cfg := s.Upstream
	at := slices.IndexFunc(cfg.Servers, func(sc upstream.ServerConfig) bool { return sc.ID == id })
	var server upstream.ServerConfig
	switch {
	case at < 0:
		return cfg, server, noServer(id, cfg.IDs())
	case cfg.Servers[at].Transport == upstream.Stdio:
		return cfg, server, exitUsage.errorf(
			"server %q is a program, which signs in by itself: see its documentation", id)
	case cfg.Servers[at].Missing.What != "":
		return cfg, server, exitConfig.errorf("%s; %s", cfg.Servers[at].Missing.What, cfg.Servers[at].Missing.Hint)
	case !cfg.Servers[at].SignsIn():
		return cfg, server, exitUsage.errorf(
			"the entry of server %q gives Authorization in headers: remove that to sign in", id)
	}
	if err := hub.OpenStateDir(s.StateDir, slog.New(slog.DiscardHandler)); err != nil {
		return cfg, server, err
	}
	cfg.SignIns = hub.OpenSignIns(s)
	if cfg.Servers[at], err = c.person(cfg.SignIns, cfg.Servers[at], s.Downstream.Auth.Tokens); err != nil {
		return cfg, server, err
	}
	if cfg.Self, err = os.Executable(); err != nil {
		return cfg, server, fmt.Errorf("find this program: %w", err)
	}
	if cfg.Catalogs, err = persist.OpenCatalogs(filepath.Join(s.StateDir, "catalogs")); err != nil {
		return cfg, server, err
	}
	cfg.Servers[at].Disabled, cfg.Servers[at].Lazy = false, false
	if c.as != "" && c.as != tool.Local {
		cfg.Catalogs = nil // what one person is offered is not kept as the list of all
	}
	cfg.Servers, cfg.Version = cfg.Servers[at:at+1], hub.Version()
	return cfg, cfg.Servers[0], nil
}

// person returns the settings of server for the person whom the command line names: the holder of a
// token, or of one that there was.
func (c *loginCmd) person(store *signin.Store, server upstream.ServerConfig,
	tokens []downstream.Token) (upstream.ServerConfig, error) {
	if c.as == "" {
		return server, nil
	}
	if !server.OAuth.PerCaller {
		return server, exitUsage.errorf("all callers share the sign-in to server %q: leave --as out, or set oauth: "+
			"{identity: caller} in its entry", server.ID)
	}
	names := []string{tool.Local}
	for _, t := range tokens {
		names = append(names, t.Name)
	}
	known, err := store.People(server)
	if err != nil {
		return server, err
	}
	if !slices.Contains(slices.Concat(names, known), c.as) {
		return server, exitUsage.errorf("there is no token %q in hub.auth.tokens: %s", c.as,
			textfile.DidYouMean(c.as, names, "use one of "+strings.Join(names, ", ")))
	}
	return server.For(c.as), nil
}

func (c *loginCmd) login(ctx context.Context, id string) error {
	if c.hubURL != "" && c.as != "" {
		return exitUsage.errorf("at a hub you sign in as the holder of the token in $%s: leave --as out", tokenVariable)
	}
	if c.hubURL != "" && len(c.scopes) > 0 {
		return exitUsage.errorf(
			"at a hub you sign in with the scopes that the server asks for: leave --scope out, or set " +
				"oauth.scopes in the server's entry there")
	}
	if c.hubURL != "" {
		return c.atHub(ctx, c.hubURL, id)
	}
	cfg, server, err := c.find(ctx, id)
	if err != nil {
		return err
	}
	if c.hubURL != "" && !server.OAuth.Machine && !server.OAuth.PerCaller && len(c.scopes) == 0 {
		err := c.atHub(ctx, c.hubURL, id)
		if err == nil {
			return c.showTools(ctx, cfg)
		}
		if !errors.Is(err, errNoHub) {
			return err
		}
		c.std.note("You sign in on this machine: %s", printable(err.Error()))
	}
	if !server.OAuth.Machine {
		limited, cancel := context.WithTimeoutCause(ctx, loginTime, fmt.Errorf("it took more than %s", loginTime))
		defer cancel()
		l := signin.Login{Store: cfg.SignIns, Server: server, Scopes: c.scopes, Visit: c.visit, Device: c.noBrowser}
		if c.noBrowser {
			pasted := make(chan string, 1)
			l.Pasted = pasted
			l.Visit = func(address, code string) {
				c.visit(address, code)
				go func() { // not before: other questions are answered there, too
					if s := bufio.NewScanner(c.std.in); s.Scan() { // it ends with the program at the latest
						pasted <- s.Text()
					}
				}()
			}
		}
		if c.terminal() != nil {
			l.Ask = c.register
		}
		g, err := l.Run(limited)
		if ctx.Err() != nil {
			return exitInterrupted.errorf("interrupted: nobody has signed in")
		}
		if err != nil {
			return err
		}
		st := g.Status(g.Refresh != "", printable)
		if server.OAuth.PerCaller {
			st.Person = cmp.Or(server.Person, tool.Local)
		}
		c.std.say("%s: %s", id, printable(st.String()))
	}
	return c.showTools(ctx, cfg)
}

// visit shows the person where to sign in, and opens the browser unless that is not wanted.
func (c *loginCmd) visit(address, code string) {
	switch {
	case code != "":
		c.std.note("Open %s on any device and enter the code %s", printable(address), code)
	case c.noBrowser:
		c.std.note("Open this address, sign in, and paste the address that the browser ends at:\n\n%s\n",
			printable(address))
	case openBrowser(address) == nil:
		c.std.note("The browser opens. If it does not, open this address:\n\n%s\n", printable(address))
	default:
		c.std.note("Open this address in a browser on this machine:\n\n%s\n\nThere is none? Use --no-browser.",
			printable(address))
	}
}

// register asks the person for a client that they register by hand.
func (c *loginCmd) register(ctx context.Context, issuer, redirect string) (id, secret string, err error) {
	t := c.terminal()
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(c.std.err,
		"%s lets no client register itself. Register an application there by hand, with the redirect address\n\n%s\n\n"+
			"and enter what you get.\nclient id: ", printable(issuer), redirect)
	if id, _, err = t.line(ctx); err == nil && id != "" {
		secret, err = c.typedSecret("client secret (Enter for none)")
	}
	return id, secret, err
}

// showTools connects to the one server of cfg and prints which tools it has.
func (c *loginCmd) showTools(ctx context.Context, cfg upstream.Config) (err error) {
	group, err := upstream.NewGroup(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, group.Close(untilKilled(ctx))) }()
	group.Start(context.WithoutCancel(ctx))
	if err := group.WaitReady(ctx); err != nil {
		return exitInterrupted.errorf("interrupted while the server was starting")
	}
	st := group.Statuses()[0]
	if st.State != tool.ServerReady && st.LastError != "" {
		return exitNotReady.errorf("server %q is not ready: %s; %s", st.Server, st.LastError, st.Hint)
	}
	tools := group.Catalogs()[0].Tools
	c.std.say("%s: %s", st.Server, textfile.Count(len(tools), "tool"))
	for _, t := range tools {
		c.std.say("  %s", printable(string(t.Name)))
	}
	return nil
}

func (c *loginCmd) logout(ctx context.Context, id string) error {
	cfg, server, err := c.find(ctx, id)
	if err != nil {
		return err
	}
	said, err := hub.SignOut(ctx, cfg.SignIns, server)
	if said != "" {
		c.std.say("%s: %s", id, said)
	}
	return err
}

// openBrowser opens an address in the person's browser. It goes to a program as one argument, never through a shell.
func openBrowser(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("no web address")
	}
	program := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		program = []string{"open"}
	case "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.Command(program[0], append(program[1:], u.String())...)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// errNoHub says that no hub answers at an address.
var errNoHub = errors.New("no hub answers there")

// atHub signs in on the page of a running hub: browsers come back to that hub, wherever it is. It
// returns when somebody has signed in.
func (c *loginCmd) atHub(ctx context.Context, hubURL, id string) error {
	u, err := parseURL(hubURL)
	if err != nil {
		return err
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + downstream.BeginPath + url.PathEscape(id)
	ctx, cancel := context.WithTimeoutCause(ctx, loginTime, fmt.Errorf("it took more than %s", loginTime))
	defer cancel()
	resp, err := c.std.ask(ctx, http.MethodPost, u, nil)
	if err != nil {
		return fmt.Errorf("ask the hub at %s: %w: %w", u.Host, errNoHub, err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(resp.Body, 64<<10))
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("the hub at %s wants a token: set $%s", u.Host, tokenVariable)
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("the hub at %s has no server %q that somebody signs in to", u.Host, id)
	case resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusServiceUnavailable:
		return fmt.Errorf("ask the hub at %s: %w (status %d)", u.Host, errNoHub, resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the hub at %s answered with status %d", u.Host, resp.StatusCode)
	}
	var begun login.Begun
	if !readLineOf(lines, &begun) || begun.Address == "" {
		return fmt.Errorf("what the hub at %s answered is no address of a page", u.Host)
	}
	c.visit(begun.Address, begun.Code)
	var ended login.Ended
	switch {
	case !readLineOf(lines, &ended) && ctx.Err() != nil:
		return exitInterrupted.errorf("nobody has signed in: %w", context.Cause(ctx))
	case !ended.SignedIn && ended.Problem == "":
		return fmt.Errorf("the hub at %s has gone away before anybody signed in", u.Host)
	case !ended.SignedIn:
		return fmt.Errorf("nobody has signed in: %s", printable(ended.Problem))
	}
	c.std.say("%s: signed in at the hub", id)
	return nil
}

// readLineOf reads a line of JSON into v.
func readLineOf(lines *bufio.Scanner, v any) bool {
	return lines.Scan() && json.Unmarshal(lines.Bytes(), v) == nil
}

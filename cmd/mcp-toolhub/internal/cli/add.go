package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

const addHelp = `Add a server to the config: a program behind --, or a URL.

The hub shows what it will run or reach, and asks. The server begins without trust: what it
says of its tools loosens no rule. Without a NAME, one is made of the URL or the command.

${env:NAME} and other references of the config work in arguments, variables and headers.
--env NAME without a value takes the variable from the hub's environment. What looks like a
secret is moved into the sealed store (see secrets), and the config refers to it.

The rest of the config stays as it is. A hub that runs takes the server up by itself. The server is
tried at once, and you are asked whether tools that look as if they only read may run unasked.`

// addCmd runs the command "add".
type addCmd struct {
	configEdit
	env, headers []string
	dir, here    string // the program's directory; the one that a relative path means
	dryRun, yes  bool
}

func addCommand(a *app) *cobra.Command {
	c := addCmd{configEdit: configEdit{app: a}, here: hub.Absolute(".")}
	run := func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args, cmd.ArgsLenAtDash()) }
	cmd := leaf("add [NAME] {URL | -- COMMAND [ARG…]}", "Add a server to the config", addHelp, run,
		"mcp-toolhub add https://mcp.linear.app/mcp",
		"mcp-toolhub add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes",
		"mcp-toolhub add github https://api.githubcopilot.com/mcp/ --header 'Authorization: Bearer ${secret:GITHUB}'")
	cmd.Flags().StringArrayVarP(&c.env, "env", "e", nil,
		"a `NAME=VALUE` for the program's environment; may be repeated")
	cmd.Flags().StringArrayVarP(&c.headers, "header", "H", nil,
		"a `NAME: VALUE` for every request to the URL; may be repeated")
	cmd.Flags().StringVar(&c.dir, "cwd", "", "the program's working `directory` (default: your home directory, or this "+
		"one if an argument is a relative path)")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (c *addCmd) run(ctx context.Context, args []string, dash int) error {
	m, err := c.wanted(args, dash)
	if err != nil {
		return exitUsage.of(err)
	}
	if err := c.find(true); err != nil {
		return err
	}
	after, starts, err := c.with(m)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.std.out, printable(m.Name+": "+starts))
	if c.dryRun {
		c.printChange(after)
		return nil
	}
	if ok, err := c.agree(ctx, c.yes, fmt.Sprintf("Add it to %s? [Y/n]: ", c.target)); err != nil || !ok {
		return err
	}
	if err := c.store(after, m.Secrets); err != nil {
		return fmt.Errorf("%w\nnothing was added", err)
	}
	c.std.note("%s: added to %s", m.Name, c.target)
	return c.try(ctx, m.Name)
}

// with returns the config with the server in it, and what the server runs or reaches. Nothing is written.
func (c *addCmd) with(m *clients.Merged) (after *splice.File, starts string, err error) {
	if _, e, _ := c.server(c.file, m.Name); e != nil {
		return nil, "", exitUsage.errorf(
			"%s:%d: there is a server %q already: give another NAME, or first run: mcp-toolhub remove %s",
			c.target, e.Line, m.Name, m.Name)
	}
	m.MoveSecrets(c.keep(m.Secrets))
	after, err = c.file.Put(serversPlace(), m.Name, append(m.Entry(), splice.Member{Key: "trust", Value: false}))
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", c.target, err)
	}
	s, err := c.check(after, m.Secrets)
	if err != nil {
		return nil, "", faultsOf(err)
	}
	if why := missing(s, m.Name); why != "" {
		return nil, "", exitUsage.of(errors.New(why))
	}
	return after, s.Starts[m.Name], nil
}

// try says how a server starts: at the hub that runs, which takes it up by itself, otherwise alone.
func (c *addCmd) try(ctx context.Context, id string) error {
	of := func(r control.Report) int {
		return slices.IndexFunc(r.Servers, func(st tool.ServerStatus) bool {
			return st.Server == id && st.State != tool.ServerStarting
		})
	}
	alone := func(s *config.Settings) {
		s.Upstream.Servers = slices.DeleteFunc(s.Upstream.Servers,
			func(sc upstream.ServerConfig) bool { return sc.ID != id })
	}
	r, err := awaited(ctx, c.app, hub.Want{All: true, Change: alone},
		func(r control.Report) bool { return of(r) >= 0 })
	if i := of(r); err == nil && i >= 0 {
		c.std.say("%s", stateLine(r.Servers[i]))
		err = c.offerReaders(ctx, r, id)
	}
	return err
}

// wanted reads the command line. dash is the number of words before --, -1 for none.
func (c *addCmd) wanted(args []string, dash int) (*clients.Merged, error) {
	m := &clients.Merged{Secrets: map[string]string{}}
	name := args
	switch {
	case dash >= 0 && len(args) > dash:
		name, m.Command, m.Args, m.Dir = args[:dash], args[dash], args[dash+1:], c.dir
	case dash >= 0 || len(args) == 0:
		return nil, errors.New("name a URL, or a program behind --")
	default:
		name, m.URL = args[:len(args)-1], args[len(args)-1]
	}
	if u, err := url.Parse(m.URL); m.Command == "" && (err != nil || u.Host == "" || len(name) > 1) {
		return nil, fmt.Errorf("%q is no URL: write a program and its arguments behind --, for instance: "+
			"mcp-toolhub add files -- npx -y PACKAGE",
			clients.Mask(args[min(1, len(args)-1)]))
	}
	switch {
	case len(name) > 1:
		return nil, fmt.Errorf("there are %d words before --: give one NAME", len(name))
	case m.Command == "" && (len(c.env) > 0 || c.dir != ""):
		return nil, errors.New("--env and --cwd are for a program, not for a URL")
	case m.Command != "" && len(c.headers) > 0:
		return nil, errors.New("--header is for a URL, not for a program")
	}
	if m.Name = config.ServerID(strings.Join(name, "")); m.Name == "" && len(name) > 0 {
		return nil, fmt.Errorf("the name %q has no letter or digit", name[0])
	}
	m.Name = cmp.Or(m.Name, config.ServerID(derivedName(&m.Server)), "server")
	if m.Dir = m.WorkDir(); m.Command != "" && m.Dir == "" {
		m.Dir = c.here
	}
	m.SSE = strings.HasSuffix(m.URL, "/sse") // as the hub takes it
	for _, text := range c.env {
		variable, value, found := strings.Cut(text, "=")
		if !found {
			value = "${env:" + variable + "}"
		}
		m.Env = append(m.Env, clients.Pair{Name: variable, Value: value})
	}
	for _, text := range c.headers {
		header, value, found := strings.Cut(text, ":")
		if !found {
			return nil, errors.New("--header: write it as 'NAME: VALUE'")
		}
		m.Headers = append(m.Headers, clients.Pair{Name: strings.TrimSpace(header), Value: strings.TrimSpace(value)})
	}
	return m, nil
}

// derivedName makes a name of what a server runs or reaches: of its domain, or of its package.
func derivedName(s *clients.Server) string {
	if s.URL != "" {
		u, _ := url.Parse(s.URL) // wanted has parsed it
		labels := strings.Split(u.Hostname(), ".")
		if len(labels) == 1 || net.ParseIP(u.Hostname()) != nil {
			return u.Hostname()
		}
		return labels[len(labels)-2]
	}
	runners := []string{"npx", "npm", "pnpm", "yarn", "bun", "bunx", "uv", "uvx", "pipx", "node", "deno", "python",
		"python3", "docker", "podman"}
	word := program(s.Command)
	if slices.Contains(runners, word) {
		words := slices.DeleteFunc(slices.Clone(s.Args), func(arg string) bool {
			return strings.HasPrefix(arg, "-") || slices.Contains([]string{"run", "exec", "dlx", "x", "tool"}, arg)
		})
		if len(words) > 0 && (word == "docker" || word == "podman") { // before it stand values of options
			words = words[len(words)-1:]
		}
		if len(words) > 0 {
			word = program(words[0])
		}
	}
	for _, prefix := range []string{"mcp-server-", "server-", "mcp-"} {
		word = strings.TrimPrefix(word, prefix)
	}
	for _, suffix := range []string{"-mcp-server", "-mcp", "-server"} {
		word = strings.TrimSuffix(word, suffix)
	}
	return word
}

// program returns the name of a program, script, package or image, without path, version and extension.
func program(word string) string {
	word = path.Base(strings.ReplaceAll(word, `\`, "/"))
	word, _, _ = strings.Cut(word, "@")
	word, _, _ = strings.Cut(word, ":")
	for _, extension := range []string{".exe", ".cmd", ".js", ".mjs", ".ts", ".py"} {
		word = strings.TrimSuffix(word, extension)
	}
	return word
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

const importHelp = `Take the servers of MCP clients into the config of the hub. The clients keep theirs: see connect
--replace.

Servers that are the same become one. You are asked about others of one name. Secrets that stand
in a client's file are moved into the sealed store (see secrets), and the config refers to them as
${secret:NAME}. A server is disabled where the client has disabled it, or while a variable that it
needs is not set. Tools that a client has disabled are left out of the default profile.

The servers go into --config, $MCP_TOOLHUB_CONFIG or the config in your config directory, with a
comment that says where each comes from. What stands there stays. If anything fails, nothing is
changed.`

// importCmd runs the command "import".
type importCmd struct {
	*app
	from        []string
	dryRun, yes bool

	target string // the config
	doc    *clients.Document
	file   *splice.File // what target says
	state  string
	stored map[string]string // secrets
}

func importCommand(a *app) *cobra.Command {
	c := importCmd{app: a}
	cmd := &cobra.Command{
		Use: "import", Short: "Take the servers of MCP clients into the config", Long: importHelp, Args: cobra.NoArgs,
		Example: "  mcp-toolhub import --dry-run\n  mcp-toolhub import --from cursor --from ~/project/.mcp.json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().StringArrayVar(&c.from, "from", nil, "a `client or file`, several times for several (default: every client on this machine)")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show what would be imported, and change nothing")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask: of different servers of one name, import each, with the client in its name")
	return cmd
}

func (c *importCmd) run(ctx context.Context) error {
	if err := c.openTarget(); err != nil {
		return err
	}
	found, err := c.found()
	if err != nil {
		return err
	}
	fresh, err := c.fresh(ctx, clients.Merge(found))
	if err != nil {
		return err
	}
	if len(fresh) == 0 {
		fmt.Fprintf(c.std.out, "nothing to import: %s has all servers that were found\n", c.target)
		return nil
	}
	for _, m := range fresh {
		c.prepare(m)
	}
	after, taken, err := c.written(fresh)
	if err != nil {
		return err
	}
	if c.dryRun {
		from := c.target
		if c.doc.Raw == nil {
			from = os.DevNull
		}
		for line := range strings.Lines(udiff.Unified(from, c.target, string(c.doc.Raw), string(after.Bytes()))) {
			fmt.Fprintln(c.std.out, printable(strings.TrimRight(line, "\r\n")))
		}
	} else if err := c.store(after, taken); err != nil {
		return failed(fmt.Errorf("%w\nnothing was imported", err))
	}
	return c.report(taken)
}

// openTarget reads the config that the servers go into.
func (c *importCmd) openTarget() (err error) {
	c.target = cmp.Or(c.configPath, config.Named(c.std.getenv), config.UserFile(c.std.getenv))
	if c.target == "" {
		return &exitError{exitUsage, errors.New("the environment names no home directory: give --config")}
	}
	if c.state, err = c.findState(); err != nil {
		return err
	}
	if c.doc, err = clients.Open(c.target); err != nil {
		return failed(err)
	}
	if c.stored, err = secrets.Read(c.state); err != nil {
		return failed(err)
	}
	raw := c.doc.Raw
	if raw != nil {
		if _, err := config.LoadText(c.source(nil), raw); err != nil {
			return &exitError{exitConfig, err}
		}
	} else if configFormat(c.target) == splice.YAML {
		raw = []byte("# Servers that mcp-toolhub import has taken over from MCP clients. Add to it what you like.\n")
	}
	c.file, err = splice.Read(configFormat(c.target), raw)
	return failed(err)
}

// source is the config with more secrets than are stored.
func (c *importCmd) source(more map[string]string) config.Source {
	return config.Source{Path: c.target, StateDir: c.stateDir, Env: c.std.getenv, HubTools: hubToolNames(), Secrets: more}
}

// found reads the servers of the clients. A client's file that cannot be read is named, and the others go on.
func (c *importCmd) found() (all []clients.Server, err error) {
	env := c.clientEnv()
	if len(c.from) == 0 {
		for _, one := range clients.All() {
			path := one.File(env)
			if _, err := os.Stat(path); err != nil {
				continue
			}
			f, err := one.ReadClient(path)
			if err != nil {
				fmt.Fprintf(c.std.err, "warning: %s is left out: %s\n", one.Title, err)
				continue
			}
			all = append(all, one.Read(f, path)...)
		}
		return all, nil
	}
	for _, from := range c.from {
		path, one := from, clients.ByID(from)
		var f *splice.File
		if one != nil {
			path = one.File(env)
			f, err = one.ReadClient(path)
		} else {
			var d *clients.Document
			if d, err = clients.Open(from); err == nil && d.Raw == nil {
				err = fmt.Errorf("--from %q: there is no such file, and no such client: known are %s", from, strings.Join(clientIDs(), ", "))
			}
			if err == nil {
				one, f, err = clients.Detect(path, env, func(format splice.Format) (*splice.File, error) { return clients.ReadText(format, d, path) })
			}
			if err == nil && one == nil {
				err = fmt.Errorf("--from %q: no servers were found there", from)
			}
		}
		if err != nil {
			return nil, failed(err)
		}
		all = append(all, one.Read(f, path)...)
	}
	return all, nil
}

// fresh returns the servers that the config does not have, each with a name of its own.
func (c *importCmd) fresh(ctx context.Context, all []*clients.Merged) ([]*clients.Merged, error) {
	var have []clients.Server
	for _, s := range clients.ReadHub(c.file, c.target) {
		s.Name = config.ServerID(s.Name)
		s.Reveal(c.stored)
		have = append(have, s)
	}
	var fresh []*clients.Merged
	var open []string
	for _, m := range all {
		if slices.ContainsFunc(have, m.Same) {
			continue
		}
		m.Name = cmp.Or(config.ServerID(m.Name), "server")
		same := func(s clients.Server) bool { return s.Name == m.Name }
		if i := slices.IndexFunc(have, same); i >= 0 {
			keep, err := c.both(ctx, &have[i], m)
			if err != nil {
				open = append(open, err.Error())
			}
			if !keep {
				continue
			}
			base := m.Name + "-" + m.Client
			m.Name = base
			for n := 2; slices.ContainsFunc(have, same); n++ {
				m.Name = base + "-" + strconv.Itoa(n)
			}
		}
		have = append(have, m.Server)
		fresh = append(fresh, m)
	}
	if len(open) > 0 {
		return nil, failed(errors.New(strings.Join(open, "\n") + "\nnobody can be asked here: give --yes to import each, or name a " +
			"client with --from"))
	}
	return fresh, nil
}

// both asks whether a server is imported beside another of its name.
func (c *importCmd) both(ctx context.Context, have *clients.Server, m *clients.Merged) (bool, error) {
	if c.yes {
		return true, nil
	}
	question := fmt.Sprintf("There are two different servers %q:\n  %s\n  %s", m.Name, have.Origin, m.Origin)
	if c.app.terminal() == nil {
		return false, errors.New(question)
	}
	return c.confirm(ctx, printable(question)+"\n"+printable(fmt.Sprintf("Import the second, too, as %s-%s? [y/n]: ", m.Name, m.Client)))
}

// prepare moves the secrets of a server, and disables it where something is missing that it needs.
func (c *importCmd) prepare(m *clients.Merged) {
	m.Secrets = map[string]string{}
	m.MoveSecrets(func(name, secret string) string {
		base := name
		for n := 2; ; n++ {
			if have, ok := c.stored[name]; !ok || have == secret {
				break
			}
			name = base + "-" + strconv.Itoa(n)
		}
		c.stored[name], m.Secrets[name] = secret, secret
		return name
	})
	if m.Disabled {
		m.Notes = append(m.Notes, "its client has disabled it")
	}
	for _, name := range m.Variables() {
		if _, set := c.std.getenv(name); !set {
			m.Disabled = true
			m.Notes = append(m.Notes, "disabled while the variable "+name+" is not set")
		}
	}
	for _, name := range m.Unanswered {
		if _, ok := c.stored[name]; !ok {
			m.Disabled = true
			m.Notes = append(m.Notes, "disabled until you run: mcp-toolhub secrets set "+name)
		}
	}
	if len(m.On) > 0 {
		m.Notes = append(m.Notes, "its client uses these tools alone: "+strings.Join(m.On, ", "))
	}
}

// written returns the config with the servers in it, and those that are. One that the hub cannot have is left out, with a warning.
func (c *importCmd) written(fresh []*clients.Merged) (*splice.File, []*clients.Merged, error) {
	for len(fresh) > 0 {
		f, err := c.put(fresh)
		if err != nil {
			return nil, nil, failed(fmt.Errorf("%s: %w", c.target, err))
		}
		more := map[string]string{}
		for _, m := range fresh {
			for name, secret := range m.Secrets {
				more[name] = secret
			}
		}
		_, err = config.LoadText(c.source(more), f.Bytes())
		if err == nil {
			return f, fresh, nil
		}
		var faults textfile.Faults
		errors.As(err, &faults)
		before := len(fresh)
		fresh = slices.DeleteFunc(slices.Clone(fresh), func(m *clients.Merged) bool {
			for _, fault := range faults {
				if fault.Key == "mcpServers."+m.Name || strings.HasPrefix(fault.Key, "mcpServers."+m.Name+".") {
					fmt.Fprintf(c.std.err, "warning: %s of %s is left out: %s: %s\n", m.Name, m.Origin, fault.Key, fault.Message)
					return true
				}
			}
			return false
		})
		if len(fresh) == before {
			return nil, nil, &exitError{exitConfig, err}
		}
	}
	return nil, nil, failed(errors.New("no server is left that could be imported"))
}

func (c *importCmd) put(fresh []*clients.Merged) (*splice.File, error) {
	f, err := c.file, error(nil)
	var off []string
	for _, m := range fresh {
		var comments []string
		for _, origin := range m.Origins {
			comments = append(comments, "from "+oneLine(origin))
		}
		for _, note := range m.Notes {
			comments = append(comments, oneLine(note))
		}
		if f, err = f.Put(splice.Place{Path: []string{"mcpServers"}}, m.Name, m.Entry(), comments...); err != nil {
			return nil, err
		}
		for _, tool := range m.Off {
			off = append(off, "mcp."+m.Name+"."+tool)
		}
	}
	if len(off) == 0 {
		return f, nil
	}
	profiles := splice.Place{Path: []string{"profiles"}}
	if f.Entry(profiles, "default") != nil {
		return f, c.excluded(f, off)
	}
	return f.Put(profiles, "default", splice.Object{{Key: "exclude", Value: off}}, "tools that clients have disabled")
}

// excluded makes sure that a profile which is there already leaves out the tools that clients have disabled.
func (c *importCmd) excluded(f *splice.File, off []string) error {
	var have []string
	if exclude := f.At("profiles", "default", "exclude"); exclude != nil {
		for _, item := range exclude.Items {
			have = append(have, item.Text)
		}
	}
	off = slices.DeleteFunc(off, func(name string) bool { return slices.Contains(have, name) })
	if len(off) == 0 {
		return nil
	}
	return fmt.Errorf("clients have disabled some tools: add them to profiles.default.exclude first, then import again: [%s]",
		strings.Join(off, ", "))
}

// oneLine makes a text fit for a comment.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

// store stores the secrets and the config, or neither.
func (c *importCmd) store(after *splice.File, taken []*clients.Merged) error {
	was := map[string]*string{}
	change := func(add bool) error {
		return secrets.Change(c.state, func(all map[string]string) error {
			for _, m := range taken {
				for name, secret := range m.Secrets {
					if !add && was[name] == nil {
						delete(all, name)
						continue
					}
					if have, ok := all[name]; ok && add {
						if have != secret {
							return fmt.Errorf("the secret %q was stored meanwhile: run the command again", name)
						}
						was[name] = &have
					}
					all[name] = secret
				}
			}
			return nil
		})
	}
	moves := slices.ContainsFunc(taken, func(m *clients.Merged) bool { return len(m.Secrets) > 0 })
	if moves {
		if err := change(true); err != nil {
			return err
		}
	}
	err := clients.Apply([]*clients.Change{{Document: c.doc, After: after.Bytes()}})
	if err != nil && moves {
		err = errors.Join(err, change(false))
	}
	return err
}

func (c *importCmd) report(taken []*clients.Merged) error {
	t := newTable("SERVER", "FROM", "SECRETS", "RUNS OR REACHES")
	for _, m := range taken {
		t.add(m.Name, m.Client, strconv.Itoa(len(m.Secrets)), summary(m.Line(), 60))
	}
	fmt.Fprint(c.std.out, t.text(tableWidth, false))
	for _, m := range taken {
		for _, note := range m.Notes {
			fmt.Fprintf(c.std.out, "%s: %s\n", m.Name, printable(note))
		}
	}
	if !c.dryRun {
		fmt.Fprintf(c.std.err, "%s imported into %s. Next: mcp-toolhub check, then mcp-toolhub connect --all --replace\n",
			count(len(taken), "server"), c.target)
	}
	return nil
}

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

const importHelp = `Take the servers of MCP clients into the config of the hub. The clients keep theirs: see connect
--replace.

Equal servers become one. You are asked about different servers of one name. Secrets are moved
into the sealed store (see secrets); the config refers to them as ${secret:NAME}. A program
without a directory runs in your home directory (cwd), so that all clients share it, unless its
entry has a relative path or is for one project, which stays its directory then. A server is
disabled if the client has disabled it, or a variable that it needs is not set. Disabled tools
become disabledTools. Variables that its kind uses, such as SSH_AUTH_SOCK for git, go to hub.env.

The servers go into the config that the hub uses here, otherwise into a new one in your config
directory. A comment says where each comes from. If anything fails, nothing is changed.`

// importCmd runs the command "import".
type importCmd struct {
	configEdit
	from        []string
	dryRun, yes bool
	passed      []string // names that were put into hub.env
	guided      bool     // a step of setup: the person is asked, and told nothing of the next step

	imported map[string][]string // the names of servers that an import has put into a config, by its path
}

// importedFile holds importCmd.imported, in the state directory.
const importedFile = "imported.json"

func importCommand(a *app) *cobra.Command {
	c := importCmd{configEdit: configEdit{app: a}}
	cmd := leaf("import", "Take the servers of MCP clients into the config", importHelp, c.run,
		"mcp-toolhub import --dry-run",
		"mcp-toolhub import --from cursor --from ~/project/.mcp.json")
	cmd.Flags().StringArrayVar(&c.from, "from", nil,
		"a `client or file`, several times for several (default: every client on this machine)")
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show what would be imported, and change nothing")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false,
		"do not ask: of different servers of one name, import each, with the client in its name")
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
	found = slices.DeleteFunc(found, c.isHub)
	fresh, err := c.fresh(ctx, clients.Merge(found))
	if err != nil {
		return err
	}
	switch {
	case len(found) == 0:
		c.std.say("nothing to import: no server was found in the clients on this machine")
		return nil
	case len(fresh) == 0:
		c.std.say("nothing to import: %s has all servers that were found", c.target)
		return nil
	}
	for _, m := range fresh {
		c.prepare(m)
	}
	after, taken, err := c.written(fresh)
	if err != nil {
		return err
	}
	if len(taken) == 0 {
		c.std.say("nothing to import: no other server is new")
		return nil
	}
	if c.guided {
		c.report(taken)
		if ok, err := c.agree(ctx, c.yes, fmt.Sprintf("Import %s into %s? [Y/n]: ",
			textfile.Count(len(taken), "server"),
			c.target)); err != nil || !ok {
			return err
		}
	}
	if c.dryRun {
		c.printChange(after)
	} else if err := c.store(after, secretsOf(taken)); err != nil {
		return fmt.Errorf("%w\nnothing was imported", err)
	} else if err := c.remember(taken); err != nil {
		return err
	}
	if c.guided {
		return nil
	}
	c.report(taken)
	if !c.dryRun {
		c.std.note("%s imported into %s. Next: mcp-toolhub check, then mcp-toolhub connect --all --replace",
			textfile.Count(len(taken), "server"), c.target)
	}
	return nil
}

// openTarget reads the config that the servers go into.
func (c *importCmd) openTarget() (err error) {
	if err := c.find(true); err != nil {
		return err
	}
	if c.doc.Raw != nil {
		if text, err := os.ReadFile(filepath.Join(c.state, importedFile)); err == nil {
			_ = json.Unmarshal(text, &c.imported) // a damaged file is as good as none
		}
		if _, err := c.check(c.file, nil); err != nil {
			return exitConfig.of(err)
		}
	} else if configFormat(c.target) == splice.YAML {
		c.file, err = splice.Read(splice.YAML,
			[]byte("# Servers that mcp-toolhub import has taken over from MCP clients. Add to it what you like.\n"))
	}
	return err
}

// remember notes which servers were imported, so that the next import knows which of them were removed since.
func (c *importCmd) remember(taken []*clients.Merged) error {
	if c.imported == nil {
		c.imported = make(map[string][]string)
	}
	for _, m := range taken {
		if names := c.imported[c.target]; !slices.Contains(names, m.Name) {
			c.imported[c.target] = append(names, m.Name)
		}
	}
	text, err := json.Marshal(c.imported)
	if err == nil {
		err = statefile.Write(filepath.Join(c.state, importedFile), text)
	}
	return err
}

// again asks whether to import a server that was imported before and is not in the config any more.
func (c *importCmd) again(ctx context.Context, m *clients.Merged) (bool, error) {
	if len(c.from) > 0 {
		return true, nil
	}
	if c.yes || c.dryRun || c.terminal() == nil {
		c.std.note("%s is left out, as it was removed from the config: import --from %s takes it again", m.Name, m.Client)
		return false, nil
	}
	return c.confirm(ctx, printable(fmt.Sprintf("%s of %s was removed from the config. Import it again? [y/N]: ",
		m.Name, m.Origin)))
}

// found reads the servers of the clients. A client's file that cannot be read is named, and the others go on.
func (c *importCmd) found() (all []clients.Server, err error) {
	env := c.clientEnv()
	for _, from := range c.from {
		found, err := readFrom(from, env)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if len(c.from) > 0 {
		return all, nil
	}
	for _, one := range clients.All() {
		for _, source := range one.Sources(env) {
			if _, err := os.Stat(source.Path); err != nil {
				continue
			}
			f, err := source.ReadClient(source.Path)
			if err != nil {
				c.std.warn("%s is left out: %s", one.Title, err)
				continue
			}
			all = append(all, source.Read(f, source.Path)...)
		}
	}
	return all, nil
}

// readFrom reads the servers of a client, or of a file.
func readFrom(from string, env clients.Env) (all []clients.Server, err error) {
	if one := clients.ByID(from); one != nil {
		for _, source := range one.Sources(env) {
			f, err := source.ReadClient(source.Path)
			if err != nil {
				return nil, err
			}
			all = append(all, source.Read(f, source.Path)...)
		}
		return all, nil
	}
	d, err := clients.Open(from)
	if err == nil && d.Raw == nil {
		err = fmt.Errorf("--from %q: there is no such file, and no such client: known are %s", from,
			strings.Join(clientIDs(), ", "))
	}
	if err != nil {
		return nil, err
	}
	one, f, err := clients.Detect(from, env, func(format splice.Format) (*splice.File, error) {
		return clients.ReadText(format, d, from)
	})
	if err == nil && one == nil {
		err = fmt.Errorf("--from %q: no servers were found there", from)
	}
	if err != nil {
		return nil, err
	}
	return one.Read(f, from), nil
}

// isHub reports whether the server is the hub of the config: at its address, or through a program
// that connects to the address.
func (c *importCmd) isHub(s clients.Server) bool {
	own := address{}
	if n := c.file.At("hub", "http", "public_url"); n != nil {
		own.public = strings.TrimRight(n.Text, "/")
	}
	if n := c.file.At("hub", "http", "listen"); n != nil {
		own.listen = n.Text
	}
	return slices.ContainsFunc(append([]string{s.URL}, s.Args...), own.has)
}

// address is where the hub is reached, by hub.http of its config; "" for nowhere.
type address struct{ public, listen string }

// has reports whether a word is an address of the hub.
func (a address) has(word string) bool {
	u, err := url.Parse(word)
	if err != nil || u.Host == "" {
		return false
	}
	below := func(base string) bool { return u.Path == base+"/mcp" || strings.HasPrefix(u.Path, base+"/mcp/") }
	if public, err := url.Parse(a.public); err == nil && strings.EqualFold(public.Host, u.Host) && below(public.Path) {
		return true
	}
	host, port, err := net.SplitHostPort(a.listen)
	here := func(host string) bool {
		ip := net.ParseIP(host)
		return host == "" || host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
	}
	return err == nil && below("") && u.Port() == port && (u.Hostname() == host || here(host) && here(u.Hostname()))
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
		} else if slices.Contains(c.imported[c.target], m.Name) {
			if ok, err := c.again(ctx, m); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
		}
		have = append(have, m.Server)
		fresh = append(fresh, m)
	}
	if len(open) > 0 {
		hint := "name a client with --from"
		if c.guided {
			hint = "begin with mcp-toolhub import --from CLIENT"
		}
		return nil, errors.New(strings.Join(open, "\n") +
			"\nnobody can be asked here: give --yes to import each, or " + hint)
	}
	return fresh, nil
}

// both asks whether a server is imported beside another of its name.
func (c *importCmd) both(ctx context.Context, have *clients.Server, m *clients.Merged) (bool, error) {
	if c.yes || c.dryRun {
		return true, nil
	}
	question := fmt.Sprintf("There are two different servers %q:\n  %s: %s\n  %s: %s", m.Name, have.Origin,
		hidden.Summary(have.Line(), 60), m.Origin, hidden.Summary(m.Line(), 60))
	if c.app.terminal() == nil {
		return false, errors.New(question)
	}
	return c.confirm(ctx, printable(question)+"\n"+
		printable(fmt.Sprintf("Import the second, too, as %s-%s? [Y/n]: ", m.Name, m.Client)))
}

// prepare moves the secrets of a server, and disables it where something is missing that it needs.
func (c *importCmd) prepare(m *clients.Merged) {
	if m.Dir = m.WorkDir(); m.Command != "" && m.Dir == "" {
		m.Notes = append(m.Notes, "set cwd: it has a relative path, and its client does not say where from")
	}
	m.Secrets = map[string]string{}
	m.MoveSecrets(c.keep(m.Secrets))
	if m.Disabled {
		m.Notes = append(m.Notes, "its client has disabled it")
	}
	if id := m.SignIn; id.ID != "" && id.Redirect == "" {
		m.Notes = append(m.Notes, fmt.Sprintf("it was registered by hand for sign-ins, as %s: add the redirect address "+
			"http://127.0.0.1:PORT%s there, or set redirect to one that is registered", id.ID, signin.CallbackPath))
	}
	for _, name := range m.Variables() {
		if _, set := c.std.getenv(name); !set {
			m.Disabled = true
			m.Notes = append(m.Notes, "disabled while the variable "+name+" is not set")
		}
	}
	if len(m.Untaken) > 0 {
		slices.Sort(m.Untaken)
		m.Disabled = true
		m.Notes = append(m.Notes, "disabled until you write by hand what could not be taken over: "+
			strings.Join(slices.Compact(m.Untaken), ", "))
	}
	for _, name := range m.Unanswered {
		if _, ok := c.stored[name]; !ok {
			m.Disabled = true
			m.Notes = append(m.Notes, "disabled until you run: mcp-toolhub secrets set "+name)
		}
	}
}

// written returns the config with the servers in it, and those that are. One that the hub cannot
// have is left out, with a warning. It returns nothing where none is left.
func (c *importCmd) written(fresh []*clients.Merged) (*splice.File, []*clients.Merged, error) {
	for len(fresh) > 0 {
		f, err := c.put(fresh)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.target, err)
		}
		_, err = c.check(f, secretsOf(fresh))
		if err == nil {
			return f, fresh, nil
		}
		var faults textfile.Faults
		errors.As(err, &faults)
		before := len(fresh)
		fresh = slices.DeleteFunc(slices.Clone(fresh), func(m *clients.Merged) bool {
			for _, fault := range faults {
				if within(fault.Key, m.Name) {
					c.std.warn("%s of %s is left out: %s: %s", m.Name, m.Origin, fault.Key, fault.Message)
					return true
				}
			}
			return false
		})
		if len(fresh) == before {
			return nil, nil, exitConfig.of(err)
		}
	}
	return nil, nil, nil
}

// within reports whether a key path of a fault is that of a server's entry, or below.
func within(key, server string) bool {
	// as faults quote some names
	for _, entry := range []string{"mcpServers." + server, "mcpServers[" + shape.Quote(server) + "]"} {
		if rest, found := strings.CutPrefix(key, entry); found && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

func (c *importCmd) put(fresh []*clients.Merged) (*splice.File, error) {
	f, err := c.file, error(nil)
	for _, m := range fresh {
		var comments []string
		for _, origin := range m.Origins {
			comments = append(comments, "from "+oneLine(origin))
		}
		for _, note := range m.Notes {
			comments = append(comments, oneLine(note))
		}
		if f, err = f.Put(serversPlace(), m.Name, m.Entry(), comments...); err != nil {
			return nil, err
		}
	}
	var needed []string
	for _, m := range fresh {
		if !m.Disabled {
			needed = append(needed, config.Needed(c.std.getenv, m.Command, m.Args)...)
		}
	}
	f, c.passed, err = putEnv(f, needed)
	return f, err
}

// secretsOf returns the secrets that were taken out of servers, by name.
func secretsOf(all []*clients.Merged) map[string]string {
	found := map[string]string{}
	for _, m := range all {
		maps.Copy(found, m.Secrets)
	}
	return found
}

// oneLine makes a text fit for a comment.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

// report says what is imported.
func (c *importCmd) report(taken []*clients.Merged) {
	t := newTable("SERVER", "FROM", "SECRETS", "RUNS OR REACHES", "REFERS TO")
	for _, m := range taken {
		t.add(m.Name, m.Client, strconv.Itoa(len(m.Secrets)), hidden.Summary(m.Line(), 40),
			printable(strings.Join(m.References(), " ")))
	}
	_ = c.std.printTable(t)
	for _, m := range taken {
		for _, note := range m.Notes {
			c.std.say("%s: %s", m.Name, printable(note))
		}
	}
	if len(c.passed) > 0 {
		c.std.say("hub.env: programs get these variables, which some of them use: %s", strings.Join(c.passed, ", "))
	}
}

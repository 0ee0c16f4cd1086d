package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const disableHelp = `Take servers or tools out of use.

A server is stopped, and its tools are gone. A tool is neither listed nor run, for no client:
name it as tools list does, mcp.SERVER.TOOL. mcp.SERVER.delete_* means all that match.

The rest of the config stays as it is. A hub that runs takes the change up by itself.`

const enableHelp = `Take servers or tools into use again, which disable has taken out of it.

The rest of the config stays as it is. A hub that runs takes the change up by itself.`

const removeHelp = `Take servers out of the config, with the comments right above them.

The rest of the config stays as it is. A hub that runs stops the servers by itself. Secrets
and sign-ins stay: see secrets remove and logout.`

// enableCmd runs the commands "enable", "disable" and "remove".
type enableCmd struct {
	configEdit
	dryRun bool
}

// oneEdit makes the change for one name, and says what it has done; "" for nothing.
type oneEdit func(c *enableCmd, ctx context.Context, f *splice.File, name string) (*splice.File, string, error)

// editCommand returns a command that makes edit for each of its words.
func editCommand(a *app, use, short, long string, edit oneEdit, examples ...string) *cobra.Command {
	c := &enableCmd{configEdit: configEdit{app: a}}
	cmd := leaf(use, short, long, func(ctx context.Context, args []string) error { return c.run(ctx, args, edit) },
		examples...)
	cmd.Args, cmd.ValidArgsFunction = cobra.MinimumNArgs(1), a.complete(nil, serverNames)
	cmd.Flags().BoolVar(&c.dryRun, "dry-run", false, "show what would change, and change nothing")
	return cmd
}

func enableCommand(a *app) *cobra.Command {
	return editCommand(a, "enable {SERVER | TOOL}…", "Take servers or tools into use", enableHelp,
		(*enableCmd).enable, "mcp-toolhub enable github", "mcp-toolhub enable mcp.github.delete_repo")
}

func disableCommand(a *app) *cobra.Command {
	cmd := editCommand(a, "disable {SERVER | TOOL}…", "Take servers or tools out of use", disableHelp,
		(*enableCmd).disable, "mcp-toolhub disable github", "mcp-toolhub disable mcp.github.delete_repo")
	cmd.ValidArgsFunction = a.complete(nil, func(all completable) []string {
		return slices.Concat(all.servers, all.tools)
	})
	return cmd
}

func removeCommand(a *app) *cobra.Command {
	return editCommand(a, "remove SERVER…", "Take servers out of the config", removeHelp,
		(*enableCmd).remove, "mcp-toolhub remove github")
}

// run makes all edits or none.
func (c *enableCmd) run(ctx context.Context, names []string, edit oneEdit) error {
	if err := c.find(false); err != nil {
		return err
	}
	after := c.file
	var all []string
	for _, name := range names {
		f, said, err := edit(c, ctx, after, name)
		if err != nil && !errors.As(err, new(*exitError)) {
			err = fmt.Errorf("%s: %s: %w", c.target, name, err)
		}
		if err != nil {
			return err
		}
		after = f
		all = append(all, name+": "+said)
	}
	if string(after.Bytes()) != string(c.doc.Raw) {
		s, err := c.check(after, nil)
		if err != nil {
			return faultsOf(err)
		}
		if why := missing(s, names...); why != "" {
			c.std.warn("%s", why)
		}
		if c.dryRun {
			c.printChange(after)
			return nil
		}
		if err := c.store(after, nil); err != nil {
			return fmt.Errorf("%w\nnothing was changed", err)
		}
	}
	fmt.Fprintln(c.std.out, printable(strings.Join(all, "\n")))
	return nil
}

func (c *enableCmd) remove(_ context.Context, f *splice.File, name string) (*splice.File, string, error) {
	if strings.Contains(name, ".") {
		return nil, "", exitUsage.errorf("%q is no server: mcp-toolhub disable takes tools out of use", name)
	}
	place, e, err := c.server(f, name)
	if err != nil {
		return nil, "", err
	}
	text, err := f.Text(place, e.Name)
	if err != nil {
		return nil, "", err
	}
	f, err = f.TakeWhole(place, e.Name)
	said := "removed"
	if err == nil {
		still := clients.SecretNames(string(f.Bytes()))
		for _, secret := range slices.Compact(slices.Sorted(slices.Values(clients.SecretNames(text)))) {
			if !slices.Contains(still, secret) {
				said += "; its secret stays: mcp-toolhub secrets remove " + secret
			}
		}
	}
	return f, said, err
}

// offKeys are the keys of a server's entry for tools that are not used, the hub's own first.
func offKeys() []string { return []string{"disabledTools", "excludeTools"} }

// onKeys are the keys for the only tools that are used.
func onKeys() []string { return []string{"enabledTools", "includeTools", "tools"} }

func (c *enableCmd) disable(_ context.Context, f *splice.File, name string) (*splice.File, string, error) {
	const already = "is disabled already"
	server, native, at, e, err := c.named(f, name)
	if err != nil {
		return nil, "", err
	}
	if native == "" {
		if n := e.Value.Member("disabled"); n != nil {
			if n.Text == "true" {
				return f, already, nil
			}
			if f, err = f.Take(at, "disabled"); err != nil {
				return nil, "", err
			}
		}
		f, err = f.Put(at, "disabled", true)
		return f, "disabled", err
	}
	if err := c.isThere(server, native); err != nil {
		return nil, "", err
	}
	if matching(e, offKeys(), native) != "" {
		return f, already, nil
	}
	f, err = putText(f, at, offKeys()[0], native)
	return f, "disabled", err
}

func (c *enableCmd) enable(_ context.Context, f *splice.File, name string) (*splice.File, string, error) {
	server, native, at, e, err := c.named(f, name)
	if err != nil {
		return nil, "", err
	}
	said := "is enabled already"
	if native == "" {
		if n := e.Value.Member("disabled"); n != nil && n.Text == "true" {
			said = "enabled"
			f, err = f.Take(at, "disabled")
		}
		return f, said, err
	}
	for _, key := range offKeys() {
		if !slices.Contains(textsOf(e, key), native) {
			continue
		}
		said = "enabled"
		if len(textsOf(e, key)) == 1 {
			f, err = f.Take(at, key)
		} else {
			f, err = f.Take(splice.Place{Path: slices.Concat(at.Path, []string{key}), List: true}, native)
		}
		if err != nil {
			return nil, "", err
		}
		_, e, _ = c.server(f, server)
	}
	if pattern := matching(e, offKeys(), native); pattern != "" {
		return nil, "", exitUsage.errorf(
			"%s: it is one of the tools that %q in disabledTools of %q means: enable that, or edit %s",
			name, pattern, server, c.target)
	}
	for _, key := range onKeys() {
		if len(textsOf(e, key)) > 0 && matching(e, onKeys(), native) == "" {
			said = "enabled"
			f, err = putText(f, at, key, native)
			break
		}
	}
	return f, said, err
}

// named returns what a name means: its parts, the server's entry, and the place of what that holds.
func (c *enableCmd) named(f *splice.File, name string) (server, native string, at splice.Place, e *splice.Entry,
	err error) {
	if server, native, err = parts(name); err == nil {
		at, e, err = c.server(f, server)
	}
	if err == nil {
		at.Path = append(at.Path, e.Name)
	}
	return server, native, at, e, err
}

// parts returns the server and the server's own name of the tool; without a tool, name is a server.
func parts(name string) (server, native string, err error) {
	source, rest, dotted := strings.Cut(name, ".")
	if !dotted {
		return name, "", nil
	}
	server, native, _ = strings.Cut(rest, ".")
	if source != tool.SourceMCP || native == "" {
		return "", "", exitUsage.errorf(
			"%q is no tool of a server: those are called mcp.SERVER.TOOL; hub.toolsets of the config "+
				"chooses the hub's own", name)
	}
	if err := glob.Check(native); err != nil {
		return "", "", exitUsage.of(err)
	}
	return server, native, nil
}

// isThere makes sure that the server has the tool, or one that the pattern matches. What nobody has
// started yet may have any.
func (c *enableCmd) isThere(server, native string) error {
	s, err := c.check(c.file, nil)
	if err != nil {
		return exitConfig.of(err)
	}
	all, err := knownCatalogs(s)
	if err != nil {
		return err
	}
	for _, catalog := range all {
		if catalog.Server != server || catalog.Source != tool.SourceMCP || len(catalog.Tools) == 0 {
			continue
		}
		var names []string
		for _, t := range catalog.Tools {
			names = append(names, t.Native)
		}
		if !slices.ContainsFunc(names, func(one string) bool { return glob.Match(native, one) }) {
			return exitUsage.errorf("server %q has no tool %q: %s", server, native,
				textfile.DidYouMean(native, names, "mcp-toolhub tools list names them"))
		}
	}
	return nil
}

// textsOf returns the texts of a list in an entry.
func textsOf(e *splice.Entry, key string) (all []string) {
	if n := e.Value.Member(key); n != nil {
		for _, item := range n.Items {
			all = append(all, item.Text)
		}
	}
	return all
}

// matching returns the first text of the lists that matches the tool, "" for none.
func matching(e *splice.Entry, keys []string, native string) string {
	for _, key := range keys {
		for _, pattern := range textsOf(e, key) {
			if glob.Match(pattern, native) {
				return pattern
			}
		}
	}
	return ""
}

// putText adds a text to the list that is the value of key at a place.
func putText(f *splice.File, at splice.Place, key, text string) (*splice.File, error) {
	list := splice.Place{Path: slices.Concat(at.Path, []string{key}), List: true}
	if n := f.At(list.Path...); n != nil && len(n.Items) > 0 {
		return f.Put(list, text, nil)
	} else if n != nil {
		var err error
		if f, err = f.Take(at, key); err != nil {
			return nil, err
		}
	}
	return f.Put(at, key, []string{text})
}

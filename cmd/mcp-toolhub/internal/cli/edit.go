package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/connuser"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// serversPlace returns the place of the servers in the config.
func serversPlace() splice.Place { return splice.Place{Path: []string{"mcpServers"}} }

// configEdit changes the hub's config in place. Whatever it does not change stays, byte for byte.
type configEdit struct {
	*app
	target  string // path of the config
	trusted bool   // the config lies in the working directory and is trusted: that stays so
	doc     *clients.Document
	file    *splice.File      // what the config says
	state   string            // the state directory
	stored  map[string]string // secrets, by name
}

// find chooses the config that the hub uses here; if there is none and create is set, that of the user.
func (e *configEdit) find(create bool) (err error) {
	if e.target, err = e.configFile(); err != nil {
		if e.target = config.UserFile(e.std.getenv); !create || e.target == "" {
			return err
		}
	}
	if config.IsProject(e.target) {
		_, err = e.read(config.Found{Path: e.target, Project: true})
		e.trusted = !errors.As(err, new(*config.UntrustedError))
	}
	return e.open()
}

// open reads the config at target, which need not exist.
func (e *configEdit) open() (err error) {
	if e.state, err = e.findState(); err != nil {
		return err
	}
	if e.doc, err = clients.Open(e.target); err != nil {
		return err
	}
	if e.stored, err = secrets.Read(e.state); err != nil {
		return err
	}
	if e.file, err = clients.ReadText(configFormat(e.target), e.doc, e.target); err != nil {
		return exitConfig.of(err)
	}
	return nil
}

// check returns the settings of the config as it is after a change. more are secrets that are not stored yet.
func (e *configEdit) check(after *splice.File, more map[string]string) (*config.Settings, error) {
	return config.LoadText(config.Source{Path: e.target, StateDir: e.stateDir, Env: e.std.getenv,
		HubTools: hub.ToolNames(), LeaveOut: true, Secrets: more},
		after.Bytes())
}

// change changes the config as it is on the disk now. more are secrets that the change stores, or nil.
func (e *configEdit) change(put func(*splice.File) (*splice.File, error), more map[string]string) error {
	if err := e.open(); err != nil {
		return err
	}
	after, err := put(e.file)
	if err != nil {
		return fmt.Errorf("%s: %w", e.target, err)
	}
	if string(after.Bytes()) == string(e.doc.Raw) {
		return nil
	}
	if _, err := e.check(after, more); err != nil {
		return faultsOf(err)
	}
	return e.store(after, more)
}

// faultsOf is the error about a change with which the config would have the faults err.
func faultsOf(err error) error {
	return exitConfig.errorf("%w\nnothing was changed: these are the faults that the config would have", err)
}

// missing returns what stands in the way of the first of these servers that cannot start, because
// its entry refers to what has no value; "" for nothing.
func missing(s *config.Settings, names ...string) string {
	for _, sc := range s.Upstream.Servers {
		if slices.Contains(names, sc.ID) && !sc.Disabled && sc.Missing.What != "" {
			return sc.Missing.What + "; " + sc.Missing.Hint
		}
	}
	return ""
}

// printChange prints what a change does to the config.
func (e *configEdit) printChange(after *splice.File) {
	e.printDiff(e.target, e.doc.Raw, after.Bytes(),
		func(text string) string { return clients.Mask(text, e.file.Root, after.Root) })
}

// printDiff prints how a file changes. before is nil where there was no file, and after is nil
// where none is left. mask takes secrets out of the text.
func (a *app) printDiff(path string, before, after []byte, mask func(string) string) {
	from, to := path, path
	if before == nil {
		from = os.DevNull
	}
	if after == nil {
		to = os.DevNull
	}
	for line := range strings.Lines(mask(udiff.Unified(from, to, string(before), string(after)))) {
		fmt.Fprintln(a.std.out, printable(strings.TrimRight(line, "\r\n")))
	}
}

// keep stores a secret under a name of that beginning in more, and returns the name. Nothing is written.
func (e *configEdit) keep(more map[string]string) func(name, secret string) string {
	return func(base, secret string) string {
		name := base
		for n := 2; ; n++ {
			if have, ok := e.stored[name]; !ok || have == secret {
				break
			}
			name = fmt.Sprint(base, "-", n)
		}
		e.stored[name], more[name] = secret, secret
		return name
	}
}

// store writes the config and stores the secrets, or does neither.
func (e *configEdit) store(after *splice.File, more map[string]string) error {
	was := map[string]*string{}
	change := func(add bool) error {
		return secrets.Change(e.state, func(all map[string]string) error {
			now, _ := os.ReadFile(e.target) // another process may have written the config, with the same secret
			used := clients.SecretNames(string(now))
			for name, secret := range more {
				if !add && was[name] == nil {
					if !slices.Contains(used, name) {
						delete(all, name)
					}
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
			return nil
		})
	}
	if len(more) > 0 {
		if err := change(true); err != nil {
			return err
		}
	}
	err := clients.Apply([]*clients.Change{{Document: e.doc, After: after.Bytes()}})
	if err != nil && len(more) > 0 {
		err = errors.Join(err, change(false))
	}
	if err == nil && e.trusted {
		var s *config.Settings
		if s, err = e.read(config.Found{Path: e.target}); err == nil {
			err = s.Trust()
		}
	}
	return err
}

// putEnv returns the file with these names in hub.env. taken are those that were not there.
func putEnv(f *splice.File, names []string) (_ *splice.File, taken []string, err error) {
	place := splice.Place{Path: []string{"hub", "env"}, List: true}
	for _, name := range names {
		if f.Entry(place, name) != nil {
			continue
		}
		if f, err = f.Put(place, name, nil); err != nil {
			return nil, nil, err
		}
		taken = append(taken, name)
	}
	return f, taken, nil
}

// server returns the entry of a server, and its place.
func (e *configEdit) server(f *splice.File, id string) (splice.Place, *splice.Entry, error) {
	var ids []string
	for _, place := range []splice.Place{serversPlace(), {Path: []string{"servers"}}} {
		for _, entry := range f.Entries(place) {
			if config.ServerID(entry.Name) == id {
				return place, &entry, nil
			}
			ids = append(ids, config.ServerID(entry.Name))
		}
	}
	known := "it has " + strings.Join(ids, ", ")
	if len(ids) == 0 {
		known = "it has none: mcp-toolhub add adds one"
	}
	return splice.Place{}, nil, exitUsage.errorf("there is no server %q in %s: %s", id, e.target,
		textfile.DidYouMean(id, ids, known))
}

// giveToken adds a token to a config without any, where every user of this machine could call the
// hub at the address listen otherwise. It returns the settings that hold then. If a client reaches
// the hub without a token already, it only warns: that client goes on working.
func giveToken(ctx context.Context, a *app, s *config.Settings, listen string) (*config.Settings, error) {
	if len(s.Downstream.Auth.Tokens) > 0 || connuser.Known() {
		return s, nil
	}
	edit := configEdit{app: a}
	connected, err := (&importCmd{configEdit: edit}).found()
	if err != nil {
		return nil, err
	}
	isOwn := address{s.Downstream.HTTP.PublicURL, listen}.has
	for _, have := range connected {
		if slices.ContainsFunc(append([]string{have.URL}, have.Args...), isOwn) &&
			!strings.Contains(fmt.Sprint(have.Headers, have.Args), "Authorization") {
			a.std.warn("the hub gets no token, because %s connects without one: add hub.auth.tokens, and connect "+
				"that client again",
				have.Origin)
			return s, nil
		}
	}
	if err := edit.find(false); err != nil {
		return nil, err
	}
	made := map[string]string{}
	err = edit.change(func(f *splice.File) (*splice.File, error) {
		name := edit.keep(made)("hub-token", rand.Text())
		return f.Put(splice.Place{Path: []string{"hub", "auth", "tokens"}, List: true}, tool.Local,
			splice.Object{{Key: "token", Value: "${secret:" + name + "}"}})
	}, made)
	if err != nil {
		return nil, fmt.Errorf("give the hub a token: %w", err)
	}
	a.std.note(
		"%s: added hub.auth.tokens, because every user of this machine could call the hub. connect --http gives "+
			"clients the token",
		edit.target)
	return a.load(ctx)
}

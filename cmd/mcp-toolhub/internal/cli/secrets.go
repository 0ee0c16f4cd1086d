package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
)

const secretsHelp = `Store secrets, for the config to refer to as ${secret:NAME}.

They are kept in one sealed file of the state directory, with its key beside it, both for your
eyes alone. A running hub takes a changed secret up by itself.`

const secretsSetHelp = `Store a secret: what is typed at the terminal and not shown, otherwise the standard input
without the line end at its end.`

// secretsCmd runs the commands below "secrets".
type secretsCmd struct{ *app }

func secretsCommand(a *app) *cobra.Command {
	c := secretsCmd{a}
	list := leaf("list", "List the names of the secrets", "", c.list)
	a.outputFlag(list.Flags())
	set := leaf("set NAME", "Store a secret", secretsSetHelp, c.set, "mcp-toolhub secrets set GITHUB_TOKEN",
		"gh auth token | mcp-toolhub secrets set GITHUB_TOKEN")
	return group("secrets", "Store secrets for the config", secretsHelp, set, list,
		leaf("remove NAME", "Forget a secret", "", c.remove))
}

func (c secretsCmd) set(_ context.Context, name string) error {
	if !secrets.ValidName(name) {
		return exitUsage.errorf("secret %q: a name has letters, digits, _, - and dots, at most 100", name)
	}
	state, err := c.findState()
	if err != nil {
		return err
	}
	secret, err := c.read(name)
	if err != nil {
		return fmt.Errorf("read the secret: %w", err)
	}
	if secret == "" {
		return exitUsage.errorf("the secret is empty: type it, or pipe it in")
	}
	return secrets.Change(state, func(all map[string]string) error {
		all[name] = secret
		return nil
	})
}

// typedSecret reads a secret from the terminal. It is not echoed.
func (a *app) typedSecret(name string) (string, error) {
	fmt.Fprintf(a.std.err, "%s: ", name)
	typed, err := term.ReadPassword(int(a.std.in.(*os.File).Fd()))
	fmt.Fprintln(a.std.err)
	return string(typed), err
}

// read reads a secret.
func (c secretsCmd) read(name string) (string, error) {
	if c.terminal() != nil {
		return c.typedSecret(name)
	}
	const most = 1 << 20
	data, err := io.ReadAll(io.LimitReader(c.std.in, most+1))
	if err == nil && len(data) > most {
		err = errors.New("it is larger than 1 MiB")
	}
	return strings.TrimRight(string(data), "\r\n"), err
}

func (c secretsCmd) list(context.Context) error {
	state, err := c.findState()
	if err != nil {
		return err
	}
	all, err := secrets.Read(state)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(all))
	if c.json() {
		return c.printJSON(slices.Concat([]string{}, names))
	}
	for _, name := range names {
		fmt.Fprintln(c.std.out, name)
	}
	return nil
}

func (c secretsCmd) remove(_ context.Context, name string) error {
	state, err := c.findState()
	if err != nil {
		return err
	}
	return secrets.Change(state, func(all map[string]string) error {
		if _, ok := all[name]; !ok {
			return fmt.Errorf("there is no secret %q: mcp-toolhub secrets list names them", name)
		}
		delete(all, name)
		return nil
	})
}

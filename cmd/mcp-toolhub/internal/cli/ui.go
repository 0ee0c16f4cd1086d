package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const uiHelp = `Open the page of a running hub in the browser: its servers, tools, approvals, calls, sign-ins,
secrets and policy.

The address that opens the page works once, within a minute. Where no browser opens, open the
printed address on this machine, or through a tunnel to it. The hubs are those of this machine
that run with the same state directory and whose policy.ask.channels name queue, as they do by
default, or webhook; of several the one that has run longest.`

const uiCodeHelp = `Print a code with which the page may answer approvals: once, until the browser signs out.

SESSION is the name that the page shows. It may be left out where one browser alone has the
page open. The code is good once, for five minutes.`

// uiCmd runs the commands "ui" and "ui code".
type uiCmd struct {
	*app
	noBrowser bool
}

func uiCommand(a *app) *cobra.Command {
	c := &uiCmd{app: a}
	cmd := leaf("ui", "Open the page of a running hub", uiHelp, c.open)
	cmd.Args = unknownCommand
	cmd.Flags().BoolVar(&c.noBrowser, "no-browser", false, "print the address alone")
	code := leaf("code [SESSION]", "Print a code with which the page may answer approvals", uiCodeHelp, c.code)
	code.Args = cobra.MaximumNArgs(1)
	cmd.AddCommand(code)
	return cmd
}

func (c *uiCmd) open(ctx context.Context) error {
	hubs, err := (approvalsCmd{c.app}).hubs(ctx)
	if err != nil {
		return err
	}
	var address string
	for _, h := range hubs {
		if address, err = h.OpenPage(ctx); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if !c.noBrowser && openBrowser(address) == nil {
		c.std.note("The browser opens. If it does not, open this address within a minute:\n")
	}
	fmt.Fprintln(c.std.out, address)
	c.std.note("If the page asks for a code, this prints one: mcp-toolhub ui code")
	return nil
}

func (c *uiCmd) code(ctx context.Context, session []string) error {
	hubs, err := (approvalsCmd{c.app}).hubs(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for _, h := range hubs {
		code, err := h.PageCode(ctx, strings.Join(session, ""))
		if err == nil {
			fmt.Fprintln(c.std.out, code)
			return nil
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

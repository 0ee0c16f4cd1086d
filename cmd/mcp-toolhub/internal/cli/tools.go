package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
)

const toolsHelp = `List, show, search and call tools: of the hub of the config that runs, or the one at --url. If
none runs, the servers are started for the purpose and stopped again. A server whose tools are
known from an earlier start is left alone until one of them is called then; --connect starts it
all the same.

A call that the policy asks about is asked about at the terminal. Without one it waits, says
so, and can be allowed with mcp-toolhub approvals.

The token for a hub that wants one is read from $MCP_TOOLHUB_TOKEN.`

// toolsCmd runs the commands below "tools", with the flags that they share.
type toolsCmd struct {
	*app
	url, profile string
	connect      bool
}

// toolbox holds the tools that the commands work on: of a hub in this process, or of one that runs elsewhere.
type toolbox interface {
	// Surface returns what the commands' caller sees.
	Surface() (*tool.Surface, error)
	// Call calls a tool. It returns the result, or the *tool.RPCError that came instead.
	Call(ctx context.Context, name string, arguments json.RawMessage, progress func(tool.Progress)) (json.RawMessage,
		error)
}

func toolsCommand(a *app) *cobra.Command {
	c := &toolsCmd{app: a}
	show := leaf("show NAME", "Show one tool, by any of its names", "", func(ctx context.Context, name string) error {
		return c.with(ctx, name, func(t toolbox) error { return c.show(ctx, t, name) })
	})
	show.ValidArgsFunction = a.complete(&c.profile, toolNames)
	cmd := group("tools", "List, show, search and call tools", toolsHelp, c.listCommand(), show, c.callCommand(),
		searchCommand(c))
	flags := cmd.PersistentFlags()
	flags.StringVar(&c.url, "url", "", "`URL` of a running hub, for instance http://127.0.0.1:8808")
	flags.StringVar(&c.profile, "profile", namespace.DefaultProfile, "the `profile` to look through")
	flags.BoolVar(&c.connect, "connect", false,
		"start every server, also those whose tools are known from an earlier start")
	a.outputFlag(flags)
	a.completeFlag(cmd, "profile", profileNames)
	return cmd
}

func (c *toolsCmd) callCommand() *cobra.Command {
	var arguments string
	cmd := leaf("call NAME", "Call a tool by any of its names", "", func(ctx context.Context, name string) error {
		object, err := c.readArguments(arguments)
		if err != nil {
			return err
		}
		return c.with(ctx, name, func(t toolbox) error { return c.call(ctx, t, name, object) })
	}, `mcp-toolhub tools call mcp.demo.add --args '{"a": 1, "b": 2}'`)
	cmd.ValidArgsFunction = c.complete(&c.profile, toolNames)
	cmd.Flags().StringVar(&arguments, "args", "{}",
		"arguments as a JSON object; @FILE reads them from a file, @- from stdin")
	return cmd
}

func (c *toolsCmd) listCommand() *cobra.Command {
	var why bool
	cmd := leaf("list", "List the tools", "", func(ctx context.Context) error {
		return c.with(ctx, "", func(t toolbox) error { return c.list(ctx, t, why) })
	})
	cmd.Flags().BoolVar(&why, "why", false,
		"say of each tool why clients find it loaded, deferred, blocked or excluded; not with --url")
	return cmd
}

// with runs do with the tools that the flags point at. Where name is not "", do needs that tool
// alone, and servers that have nothing to do with it are not waited for.
func (c *toolsCmd) with(ctx context.Context, name string, do func(toolbox) error) error {
	if c.url != "" {
		return c.withRemote(ctx, do)
	}
	if hubs, path, err := c.running(ctx); err == nil && len(hubs) > 0 && c.rules == "" {
		return c.withRunning(ctx, hubs[0], path, do)
	}
	c.std.sayStarting()
	return c.withHub(ctx, hub.Want{All: c.connect, Tool: name, Profile: c.profile}, func(h *hub.Hub) error {
		return do(hub.OwnTools{Hub: h, Profile: c.profile, Ask: c.asker(), Meta: c.callMeta()})
	})
}

// list prints the tools. With why it also says where each stands on the surface that clients are offered.
func (c *toolsCmd) list(ctx context.Context, t toolbox, why bool) error {
	surface, err := t.Surface()
	if err != nil {
		return err
	}
	own, isOwn := t.(hub.OwnTools)
	if isOwn {
		defer c.printMissing(own.Hub, surface)
	}
	var places []control.Tool
	remote, _ := t.(remoteTools)
	if why {
		switch {
		case isOwn:
			places, err = hub.Model{Hub: own.Hub}.Surface(own.Profile, hub.Stranger())
		case remote.running != nil:
			places, err = remote.running.Surface(ctx, c.profile)
		default:
			return exitUsage.errorf("--why is for the hub of the config: leave --url out")
		}
		if err != nil {
			return err
		}
	}
	if remote.running != nil {
		defer c.printAway(ctx, remote.running)
	}
	if c.json() {
		return c.printDeclarations(surface, places)
	}
	if why {
		table := newTable("TOOL", "STATE", "WHY")
		for _, p := range places {
			table.add(printable(p.ID), p.State, printable(p.Why))
		}
		return c.std.printTable(table)
	}
	table := newTable("NAME", "DESCRIPTION")
	for _, l := range surface.Listed {
		table.add(printable(l.Name), hidden.Summary(hub.Described(l), 90))
	}
	if err := c.std.printTable(table); err != nil {
		return err
	}
	excluded := surface.Excluded
	if surface.Features != nil {
		excluded = slices.Concat(excluded, surface.Features.Excluded)
	}
	for _, e := range excluded {
		c.std.note("excluded: %s of %s (%s): %s", printable(e.Tool), e.Origin, e.Code, printable(e.Reason))
	}
	return nil
}

// printDeclarations prints the declarations as they are, as in the result of tools/list, and the
// places where there are any.
func (c *toolsCmd) printDeclarations(surface *tool.Surface, places []control.Tool) error {
	declarations := make([][]byte, len(surface.Listed))
	for i, l := range surface.Listed {
		declarations[i] = l.Declaration()
	}
	out := slices.Concat([]byte(`{"tools":[`), bytes.Join(declarations, []byte{','}), []byte{']'})
	if places != nil {
		why, _ := json.Marshal(places) // texts alone
		out = slices.Concat(out, []byte(`,"why":`), why)
	}
	return c.std.print(append(out, '}'))
}

func (c *toolsCmd) show(ctx context.Context, t toolbox, name string) error {
	if own, ok := t.(hub.OwnTools); ok {
		text, err := hub.Model{Hub: own.Hub}.Show(own.Profile, name, c.json())
		if err != nil {
			return err
		}
		return c.std.print(text)
	}
	remote, _ := t.(remoteTools)
	if remote.running != nil {
		text, err := remote.running.Show(ctx, c.profile, name, c.json())
		if err != nil {
			return err
		}
		return c.std.print([]byte(text))
	}
	surface, err := t.Surface()
	if err != nil {
		return err
	}
	l, ok := surface.Resolve(name)
	if !ok {
		return fmt.Errorf("no tool %q: %s", name,
			hub.ToolMeant(name, surface, "mcp-toolhub tools list --url names them"))
	}
	text := l.Declaration() // what every hub tells its clients
	if !c.json() {
		if text, err = hub.ShownText(l, nil); err != nil {
			return fmt.Errorf("show %q: %w", name, err)
		}
	}
	return c.std.print(text)
}

func (c *toolsCmd) call(ctx context.Context, t toolbox, name string, args json.RawMessage) error {
	waits := c.sayWaiting()
	progress := func(p tool.Progress) {
		waits(p)
		c.showProgress(p)
	}
	result, err := t.Call(ctx, name, args, progress)
	var rpc *tool.RPCError
	switch {
	case errors.As(err, &rpc):
		return exitToolError.errorf("call %q: %s (JSON-RPC error %d)", name, printable(rpc.Text()), rpc.Code)
	case err != nil:
		return fmt.Errorf("call %q: %w", name, err)
	case c.json():
		err = c.std.print(result)
	default:
		err = c.std.print([]byte(printable(hub.ResultText(result))))
	}
	if err != nil {
		return err
	}
	if isError, _ := rawjson.Get(result, "isError"); string(isError) == "true" {
		return &exitError{exitToolError, nil}
	}
	return nil
}

// showProgress keeps one line of a terminal up to date.
func (c *toolsCmd) showProgress(p tool.Progress) {
	var report struct {
		Progress json.Number `json:"progress"`
		Total    json.Number `json:"total"`
		Message  string      `json:"message"`
	}
	if json.Unmarshal(p.Params, &report) != nil || strings.HasPrefix(report.Message, waiting) {
		return
	}
	of := ""
	if report.Total != "" {
		of = "/" + report.Total.String()
	}
	c.std.wait(fmt.Sprintf("%s%s %s", report.Progress, of, report.Message))
	if report.Total != "" && report.Total == report.Progress {
		c.std.wait("")
	}
}

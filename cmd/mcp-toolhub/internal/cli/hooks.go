package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

const hooksTestHelp = `Run one hook on a call that a file describes, and print what it said.

FILE is JSON:

  {"tool": "mcp.github.create_issue", "arguments": {"title": "x"},
   "event": "post_tool_use", "result": {"content": []}}

Only tool is needed. Further members are error, profile and actor. The event is the
hook's first one where the file names none. No server is started and nothing is recorded.
Tags of the tool are not known here. Exit code 0 where the hook ran, 1 where it failed.`

// hooksCmd runs the commands below "hooks".
type hooksCmd struct {
	*app
	call string // the file of hooks test
}

func hooksCommand(a *app) *cobra.Command {
	c := &hooksCmd{app: a}
	test := leaf("test NAME", "Run one hook on a call that a file describes", hooksTestHelp, c.test,
		"mcp-toolhub hooks test guard --call call.json")
	test.Flags().StringVar(&c.call, "call", "", "the `file` with the call")
	_ = test.MarkFlagRequired("call")
	cmd := group("hooks", "List and test hooks", "",
		leaf("list", "List the hooks of the config, in the order in which they run", "", c.list), test)
	a.outputFlag(cmd.PersistentFlags())
	return cmd
}

// hooks returns the hooks of the config. runner runs their commands.
func (c *hooksCmd) hooks(ctx context.Context, runner *command.Runner) (*hook.Set, error) {
	s, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	set, err := hub.NewHooks(s, runner)
	if err != nil {
		return nil, exitConfig.of(err)
	}
	return set, nil
}

func (c *hooksCmd) list(ctx context.Context) error {
	set, err := c.hooks(ctx, nil)
	if err != nil {
		return err
	}
	all := set.List()
	if len(all) == 0 && !c.json() {
		return c.std.print([]byte("no hooks: add hooks to the config\n"))
	}
	t := newTable("NAME", "EVENTS", "MATCH", "KIND", "DOES", "TIMEOUT", "FAIL")
	for _, h := range all {
		var events []string
		for _, e := range h.Events {
			events = append(events, string(e))
		}
		t.add(h.Name, strings.Join(events, " "), callsOf(&h), h.Kind, hidden.Summary(h.Does, 40), h.Timeout,
			strings.Join(h.Fail, " "))
	}
	return c.printAs(slices.Concat([]hook.Info{}, all), t)
}

// callsOf says in one line which calls a hook is for: all that restricts it.
func callsOf(h *hook.Info) string {
	parts := slices.DeleteFunc([]string{strings.Join(h.Match, " ")}, func(s string) bool { return s == "" })
	for _, key := range []struct {
		name  string
		words []string
	}{{"matcher", []string{h.Matcher}}, {"tags", h.Tags}, {"server", h.Server}, {"profile", h.Profile},
		{"actor", h.Actor}, {"when", []string{h.When}}} {
		if words := strings.Join(strings.Fields(strings.Join(key.words, " ")), " "); words != "" {
			parts = append(parts, key.name+" "+words)
		}
	}
	if len(parts) == 0 {
		return "*"
	}
	return printable(strings.Join(parts, "; "))
}

// describedCall is the file of hooks test.
type describedCall struct {
	Tool              tool.Name
	Arguments, Result json.RawMessage
	Event             hook.Event
	Error             string
	Profile, Actor    string
}

// readCall reads the file of hooks test.
func readCall(file string) (d describedCall, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return d, fmt.Errorf("read the call: %w", err)
	}
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.DisallowUnknownFields()
	err = reader.Decode(&d)
	switch {
	case err != nil:
	case d.Tool == "":
		err = errors.New("tool is missing")
	case d.Event != "" && !slices.Contains(hook.Events(), d.Event):
		err = fmt.Errorf("there is no event %q", d.Event)
	}
	if err != nil {
		err = fmt.Errorf("%q describes no call: %w", file, err)
	}
	return d, err
}

// input makes the input of a hook that has the event where the file says none.
func (d *describedCall) input(event hook.Event) hook.Input {
	server, native := d.Tool.Source(), strings.TrimPrefix(string(d.Tool), d.Tool.Source()+".")
	if server == tool.SourceMCP {
		server, native, _ = strings.Cut(native, ".")
	}
	if d.Event != "" {
		event = d.Event
	}
	if d.Profile == "" {
		d.Profile = namespace.DefaultProfile
	}
	actor := hub.LocalActor()
	actor.Name = cmp.Or(d.Actor, tool.Local) // as a call of a client has it
	if d.Arguments == nil {
		d.Arguments = json.RawMessage(`{}`)
	}
	wd, err := os.Getwd()
	if err != nil {
		wd = ""
	}
	return hook.Input{Event: event, Result: d.Result, Error: d.Error,
		Request: &policy.Request{Invocation: tool.NewInvocationID(),
			Tool: &tool.Tool{Name: d.Tool, Server: server, Native: native}, Input: d.Arguments, Actor: actor,
			Profile: d.Profile, CWD: wd}}
}

func (c *hooksCmd) test(ctx context.Context, name string) error {
	d, err := readCall(c.call)
	if err != nil {
		return exitUsage.of(err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runner := command.NewRunner(self, slog.New(slog.DiscardHandler))
	defer runner.Close()
	set, err := c.hooks(ctx, runner)
	if err != nil {
		return err
	}
	event, ok := set.EventOf(name)
	if !ok {
		return exitUsage.errorf("there is no hook %q: mcp-toolhub hooks list names them", name)
	}
	r, matches, _ := set.Test(ctx, name, d.input(event))
	said := map[string]any{"hook": r.Hook, "event": r.Event, "kind": r.Kind, "matches": matches,
		"took_ms": r.Took.Milliseconds()}
	add := func(key string, value any, given bool) {
		if given {
			said[key] = value
		}
	}
	o := &r.Output
	add("message", o.Messages, len(o.Messages) > 0)
	add("progress", o.Progress, len(o.Progress) > 0)
	add("updated_input", o.Input, o.Input != nil)
	add("permission_result", o.Permission, o.Permission != nil)
	add("additional_context", o.Context, len(o.Context) > 0)
	add("stop", o.Stop, o.Stop != nil)
	add("updated_output", o.Result, o.Result != nil)
	add("ignored", r.Ignored, len(r.Ignored) > 0)
	if r.Err != nil {
		said["failed"], said["ends_the_call"] = r.Err.Error(), r.Closed
	}
	if err := c.printJSON(said); err != nil || r.Err == nil {
		return err
	}
	return &exitError{exitFailure, nil}
}

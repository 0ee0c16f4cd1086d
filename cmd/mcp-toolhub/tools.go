package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
)

const toolsHelp = `List, show, search and call tools: of a running hub with --url, otherwise of the servers in the
config, which are started for the purpose and stopped again. A server whose tools are known from
an earlier start is left alone until one of them is called; --connect starts it all the same.

A call that the policy asks about is asked about at the terminal. Without one it waits, says
so, and can be allowed with mcp-toolhub approvals.

The token for a hub that wants one is read from $MCP_TOOLHUB_TOKEN.`

// toolFlags are the flags that the tools commands share.
type toolFlags struct {
	url, profile, format string
	connect              bool
}

// toolbox is where the tools commands find their tools: a hub of their own, or one that runs elsewhere.
type toolbox interface {
	// surface is what the commands' caller sees.
	surface() (*tool.Surface, error)
	// call calls a tool and returns its result, or the *tool.RPCError that came instead.
	call(ctx context.Context, name string, arguments json.RawMessage, progress func(tool.Progress)) (json.RawMessage, error)
}

func (a *app) toolsCommand() *cobra.Command {
	var f toolFlags
	cmd := &cobra.Command{
		Use: "tools", Short: "List, show, search and call tools", Long: toolsHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.url, "url", "", "`URL` of a running hub, for instance http://127.0.0.1:8808")
	flags.StringVar(&f.profile, "profile", namespace.DefaultProfile, "the `profile` to look through")
	flags.BoolVar(&f.connect, "connect", false, "start every server, also those whose tools are known from an earlier start")
	flags.StringVarP(&f.format, "output", "o", "table", "table or json")
	var arguments string
	call := &cobra.Command{
		Use: "call NAME", Short: "Call a tool by any of its names", Args: cobra.ExactArgs(1),
		Example: `  mcp-toolhub tools call mcp.demo.add --args '{"a": 1, "b": 2}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			object, err := a.readArguments(arguments)
			if err != nil {
				return err
			}
			return a.withTool(cmd.Context(), f, args[0], func(t toolbox) error { return a.callTool(cmd.Context(), t, f, args[0], object) })
		},
	}
	call.Flags().StringVar(&arguments, "args", "{}", "arguments as a JSON object; @FILE reads them from a file, @- from stdin")
	var why bool
	list := &cobra.Command{
		Use: "list", Short: "List the tools", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withToolbox(cmd.Context(), f, func(t toolbox) error {
				return a.listTools(t, f, why)
			})
		},
	}
	list.Flags().BoolVar(&why, "why", false, "say of each tool why clients find it loaded, deferred, blocked or excluded; not with --url")
	a.completeFlag(cmd, "profile", profileNames)
	call.ValidArgsFunction = a.complete(&f.profile, toolNames)
	cmd.AddCommand(list, &cobra.Command{
		Use: "show NAME", Short: "Show one tool, by any of its names", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.complete(&f.profile, toolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTool(cmd.Context(), f, args[0], func(t toolbox) error { return a.showTool(t, f, args[0]) })
		},
	}, call, a.searchCommand(&f))
	return cmd
}

// withToolbox runs do with the tools that the flags point at.
func (a *app) withToolbox(ctx context.Context, f toolFlags, do func(toolbox) error) error {
	return a.withTool(ctx, f, "", do)
}

// withTool is withToolbox for who needs one tool: it does not wait for servers that have nothing to do with that.
func (a *app) withTool(ctx context.Context, f toolFlags, name string, do func(toolbox) error) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if f.url != "" {
		return a.withRemote(ctx, f, do)
	}
	return a.withHubFor(ctx, want{all: f.connect, tool: name, profile: f.profile}, func(h *hub) error {
		return do(ownTools{hub: h, profile: f.profile, ask: a.asker()})
	})
}

// listTools prints the tools. why adds where each stands on the surface that clients are offered.
func (a *app) listTools(t toolbox, f toolFlags, why bool) error {
	surface, err := t.surface()
	if err != nil {
		return failed(err)
	}
	own, isOwn := t.(ownTools)
	if isOwn {
		defer a.tellMissing(own.hub, surface)
	}
	var places []placed
	if why {
		if !isOwn {
			return &exitError{exitUsage, errors.New("--why is for the config's own servers: leave --url out")}
		}
		if places, err = own.places(); err != nil {
			return failed(err)
		}
	}
	switch {
	case f.format == "json":
		return a.printToolsJSON(surface, places)
	case why:
		return a.printPlaces(places)
	}
	w := tabwriter.NewWriter(a.std.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tDESCRIPTION")
	for _, l := range surface.Listed {
		fmt.Fprintf(w, "%s\t%s\n", printable(l.Name), summary(described(l), 90))
	}
	if err := w.Flush(); err != nil {
		return failed(err)
	}
	excluded := surface.Excluded
	if surface.Features != nil {
		excluded = slices.Concat(excluded, surface.Features.Excluded)
	}
	for _, e := range excluded {
		fmt.Fprintf(a.std.err, "excluded: %s of %s (%s): %s\n", printable(e.Tool), e.Origin, e.Code, printable(e.Reason))
	}
	return nil
}

// printToolsJSON prints the declarations as they are, as in the result of tools/list, and the places where there are any.
func (a *app) printToolsJSON(surface *tool.Surface, places []placed) error {
	declarations := make([][]byte, len(surface.Listed))
	for i, l := range surface.Listed {
		declarations[i] = l.Declaration
	}
	out := slices.Concat([]byte(`{"tools":[`), bytes.Join(declarations, []byte{','}), []byte{']'})
	if places != nil {
		why, err := json.Marshal(places)
		if err != nil {
			return failed(err)
		}
		out = slices.Concat(out, []byte(`,"why":`), why)
	}
	return a.print(append(out, '}'))
}

// described is the description of a tool as the surface shows it: a profile may give it another one.
func described(l tool.Listed) string {
	raw, _ := rawjson.Get(l.Declaration, "description")
	text, _ := rawjson.String(raw)
	return text
}

func (a *app) showTool(t toolbox, f toolFlags, name string) error {
	surface, err := t.surface()
	if err != nil {
		return failed(err)
	}
	l, ok := surface.Resolve(name)
	own, isOwn := t.(ownTools)
	if !ok && isOwn {
		l, ok = own.find(name)
	}
	switch {
	case !ok && isOwn:
		return failed(fmt.Errorf("no tool %q: %s", name, own.missing(name)))
	case !ok:
		return failed(fmt.Errorf("no tool %q: %s", name, toolMeant(name, surface, "mcp-toolhub tools list --url names them")))
	}
	if f.format == "json" {
		if isOwn {
			return a.printFacts(own, l)
		}
		return a.print(l.Declaration) // what a running hub tells its clients, and it tells no more
	}
	fmt.Fprintf(a.std.out, "%s\n", printable(l.Name))
	if string(l.Tool.Name) != l.Name {
		fmt.Fprintf(a.std.out, "canonical: %s\n", printable(string(l.Tool.Name)))
	}
	fmt.Fprintf(a.std.out, "server: %s\n", l.Tool.Server)
	for _, r := range l.Tool.Repairs {
		fmt.Fprintf(a.std.out, "repaired: %s: %s\n", r.Part, printable(r.Reason))
	}
	if l.Page != "" {
		fmt.Fprintf(a.std.out, "page: named as %s, because by its own URI it could be another server's\n", printable(l.Page))
	}
	if isOwn {
		if err := a.summarizeFacts(own, l.Tool); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.std.out, "\n%s\n\ninput schema:\n", printable(described(*l)))
	var schema bytes.Buffer
	if err := json.Indent(&schema, l.Tool.InputSchema, "", "  "); err != nil {
		return failed(fmt.Errorf("show %q: %w", name, err))
	}
	return a.print([]byte(printable(schema.String())))
}

func (a *app) callTool(ctx context.Context, t toolbox, f toolFlags, name string, args json.RawMessage) error {
	progress := a.tellWaiting()
	if isTerminal(a.std.err) {
		waits := progress
		progress = func(p tool.Progress) {
			waits(p)
			a.showProgress(p)
		}
	}
	result, err := t.call(ctx, name, args, progress)
	var rpc *tool.RPCError
	switch {
	case errors.As(err, &rpc):
		return &exitError{exitToolError, fmt.Errorf("call %q: %s (JSON-RPC error %d)", name, printable(rpc.Text()), rpc.Code)}
	case err != nil:
		return failed(fmt.Errorf("call %q: %w", name, err))
	case f.format == "json":
		err = a.print(result)
	default:
		err = a.print([]byte(printable(resultText(result))))
	}
	if err != nil {
		return err
	}
	if isError, _ := rawjson.Get(result, "isError"); string(isError) == "true" {
		return &exitError{exitToolError, nil}
	}
	return nil
}

func (a *app) readArguments(text string) (json.RawMessage, error) {
	data := []byte(text)
	if file, ok := strings.CutPrefix(text, "@"); ok {
		var err error
		if file == "-" {
			data, err = io.ReadAll(a.std.in)
		} else {
			data, err = os.ReadFile(file)
		}
		if err != nil {
			return nil, failed(fmt.Errorf("read arguments: %w", err))
		}
	}
	if !rawjson.Valid(data) || !rawjson.IsObject(data) {
		return nil, &exitError{exitUsage, errors.New(`arguments must be a JSON object, for instance --args '{"path": "README.md"}'`)}
	}
	if at := rawjson.NotUTF8(data); at >= 0 {
		return nil, &exitError{exitUsage, fmt.Errorf("arguments must be UTF-8: byte %d is not", at)}
	}
	return bytes.TrimSpace(data), nil
}

// showProgress keeps one line of a terminal up to date.
func (a *app) showProgress(p tool.Progress) {
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
	fmt.Fprintf(a.std.err, "\r\033[K%s%s %s", report.Progress, of, summary(report.Message, 60))
	if report.Total != "" && report.Total == report.Progress {
		fmt.Fprint(a.std.err, "\r\033[K")
	}
}

func (a *app) print(text []byte) error {
	if isTerminal(a.std.out) {
		text = []byte(hidden.EscapeJSON(string(text)))
	}
	if _, err := a.std.out.Write(append(bytes.TrimRight(text, "\n"), '\n')); err != nil {
		return failed(fmt.Errorf("print: %w", err))
	}
	return nil
}

// resultText is a result for people: its texts, and a line about everything else.
func resultText(result json.RawMessage) string {
	var b strings.Builder
	content, _ := rawjson.Get(result, "content")
	_ = rawjson.Elements(content, func(block []byte) bool {
		kind, _ := rawjson.Get(block, "type")
		name, _ := rawjson.String(kind)
		if text, ok := rawjson.Get(block, "text"); ok && name == "text" {
			s, _ := rawjson.String(text)
			b.WriteString(s + "\n")
			return true
		}
		fmt.Fprintf(&b, "[%s, %d bytes: -o json prints it]\n", name, len(block))
		return true
	})
	if structured, ok := rawjson.Get(result, "structuredContent"); ok && b.Len() == 0 {
		b.Write(structured)
	}
	return b.String()
}

// printable is text of a stranger's, safe for a terminal, and with all that a model reads of it: hidden characters are shown
// escaped.
func printable(text string) string { return hidden.Escape(text) }

// summary is the first line of text, at most limit characters long.
func summary(text string, limit int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(strings.ReplaceAll(printable(line), "\t", " "))
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return string(runes)
}

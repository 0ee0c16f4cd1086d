package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// ownTools is the toolbox of a hub in this process. Its calls go through the same pipeline as those of clients.
type ownTools struct {
	hub     *hub
	profile string
	ask     tool.Asker        // puts the hub's questions to whoever sits at the terminal; nil where nobody does
	meta    json.RawMessage   // of its calls
	replays tool.InvocationID // the call that is made again; "" for none
}

// localActor returns the caller of the commands: the user who runs this process.
func localActor() tool.Actor {
	name := "local"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return tool.Actor{Name: name, Door: "cli", Client: tool.Client{Name: "mcp-toolhub", Version: version()}}
}

func (o ownTools) surface() (*tool.Surface, error) {
	return o.hub.surfaces.Surface(o.profile, localActor())
}

// missing says why there may be no tool of that name: its server, or any other, is not ready.
func (o ownTools) missing(name string) string {
	own, down := "", []string{}
	for _, st := range o.hub.group.Statuses() {
		if st.State != tool.ServerStarting && (st.State == tool.ServerReady || st.LastError == "") {
			continue
		}
		down = append(down, strconv.Quote(st.Server))
		if st.LastError != "" && isOf(name, st.Server) {
			own = fmt.Sprintf("server %q is not ready: %s", st.Server, st.LastError)
			if st.Hint != "" {
				own += "; " + st.Hint
			}
		}
	}
	if own != "" {
		return own
	}
	hint := "mcp-toolhub tools list names them"
	if surface, err := o.surface(); err == nil {
		hint = toolMeant(name, surface, hint)
	}
	if len(down) > 0 {
		hint += fmt.Sprintf(" (not ready: %s, see mcp-toolhub servers)", strings.Join(down, ", "))
	}
	return hint
}

// toolMeant returns the hint for a name that no tool has: the nearest name of the surface, or otherwise.
func toolMeant(name string, surface *tool.Surface, otherwise string) string {
	var candidates []string
	for _, l := range surface.Listed {
		candidates = append(candidates, l.Name, string(l.Tool.Name))
	}
	if hint := textfile.DidYouMean(name, candidates, ""); hint != "" {
		return hint
	}
	for _, l := range surface.Listed { // without its server
		if textfile.Nearest(name, []string{l.Tool.Native, l.Tool.Server + "." + l.Tool.Native}) != "" {
			return textfile.DidYouMean(l.Name, []string{l.Name}, otherwise)
		}
	}
	return otherwise
}

func (o ownTools) call(ctx context.Context, name string, args json.RawMessage,
	progress func(tool.Progress)) (json.RawMessage, error) {
	surface, err := o.surface()
	if err != nil {
		return nil, err
	}
	if err := o.hub.permission.serve(ctx, o.hub.settings()); err != nil {
		return nil, err
	}
	call := invoke.Call{Surface: surface, Name: name, Params: callParams(name, args, o.meta), Arguments: args,
		Meta:   o.meta,
		Method: "tools call", Actor: localActor(), Session: tool.Session{Key: "cli", Name: "cli", Person: tool.Local},
		Progress: progress, Ask: o.ask}
	if o.replays != "" {
		call.Method, call.NativeCallID = "calls replay", rawjson.Quote(string(o.replays))
	}
	outcome := o.hub.pipeline.Invoke(ctx, &call)
	if outcome.Err != nil {
		if _, ok := surface.Resolve(name); !ok {
			outcome.Err = &tool.RPCError{Code: outcome.Err.Code, Data: outcome.Err.Data,
				Message: fmt.Sprintf("unknown tool %q: %s", name, o.missing(name))}
		}
		return nil, outcome.Err
	}
	return outcome.Result, nil
}

// callMeta is the _meta of calls of a command that a hook has started: it says so. Nil for other commands.
func (a *app) callMeta() json.RawMessage {
	names, ok := a.std.getenv(hook.Variable)
	if !ok || names == "" {
		return nil
	}
	return fmt.Appendf(nil, `{%s:%s}`, rawjson.Quote(hook.MetaKey), rawjson.Quote(names))
}

func callParams(name string, args, meta json.RawMessage) json.RawMessage {
	out := append([]byte(`{"name":`), rawjson.Quote(name)...)
	out = append(append(out, `,"arguments":`...), args...)
	if meta != nil {
		out = append(append(out, `,"_meta":`...), meta...)
	}
	return append(out, '}')
}

// remoteTools is the toolbox of a hub that runs elsewhere, reached as one upstream server.
type remoteTools struct {
	group *upstream.Group
	ask   tool.Asker      // puts that hub's questions to whoever sits at the terminal; nil where nobody does
	meta  json.RawMessage // of its calls

	url     *url.URL // of a profile
	headers map[string]string
}

// shown is what that hub prints of a tool; nil where it does not tell.
func (r remoteTools) shown(ctx context.Context, name string, asJSON bool) []byte {
	base, profile, _ := strings.Cut(r.url.Path, "/mcp")
	u := *r.url
	u.Path = base + downstream.ShowPath
	u.RawQuery = url.Values{"name": {name}, "profile": {strings.TrimPrefix(strings.Trim(profile, "/"), "p/")},
		"json": {strconv.FormatBool(asJSON)}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil
	}
	for header, value := range r.headers {
		req.Header.Set(header, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return text
}

// remoteID names the running hub in messages about the connection to it.
const remoteID = "hub"

// withRemote runs do with the tools of the hub at --url.
func (c *toolsCmd) withRemote(ctx context.Context, do func(toolbox) error) error {
	u, err := parseURL(c.url)
	if err != nil {
		return err
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/mcp"
		if c.profile != namespace.DefaultProfile {
			u.Path = "/mcp/p/" + c.profile
		}
	}
	headers := map[string]string{}
	if token, ok := c.std.getenv(tokenVariable); ok {
		headers["Authorization"] = "Bearer " + token
	}
	logger, err := newLogger(c.app, "error", c.logFormat)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	g, err := upstream.NewGroup(upstream.Config{Version: version(), Servers: []upstream.ServerConfig{
		{ID: remoteID, Transport: upstream.StreamableHTTP, URL: u.String(), Headers: headers, Hub: true},
	}}, logger)
	if err != nil {
		return failed(err)
	}
	g.Start(context.WithoutCancel(ctx))
	err = func() error {
		if err := g.WaitReady(ctx); err != nil {
			return &exitError{exitInterrupted, errors.New("interrupted")}
		}
		switch st := g.Statuses()[0]; {
		case st.State == tool.ServerNeedsAuth && headers["Authorization"] == "":
			return &exitError{exitNotReady,
				fmt.Errorf("the hub at %s wants a token: set $%s to one of its hub.auth.tokens", u.Host, tokenVariable)}
		case st.State == tool.ServerNeedsAuth:
			return &exitError{exitNotReady,
				fmt.Errorf("the hub at %s does not know the token in $%s: set it to one of its hub.auth.tokens",
					u.Host, tokenVariable)}
		case st.State != tool.ServerReady:
			return &exitError{exitNotReady, fmt.Errorf("the hub at %s is not ready: %s: %s", u.Host, st.LastError,
				st.Hint)}
		}
		return do(remoteTools{g, c.asker(), c.callMeta(), u, headers})
	}()
	if closeErr := g.Close(untilKilled(ctx)); err == nil && closeErr != nil && !errors.Is(closeErr, os.ErrClosed) {
		err = failed(closeErr)
	}
	return err
}

// surface returns what the running hub lists, under the names that it lists.
func (r remoteTools) surface() (*tool.Surface, error) {
	catalog := r.group.Catalogs()[0]
	listed := make([]tool.Listed, len(catalog.Tools))
	names := make(map[string]int, len(catalog.Tools))
	for i, t := range catalog.Tools {
		listed[i] = tool.Listed{Name: t.Native, Tool: t, Declaration: t.Declaration}
		names[t.Native] = i
	}
	return tool.NewSurface("", "", string(namespace.StyleNative), "", listed, catalog.Excluded, names), nil
}

func (r remoteTools) call(ctx context.Context, name string, args json.RawMessage,
	progress func(tool.Progress)) (json.RawMessage, error) {
	hop := tool.Hop{}
	if r.ask != nil {
		hop.ClientCapabilities = json.RawMessage(`{"elicitation":{"form":{}}}`)
	}
	reply, err := r.group.Execute(ctx, &tool.Execution{
		// it knows all its names
		Tool:   &tool.Tool{Name: tool.MCPName(remoteID, name), Server: remoteID, Native: name},
		Params: callParams(name, args, r.meta), Arguments: args, Meta: r.meta, Progress: progress, Ask: r.ask, Hop: hop,
	})
	var rpc *tool.RPCError
	if surface, _ := r.surface(); errors.As(err, &rpc) && rpc.Code == tool.CodeInvalidParams {
		if _, ok := surface.Resolve(name); !ok {
			if hint := toolMeant(name, surface, ""); hint != "" {
				err = &tool.RPCError{Code: rpc.Code, Data: rpc.Data, Message: rpc.Message + "; " + hint}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return reply.Result, nil
}

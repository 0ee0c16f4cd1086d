package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// callMeta is the _meta of calls of a command that a hook has started: it says so. Nil for other commands.
func (a *app) callMeta() json.RawMessage {
	names, ok := a.std.getenv(hook.Variable)
	if !ok || names == "" {
		return nil
	}
	return fmt.Appendf(nil, `{%s:%s}`, rawjson.Quote(hook.MetaKey), rawjson.Quote(names))
}

// remoteTools is the toolbox of a hub that runs elsewhere, reached as one upstream server.
type remoteTools struct {
	group *upstream.Group
	ask   tool.Asker      // puts that hub's questions to whoever sits at the terminal; nil where nobody does
	meta  json.RawMessage // of its calls

	running *control.Client // the hub of the config; nil for another one
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
	cfg := upstream.ServerConfig{ID: remoteID, Transport: upstream.StreamableHTTP, URL: u.String(), Headers: headers,
		Hub: true}
	return c.withServer(ctx, cfg, remoteTools{}, func(st tool.ServerStatus) error {
		switch {
		case st.State == tool.ServerNeedsAuth && headers["Authorization"] == "":
			return exitNotReady.errorf(
				"the hub at %s wants a token: set $%s to one of its hub.auth.tokens", u.Host, tokenVariable)
		case st.State == tool.ServerNeedsAuth:
			return exitNotReady.errorf(
				"the hub at %s does not know the token in $%s: set it to one of its hub.auth.tokens",
				u.Host, tokenVariable)
		}
		return exitNotReady.errorf("the hub at %s is not ready: %s: %s", u.Host, st.LastError, st.Hint)
	}, do)
}

// withRunning runs do with the tools of the hub of the config that runs, whose config is at path.
func (c *toolsCmd) withRunning(ctx context.Context, running *control.Client, path string,
	do func(toolbox) error) error {
	state, err := c.findState()
	if err != nil {
		return err
	}
	cfg := upstream.ServerConfig{ID: remoteID, Transport: upstream.Stdio, Command: upstream.HubCommand, Hub: true,
		Args: []string{"serve", "--join", "--config", hub.Absolute(path), "--state-dir", state, "--profile", c.profile,
			"--log-level", "error"}}
	return c.withServer(ctx, cfg, remoteTools{running: running},
		func(st tool.ServerStatus) error {
			return exitNotReady.errorf("the hub that runs, process %d, is not ready: %s: %s", running.PID(), st.LastError,
				st.Hint)
		}, do)
}

// withServer runs do with the tools of a hub that is reached as cfg says. unready is the error of
// one that is not ready.
func (c *toolsCmd) withServer(ctx context.Context, cfg upstream.ServerConfig, tools remoteTools,
	unready func(tool.ServerStatus) error, do func(toolbox) error) error {
	logger, err := newLogger(c.app, "error", c.logFormat)
	if err != nil {
		return exitUsage.of(err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	g, err := upstream.NewGroup(upstream.Config{Version: hub.Version(), Self: self,
		Servers: []upstream.ServerConfig{cfg}}, logger)
	if err != nil {
		return err
	}
	g.Start(context.WithoutCancel(ctx))
	err = func() error {
		if err := g.WaitReady(ctx); err != nil {
			return exitInterrupted.errorf("interrupted")
		}
		if st := g.Statuses()[0]; st.State != tool.ServerReady {
			return unready(st)
		}
		tools.group, tools.ask, tools.meta = g, c.asker(), c.callMeta()
		return do(tools)
	}()
	if closeErr := g.Close(untilKilled(ctx)); err == nil && closeErr != nil && !errors.Is(closeErr, os.ErrClosed) {
		err = closeErr
	}
	return err
}

// surface returns what the running hub lists, under the names that it lists.
func (r remoteTools) Surface() (*tool.Surface, error) {
	catalog := r.group.Catalogs()[0]
	listed := make([]tool.Listed, len(catalog.Tools))
	names := make(map[string]int, len(catalog.Tools))
	for i, t := range catalog.Tools {
		listed[i] = tool.Listed{Name: t.Native, Tool: t}
		names[t.Native] = i
	}
	return tool.NewSurface("", "", string(namespace.StyleNative), "", listed, catalog.Excluded, names), nil
}

func (r remoteTools) Call(ctx context.Context, name string, args json.RawMessage,
	progress func(tool.Progress)) (json.RawMessage, error) {
	hop := tool.Hop{}
	if r.ask != nil {
		hop.ClientCapabilities = json.RawMessage(`{"elicitation":{"form":{}}}`)
	}
	reply, err := r.group.Execute(ctx, &tool.Execution{
		// it knows all its names
		Tool:   &tool.Tool{Name: tool.MCPName(remoteID, name), Server: remoteID, Native: name},
		Params: hub.CallParams(name, args, r.meta), Arguments: args, Meta: r.meta, Progress: progress, Ask: r.ask,
		Hop: hop,
	})
	var rpc *tool.RPCError
	if surface, _ := r.Surface(); errors.As(err, &rpc) && rpc.Code == tool.CodeInvalidParams {
		if _, ok := surface.Resolve(name); !ok {
			if hint := hub.ToolMeant(name, surface, ""); hint != "" {
				err = &tool.RPCError{Code: rpc.Code, Data: rpc.Data, Message: rpc.Message + "; " + hint}
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return reply.Result, nil
}

// readArguments reads the arguments of a call from a flag: a JSON object, or @FILE.
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
			return nil, fmt.Errorf("read arguments: %w", err)
		}
	}
	if !rawjson.Valid(data) || !rawjson.IsObject(data) {
		return nil, exitUsage.errorf(`arguments must be a JSON object, for instance --args '{"path": "README.md"}'`)
	}
	if at := rawjson.NotUTF8(data); at >= 0 {
		return nil, exitUsage.errorf("arguments must be UTF-8: byte %d is not", at)
	}
	return bytes.TrimSpace(data), nil
}

package hub

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// newPipeline makes the pipeline.
func (h *Hub) newPipeline(s *config.Settings, key []byte) (err error) {
	own, asked := builtIn{h.Surfaces}, pipelineHub{h, s.StateDir}
	var observer invoke.Observer
	if h.telemetry != nil {
		observer = h.telemetry
	}
	host, _ := os.Hostname() // "" is said of a machine without a name
	h.pipeline, err = invoke.New(invoke.Options{
		Executors: map[string]invoke.Executor{tool.SourceMCP: h.Group, code.Name: own, declarative.Name: own},
		Settings:  asked, People: asked, Sources: asked, Admit: h.Surfaces.loader, SignIn: h.desk,
		Approvals: h.Permission.approvals, Journal: h.journal, Results: h.Results, Schemas: schema.NewCache(maxSchemas),
		Logger: h.Logger, Observer: observer, Key: key, Secrets: h.known.Masker(key),
		Hub: cmp.Or(s.Downstream.Name, host)})
	return err
}

// pipelineHub answers the pipeline's questions at each call. It implements invoke.Settings, invoke.People
// and invoke.Sources.
type pipelineHub struct {
	*Hub
	stateDir string
}

func (h pipelineHub) Gate() *gate.Gate { return h.Surfaces.Now().Gate }

func (h pipelineHub) Hooks() *hook.Set { return h.Surfaces.Now().hooks }

func (h pipelineHub) Limits(server string) invoke.Limits { return h.Surfaces.Now().limits[server] }

func (h pipelineHub) Present(t *tool.Tool) *tool.Tool { return h.Surfaces.present(t.Name) }

func (h pipelineHub) QueueOpen() bool { return h.Permission.queueOpen() }

func (h pipelineHub) Announce(ctx context.Context, webhook string, v approval.View) {
	h.page.Announce(ctx, webhook, v)
}

func (h pipelineHub) Offer(ctx context.Context, r *policy.Request) *policy.SuggestedGrant {
	return h.pageHub.offer(ctx, r)
}

func (h pipelineHub) CommandLine(words string) string { return CommandLine(h.stateDir, words) }

func (h pipelineHub) File(root, name string, most int64) ([]byte, error) {
	return code.ReadBelow(root, name, most, h.stateDir)
}

// Resource reads a resource of a server for a call, where the policy lets its caller.
func (h pipelineHub) Resource(ctx context.Context, c *invoke.Call, server, uri string) (tool.Reply, error) {
	const method = "resources/read"
	params := append(append([]byte(`{"uri":`), rawjson.Quote(uri)...), '}')
	out := h.pipeline.Invoke(ctx, &invoke.Call{Surface: c.Surface, Params: params, Arguments: params, Hop: c.Hop,
		Method: method,
		Actor:  c.Actor, Session: c.Session, Request: &invoke.Request{Method: h.Group.Method(server, method, true),
			Unasked: true,
			Send: func(ctx context.Context, _ *tool.Execution) (tool.Reply, error) {
				return h.Group.Forward(ctx, &tool.Request{Server: server, Method: method, Params: params, Hop: c.Hop,
					Session: c.Session})
			}}})
	switch {
	case out.Class == tool.ClassPermissionDenied || out.Class == tool.ClassPolicyBlocked:
		return tool.Reply{}, errors.New("the policy does not allow it")
	case out.Err != nil:
		return tool.Reply{}, out.Err
	}
	return tool.Reply{Result: out.Result, Free: out.Free}, nil
}

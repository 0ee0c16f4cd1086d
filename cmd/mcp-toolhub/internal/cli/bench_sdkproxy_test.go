//go:build e2e

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sdkProxy is what the SDK gives to somebody who writes the shortest pass-through: a server whose middleware hands calls
// to client sessions. It shows tools under the names that the hub gives them.
type sdkProxy struct {
	mu       sync.Mutex // while connecting
	sessions []*mcp.ClientSession
	tools    []*mcp.Tool
	routes   map[string]sdkRoute
}

type sdkRoute struct {
	session *mcp.ClientSession
	native  string
}

func benchToolName(server int, native string) string {
	return "mcp." + benchServerID(server) + "." + native
}

// runSDKProxy is the pass-through on the bare SDK.
func runSDKProxy(ctx context.Context, spec benchSpec) (err error) {
	p := &sdkProxy{routes: make(map[string]sdkRoute)}
	defer func() {
		for _, s := range p.sessions {
			err = errors.Join(err, s.Close())
		}
	}()
	errs := make(chan error, len(spec.Servers))
	for i, server := range spec.Servers {
		go func() { errs <- p.connect(ctx, i, server) }()
	}
	for range spec.Servers {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return err
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	s.AddReceivingMiddleware(p.forward)
	if spec.Door == "http" {
		return serveBenchHTTP(sdkHandler(s, spec.Modern))
	}
	return s.Run(ctx, &mcp.StdioTransport{})
}

func (p *sdkProxy) connect(ctx context.Context, n int, server benchSpec) error {
	var transport mcp.Transport
	if server.URL != "" {
		// The default client keeps two idle connections: sixteen callers would open one for each call.
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
		transport = &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client}
	} else {
		cmd, err := server.command()
		if err != nil {
			return err
		}
		transport = &mcp.CommandTransport{Command: cmd}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	var tools []*mcp.Tool
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		tools = append(tools, t)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions = append(p.sessions, session)
	for _, t := range tools {
		native := t.Name
		t.Name = benchToolName(n, native)
		p.tools = append(p.tools, t)
		p.routes[t.Name] = sdkRoute{session: session, native: native}
	}
	return nil
}

// forward hands calls on. Everything else is the SDK's.
func (p *sdkProxy) forward(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch params := req.GetParams().(type) {
		case *mcp.ListToolsParams:
			return &mcp.ListToolsResult{Tools: p.tools}, nil
		case *mcp.CallToolParamsRaw:
			route, ok := p.routes[params.Name]
			if !ok {
				return nil, fmt.Errorf("no tool %q", params.Name)
			}
			return route.session.CallTool(ctx, &mcp.CallToolParams{Meta: params.Meta, Name: route.native, Arguments: params.Arguments})
		}
		return next(ctx, method, req)
	}
}

// benchServerID is the id of the n-th server behind a proxy, and benchToolName the name of its tool there.
func benchServerID(n int) string { return fmt.Sprintf("s%d", n) }

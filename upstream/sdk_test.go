package upstream_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// sdkVariable makes the test binary a server that uses the SDK, over stdio.
const sdkVariable = "MCP_TOOLHUB_SDK_SERVER"

// sdkServer is a server as most are written: it keeps subscriptions by connection. Its tool touch tells of an update, and
// its tool grow adds a tool.
func sdkServer() *mcp.Server {
	take := func(_ context.Context, uri string) error {
		if strings.HasPrefix(uri, "bad:") {
			return fmt.Errorf("no such resource: %s", uri)
		}
		return nil
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(ctx context.Context, r *mcp.SubscribeRequest) error { return take(ctx, r.Params.URI) },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "text"}}}, nil
	}
	for i := range 3 {
		s.AddResource(&mcp.Resource{URI: fmt.Sprintf("x://%d", i), Name: "r"}, read)
	}
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "hello"}, nil
	})
	type arguments struct {
		URI string `json:"uri"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "touch"}, func(ctx context.Context, _ *mcp.CallToolRequest, a arguments) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: a.URI})
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, any, error) {
		s.AddPrompt(&mcp.Prompt{Name: "late"}, nil)
		return &mcp.CallToolResult{}, nil, nil
	})
	return s
}

// sdkMain plays the server if the process was started for that.
func sdkMain() {
	if os.Getenv(sdkVariable) == "" {
		return
	}
	_ = sdkServer().Run(context.Background(), &mcp.StdioTransport{})
	os.Exit(0)
}

// TestServersThatUseTheSDK checks subscriptions, their renewal and the announcing of changes against servers of the SDK, in
// both generations.
func TestServersThatUseTheSDK(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	over := func(o *mcp.StreamableHTTPOptions) upstream.ServerConfig {
		s := sdkServer()
		srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o))
		t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
		return upstream.ServerConfig{ID: "s", Transport: upstream.StreamableHTTP, URL: srv.URL}
	}
	for name, cfg := range map[string]upstream.ServerConfig{
		"stdio":          {ID: "s", Transport: upstream.Stdio, Command: self, Env: []string{"GORACE=atexit_sleep_ms=0", sdkVariable + "=1"}},
		"http":           over(nil),
		"http stateless": over(&mcp.StreamableHTTPOptions{Stateless: true}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, all := hear(t, cfg)
			version := h.ready(t, "s").ProtocolVersion
			t.Log("protocol", version)
			if c := h.catalog("s"); natives(c.Prompts) != "greet" || len(c.Resources) != 3 || !c.Abilities.Subscribe {
				t.Errorf("%s: %+v", version, c)
			}
			if reply, err := h.forward(t.Context(), "resources/read", `{"uri":"x://0"}`); err != nil || !strings.Contains(string(reply.Result), `"text"`) {
				t.Errorf("%s: %s, %v", version, reply.Result, err)
			}
			for i := range 3 {
				if err := h.Subscribe(t.Context(), "s", fmt.Sprintf("x://%d", i), tool.Session{}); err != nil {
					t.Fatalf("%s: %v", version, err)
				}
			}
			if err := h.Subscribe(t.Context(), "s", "bad://", tool.Session{}); err == nil {
				t.Errorf("%s: a subscription that the server refuses is taken", version)
			}
			if err := h.Unsubscribe(t.Context(), "s", "x://1", tool.Session{}); err != nil {
				t.Error(err)
			}
			for _, uri := range []string{"x://0", "x://2"} {
				eventually(t, version+": told of "+uri, func() bool {
					h.mustCall(t, "s", "touch", `{"uri":"`+uri+`"}`)
					return all.about(uri) > 0
				})
			}
			before := all.about("x://1")
			h.mustCall(t, "s", "touch", `{"uri":"x://1"}`)
			h.mustCall(t, "s", "touch", `{"uri":"x://2"}`)
			if all.about("x://1") != before {
				t.Errorf("%s: told of what nobody wants any more", version)
			}
			h.mustCall(t, "s", "grow", `{"uri":""}`)
			eventually(t, version+": the new prompt is listed", func() bool { return strings.Contains(natives(h.catalog("s").Prompts), "late") })
		})
	}
}

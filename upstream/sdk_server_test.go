package upstream_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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

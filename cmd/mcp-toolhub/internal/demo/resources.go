package demo

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	greetingURI      = "demo://greeting"
	greetingTemplate = "demo://greeting/{name}"
	promptName       = "greet"
)

func addResources(s *mcp.Server) {
	s.AddResource(&mcp.Resource{
		URI: greetingURI, Name: "greeting", Title: "Greeting", MIMEType: "text/plain",
		Description: "A fixed text.",
	}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return plain(req.Params.URI, greeting("world")), nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: greetingTemplate, Name: "greeting_for", Title: "Greeting for somebody", MIMEType: "text/plain",
		Description: "A greeting for name. Completion proposes some names; every name works.",
	}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		name, err := url.PathUnescape(strings.TrimPrefix(req.Params.URI, greetingURI+"/"))
		if err != nil || name == "" {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		}
		return plain(req.Params.URI, greeting(name)), nil
	})
}

func plain(uri, s string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: s}}}
}

func addPrompt(s *mcp.Server) {
	s.AddPrompt(&mcp.Prompt{
		Name: promptName, Title: "Greet somebody", Description: "Asks the model to greet name in a style.",
		Arguments: []*mcp.PromptArgument{
			{Name: "name", Title: "Name",
				Description: "Who is greeted. Completion proposes some names; every name works.", Required: true},
			{Name: "style", Title: "Style", Description: "formal or casual; casual where it is left out."},
		},
	}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		name, style := req.Params.Arguments["name"], req.Params.Arguments["style"]
		if name == "" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
				Message: `argument "name" is missing: send a name`}
		}
		style = cmp.Or(style, "casual")
		return &mcp.GetPromptResult{
			Description: "A greeting for " + name,
			Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{
				Text: fmt.Sprintf("Greet %s in a %s way, in one sentence.", name, style),
			}}},
		}, nil
	})
}

// complete proposes values for the arguments of the prompt and the template, by prefix, without regard to case.
func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	ref, argument := req.Params.Ref, req.Params.Argument
	var proposals []string
	switch {
	case ref == nil:
	case argument.Name == "name" && (ref.Type == "ref/prompt" && ref.Name == promptName ||
		ref.Type == "ref/resource" && ref.URI == greetingTemplate):
		proposals = []string{"Ada", "Alan", "Barbara", "Edsger", "Grace", "Katherine", "Ken", "Margaret"}
	case argument.Name == "style" && ref.Type == "ref/prompt" && ref.Name == promptName:
		proposals = []string{"casual", "formal"}
	}
	values := []string{}
	for _, p := range proposals {
		if strings.HasPrefix(strings.ToLower(p), strings.ToLower(argument.Value)) {
			values = append(values, p)
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}

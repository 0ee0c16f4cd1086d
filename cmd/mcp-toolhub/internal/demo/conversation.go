package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mostName bounds a name, in characters.
const mostName = 100

type askOutput struct {
	Action string `json:"action" jsonschema:"what the person did: accept, decline or cancel"`
	Name   string `json:"name,omitempty" jsonschema:"the name that the person gave"`
}

func addConversation(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{
		Name: "ask_name", Title: "Ask for a name", Annotations: readOnly(),
		Description: "Asks the person at the client for a name (elicitation, a form of one field) and greets it. " +
			"Returns an error where the client cannot be asked.",
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`),
	}, askName)

	mcp.AddTool(s, &mcp.Tool{
		Name: "log", Title: "Send a log message", Annotations: readOnly(),
		Description: "Sends one log message to the client. It arrives where the client set a level at or below it, " +
			"by logging/setLevel or, on 2026-07-28, by the request's own _meta.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"level":{"type":"string","enum":["debug","info","notice","warning","error",` +
			`"critical","alert","emergency"],"default":"info"},` +
			`"message":{"type":"string","maxLength":1000,"description":"Text of the message"}},` +
			`"required":["message"],"additionalProperties":false}`),
	}, sendLog)
}

func sendLog(ctx context.Context, req *mcp.CallToolRequest, in logInput) (*mcp.CallToolResult, any, error) {
	//lint:ignore SA1019 logging is deprecated from 2026-07-28 on, and still a part of every revision
	err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Logger: "demo", Level: mcp.LoggingLevel(in.Level),
		Data: in.Message})
	if err != nil {
		return nil, nil, fmt.Errorf("send the log message: %w", err)
	}
	return text("handed to the client's log level filter: " + in.Level), nil, nil
}

// askName asks by an input request. The SDK turns it into elicitation/create, and calls again with
// the answer, where the protocol has no input requests.
func askName(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, askOutput, error) {
	const question = "name"
	caps := req.ClientCapabilities()
	// A client that declares neither form nor url is one from before there were two: it takes forms.
	if caps == nil || caps.Elicitation == nil || caps.Elicitation.Form == nil && caps.Elicitation.URL != nil {
		return nil, askOutput{},
			errors.New("this client cannot be asked: it did not declare the capability elicitation with forms")
	}
	response, ok := req.Params.InputResponses[question]
	if !ok {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{question: &mcp.ElicitParams{
			Mode: "form", Message: "The demo server would like to greet you. What is your name?",
			RequestedSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
				`"name":{"type":"string","title":"Your name",`+
				`"minLength":1,"maxLength":%d}},"required":["name"]}`, mostName)),
		}}}, askOutput{}, nil
	}
	answer, ok := response.(*mcp.ElicitResult)
	if !ok || answer == nil {
		return nil, askOutput{},
			errors.New("the answer is not that of an elicitation: answer the input request that was sent")
	}
	if answer.Action != "accept" {
		return text("no name was given"), askOutput{Action: answer.Action}, nil
	}
	name, _ := answer.Content["name"].(string)
	if n := utf8.RuneCountInString(name); n < 1 || n > mostName {
		return nil, askOutput{}, fmt.Errorf("the answer holds no name of 1 to %d characters: answer the form again",
			mostName)
	}
	return text(greeting(name)), askOutput{Action: "accept", Name: name}, nil
}

func greeting(name string) string { return "Hello, " + strings.TrimSpace(name) + "!" }

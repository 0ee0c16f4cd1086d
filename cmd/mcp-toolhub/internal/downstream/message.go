package downstream

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// invalidParams is the error of a request whose params are wrong.
func invalidParams(what string) *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeInvalidParams, Message: "invalid params: " + what}
}

// checkInitialize refuses an initialize whose params are none. The SDK would answer with an error of no code, in words of its
// own, and over HTTP with the id of a session that does not exist.
func checkInitialize(m jsonrpc.Message) *tool.RPCError {
	if m.Method != methodInitialize || !m.IsRequest() {
		return nil
	}
	if !rawjson.IsObject(m.Params) {
		return invalidParams("initialize needs params with protocolVersion, capabilities and clientInfo")
	}
	var mistyped *json.UnmarshalTypeError
	switch err := json.Unmarshal(m.Params, &mcp.InitializeParams{}); {
	case errors.As(err, &mistyped):
		return invalidParams(fmt.Sprintf("%q must be no %s", mistyped.Field, mistyped.Value))
	case err != nil:
		return invalidParams("they are not those of initialize")
	}
	return nil
}

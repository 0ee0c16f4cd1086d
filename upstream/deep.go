package upstream

import (
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
)

// answerOf turns a response to c into an answer. What a list holds is looked at one by one
// later on, so that an element which nests too deeply costs none of the others.
func (c *laneCall) answerOf(e jsonrpc.Message) answer {
	_, isList := lists.Of(c.method)
	if isList && e.NotUTF8 > 0 {
		e.Valid, e.NotUTF8 = true, 0 // what is not UTF-8 in an element is replaced, and told, when that is admitted
	}
	if !e.Valid && isList && rawjson.IsNull(e.Error) && rawjson.IsObject(e.Result) && rawjson.Depth(e.Text) > rawjson.MaxDepth {
		rest, err := rawjson.Set(e.Text, "result", []byte("{}"))
		if err == nil && rawjson.Valid(rest) && lists.ValidButDeep(e.Result) {
			return answer{result: e.Result}
		}
	}
	return answerOf(e)
}

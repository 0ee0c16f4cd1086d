package upstream

import (
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
)

// answerOf turns a response to c, of which e is the envelope, into an answer. What a list holds is looked at one by one
// later on, so that an element which nests too deeply costs none of the others.
func (c *laneCall) answerOf(raw []byte, e envelope) answer {
	_, isList := lists.Of(c.method)
	if isList && e.notUTF8 > 0 {
		e.valid, e.notUTF8 = true, 0 // what is not UTF-8 in an element is replaced, and told, when that is admitted
	}
	if !e.valid && isList && rawjson.IsNull(e.err) && rawjson.IsObject(e.result) && rawjson.Depth(raw) > rawjson.MaxDepth {
		rest, err := rawjson.Set(raw, "result", []byte("{}"))
		if err == nil && rawjson.Valid(rest) && lists.ValidButDeep(e.result) {
			return answer{result: e.result}
		}
	}
	return answerOf(e)
}

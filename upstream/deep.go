package upstream

import (
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// answerOf turns a response to c, of which e is the envelope, into an answer. What a list of tools holds is looked at tool
// by tool later on, so that one which nests too deeply costs none of the others.
func (c *laneCall) answerOf(raw []byte, e envelope) answer {
	if !e.valid && c.method == methodListTools && rawjson.IsNull(e.err) && rawjson.IsObject(e.result) && rawjson.Depth(raw) > rawjson.MaxDepth {
		rest, err := rawjson.Set(raw, "result", []byte("{}"))
		if err == nil && rawjson.Valid(rest) && validButDeepTools(e.result) {
			return answer{result: e.result}
		}
	}
	return answerOf(e)
}

// validButDeepTools reports whether object is well-formed but for those elements of its member tools that nest too deeply
// to be looked at. Of these it is only known where they end.
func validButDeepTools(object []byte) bool {
	if rawjson.Valid(object) {
		return true
	}
	array, _ := rawjson.Get(object, "tools")
	rest, err := rawjson.Set(object, "tools", []byte("[]"))
	if err != nil || !rawjson.Valid(rest) {
		return false
	}
	sound := true
	err = rawjson.Elements(array, func(one []byte) bool {
		sound = rawjson.Depth(one) > rawjson.MaxDepth || rawjson.Valid(one)
		return sound
	})
	return err == nil && sound
}

package upstream

import (
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// answerOf turns a response to c, of which e is the envelope, into an answer. What a list holds is looked at one by one
// later on, so that an element which nests too deeply costs none of the others.
func (c *laneCall) answerOf(raw []byte, e envelope) answer {
	_, isList := listOf(c.method)
	if isList && e.notUTF8 > 0 {
		e.valid, e.notUTF8 = true, 0 // what is not UTF-8 in an element is replaced, and told, when that is admitted
	}
	if !e.valid && isList && rawjson.IsNull(e.err) && rawjson.IsObject(e.result) && rawjson.Depth(raw) > rawjson.MaxDepth {
		rest, err := rawjson.Set(raw, "result", []byte("{}"))
		if err == nil && rawjson.Valid(rest) && validButDeep(e.result) {
			return answer{result: e.result}
		}
	}
	return answerOf(e)
}

// validButDeep reports whether object is well-formed but for those elements of the lists in it that nest too deeply to be
// looked at. Of these it is only known where they end.
func validButDeep(object []byte) bool {
	if rawjson.Valid(object) {
		return true
	}
	rest := object
	for l := range lists {
		array, ok := rawjson.Get(object, l.member())
		if !ok {
			continue
		}
		var err error
		if rest, err = rawjson.Set(rest, l.member(), []byte("[]")); err != nil {
			return false
		}
		sound := true
		err = rawjson.Elements(array, func(one []byte) bool {
			sound = rawjson.Depth(one) > rawjson.MaxDepth || rawjson.Valid(one)
			return sound
		})
		if err != nil || !sound {
			return false
		}
	}
	return rawjson.Valid(rest)
}

package invoke

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// metaFeedback marks the content block with which a person speaks to the model, and is the member of _meta that does so where
// a result has no content.
const metaFeedback = "toolhub/feedback"

// speak adds what the person who allowed the call says to the result: a text block behind the tool's own content, which stays
// as it was. A result without content, such as that of a task, has it in its _meta.
func (inv *invocation) speak() {
	if inv.approved == nil || inv.approved.says == "" {
		return
	}
	result, err := inv.outcome.Result, error(nil)
	if content, ok := rawjson.Get(result, "content"); ok && isArray(content) {
		result, err = rawjson.Set(result, "content", withBlock(content, inv.approved.says))
	} else {
		meta, ok := rawjson.Get(result, "_meta")
		if !ok || !rawjson.IsObject(meta) {
			meta = json.RawMessage(`{}`)
		}
		if meta, err = rawjson.Set(meta, metaFeedback, rawjson.Quote(inv.approved.says)); err == nil {
			result, err = rawjson.Set(result, "_meta", meta)
		}
	}
	if err != nil {
		return // it is no JSON object, and whoever sends it finds out
	}
	inv.setResult(tool.Reply{Result: result})
}

// withBlock is an array of content blocks with one more.
func withBlock(content []byte, says string) json.RawMessage {
	content = bytes.TrimSpace(content)
	inside := content[:len(content)-1]
	out := append(make([]byte, 0, len(content)+len(says)+128), inside...)
	if len(bytes.TrimSpace(inside)) > 1 {
		out = append(out, ',')
	}
	out = append(append(out, `{"type":"text","text":`...), rawjson.Quote("The person who allowed this call says: "+says)...)
	return append(append(append(out, `,"_meta":{`...), rawjson.Quote(metaFeedback)...), ":true}}]"...)
}

func isArray(value []byte) bool {
	value = bytes.TrimSpace(value)
	return len(value) > 1 && value[0] == '[' && value[len(value)-1] == ']'
}

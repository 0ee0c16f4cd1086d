package downstream

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// idMask stands in for a request id that the SDK would not give back as it came: it reads numbers as 64-bit integers, so
// 1.5, 1e3 or 20 digits would change, and it writes strings with its own escapes. The SDK sees a plain string, and what
// it writes gets the original back.
type idMask struct {
	stand, original []byte
}

// maskID returns m with an id that survives the SDK, and the mask to undo it; the mask is nil where nothing was done.
func maskID(m jsonrpc.Message) (jsonrpc.Message, *idMask) {
	if m.ID == nil || survives(m.ID) {
		return m, nil
	}
	mask := &idMask{stand: rawjson.Quote("toolhub-id-" + rand.Text()), original: m.ID}
	text, err := rawjson.Set(m.Text, "id", mask.stand)
	if err != nil {
		return m, nil
	}
	m.Text, m.ID = text, mask.stand
	return m, mask
}

// survives reports whether the SDK gives id back byte for byte: a string without escapes, or an integer of at most 15
// digits in its shortest form.
func survives(id json.RawMessage) bool {
	if id[0] == '"' {
		for _, c := range id[1 : len(id)-1] {
			if c == '\\' || c < 0x20 || c >= 0x7f {
				return false
			}
		}
		return true
	}
	digits := bytes.TrimPrefix(id, []byte("-"))
	if len(digits) > 15 || digits[0] == '0' && len(id) > 1 {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// undo puts the original id back into a text that the SDK wrote. The stand-in is random, so nothing else can hold it.
func (k *idMask) undo(text []byte) []byte {
	if k == nil {
		return text
	}
	return bytes.ReplaceAll(text, k.stand, k.original)
}

// maskCancelled gives a notifications/cancelled the id under which the SDK knows the request.
func (d *stdioDoor) maskCancelled(m jsonrpc.Message) jsonrpc.Message {
	id, ok := rawjson.Get(m.Params, "requestId")
	if !ok {
		return m
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, mask := range d.masks {
		if bytes.Equal(mask.original, id) {
			if params, err := rawjson.Set(m.Params, "requestId", mask.stand); err == nil {
				if text, err := rawjson.Set(m.Text, "params", params); err == nil {
					m.Params, m.Text = params, text
				}
			}
		}
	}
	return m
}

// keyOf is the text of an id that the SDK gives back as it came.
func keyOf(id sdkrpc.ID) string {
	if s, ok := id.Raw().(string); ok {
		return string(rawjson.Quote(s))
	}
	return fmt.Sprint(id.Raw())
}

package admit

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// TestSoundIsATextUnderItsRules holds that what is kept for the next start spares checks to nothing but the same text in the same
// list, under the same rules and limits.
func TestSoundIsATextUnderItsRules(t *testing.T) {
	t.Parallel()
	cfg := settings.Server{ID: "s"}
	r := cfg.Entry().Redactor()
	const tool, prompt, hides = `{"name":"t","inputSchema":{"type":"object"}}`, `{"name":"t"}`, `{"name":"h","description":"a\u200bb","inputSchema":{"type":"object"}}`
	var o Offer
	o.Lists[lists.Tools] = []json.RawMessage{[]byte(tool), []byte(hides)}
	o.Lists[lists.Prompts] = []json.RawMessage{[]byte(prompt)}
	kept := o.Admit(cfg, r).Offer.Encode()
	again := func(from, to string, cfg settings.Server) *Listing {
		text := bytes.Replace(kept, []byte(from), []byte(to), 1)
		o, ok := DecodeOffer(text)
		if !ok {
			t.Fatalf("%s is not decoded", text)
		}
		return o.Admit(cfg, r)
	}
	same := again("", "", cfg)
	if len(same.Catalog.Tools) != 2 || len(same.Catalog.Prompts) != 1 || same.Repaired != 0 || len(same.Findings) != 1 || !bytes.Equal(same.Offer.Encode(), kept) {
		t.Errorf("the same text: %+v", same)
	}
	if changed := again(`"type":"object"`, `"type":["object"]`, cfg); changed.Repaired != 1 {
		t.Errorf("another text: %d are repaired", changed.Repaired)
	}
	if moved := again(`"tools":[`, `"tools":[{"name":"p"},`, cfg); moved.Repaired != 1 {
		t.Errorf("one that nobody has checked: %d are repaired", moved.Repaired)
	}
	if moved := again(tool, prompt, cfg); moved.Repaired != 1 {
		t.Errorf("what passed as a prompt: %d are repaired as tools", moved.Repaired)
	}
	cfg.Limits.ToolSize = 20
	if short := again("", "", cfg); len(short.Catalog.Tools) != 0 {
		t.Errorf("%d tools are longer than the limit", len(short.Catalog.Tools))
	}
}

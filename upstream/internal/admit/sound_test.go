package admit

import (
	"encoding/json"
	"maps"
	"strings"
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
	first := o.Admit(cfg, r).Offer
	kept := first.Encode()
	again := func(l lists.List, raw ...string) *Listing {
		o, ok := DecodeOffer(kept)
		if !ok {
			t.Fatalf("%q is not decoded", kept)
		}
		for i, one := range raw {
			o.Lists[l] = append(o.Lists[l][:i], json.RawMessage(one))
		}
		return o.Admit(cfg, r)
	}
	same := again(lists.Tools)
	if len(same.Catalog.Tools) != 2 || len(same.Catalog.Prompts) != 1 || same.Repaired != 0 ||
		len(same.Findings) != 1 ||
		same.Digest != first.Digest() || !maps.Equal(same.Offer.Sound, first.Sound) {
		t.Errorf("the same text: %+v", same)
	}
	if changed := again(lists.Tools, strings.Replace(tool, `"object"`, `["object"]`, 1)); changed.Repaired != 1 {
		t.Errorf("another text: %d are repaired", changed.Repaired)
	}
	if moved := again(lists.Tools, `{"name":"p"}`, tool, hides); moved.Repaired != 1 {
		t.Errorf("one that nobody has checked: %d are repaired", moved.Repaired)
	}
	if moved := again(lists.Tools, prompt); moved.Repaired != 1 {
		t.Errorf("what passed as a prompt: %d are repaired as tools", moved.Repaired)
	}
	cfg.Limits.ToolSize = 20
	if short := again(lists.Tools); len(short.Catalog.Tools) != 0 {
		t.Errorf("%d tools are longer than the limit", len(short.Catalog.Tools))
	}
}

package admit

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// FuzzOffers feeds pages of lists besides tools. Each element is admitted as it stands or excluded with a reason, and what is
// kept for the next start says the same.
func FuzzOffers(f *testing.F) {
	for _, seed := range []string{
		`{"prompts":[{"name":"a"},{"name":"a"}],"nextCursor":"x"}`,
		`{"resources":[{"uri":"a://b"},7,{"uri":""},{"uri":"a://b","uri":1}]}`,
		`{"resourceTemplates":[{"uriTemplate":"` + strings.Repeat("x", 9000) + `"},{"uriTemplate":"\ud800"}]}`,
		`{"prompts":{},"resources":null,"resourceTemplates":[[[[[]]]]]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		if !rawjson.Valid(page) || !rawjson.IsObject(page) {
			return
		}
		var o Offer
		for l := lists.Prompts; l < lists.Count; l++ {
			all, _, err := l.ReadPage(page)
			if err != nil {
				continue
			}
			o.Lists[l] = all
			offers, excluded := newAdmission(settings.Server{ID: "s"}, nil).admit(l, all, digests(all))
			if len(offers)+len(excluded) != len(all) {
				t.Fatalf("%d admitted and %d excluded of %d", len(offers), len(excluded), len(all))
			}
			seen := map[string]bool{}
			for _, one := range offers {
				if !json.Valid(one.declaration) || one.name == "" || seen[one.name] || rawjson.Text(one.declaration, l.Key()) != one.name {
					t.Fatalf("admitted %s as %q", one.declaration, one.name)
				}
				seen[one.name] = true
			}
			for _, one := range excluded {
				if one.Reason == "" || one.Code == "" || one.Tool == "" {
					t.Fatalf("excluded %+v", one)
				}
			}
		}
		if again, ok := DecodeOffer(o.Encode()); !ok || again.Digest() != o.Digest() {
			t.Fatalf("kept as %s", o.Encode())
		}
	})
}

package upstream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
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
			t.Skip()
		}
		s := testServer()
		var o offer
		for l := promptList; l < lists; l++ {
			all, _, err := readPage(page, l)
			if err != nil {
				continue
			}
			o.Lists[l] = all
			offers, excluded := newAdmission(s.cfg, nil).admitOffers(l, all)
			if len(offers)+len(excluded) != len(all) {
				t.Fatalf("%d admitted and %d excluded of %d", len(offers), len(excluded), len(all))
			}
			seen := map[string]bool{}
			for _, one := range offers {
				if !json.Valid(one.Declaration) || one.Native == "" || seen[one.Native] || text(one.Declaration, l.key()) != one.Native {
					t.Fatalf("admitted %s as %q", one.Declaration, one.Native)
				}
				seen[one.Native] = true
			}
			for _, one := range excluded {
				if one.Reason == "" || one.Code == "" || one.Tool == "" {
					t.Fatalf("excluded %+v", one)
				}
			}
		}
		if again, ok := decodeOffer(o.encode()); !ok || again.digest() != o.digest() {
			t.Fatalf("kept as %s", o.encode())
		}
	})
}

// FuzzNotification feeds what a server says on its own: what is told is one well-formed line that says nothing of the hop.
func FuzzNotification(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"a":1.50}}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://","_meta":{"io.modelcontextprotocol/x":1,"y":2}}}`,
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["a",7]},` +
			`"_meta":{"io.modelcontextprotocol/subscriptionId":"toolhub-listen-1"}}}`,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\n\"data\":null,\"_meta\":{\"io.modelcontextprotocol/x\":1}}}",
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, kind := open(raw)
		if kind != kindNotification {
			t.Skip()
		}
		s, sess := testServer(), newSession()
		s.notifications.run = func(func()) {} // what is queued is looked at
		sess.subscribed.set("a://", true)
		sess.watch.begin(&hop{version: modernVersion, client: "1"})
		c := newLaneCall("toolhub-1", methodCallTool, nil)
		s.notifications.handle(sess, e, c)
		for _, q := range s.notifications.queue {
			p := q.note.Params
			if p == nil {
				continue // of a method that the hub does not know
			}
			if !json.Valid(p) || strings.Contains(string(p), "\n") || !rawjson.IsObject(p) {
				t.Fatalf("told %q", p)
			}
			meta, _ := rawjson.Get(p, "_meta")
			_ = rawjson.Members(meta, func(m rawjson.Member) bool {
				if tool.OfHop(m.Name()) {
					t.Fatalf("told %s", p)
				}
				return true
			})
		}
	})
}

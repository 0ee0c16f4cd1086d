package upstream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
)

// FuzzNotification feeds what a server says on its own: what is told is one well-formed line that says nothing of the hop.
func FuzzNotification(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"a":1.50}}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://","_meta":{"io.modelcontextprotocol/x":1,"y":2}}}`,
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["a",7]},` +
			`"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\n\"data\":null,\"_meta\":{\"io.modelcontextprotocol/x\":1}}}",
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e := jsonrpc.Read(raw)
		if e.Kind != jsonrpc.Notification {
			return
		}
		s := testServer()
		sess := newSession(s.entry, nil)
		sess.info.Capabilities = &mcp.ServerCapabilities{}
		sess.subscribed.set(true, "a://")
		sess.watch.begin(&hop.Hop{Version: hop.Modern, Client: hop.ClientInfo("1")}, 1)
		c := newLaneCall(1, &tool.Request{Method: tool.MethodToolsCall}, nil)
		var told []tool.Notification
		s.group.OnNotification(func(n tool.Notification) { told = append(told, n) })
		sess.passOn(e, c)
		for _, n := range told {
			p := n.Params
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

package upstream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
)

// TestRenewedSubscriptionIsMadeUpFor checks that what may have changed between two subscriptions is read once the server has
// taken the second: before that it could change once more, and nobody would be told. The first one has gone when listen
// returns, and so before the lists are asked for.
func TestRenewedSubscriptionIsMadeUpFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sess := testSession()
		w := sess.watch
		sess.info.Capabilities = &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
		sess.hop = &hop.Hop{Version: hop.Modern, Client: hop.ClientInfo("1")}
		far := newMemoryWire()
		conn := newStreamConn(sess, far)
		var standing sync.WaitGroup
		defer standing.Wait()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		defer conn.release()
		call, version := sess.subscribe(ctx)
		standing.Go(func() { sess.stand(ctx, call, version) })
		if len(far.out) != 1 {
			t.Fatal("the subscription is not on its way")
		}
		takes := func() []byte {
			id, _ := rawjson.Get(<-far.out, "id")
			return id
		}
		acknowledges := func(id []byte) {
			far.in <- fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"_meta":{%q:%s},"notifications":{"toolsListChanged":true}}}`,
				tool.NoteAcknowledged, hop.SubscriptionKey, id)
			synctest.Wait()
		}
		first := takes()
		acknowledges(first)
		sess.subscribed.set(true, "x://1")
		w.ask()
		if end := string(<-far.out); !strings.Contains(end, "notifications/cancelled") {
			t.Errorf("sent %s", end)
		}
		far.in <- fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, first)
		second := takes()
		synctest.Wait()
		if len(sess.changed[lists.ToolKind]) != 0 {
			t.Error("made up for before the second subscription stands")
		}
		acknowledges(second)
		if len(sess.changed[lists.ToolKind]) != 1 {
			t.Error("not made up for")
		}
	})
}

//go:build unix

package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestLogMessagesOfACall checks where they go: to the call that brings them about, otherwise to the listeners.
func TestLogMessagesOfACall(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		h, all := hear(t, w.config(t, "s"))
		h.ready(t, "s")
		params := `{"level":"info","logger":"l","data":{"b":1.50,"a":12345678901234567890,"t":"<\u003c"},"future":[ ]}`
		own := &told{}
		x := execution("s", "say", saying(1, message(params), message(`{"level":"debug","data":null}`)))
		x.Notify = own.add
		if _, err := h.Execute(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if w.http != nil && w.http.JSON {
			return // it has no place there
		}
		if w.http != nil && w.http.Pretty {
			params = compact(t, params)
		}
		got := own.all()
		if len(got) != 2 || string(got[0].Params) != params || got[0].Server != "s" || got[0].Method != "notifications/message" || got[0].Session != "" {
			t.Errorf("told %+v, %d in all", got, len(all.all()))
		}
		if len(all.all()) > 0 {
			t.Error("others heard it, too")
		}
		h.mustCall(t, "s", "say", saying(1, message(params)))
		eventually(t, "what the call does not want, the listeners are told", func() bool { return len(all.all()) == 1 })
		r := &tool.Request{Server: "s", Method: "resources/read", Params: json.RawMessage(`{"uri":"log"}`), Notify: own.add}
		if _, err := h.Forward(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if len(own.all()) != 3 {
			t.Errorf("a forwarded request is told %+v", own.all())
		}
	})
}

// TestLogMessagesOfOneOfSeveral checks connections whose calls have no streams of their own: what the server says while
// several sessions have calls in flight is nobody's, and one session's again when the others have gone.
func TestLogMessagesOfOneOfSeveral(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		if w.http != nil && !w.http.SSE {
			return
		}
		h, all := hear(t, w.config(t, "s"))
		h.ready(t, "s")
		ann, bob := &told{}, &told{}
		of := func(session string, to *told, name, args string) *tool.Execution {
			x := execution("s", name, args)
			x.Session.Key, x.Notify = session, to.add
			return x
		}
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = h.Execute(ctx, of("bob", bob, "hang", `{}`))
		}()
		say := func(note string) (told bool) {
			t.Helper()
			before := len(ann.all())
			if _, err := h.Execute(t.Context(), of("ann", ann, "say", saying(1, note))); err != nil {
				t.Fatal(err)
			}
			return len(ann.all()) > before
		}
		good := message(`{"level":"info","data":1}`)
		eventually(t, "bob's call is in flight", func() bool { return !say(good) })
		leave()
		<-gone
		if !say(good) {
			t.Error("after bob has gone, what ann's call brings about is lost")
		}
		if len(all.all()) > 0 || len(bob.all()) > 0 {
			t.Errorf("the listeners are told %v, bob %v", all.all(), bob.all())
		}
	})
}

// TestLogMessagesBesideACall: what comes on the stream of no call belongs to the call of the only session that has one.
func TestLogMessagesBesideACall(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		if modern(w) && w.http != nil {
			return // there, nothing is logged outside of a request
		}
		h := start(t, w.config(t, "s"))
		h.ready(t, "s")
		ctx, leave := context.WithCancel(t.Context())
		own, gone := &told{}, make(chan struct{})
		go func() {
			defer close(gone)
			x := execution("s", "hang", `{}`)
			x.Notify = own.add
			_, _ = h.Execute(ctx, x)
		}()
		eventually(t, "the call in flight is told", func() bool {
			h.mustCall(t, "s", "shout", saying(1, message(`{"level":"info","data":1}`)))
			return len(own.all()) > 0
		})
		leave()
		<-gone
	})
}

// TestLogMessagesAndProgressKeepTheirOrder checks both, before the answer.
func TestLogMessagesAndProgressKeepTheirOrder(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		if w.http != nil && w.http.JSON {
			return // it has no place there
		}
		h := start(t, w.config(t, "s"))
		h.ready(t, "s")
		var order, notes []string // both are called before Execute returns, from one goroutine at a time
		for i := range 3 {
			notes = append(notes, message(fmt.Sprintf(`{"level":"info","data":%d}`, i)), fmt.Sprintf(
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":%d}}`, i))
		}
		x := execution("s", "say", saying(1, append(notes, message(`{"level":"info","data":"last"}`))...))
		x.Notify = func(n tool.Notification) {
			data, _ := rawjson.Get(n.Params, "data")
			order = append(order, "log "+string(data))
		}
		x.Progress = func(p tool.Progress) {
			n, _ := rawjson.Get(p.Params, "progress")
			order = append(order, "progress "+string(n))
		}
		if _, err := h.Execute(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(order, ", "); got != `log 0, progress 0, log 1, progress 1, log 2, progress 2, log "last"` {
			t.Errorf("told in the order %s", got)
		}
	})
}

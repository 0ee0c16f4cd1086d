package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

// Listen keeps a subscriptions/listen of a client's own open at a server of 2026-07-28, for what the hub does not listen to
// itself: r.Params hold what it asks for. It is opened again when it ends, the server's connection is lost or the server is
// started anew, until ctx ends or the server refuses it; the refusal is the error, and nil stands for the end of ctx. agreed
// is told each time what the server has agreed to, said what it says then, both one at a time, in order and quickly.
func (g *Group) Listen(
	ctx context.Context, r *tool.Request, agreed func(notifications json.RawMessage), said func(tool.Notification),
) error {
	var pause listenPause
	for {
		began := time.Now()
		x := &clientRequest{Request: *r, name: methodListen}
		x.Method, x.Progress = methodListen, ignoreProgress
		x.over = func(ctx context.Context, c *caller, sess *session, _ callLimits) answer {
			return c.listenFor(ctx, sess, x, func(n tool.Notification) {
				if n.Method != noteListenAcked {
					said(n)
				} else if filter, ok := rawjson.Get(n.Params, "notifications"); ok && rawjson.IsObject(filter) {
					agreed(filter)
				}
			})
		}
		_, err := g.dispatch(ctx, x)
		var rpc *tool.RPCError
		var f *tool.Failure
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &rpc):
			return err
		case errors.As(err, &f) && f.Code == "unknown_server":
			return err
		}
		if !pause.wait(ctx, began) {
			return nil
		}
	}
}

// listenFor is one subscriptions/listen over sess, to its end.
func (c *caller) listenFor(ctx context.Context, sess *session, x *clientRequest, said func(tool.Notification)) answer {
	if sess.hop == nil {
		return answer{err: &tool.RPCError{Code: tool.CodeMethodNotFound, Message: "the server takes no subscriptions/listen"}}
	}
	id := c.nextID()
	params, err := sess.hop.RequestParams(&x.Request, id)
	if err != nil {
		return answer{err: &tool.RPCError{Code: tool.CodeInvalidParams, Message: "params are no JSON object"}}
	}
	lc := newLaneCall(id, methodListen, params)
	lc.notify, lc.listens = said, true
	sess.lane.send(ctx, lc)
	for {
		select {
		case <-lc.ready:
			reports, done := lc.take()
			for _, r := range reports {
				if r.progress == nil {
					said(r.note)
				}
			}
			if done != nil {
				return *done
			}
		case <-c.lifecycle.retired: // whoever takes its place is asked
			sess.lane.cancel(ctx, lc, "renewed")
			return answer{err: errRetired}
		case <-c.lifecycle.stopping:
			sess.lane.cancel(ctx, lc, "the client is stopping")
			return endedFailure(lc, transport.ErrClosed)
		case <-ctx.Done():
			sess.lane.cancel(ctx, lc, "nobody listens any more")
			return answer{err: canceled(ctx, true)}
		}
	}
}

package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/redact"
)

// tellPatience is how long a server may take to take in a notification.
const tellPatience = 10 * time.Second

// Notify sends a notification of a client on to its server, over the connection of the client's session where each has its
// own, and returns once the server has taken it in. Of r, Server, Method, Params, Hop and Session count. A server that is
// not running is started. The error is as Execute's.
func (g *Group) Notify(ctx context.Context, r *tool.Request) error {
	params := r.Params
	if params != nil && !rawjson.IsNull(params) {
		line, err := rawjson.Line(params)
		if err != nil || !rawjson.IsObject(line) {
			return &tool.Failure{Class: tool.ClassInvalidArguments, Cause: err, Message: "params of the notification are no JSON object"}
		}
		if params, err = hop.Strip(line); err != nil {
			return &tool.Failure{Class: tool.ClassInvalidArguments, Cause: err, Message: "_meta of the notification is no JSON object"}
		}
	}
	if !fitsHeader(r.Method) {
		return errNoMethod(r.Method)
	}
	x := &clientRequest{Request: *r, name: r.Method}
	x.Progress = ignoreProgress
	x.over = func(ctx context.Context, c *caller, sess *session, _ callLimits) answer {
		ctx, cancel := context.WithTimeout(ctx, tellPatience)
		defer cancel()
		err := sess.lane.tell(ctx, r.Method, params)
		if err == nil {
			return answer{}
		}
		var status *fault.StatusError
		if errors.As(err, &status) {
			return answer{err: fault.StatusFailure(status.Status, 0)}
		}
		return answer{err: &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "not_told", Cause: err,
			Message: fmt.Sprintf("server %q did not take in the notification", c.cfg.ID)}}
	}
	_, err := g.dispatch(ctx, x)
	return err
}

// maxMethod bounds the names of methods that the hub does not know, in bytes.
const maxMethod = 200

// fitsHeader reports whether a method's name can stand in the Mcp-Method header.
func fitsHeader(method string) bool {
	for i := 0; i < len(method); i++ {
		if method[i] <= ' ' || method[i] > '~' {
			return false
		}
	}
	return method != "" && len(method) <= maxMethod
}

func errNoMethod(method string) *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeMethodNotFound,
		Message: fmt.Sprintf("method %q is not forwarded: a method's name is 1 to %d visible ASCII characters", redact.Truncate(method, 80), maxMethod)}
}

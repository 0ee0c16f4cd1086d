package invoke

import (
	"context"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Paused is an invocation between two rounds: its server has answered that it needs input, and the client's next request
// brings that. It holds no place at the server. Whoever got it calls exactly one of Resume and End, once, so that the
// invocation gets its one terminal result.
type Paused struct {
	pipeline *Pipeline
	inv      *invocation
}

// pause ends a round: the journal knows that the invocation waits.
func (p *Pipeline) pause(ctx context.Context, inv *invocation) Outcome {
	if !rawjson.IsObject(inv.reply.Result) {
		inv.reply.Result = []byte(`{}`)
	}
	inv.rounds++
	inv.moveTo(tool.StatusNeedsInput)
	out := Outcome{InvocationID: inv.id, Status: inv.status, Result: inv.reply.Result,
		Revision: inv.reply.Mapping.ProtocolVersion, Paused: &Paused{p, inv}}
	inv.reply = tool.Reply{}
	inv.pending = append(inv.pending, inv.record())
	if err := p.opts.Journal.Append(context.WithoutCancel(ctx), inv.takePending()...); err != nil {
		p.opts.Logger.Warn("a wait for input is not in the journal", "invocation", inv.id, "error", err)
	}
	return out
}

// Resume goes on with the client's next request c, under the same id and with the arguments that were checked in the
// beginning. The tool must still be there under c.Name, and allowed.
func (w *Paused) Resume(ctx context.Context, c Call) Outcome {
	w.inv.call = c
	w.inv.mappings = append(w.inv.mappings, clientSide(c))
	return w.pipeline.run(ctx, w.inv)
}

// End ends the invocation without another round. err is a *tool.Failure, or a *tool.RPCError that the client gets.
func (w *Paused) End(ctx context.Context, err error) Outcome {
	w.inv.fail(err)
	return w.pipeline.run(ctx, w.inv)
}

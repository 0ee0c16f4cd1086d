package invoke

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// yieldAfter is how long a request waits for a person where its client hears no progress: such clients give up after 60 s.
const yieldAfter = 50 * time.Second

// errYield is why a wait has ended that the client's request cannot go on with.
var errYield = errors.New("the client hears no progress, and would give up soon")

// patiently runs wait, which returns when its context ends. Where the client hears no progress that is yieldAfter since its
// request began to wait at the latest, and patiently reports whether it was that.
func (inv *invocation) patiently(ctx context.Context, since time.Time, wait func(context.Context)) (yields bool) {
	hears := inv.call.Progress != nil
	if inv.call.Hears != nil {
		hears = inv.call.Hears()
	}
	if hears {
		wait(ctx)
		return false
	}
	limited, stop := context.WithDeadlineCause(ctx, since.Add(yieldAfter), errYield)
	defer stop()
	wait(limited)
	return errors.Is(context.Cause(limited), errYield)
}

// yield ends the invocation before the question q is answered. Its place at the question waits for the call that is made again.
// The model reads the message and may have a shell: it names the command that shows the question, and not the one that allows
// the call.
func (p *Pipeline) yield(inv *invocation, q *question) error {
	inv.yielded = true
	return &tool.Failure{Class: tool.ClassTimeout, Code: "waits_for_approval",
		Message: fmt.Sprintf("waits for approval %s; call again with the same arguments: that call waits on, and takes the answer that a "+
			"person gives meanwhile, until %s. A person answers in the client, or in a terminal: %s",
			q.ticket.ID(), q.ticket.Expires().UTC().Format("15:04:05 UTC"), p.opts.CommandLine("approvals show "+string(q.ticket.ID())))}
}

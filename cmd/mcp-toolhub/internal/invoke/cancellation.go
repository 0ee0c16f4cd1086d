package invoke

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// recordCancellation records that somebody has cancelled the call, or that its time was over, and
// how the call ended. It does so once, and also for a call that has ended in spite of a
// cancellation.
func (p *Pipeline) recordCancellation(ctx context.Context, inv *invocation) {
	f := inv.failure
	if ctx.Err() == nil && (f == nil || !inv.wasCut()) || inv.outcome.Canceled != "" {
		return // the usual case
	}
	if m := inv.call.Member; m != nil && m.Parent != "" && f != nil && f.Class == tool.ClassCanceled &&
		f.AbortReason == "" && ctx.Err() != nil {
		ended := *f
		ended.AbortReason = AbortBatchCanceled // what ends a call of a batch so is the end of the batch
		inv.failure = &ended
	}
	now := time.Now()
	c := inv.request(ctx)
	if c.By == "" {
		c.By = inv.canceler()
	}
	if c.At.IsZero() {
		c.At = now
	}
	c.At, c.Outcome = c.At.UTC(), inv.cancelOutcome()
	if c.Outcome == tool.OutcomeUnknown && !inv.failure.OutcomeUnknown {
		unknown := *inv.failure
		unknown.OutcomeUnknown = true
		inv.failure = &unknown
	}
	inv.record.Cancel(&c, now)
	inv.outcome.Canceled = c.Outcome
}

// cancelOutcome says how a call ended that somebody has cancelled, or that ran out of time.
func (inv *invocation) cancelOutcome() tool.CancelOutcome {
	f := inv.failure
	switch {
	case inv.started.IsZero():
		return tool.OutcomeNotBegun
	case f == nil, f.Ended, !inv.wasCut() && !f.OutcomeUnknown:
		return tool.OutcomeEndedAnyway
	case f.OutcomeUnknown, inv.resumed: // its server has had it before it asked for input
		return tool.OutcomeUnknown
	}
	return tool.OutcomeNotBegun
}

// wasCut reports whether the invocation failed because it was cancelled, or because its time was over.
func (inv *invocation) wasCut() bool {
	switch inv.failure.Class {
	case tool.ClassCanceled, tool.ClassSiblingCanceled, tool.ClassStreamingDiscarded:
		return true
	case tool.ClassTimeout:
		return !inv.yielded
	}
	return false
}

// request returns who has cancelled the call, when and why, as far as a door or a phase has said
// so. The door's word counts first.
func (inv *invocation) request(ctx context.Context) tool.Cancellation {
	var why *tool.Failure
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &why) && why.Cancel != nil {
		return *why.Cancel
	}
	if f := inv.failure; f != nil && f.Cancel != nil {
		return *f.Cancel
	}
	return tool.Cancellation{}
}

// canceler is who has cancelled a call whose door does not say it.
func (inv *invocation) canceler() tool.Canceler {
	switch {
	case inv.failure != nil && inv.failure.Class == tool.ClassTimeout:
		return tool.CanceledByTimeout
	case inv.failure != nil && inv.failure.Class == tool.ClassSiblingCanceled:
		return tool.CanceledBySibling
	}
	switch inv.call.Actor.Door {
	case "http": // net/http tells nothing else, and up to 2025-11-25 a lost connection cancels nothing
		return tool.CanceledByClosedStream
	case "stdio":
		return tool.CanceledByLostClient
	}
	return tool.CanceledByClient // a person at a terminal
}

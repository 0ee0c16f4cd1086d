package invoke

import (
	"context"
	"errors"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// recordCancellation records the four facts of a cancellation: where somebody cancelled the call, also one that ended in spite of
// that, and where its time was over. It does so once.
func (p *Pipeline) recordCancellation(ctx context.Context, inv *invocation) {
	f := inv.failure
	if ctx.Err() == nil && (f == nil || f.Cancel == nil && !inv.wasCut()) || inv.outcome.Canceled {
		return // the usual case
	}
	if m := inv.call.Member; m != nil && m.Parent != "" && f != nil && f.Class == tool.ClassCanceled && f.AbortReason == "" && ctx.Err() != nil {
		ended := *f
		ended.AbortReason = AbortBatchCanceled // what ends a call of a batch so is the end of the batch
		f, inv.failure = &ended, &ended
	}
	now := inv.now()
	facts := tool.Cancellation{}
	if f != nil && f.Cancel != nil {
		facts = *f.Cancel
	}
	if why := whoCanceled(ctx); why != nil {
		facts.By, facts.At, facts.Reason = why.By, why.At, why.Reason
	}
	if facts.By == "" {
		facts.By = inv.canceler()
	}
	if facts.At.IsZero() {
		facts.At = now
	}
	if facts.Support == "" {
		facts.Support = p.cancelSupport(inv)
	}
	if facts.Delivery == "" {
		facts.Delivery, facts.Outcome = inv.withoutServer()
	}
	if facts.Outcome == tool.OutcomeBeforeEffect && inv.resumed {
		facts.Outcome = tool.OutcomeUnknown // its server has had it before it asked for input
	}
	if cut := f != nil && inv.wasCut() && f.Class != tool.ClassTimeout; inv.onlyReads() && (facts.Outcome == tool.OutcomeStoppedPartly ||
		cut && facts.Outcome == tool.OutcomeUnknown) {
		facts.Outcome = tool.OutcomeBeforeEffect // there is none
		if cut {
			inv.failure = spared(f)
		}
	}
	facts.At = facts.At.UTC()
	inv.record.Cancel(&facts, now)
	inv.outcome.Canceled, inv.outcome.Spared = true, facts.Outcome == tool.OutcomeBeforeEffect
}

// spared is f of a call that cannot have had an effect.
func spared(f *tool.Failure) *tool.Failure {
	without := *f
	without.OutcomeUnknown = false
	return &without
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

// whoCanceled returns what the door has said of a cancellation, as the cause of ctx; nil where it has said nothing.
func whoCanceled(ctx context.Context) *tool.Cancellation {
	var why *tool.Failure
	if ctx.Err() == nil || !errors.As(context.Cause(ctx), &why) {
		return nil
	}
	return why.Cancel
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

// cancelSupport says how a cancellation reaches the invocation's tool.
func (p *Pipeline) cancelSupport(inv *invocation) tool.CancelSupport {
	switch {
	case inv.listed == nil || inv.listed.Tool.Name.Source() != tool.SourceMCP:
		return tool.SupportHub
	case p.opts.CancelSupport == nil:
		return tool.SupportUnknown
	}
	return p.opts.CancelSupport(inv.listed.Tool.Server)
}

// withoutServer returns delivery and outcome where no server was told.
func (inv *invocation) withoutServer() (tool.CancelDelivery, tool.CancelOutcome) {
	switch {
	case inv.started.IsZero():
		return tool.DeliveryNotNeeded, tool.OutcomeBeforeEffect
	case inv.failure == nil, !inv.wasCut() && !inv.failure.OutcomeUnknown: // it had its answer before
		return tool.DeliveryNotNeeded, tool.OutcomeFinishedAnyway
	case inv.listed.Tool.Name.Source() == tool.SourceMCP && inv.failure.OutcomeUnknown:
		return tool.DeliveryUnknown, tool.OutcomeUnknown
	case inv.listed.Tool.Name.Source() == tool.SourceMCP: // its server waits for input, and is not working
		return tool.DeliveryNotNeeded, tool.OutcomeUnknown
	case inv.failure.OutcomeUnknown:
		return tool.DeliveryAcknowledged, tool.OutcomeStoppedPartly
	}
	return tool.DeliveryAcknowledged, tool.OutcomeBeforeEffect // a tool of the hub that it has ended
}

// onlyReads reports whether the invocation's tool is known to have no effect. The facts of a batch are without those of its calls.
func (inv *invocation) onlyReads() bool {
	batches := inv.listed != nil && inv.listed.Tool.Hub != nil && inv.listed.Tool.Hub.Batches
	return inv.facts != nil && inv.facts.ReadOnly.Value && !batches
}

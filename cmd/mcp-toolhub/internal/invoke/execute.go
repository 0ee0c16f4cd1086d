package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// execute calls the executor. The invocation is given to the journal before that, so that a crash leaves a trace of what
// may have run, unless it comes within the moment for which the journal holds records that nobody waits for.
func (p *Pipeline) execute(ctx context.Context, inv *invocation) error {
	t := inv.listed.Tool
	ex, ok := p.opts.Executors[t.Name.Source()]
	if t.Hub != nil {
		ex = t.Hub
	} else if !ok {
		return fmt.Errorf("execute %q: no executor for source %q", t.Name, t.Name.Source())
	}
	if ctx.Err() != nil {
		return &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled before it began"}
	}
	first := inv.started == nil
	if first {
		started := inv.now()
		inv.started = &started
	}
	inv.moveTo(tool.StatusRunning)
	if first {
		inv.event(tool.EventInvocationStarted, nil)
	}
	inv.pending = append(inv.pending, inv.record())
	if err := p.announce(ctx, inv.takePending()); err != nil {
		if first {
			inv.started = nil
		}
		if ctx.Err() != nil {
			return &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled before it began", Cause: err}
		}
		return &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "journal_unavailable", Cause: err,
			Message: "the hub cannot write its journal, so it runs nothing: its log and its health say why; try again when that is mended"}
	}
	reply, err := p.callExecutor(ctx, ex, inv)
	inv.ended = inv.now()
	if reply.Mapping != (tool.ExternalMapping{}) {
		inv.mappings = append(inv.mappings, reply.Mapping)
	}
	if err != nil {
		return becauseOf(ctx, err)
	}
	if reply.NeedsInput && !inv.call.InRounds {
		return fmt.Errorf("execute %q: the server needs input of a client that cannot give it with another request", t.Name)
	}
	inv.reply = reply
	return nil
}

// announce gives the journal what is known of an invocation before it runs. Where the journal has failed, that has to be
// on the disk first: nothing runs whose end could not be recorded, and the first call after the disk has recovered does.
func (p *Pipeline) announce(ctx context.Context, records []tool.Record) error {
	if p.opts.Journal.Healthy() == nil {
		return p.opts.Journal.Append(ctx, records...)
	}
	limited, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	return p.opts.Journal.Commit(limited, records...)
}

// callExecutor runs one execution: the call, or its next round.
func (p *Pipeline) callExecutor(ctx context.Context, ex Executor, inv *invocation) (tool.Reply, error) {
	x := &execution{pipeline: p, inv: inv, append: func(r ...tool.Record) error { return p.opts.Journal.Append(ctx, r...) }}
	x.sequence = inv.reported
	if inv.execution != nil {
		x.sequence = inv.execution.sequence
	}
	inv.execution = x
	defer x.close()
	return ex.Execute(ctx, &tool.Execution{
		Invocation: inv.id, Tool: inv.listed.Tool, Params: inv.call.Params, Arguments: inv.callInput, Command: inv.command, Meta: inv.call.Meta,
		Hop: inv.call.Hop, Session: inv.call.Session, Ask: x.asker(), InRounds: inv.call.InRounds, Notify: inv.call.Notify,
		Progress: x.report, Surface: inv.call.Surface, Aims: inv.aims, Actor: inv.call.Actor, Loaded: inv.call.Loaded, Record: x.note,
	})
}

// note gives the journal what the executor brings about besides its result.
func (x *execution) note(records ...tool.Record) {
	if err := x.append(records...); err != nil {
		x.pipeline.opts.Logger.Warn("records of a call are not in the journal", "invocation", x.inv.id, "error", err)
	}
}

// becauseOf is err, or why the call was canceled where its door has given a reason: a *tool.Failure as the cause of ctx.
func becauseOf(ctx context.Context, err error) error {
	var why, f *tool.Failure
	if ctx.Err() == nil || !errors.As(context.Cause(ctx), &why) {
		return err
	}
	reason := *why
	if errors.As(err, &f) {
		reason.OutcomeUnknown = reason.OutcomeUnknown || f.OutcomeUnknown
	}
	reason.Cause = err
	return &reason
}

// execution is what an executor reports while it runs: it passes progress and questions on and records them. Once closed
// it passes on nothing: a client must not see progress of a call that it has the result of.
type execution struct {
	pipeline *Pipeline
	inv      *invocation
	append   func(...tool.Record) error

	// mu also guards the status and transitions of the invocation until close.
	mu       sync.Mutex
	closed   bool
	sequence int
	recorded time.Time
	asking   int // questions that wait for the client
	waits    int // how often the call has begun to wait for it
}

// recordEvery bounds the journal lines of a chatty tool; every report still reaches the client.
const recordEvery = 100 * time.Millisecond

// maxWaits bounds the journal lines of a server that asks without end; every question still reaches the client.
const maxWaits = 100

// asker is the call's Ask, around which the invocation is one that needs input.
func (x *execution) asker() tool.Asker {
	ask := x.inv.call.Ask
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, questions []tool.Question) ([]tool.Answer, error) {
		x.waiting(1)
		defer x.waiting(-1)
		return ask(ctx, questions)
	}
}

// waiting notes that a question more, or less, waits for the client.
func (x *execution) waiting(change int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.asking
	x.asking += change
	if x.closed || before > 0 && x.asking > 0 || x.waits > maxWaits {
		return
	}
	if x.asking == 0 {
		x.inv.moveTo(tool.StatusRunning)
		return
	}
	if x.waits++; x.waits > maxWaits {
		return
	}
	x.inv.moveTo(tool.StatusNeedsInput)
	if err := x.append(x.inv.record()); err != nil {
		x.pipeline.opts.Logger.Warn("a wait for input is not in the journal", "invocation", x.inv.id, "error", err)
	}
}

// report hands one report to the client.
func (x *execution) report(update tool.Progress) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	if now := x.inv.now(); x.recorded.IsZero() || now.Sub(x.recorded) >= recordEvery {
		x.sequence++
		x.recorded = now
		r := x.record(update, now)
		if err := x.append(r, tool.Event{
			Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.NewEventID(), EventType: tool.EventInvocationProgress,
			Source: tool.EventSource, Subject: string(x.inv.id), Time: now, InvocationID: x.inv.id, ToolID: x.inv.toolID(),
			Data: map[string]any{"progress_id": string(r.ProgressID)},
		}); err != nil {
			x.pipeline.opts.Logger.Warn("progress is not in the journal", "invocation", x.inv.id, "error", err)
		}
	}
	if x.inv.call.Progress != nil {
		x.inv.call.Progress(update)
	}
}

func (x *execution) record(update tool.Progress, now time.Time) tool.ProgressRecord {
	r := tool.ProgressRecord{
		Head: tool.HeadOf(tool.ObjectProgress), ProgressID: tool.NewProgressID(), InvocationID: x.inv.id, Sequence: x.sequence,
		Status: tool.StatusRunning, ElapsedMS: now.Sub(*x.inv.started).Milliseconds(), Timestamp: now, Message: update.Message,
	}
	if m, ok := rawjson.Get(update.Params, "message"); ok && r.Message == "" {
		r.Message, _ = rawjson.String(m)
	}
	done, hasDone := number(update.Params, "progress")
	total, hasTotal := number(update.Params, "total")
	if hasDone && hasTotal && total > 0 && done >= 0 && done <= total {
		percent := 100 * done / total
		r.Percent = &percent
	}
	return r
}

func (x *execution) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.inv.status == tool.StatusNeedsInput { // the call ended with a question open
		x.inv.moveTo(tool.StatusRunning)
	}
}

func number(object json.RawMessage, name string) (float64, bool) {
	raw, ok := rawjson.Get(object, name)
	if !ok {
		return 0, false
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil {
		return 0, false
	}
	return f, true
}

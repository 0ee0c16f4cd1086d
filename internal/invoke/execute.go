package invoke

import (
	"context"
	"encoding/json"
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
	if !ok {
		return fmt.Errorf("execute %q: no executor for source %q", t.Name, t.Name.Source())
	}
	if ctx.Err() != nil {
		return &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled before it began"}
	}
	started := inv.now()
	inv.started = &started
	inv.moveTo(tool.StatusRunning)
	inv.event(tool.EventInvocationStarted, nil)
	inv.pending = append(inv.pending, inv.record())
	if err := p.announce(ctx, inv.takePending()); err != nil {
		inv.started = nil
		if ctx.Err() != nil {
			return &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled before it began", Cause: err}
		}
		return &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "journal_unavailable", Cause: err,
			Message: "the hub cannot write its journal, so it runs nothing: free space in its state directory, then try again"}
	}
	inv.progress = &progress{pipeline: p, inv: inv, started: started,
		append: func(r ...tool.Record) error { return p.opts.Journal.Append(ctx, r...) }}
	reply, err := ex.Execute(ctx, &tool.Execution{
		Invocation: inv.id, Tool: t, Params: inv.call.Params, Arguments: inv.callInput, Meta: inv.call.Meta, Hop: inv.call.Hop,
		Session: inv.call.Session, Notify: inv.call.Notify, Progress: inv.progress.report,
	})
	inv.progress.close()
	inv.ended = inv.now()
	if reply.Mapping != (tool.ExternalMapping{}) {
		inv.mappings = append(inv.mappings, reply.Mapping)
	}
	if err != nil {
		return err
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

// progress passes the reports of one execution on and records them.
type progress struct {
	pipeline *Pipeline
	inv      *invocation
	started  time.Time
	append   func(...tool.Record) error

	mu       sync.Mutex
	closed   bool
	sequence int
	recorded time.Time
}

// recordEvery bounds the journal lines of a chatty tool; every report still reaches the client.
const recordEvery = 100 * time.Millisecond

// report hands one report to the client. What comes after the execution has ended is dropped: a client must not see
// progress of a call that it has the result of.
func (pr *progress) report(update tool.Progress) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.closed {
		return
	}
	if now := pr.inv.now(); pr.sequence == 0 || now.Sub(pr.recorded) >= recordEvery {
		pr.sequence++
		pr.recorded = now
		r := pr.record(update, now)
		if err := pr.append(r, tool.Event{
			Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.NewEventID(), EventType: tool.EventInvocationProgress,
			Source: tool.EventSource, Subject: string(pr.inv.id), Time: now, InvocationID: pr.inv.id, ToolID: pr.inv.toolID(),
			Data: map[string]any{"progress_id": string(r.ProgressID)},
		}); err != nil {
			pr.pipeline.opts.Logger.Warn("progress is not in the journal", "invocation", pr.inv.id, "error", err)
		}
	}
	if pr.inv.call.Progress != nil {
		pr.inv.call.Progress(update)
	}
}

func (pr *progress) record(update tool.Progress, now time.Time) tool.ProgressRecord {
	r := tool.ProgressRecord{
		Head: tool.HeadOf(tool.ObjectProgress), ProgressID: tool.NewProgressID(), InvocationID: pr.inv.id, Sequence: pr.sequence,
		Status: tool.StatusRunning, ElapsedMS: now.Sub(pr.started).Milliseconds(), Timestamp: now,
	}
	if m, ok := rawjson.Get(update.Params, "message"); ok {
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

func (pr *progress) close() {
	pr.mu.Lock()
	pr.closed = true
	pr.mu.Unlock()
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

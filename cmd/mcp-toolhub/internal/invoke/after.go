package invoke

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// mapResult makes the one result of the invocation, from the executor's reply or from the failure.
func (p *Pipeline) mapResult(ctx context.Context, inv *invocation) error {
	inv.outcome = Outcome{InvocationID: inv.id}
	p.recordCancellation(ctx, inv)
	defer func() {
		if m := inv.call.Member; m == nil || m.Failed == nil {
			inv.release() // the next call need not wait for this one's records
		}
	}()
	if inv.failure != nil {
		inv.mapFailure()
		return nil
	}
	inv.setResult(inv.reply)
	if inv.outcome.Object.Text() == nil {
		inv.fail(&tool.Failure{Class: tool.ClassExecutionFailed, Code: "result_mapping_failed", OutcomeUnknown: true,
			Message: "the tool ran, and its result is no JSON object, so it cannot be shown: check what it did " +
				"before calling again, and report this"})
		inv.mapFailure()
		return nil
	}
	if a := inv.approved; a != nil && a.says != "" {
		inv.addText(metaFeedback, []byte("true"), "The person who allowed this call says: ", a.says)
	}
	inv.outcome.Free, inv.outcome.Revision = inv.reply.Free, inv.reply.Mapping.ProtocolVersion
	if r := &inv.reply; r.Task != "" {
		inv.outcome.Task = &Task{ID: r.Task, Session: r.Session, RequestID: r.Mapping.JSONRPCRequestID}
	}
	if judge(inv, "the tool answered with isError"); inv.outcome.Class != "" {
		return nil
	}
	p.validator.checkOutput(inv)
	if inv.outcome.Task == nil {
		inv.outcome.Output = outputOf(inv.outcome.Object)
		inv.end.Output = inv.outcome.Output
	}
	return nil
}

// judge says by isError of the result how the call ends. message explains a failure.
func judge(inv *invocation, message string) {
	inv.end.Error, inv.end.Summary, inv.outcome.Class = nil, "", ""
	if isError, _ := inv.outcome.Object.Get("isError"); string(isError) == "true" {
		inv.final = tool.StatusFailed
		inv.outcome.Class = cmp.Or(inv.reply.Class, tool.ClassExecutionFailed)
		inv.end.Error = &tool.Error{ErrorCode: tool.CodeToolError, ErrorClass: inv.outcome.Class, Message: message,
			Recoverability: recoverFixInput}
		inv.end.Summary = summaryOf(inv.outcome.Object)
		return
	}
	if inv.final = tool.StatusSucceeded; inv.outcome.Task != nil {
		inv.final = tool.StatusYielded // how the task ends nobody knows yet
	}
}

// mapFailure turns the failure into what the caller sees and the journal keeps.
func (inv *invocation) mapFailure() {
	f := inv.failure
	c := classOf(f.Class)
	if f.Code == codeMutationFailed {
		c.recoverability = recoverNone // the caller's arguments were right
	}
	if inv.final = c.status; inv.yielded {
		inv.final = tool.StatusYielded
	}
	if inv.final == tool.StatusValidationFailed && !inv.invalid {
		inv.record.Event(tool.EventInvocationValidationFailed,
			map[string]any{"problems": []schema.Problem{{Message: f.Message}}}, time.Now())
	}
	inv.outcome.Class, inv.outcome.Aborted = f.Class, f.AbortReason
	inv.end.Output, inv.outcome.Output = "", ""
	inv.end.Error = &tool.Error{ErrorCode: f.ErrorCode(), ErrorClass: f.Class, Message: f.Message,
		Recoverability: c.recoverability, RetryAfterMS: f.RetryAfter.Milliseconds(), OutcomeUnknown: f.OutcomeUnknown,
		AbortReason: f.AbortReason}
	inv.outcome.Error = inv.end.Error
	if inv.rpcErr != nil {
		inv.outcome.Err = inv.named(inv.rpcErr)
		inv.end.Error.NativeErrorRef = nativeError(inv.rpcErr)
		inv.end.Content = fmt.Appendf(nil, `[{"type":"text","text":%s}]`, rawjson.Quote(f.Message))
		return
	}
	said := forCaller(inv, f.Message+f.Private)
	if inv.call.Request != nil {
		e := f.RPC()
		e.Message = said
		inv.outcome.Err = inv.named(e)
		inv.end.Content = fmt.Appendf(nil, `[{"type":"text","text":%s}]`, rawjson.Quote(f.Message))
		return
	}
	var native *tool.RPCError
	if errors.As(f.Cause, &native) { // behind an HTTP status, say
		inv.end.Error.NativeErrorRef = nativeError(native)
	}
	var refused *tool.HTTPError
	if errors.As(f.Cause, &refused) {
		inv.end.Error.NativeErrorRef, _ = rawjson.Encode(refused)
	}
	content := fmt.Appendf(nil, `{"type":"text","text":%s}`, rawjson.Quote(said))
	if f.Detail != "" {
		content = fmt.Appendf(content, `,{"type":"text","text":%s}`, rawjson.Quote(f.Detail))
	}
	inv.setResult(tool.Reply{Result: fmt.Appendf(nil, `{"content":[%s],"isError":true}`, content)})
}

// forCaller returns a text of the hub's own as the caller may read it: one elsewhere learns nothing
// of where files are here.
func forCaller(inv *invocation, text string) string {
	if !inv.call.Actor.IsRemote() {
		return text
	}
	return secret.WithoutPaths(text, string(inv.inputs.model))
}

// metaInvocation is the member of data that names the invocation, as _meta of a result does.
const metaInvocation = "toolhub/invocation"

// named returns an error of the hub's own with the invocation in its data; one of a server as it
// is. Whether a name is unknown or hidden, the id is all that it says.
func (inv *invocation) named(e *tool.RPCError) *tool.RPCError {
	if e.Raw != nil || inv.failure.Code == codeUpstreamError {
		return e
	}
	data := cmp.Or(string(e.Data), "{}")
	named, err := rawjson.Set([]byte(data), metaInvocation, fmt.Appendf(nil, `{"invocation_id":%q}`, inv.id))
	if err != nil {
		return e // its data are no object
	}
	out := *e
	out.Data = named
	return &out
}

func (inv *invocation) setResult(r tool.Reply) {
	inv.outcome.Result = r.Result
	var read bool
	if inv.outcome.Object, read = r.Object.(rawjson.Object); !read {
		// what is no object has no members, and whoever sends it finds out
		inv.outcome.Object, _ = rawjson.ReadObject(r.Result)
	}
}

// summaryOf returns the first text of the content of a result, without secrets in addresses; "" where there is none.
func summaryOf(result rawjson.Object) (summary string) {
	content, _ := result.Get("content")
	_ = rawjson.Elements(content, func(block []byte) bool {
		if kind, _ := rawjson.GetString(block, "type"); kind == "text" {
			summary, _ = rawjson.GetString(block, "text")
		}
		return summary == ""
	})
	return hidden.Cut(secret.Text(hidden.Cut(summary, maxSaid), false), maxSaid)
}

// objects returns content as an array of objects, as the standard wants it: content itself where it is one, otherwise
// its elements that are none wrapped.
func objects(content json.RawMessage) json.RawMessage {
	if !rawjson.Valid(content) {
		return nil
	}
	fits := true
	err := rawjson.Elements(content, func(e []byte) bool {
		fits = rawjson.IsObject(e)
		return fits
	})
	if err == nil && fits { // as it is written
		return content
	}
	wrap := func(e []byte) []byte { return append(append([]byte(`{"type":"unknown","value":`), e...), '}') }
	if err != nil {
		return append(append([]byte{'['}, wrap(content)...), ']')
	}
	out, _ := rawjson.Map(content, func(e []byte) []byte {
		if rawjson.IsObject(e) {
			return e
		}
		return wrap(e)
	})
	return out
}

// emitTerminal is the one finish: the terminal records reach the journal before anybody gets the
// outcome. They are written even where the caller has gone. The log hears of the end, too.
func (p *Pipeline) emitTerminal(ctx context.Context, inv *invocation) error {
	o := &p.opts
	if inv.hooks != nil {
		p.recordCancellation(ctx, inv) // hooks after the call take a while
	}
	inv.outcome.Status, inv.end.At = inv.status, time.Now()
	inv.describe()
	if err := o.Journal.End(ctx, &inv.record, &inv.end); err != nil {
		inv.outcome.JournalFailed = true
		level := slog.LevelError
		if inv.started.IsZero() {
			level = slog.LevelDebug // nothing has happened that is not known now, and a full disk must not fill the log
		}
		o.Logger.Log(ctx, level, "terminal record is not in the journal", "invocation", inv.id, "tool",
			inv.toolID(), "error", err)
	}
	if inv.failure == nil && !o.Logger.Enabled(ctx, slog.LevelDebug) {
		return nil // the usual case: nothing of what follows is worth its memory
	}
	attrs := []any{"tool", inv.toolID(), "status", inv.status, "invocation", inv.id, "actor", inv.call.Actor.Ref(),
		"ms", inv.end.At.Sub(inv.record.Created).Milliseconds()}
	if inv.failure == nil {
		o.Logger.Debug("call ended", attrs...)
		return nil
	}
	attrs = append(attrs, "class", inv.failure.Class, "code", inv.failure.ErrorCode())
	if inv.failure.Class == tool.ClassRateLimited && inv.started.IsZero() { // a flood of calls is none of lines
		p.sayRefused.Do(func() { o.Logger.Info("calls are refused, this one and perhaps others", attrs...) })
		return nil
	}
	if inv.failure.Cause != nil && !inv.outcome.Unkept { // what a hook keeps out of the journal is not logged either
		cause, _ := inv.record.Learned().Text(inv.failure.Cause.Error())
		attrs = append(attrs, "cause", cause)
	}
	o.Logger.Info("call failed", attrs...)
	return nil
}

// metaFeedback marks the content block in which a person speaks to the model. Where a result has no
// content, it is the member of _meta that holds the text.
const metaFeedback = "toolhub/feedback"

// addText adds a text for the model to the result: as a text block after the tool's own content,
// which mark below key in its _meta tells from that. Where there is no content, as in the result of
// a task, key of the result's _meta holds the text.
func (inv *invocation) addText(key string, mark []byte, prefix, text string) {
	result, err := inv.outcome.Result, error(nil)
	if content, ok := rawjson.Get(result, "content"); ok && isArray(content) {
		result, err = rawjson.Set(result, "content", withBlock(content, textBlock(prefix+text, key, mark)))
	} else {
		var meta []byte
		if meta, err = rawjson.Set(rawjson.GetObject(result, "_meta"), key, rawjson.Quote(text)); err == nil {
			result, err = rawjson.Set(result, "_meta", meta)
		}
	}
	if err != nil {
		return // it is no JSON object, and whoever sends it finds out
	}
	inv.setResult(tool.Reply{Result: result})
}

func isArray(value []byte) bool {
	value = bytes.TrimSpace(value)
	return len(value) > 1 && value[0] == '[' && value[len(value)-1] == ']'
}

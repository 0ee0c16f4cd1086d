package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// runFunc is a runner of commands.
type runFunc func(context.Context, hook.Command) (hook.Ended, error)

func (f runFunc) Run(ctx context.Context, c hook.Command) (hook.Ended, error) { return f(ctx, c) }

// look is a call that stays as it is.
type look struct {
	in    hook.Input
	ended func(*hook.Report) error
}

func (l look) Input(context.Context) (hook.Input, error)     { return l.in, nil }
func (look) Waits(context.Context)                           {}
func (look) Started(context.Context, string)                 {}
func (l look) Ended(_ context.Context, r *hook.Report) error { return l.ended(r) }

// plan makes the plan of configs for the calls of in.
func plan(t testing.TB, run runFunc, in hook.Input, configs ...hook.Config) *hook.Plan {
	t.Helper()
	set, problems := hook.New(configs, hook.Options{Runner: runFunc(run)})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return set.Plan(in.Request)
}

// names runs the hooks of the event of in and returns those that have ended, in that order.
func names(t testing.TB, p *hook.Plan, in hook.Input) (ended []string) {
	t.Helper()
	if p == nil {
		return nil
	}
	err := p.Run(t.Context(), in.Event, look{in, func(r *hook.Report) error { ended = append(ended, r.Hook); return nil }})
	if err != nil {
		t.Error(err)
	}
	return ended
}

// TestMatching: hooks are for the calls that their rule and their matcher of Claude Code take, and a condition that cannot be evaluated
// takes the call.
func TestMatching(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook  hook.Config
		takes bool
	}{
		"all":                      {hook.Config{}, true},
		"match":                    {hook.Config{Rule: policy.Rule{Match: []string{"mcp.memory.*"}}}, true},
		"match of another":         {hook.Config{Rule: policy.Rule{Match: []string{"mcp.github.*"}}}, false},
		"tags":                     {hook.Config{Rule: policy.Rule{Tags: []string{"write"}}}, true},
		"other tags":               {hook.Config{Rule: policy.Rule{Tags: []string{"read"}}}, false},
		"server":                   {hook.Config{Rule: policy.Rule{Server: []string{"mem*"}}}, true},
		"another server":           {hook.Config{Rule: policy.Rule{Server: []string{"github"}}}, false},
		"profile":                  {hook.Config{Rule: policy.Rule{Profile: []string{"default"}}}, true},
		"another profile":          {hook.Config{Rule: policy.Rule{Profile: []string{"work"}}}, false},
		"actor":                    {hook.Config{Rule: policy.Rule{Actor: []string{"ann"}}}, true},
		"another actor":            {hook.Config{Rule: policy.Rule{Actor: []string{"bob"}}}, false},
		"when":                     {hook.Config{Rule: policy.Rule{When: `arguments.text == "a"`}}, true},
		"when not":                 {hook.Config{Rule: policy.Rule{When: `arguments.text == "b"`}}, false},
		"when nobody knows":        {hook.Config{Rule: policy.Rule{When: `arguments.nothing == "b"`}}, true},
		"Claude Code's server":     {hook.Config{Matcher: "mcp__memory__.*"}, true},
		"Claude Code's other":      {hook.Config{Matcher: "mcp__github__.*"}, false},
		"Claude Code's tools":      {hook.Config{Matcher: "mcp__.*__write.*"}, true},
		"Claude Code's every":      {hook.Config{Matcher: "*"}, true},
		"Claude Code's name":       {hook.Config{Matcher: "Write|mcp__memory__write_note"}, true},
		"Claude Code's whole name": {hook.Config{Matcher: "mcp__memory"}, false},
		"a list with commas":       {hook.Config{Matcher: "mcp__x__y, mcp__memory__write_note"}, true},
		"a list with bars":         {hook.Config{Matcher: "mcp__memory__write_note | mcp__x__y"}, true},
		"a list of others":         {hook.Config{Matcher: "mcp__memory__write,mcp__x__y"}, false},
		"matcher and match":        {hook.Config{Matcher: "mcp__memory__.*", Rule: policy.Rule{Server: []string{"github"}}}, false},
		"another event":            {hook.Config{Events: []hook.Event{hook.PostToolUse}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := moment(hook.PreToolUse, `{"text":"a"}`)
			if c.hook.Name, c.hook.AddContext = "h", "x"; len(c.hook.Events) == 0 {
				c.hook.Events = []hook.Event{hook.PreToolUse}
			}
			if takes := len(names(t, plan(t, nil, in, c.hook), in)) > 0; takes != c.takes {
				t.Errorf("it takes the call: %v, want %v", takes, c.takes)
			}
		})
	}
	_, problems := hook.New([]hook.Config{{Events: []hook.Event{hook.PreToolUse}, AddContext: "x", Matcher: "(?=a)"}}, hook.Options{})
	if len(problems) != 1 || problems[0].Key != "matcher" {
		t.Errorf("a matcher that RE2 has not makes %v", problems)
	}
	_, problems = hook.New([]hook.Config{{Events: []hook.Event{hook.PreToolUse},
		Rewrite: []hook.Operation{{Op: "remove", Path: "a"}}}}, hook.Options{})
	if len(problems) != 1 || problems[0].Key != "rewrite[0].path" {
		t.Errorf("a path that is no pointer makes %v", problems)
	}
}

// TestOrder: hooks run one after the other, in the order of the config. In the whole set 32 of one caller run at a time, and the time of
// one that waits for its turn has not begun.
func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		run := func(ctx context.Context, _ hook.Command) (hook.Ended, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			defer func() { mu.Lock(); running--; mu.Unlock() }()
			select {
			case <-time.After(time.Second):
				return hook.Ended{}, nil
			case <-ctx.Done():
				return hook.Ended{}, ctx.Err()
			}
		}
		in := moment(hook.PreToolUse, `{}`)
		var configs []hook.Config
		for _, name := range []string{"a", "b", "c"} {
			configs = append(configs, hook.Config{Name: name, Events: []hook.Event{hook.PreToolUse}, Command: []string{"x"}, Timeout: 1500 * time.Millisecond})
		}
		p, began := plan(t, run, in, configs...), time.Now()
		if got := names(t, p, in); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("they ran as %v", got)
		}
		if took := time.Since(began); took != 3*time.Second || most != 1 {
			t.Errorf("it took %v, and %d ran at the same time; want 3s and 1", took, most)
		}
		var ended []string
		failed := errors.New("the first one blocks")
		err := p.Run(t.Context(), hook.PreToolUse, look{in, func(r *hook.Report) error { ended = append(ended, r.Hook); return failed }})
		if !errors.Is(err, failed) || !slices.Equal(ended, []string{"a"}) {
			t.Errorf("after one that blocks, %v are reported, and %v", ended, err)
		}
		most, began = 0, time.Now()
		var calls sync.WaitGroup
		one := plan(t, run, in, hook.Config{Name: "h", Events: []hook.Event{hook.PreToolUse}, Command: []string{"h"}, Timeout: 1500 * time.Millisecond})
		for range 100 {
			calls.Go(func() {
				_ = one.Run(t.Context(), hook.PreToolUse, look{in, func(r *hook.Report) error {
					if r.Err != nil {
						t.Error(r.Err)
					}
					return nil
				}})
			})
		}
		calls.Wait()
		if took := time.Since(began); took != 4*time.Second || most != 32 {
			t.Errorf("100 calls took %v, and %d hooks ran at the same time; want 4s and 32", took, most)
		}
	})
}

// TestOwnCalls: a call that a hook has made does not run the hook again, whatever it says of failures, and nobody passes a hook by
// saying so.
func TestOwnCalls(t *testing.T) {
	t.Parallel()
	in := moment(hook.PreToolUse, `{"text":"a"}`)
	var mark string
	run := func(_ context.Context, c hook.Command) (hook.Ended, error) {
		mark = c.Set[len(c.Set)-1]
		return hook.Ended{}, nil
	}
	configs := []hook.Config{
		{Name: "first", Events: []hook.Event{hook.PreToolUse}, Command: []string{"x"}, Fail: hook.FailOpen},
		{Name: "other", Events: []hook.Event{hook.PostToolUse}, Command: []string{"x"}, Rule: policy.Rule{When: `arguments.text != "a"`}},
		{Name: "within", Events: []hook.Event{hook.PreToolUse}, AddContext: "x"},
	}
	for meta, want := range map[string]struct{ again, mark string }{
		``:                                {"", "MCP_TOOLHUB_HOOKS=first"},
		`{"toolhub/hooks":"guard"}`:       {"", "MCP_TOOLHUB_HOOKS=guard first"},
		`{"toolhub/hooks":"guard first"}`: {"first", ""},
		`{"toolhub/hooks":"other"}`:       {"", "MCP_TOOLHUB_HOOKS=other first"}, // which is not for such a call
		`{"toolhub/hooks":"within"}`:      {"", "MCP_TOOLHUB_HOOKS=within first"},
	} {
		in.Request.Meta, mark = json.RawMessage(meta), ""
		p := plan(t, run, in, configs...)
		got, err := p.Again(t.Context(), look{in: in}, in.Request.Meta)
		if err != nil || got != want.again {
			t.Errorf("with %s the hook that would run again is %q, %v; want %q", meta, got, err, want.again)
		}
		err = p.Run(t.Context(), hook.PreToolUse, look{in, func(r *hook.Report) error {
			if r.Failed() != (r.Hook == want.again) {
				t.Errorf("with %s %s ends the call: %v, %v", meta, r.Hook, r.Failed(), r.Err)
			}
			return nil
		}})
		if err != nil || mark != want.mark {
			t.Errorf("with %s the command gets %q, %v; want %q", meta, mark, err, want.mark)
		}
	}
}

// TestHooksOfHooksCalls: however many calls wait for hooks that call the hub, the hooks of those calls have places.
func TestHooksOfHooksCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p *hook.Plan
		through := func(in hook.Input) error {
			return p.Run(t.Context(), hook.PreToolUse, look{in, func(r *hook.Report) error { return r.Err }})
		}
		in := moment(hook.PreToolUse, `{"text":"outer"}`)
		run := func(_ context.Context, c hook.Command) (hook.Ended, error) {
			if time.Sleep(time.Second); !bytes.Contains(c.Stdin, []byte(`"text":"outer"`)) {
				return hook.Ended{}, nil
			}
			inner := moment(hook.PreToolUse, `{"text":"inner"}`)
			inner.Request.Meta = json.RawMessage(`{"toolhub/hooks":"outer"}`)
			return hook.Ended{}, through(inner)
		}
		p = plan(t, run, in,
			hook.Config{Name: "outer", Events: []hook.Event{hook.PreToolUse}, Command: []string{"x"}, Rule: policy.Rule{When: `arguments.text == "outer"`}},
			hook.Config{Name: "inner", Events: []hook.Event{hook.PreToolUse}, Command: []string{"x"}, Rule: policy.Rule{When: `arguments.text == "inner"`}})
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() {
				if err := through(in); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	})
}

// TestAnswers: what the members of Claude Code's answers, and exit code 2, mean at each event.
func TestAnswers(t *testing.T) {
	t.Parallel()
	permission := func(b tool.Behavior) hook.Output {
		return hook.Output{Permission: &hook.Permission{Behavior: b, Reason: "r"}}
	}
	stop, half := hook.Output{Stop: &hook.Stop{Reason: "r"}}, 50.0
	for _, c := range []struct {
		event   hook.Event
		ended   hook.Ended
		want    hook.Output
		ignored string
	}{
		{hook.PreToolUse, hook.Ended{ExitCode: 2, Stderr: "r\n"}, stop, ""},
		{hook.PermissionRequest, hook.Ended{ExitCode: 2, Stderr: "r"}, stop, ""},
		{hook.PermissionDecision, hook.Ended{ExitCode: 2, Stderr: "r"}, stop, ""},
		{hook.PostToolUse, hook.Ended{ExitCode: 2, Stderr: "r"}, hook.Output{Context: []string{"r"}}, ""},
		{hook.PostToolUseFailure, hook.Ended{ExitCode: 2, Stderr: "r"}, hook.Output{Context: []string{"r"}}, ""},
		{hook.PreToolUse, says(`some text`), hook.Output{Messages: []string{"some text"}}, ""},
		{hook.PreToolUse, says(`{"systemMessage":"m","toolhub":{"progress":[{"message":"p","percent":50}]}}`),
			hook.Output{Messages: []string{"m"}, Progress: []hook.Progress{{Message: "p", Percent: &half}}}, ""},
		{hook.PreToolUse, says("\ufeff" + `{"decision":"block","reason":"r"}`), stop, ""}, // a byte order mark is no text
		{hook.PreToolUse, says(`{"decision":"block","reason":"r"}`), stop, ""},
		{hook.PostToolUse, says(`{"decision":"block","reason":"r"}`), hook.Output{Context: []string{"r"}}, ""},
		{hook.PreToolUse, says(`{"decision":"approve","reason":"r"}`), permission(tool.Allow), ""},
		{hook.PreToolUse, says(`{"hookSpecificOutput":{"permissionDecision":"defer"}}`), hook.Output{}, ""},
		{hook.PreToolUse, says(`{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"r"}}`), permission(tool.Ask), ""},
		{hook.PermissionRequest, says(`{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"r"}}}`), permission(tool.Deny), ""},
		{hook.PermissionRequest, says(`{"hookSpecificOutput":{"decision":{"behavior":"allow","message":"r","updatedInput":{"a":1}}}}`),
			hook.Output{Permission: permission(tool.Allow).Permission, Input: json.RawMessage(`{"a":1}`)}, ""},
		{hook.PermissionDecision, says(`{"hookSpecificOutput":{"permissionDecision":"allow"}}`), hook.Output{}, "permission_result"},
		{hook.PermissionDecision, says(`{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"r"}}`),
			permission(tool.Deny), ""},
		{hook.PostToolUse, says(`{"hookSpecificOutput":{"permissionDecision":"deny"}}`), hook.Output{}, "permission_result"},
		{hook.PreToolUse, says(`{"hookSpecificOutput":{"updatedMCPToolOutput":"x"}}`), hook.Output{}, "updated_output"},
		{hook.PostToolUse, says(`{"hookSpecificOutput":{"updatedToolOutput":"x"}}`), result(`[{"type":"text","text":"x"}]`), ""},
		{hook.PostToolUse, says(`{"hookSpecificOutput":{"updatedMCPToolOutput":[{"type":"text","text":"y"}]}}`),
			result(`[{"type":"text","text":"y"}]`), ""},
		{hook.ResultPersistence, says(`{"hookSpecificOutput":{"updatedMCPToolOutput":{"content":[]}}}`), result(`[]`), ""},
	} {
		run := func(context.Context, hook.Command) (hook.Ended, error) { return c.ended, nil }
		in := moment(c.event, `{}`)
		p := plan(t, run, in, hook.Config{Name: "h", Events: []hook.Event{c.event}, Command: []string{"x"}})
		err := p.Run(t.Context(), c.event, look{in, func(r *hook.Report) error {
			if r.Err != nil || text(r.Output) != text(c.want) || strings.Join(r.Ignored, " ") != c.ignored {
				t.Errorf("at %s %+v means %s, ignored %v, %v; want %s, %s", c.event, c.ended, text(r.Output), r.Ignored, r.Err, text(c.want), c.ignored)
			}
			return nil
		}})
		if err != nil {
			t.Error(err)
		}
	}
}

func says(answer string) hook.Ended { return hook.Ended{Stdout: []byte(answer)} }

func result(content string) hook.Output {
	return hook.Output{Result: json.RawMessage(`{"content":` + content + `}`)}
}

// TestInput: what a hook reads are the members of Claude Code, and one more with what the hub alone knows. Arguments and result stand
// there byte for byte.
func TestInput(t *testing.T) {
	t.Parallel()
	in := moment(hook.PostToolUseFailure, `{"n":1.0,"a":12345678901234567890}`)
	in.Request.Tool = &tool.Tool{Name: "mcp.memory.notes/write", Server: "memory", Native: "notes/write"}
	in.Class, in.Error = tool.ClassCanceled, "it was canceled"
	got, err := in.JSON()
	want := `{"session_id":"s-1","transcript_path":"","cwd":"/work","permission_mode":"default","hook_event_name":"PostToolUseFailure",` +
		`"tool_name":"mcp__memory__notes_write","tool_input":{"n":1.0,"a":12345678901234567890},"tool_response":` + string(in.Result) +
		`,"error":"it was canceled","is_interrupt":true,"tool_use_id":"inv_1","toolhub":{`
	if err != nil || !strings.HasPrefix(string(got), want) || !strings.Contains(string(got), `"native_name":"notes/write"`) {
		t.Errorf("a hook reads %s, %v\nwant %s…", got, err, want)
	}
}

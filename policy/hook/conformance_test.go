package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// execute is a RunFunc that starts programs for real.
func execute(ctx context.Context, c hook.Command) (hook.Ended, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	var out, diag bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(cmd.Environ(), c.Set...), bytes.NewReader(c.Stdin), &out, &diag
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		err = nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return hook.Ended{}, err
	}
	kept := out.Bytes()[:min(out.Len(), c.MaxBytes)]
	return hook.Ended{ExitCode: cmd.ProcessState.ExitCode(), Stdout: kept, Stderr: diag.String(), Cut: len(kept) < out.Len()}, nil
}

// moment returns a call of mcp.memory.write_note as a hook sees it at e.
func moment(e hook.Event, arguments string) hook.Input {
	in := hook.Input{Event: e, CallID: "7", Request: &policy.Request{Invocation: "inv_1", Input: json.RawMessage(arguments), Profile: "default",
		Tool:  &tool.Tool{Name: "mcp.memory.write_note", Server: "memory", Native: "write_note"},
		Actor: tool.Actor{Name: "ann", Door: "http", Session: "s-1"}, CWD: "/work"}}
	if !e.Before() {
		in.Result = json.RawMessage(`{"content":[{"type":"text","text":"key-1 and 12345678901234567890"}],"n":1.0}`)
	}
	return in
}

// one compiles a single hook.
func one(t testing.TB, c hook.Config) *hook.Set {
	t.Helper()
	if c.Name == "" {
		c.Name = "h"
	}
	set, problems := hook.New([]hook.Config{c}, hook.Options{Runner: runFunc(execute), Dir: t.TempDir()})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return set
}

// TestImplementations holds commands, endpoints and built-in hooks to the same contract: what a hook says means the same wherever it
// comes from, the call stays as it was, and a hook runs beside itself.
func TestImplementations(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh: ", err)
	}
	redacted := `{"content":[{"type":"text","text":"[redacted] and 12345678901234567890"}],"n":1.0}`
	for _, c := range []struct {
		name    string
		event   hook.Event
		says    string      // what a command writes, and an endpoint answers
		builtin hook.Config // what a function of the hub does; none where a config of one would have a fault
		want    hook.Output
		ignored []string
		fails   bool
	}{
		{name: "nothing", event: hook.PreToolUse, builtin: hook.Config{Require: "true"}},
		{name: "stop", event: hook.PreToolUse, says: `{"continue":false,"stopReason":"no"}`,
			builtin: hook.Config{Require: `arguments.text == "x"`, Reason: "no"}, want: hook.Output{Stop: &hook.Stop{Reason: "no"}}},
		{name: "stop after the call", event: hook.PostToolUse, says: `{"continue":false,"stopReason":"no"}`,
			builtin: hook.Config{Require: "false", Reason: "no"}, want: hook.Output{Stop: &hook.Stop{Reason: "no"}}},
		{name: "context", event: hook.PostToolUse, says: `{"hookSpecificOutput":{"additionalContext":"mind the gap"}}`,
			builtin: hook.Config{AddContext: "mind the gap"}, want: hook.Output{Context: []string{"mind the gap"}}},
		{name: "context of what is kept", event: hook.ResultPersistence, says: `{"hookSpecificOutput":{"additionalContext":"mind the gap"}}`, ignored: []string{"additional_context"}},
		{name: "input", event: hook.PreToolUse, says: `{"hookSpecificOutput":{"updatedInput":{"text":"b","n":12345678901234567890}}}`,
			builtin: hook.Config{Rewrite: []hook.Operation{{Op: "replace", Path: "/text", Value: json.RawMessage(`"b"`)}}},
			want:    hook.Output{Input: json.RawMessage(`{"text":"b","n":12345678901234567890}`)}},
		{name: "input after the decision", event: hook.PermissionDecision, says: `{"hookSpecificOutput":{"updatedInput":{}}}`, ignored: []string{"updated_input"}},
		{name: "output", event: hook.PostToolUse, says: `{"hookSpecificOutput":{"updatedMCPToolOutput":` + redacted + `}}`,
			builtin: hook.Config{Redact: []string{"key-[0-9]+"}}, want: hook.Output{Result: json.RawMessage(redacted)}},
		{name: "failure", event: hook.PreToolUse, says: `{"continue":fal`, builtin: hook.Config{Require: "arguments.nothing > 1"}, fails: true},
	} {
		for kind, h := range implementations(t, c.says, c.builtin) {
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				h.Events = []hook.Event{c.event}
				set, in := one(t, h), moment(c.event, `{"text":"a","n":12345678901234567890}`)
				before := fmt.Sprintf("%s %s", in.Request.Input, in.Result)
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						r, matches, ok := set.Test(t.Context(), "h", in)
						if !ok || !matches || (r.Err != nil) != c.fails || !reflect.DeepEqual(text(r.Output), text(c.want)) ||
							!reflect.DeepEqual(r.Ignored, c.ignored) || r.Closed != c.event.Before() {
							t.Errorf("matches %v, says %s, ignored %v, closed %v, error %v; want %s, %v", matches, text(r.Output), r.Ignored, r.Closed, r.Err,
								text(c.want), c.ignored)
						}
					})
				}
				all.Wait()
				if after := fmt.Sprintf("%s %s", in.Request.Input, in.Result); after != before {
					t.Errorf("the call is %s, and was %s", after, before)
				}
				ended, end := context.WithCancel(t.Context())
				end()
				if r, _, _ := set.Test(ended, "h", in); r.Err == nil || text(r.Output) != text(hook.Output{}) {
					t.Errorf("canceled, it says %s, %v", text(r.Output), r.Err)
				}
			})
		}
	}
}

// implementations are three hooks that are to say the same.
func implementations(t *testing.T, says string, builtin hook.Config) map[string]hook.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(body), `"tool_name":"mcp__memory__write_note"`) {
			t.Errorf("the endpoint was sent %s, %v", body, err)
		}
		_, _ = io.WriteString(w, says)
	}))
	t.Cleanup(server.Close)
	all := map[string]hook.Config{
		"command": {Command: []string{"sh", "-c", `grep -q '"tool_name":"mcp__memory__write_note"' && printf %s "$1"`, "hook", says}},
		"http":    {URL: server.URL},
	}
	if len(builtin.Rewrite)+len(builtin.Redact)+len(builtin.Require)+len(builtin.AddContext) > 0 {
		all["built-in"] = builtin
	}
	return all
}

// text is an output, to compare.
func text(o hook.Output) string {
	out, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// TestFailures: whatever goes wrong in a hook that leaves the hub is a failure of the hook, and says nothing of the call.
func TestFailures(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh: ", err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // before that the server does not see that the client has gone
		switch r.URL.Path {
		case "/status":
			w.WriteHeader(http.StatusForbidden)
		case "/elsewhere":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/big":
			_, _ = w.Write(bytes.Repeat([]byte("x"), 10<<20))
		case "/slow":
			<-r.Context().Done()
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}
	}))
	t.Cleanup(server.Close)
	shell := func(script string) hook.Config { return hook.Config{Shell: script} }
	at := func(path string) hook.Config { return hook.Config{URL: server.URL + path} }
	for name, c := range map[string]struct {
		hook hook.Config
		want string
	}{
		"crash":                 {shell("echo oh no >&2; exit 1"), "the hook ended with exit code 1: oh no"},
		"killed":                {shell("kill -9 $$"), "signal: killed"},
		"garbage":               {shell("echo '{]'"), "begins like a JSON object and is none"},
		"of another type":       {shell(`echo '{"continue":"no"}'`), "is not of the format"},
		"unknown decision":      {shell(`echo '{"hookSpecificOutput":{"permissionDecision":"perhaps"}}'`), `the hook decides "perhaps"`},
		"input is no object":    {shell(`echo '{"hookSpecificOutput":{"updatedInput":[1]}}'`), "the updated input is no JSON object"},
		"input holds one twice": {shell(`echo '{"hookSpecificOutput":{"updatedInput":{"a":1,"A":2}}}'`), `holds "A" twice`},
		"big":                   {shell("head -c 10000000 /dev/zero"), "more than 1048576 bytes"},
		"slow":                  {shell("exec sleep 60"), "has not answered within 100ms"},
		"status":                {at("/status"), "answered with status 403"},
		"redirect":              {at("/elsewhere"), "answered with status 302"},
		"big answer":            {at("/big"), "more than 1048576 bytes"},
		"slow answer":           {at("/slow"), "has not answered within 100ms"},
		"cut answer":            {at("/cut"), "read the hook's answer"},
		"nobody":                {hook.Config{URL: "http://127.0.0.1:1/secret"}, "reach the hook"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(name, "slow") {
				c.hook.Timeout = 100 * time.Millisecond
			}
			c.hook.Events = []hook.Event{hook.PreToolUse}
			r, _, _ := one(t, c.hook).Test(t.Context(), "h", moment(hook.PreToolUse, `{}`))
			if r.Err == nil || !strings.Contains(r.Err.Error(), c.want) || strings.Contains(r.Err.Error(), "/secret") {
				t.Errorf("the error is %v, want one that says %s", r.Err, c.want)
			}
			if text(r.Output) != text(hook.Output{}) || !r.Failed() {
				t.Errorf("it says %s, and ends the call: %v", text(r.Output), r.Failed())
			}
		})
	}
}

package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// sightings are what records show: names of objects, statuses, classes of errors and types of events, each by its kind.
type sightings map[sighting]bool

type sighting struct{ kind, name string }

// note adds what a record shows.
func (s sightings) note(r *anyRecord) {
	s[sighting{"object", string(r.Object)}] = true
	if r.Object == tool.ObjectEvent {
		s[sighting{"event", string(r.Event)}] = true
	}
	for _, m := range r.Moves {
		s[sighting{"status", string(m.Status)}] = true
	}
	if len(r.Mappings) > 0 {
		s[sighting{"object", "tool_external_mapping"}] = true
	}
	if r.Object == tool.ObjectDeclaration {
		s[sighting{"object", string(tool.ObjectInputContract)}] = r.Input != nil
		s[sighting{"object", string(tool.ObjectOutputContract)}] = r.Output != nil
	}
	var e struct {
		Class string `json:"error_class"`
	}
	if r.Error != nil && json.Unmarshal(r.Error, &e) == nil && e.Class != "" {
		s[sighting{"object", "tool_error"}], s[sighting{"class", e.Class}] = true, true
	}
}

// census counts what the journals show that tests have checked. It is safe for concurrent use.
type census struct {
	mu       sync.Mutex
	journals int
	seen     sightings
}

// occurred is that of the whole run.
var occurred = census{seen: sightings{}}

func (c *census) add(s sightings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.journals++
	for what, seen := range s {
		c.seen[what] = c.seen[what] || seen
	}
}

// standard is all that Agent Tool 0.2.0 names: 19 objects, 20 statuses, 22 classes of errors and 27 types of events. The journal has
// two more: tool_input_mutation, for which there is an official schema, and the event of a cancellation, which its text wants.
func standard() (all []sighting) {
	for kind, names := range map[string][]string{
		"object": {"tool_declaration", "tool_interface", "tool_surface", "tool_namespace", "tool_input_contract", "tool_output_contract",
			"tool_execution_profile", "tool_permission_profile", "tool_permission_decision", "tool_hook", "tool_invocation", "tool_scheduler_policy",
			"deferred_tool_ref", "tool_progress", "tool_result", "tool_result_persistence", "tool_error", "tool_event", "tool_external_mapping"},
		"status": {"planned", "selected", "schema_parse_failed", "arguments_ready", "validation_failed", "pre_hooks_running", "awaiting_approval",
			"approved", "denied", "queued", "running", "needs_input", "partial_result", "post_hooks_running", "yielded", "succeeded", "failed",
			"canceled", "timed_out", "blocked"},
		"class": {"unknown_tool", "invalid_arguments", "schema_validation_failed", "schema_not_loaded", "permission_denied", "approval_rejected",
			"policy_blocked", "hook_blocked", "capability_gap", "setup_required", "credential_missing", "sandbox_violation", "timeout",
			"rate_limited", "dependency_unavailable", "execution_failed", "partial_failure", "result_too_large", "result_redacted",
			"sibling_canceled", "streaming_fallback_discarded", "canceled"},
		"event": {"tool.declared", "tool.surface.created", "tool.surface.updated", "tool.deferred.discovered", "tool.deferred.loaded",
			"tool.invocation.planned", "tool.invocation.selected", "tool.invocation.arguments_ready", "tool.invocation.validation_failed",
			"tool.hook.pre.started", "tool.hook.pre.completed", "tool.permission.requested", "tool.permission.decided", "tool.invocation.queued",
			"tool.invocation.started", "tool.invocation.progress", "tool.invocation.partial_result", "tool.hook.post.started",
			"tool.hook.post.completed", "tool.result.persisted", "tool.invocation.yielded", "tool.invocation.succeeded", "tool.invocation.failed",
			"tool.invocation.canceled", "tool.invocation.timed_out", "tool.result.created", "tool.result.redacted"},
	} {
		for _, name := range names {
			all = append(all, sighting{kind, name})
		}
	}
	return all
}

// problems are what no journal has shown, and what has been shown that Agent Tool does not name.
func (c *census) problems() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range standard() {
		if !c.seen[s] {
			all = append(all, fmt.Sprintf("no journal has the %s %s: write a test that makes one", s.kind, s.name))
		}
	}
	known := append(standard(), sighting{"object", "tool_input_mutation"}, sighting{"object", string(tool.ObjectTaskResult)},
		sighting{"object", string(tool.ObjectPolicy)})
	for _, own := range []tool.EventType{tool.EventCancelRequested, tool.EventResultExpired, tool.EventResultNotPersisted, tool.EventInvocationErased} {
		known = append(known, sighting{"event", string(own)}) // the hub's
	}
	for s := range c.seen {
		if !slices.Contains(known, s) {
			all = append(all, fmt.Sprintf("a journal has the %s %q, which Agent Tool does not name", s.kind, s.name))
		}
	}
	slices.Sort(all)
	return all
}

// collecting is all tests, and after them the check of what their journals have shown.
type collecting struct{ tests *testing.M }

// Run runs the tests. Where all of them have run, and none has failed, it holds that the journals have shown all of Agent Tool.
func (c collecting) Run() int {
	if _, err := os.Stat(officialSchemas); err != nil {
		fmt.Printf("records are not validated against the standard's own schemas: %s is missing\n", officialSchemas)
	}
	code := c.tests.Run()
	if code != 0 || !wholeRun() {
		return code
	}
	for _, problem := range occurred.problems() {
		fmt.Fprintf(os.Stderr, "--- FAIL: what the journals of all tests show: %s\n", problem)
		code = 1
	}
	return code
}

// wholeRun reports whether no test is left out: by a build tag, by a flag, or on Windows those with hooks and other shell scripts.
func wholeRun() bool {
	if !e2e || runtime.GOOS == "windows" {
		return false
	}
	for _, name := range []string{"run", "skip", "list", "short", "failfast", "fuzz", "fuzzworker"} {
		if f := flag.Lookup("test." + name); f != nil && f.Value.String() != "" && f.Value.String() != "false" {
			return false
		}
	}
	return true
}

// TestRecordsOfStories holds the records of the stories of internal/invoke, which have a clock of their own, against each other, as those of
// the hubs of all tests. They have no surfaces, no tools, and few requests to servers.
func TestRecordsOfStories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "invoke", "testdata", "journal", "*.jsonl"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d stories, %v", len(files), err)
	}
	for _, file := range files {
		j := newJournalCheck(t)
		for line := range strings.Lines(readFile(t, file)) {
			j.take(json.RawMessage(line))
		}
		j.check()
		for problem, line := range j.problems {
			missing := strings.HasPrefix(problem, "no record has the id srf_") || strings.HasPrefix(problem, "no record has the id declaration of ") ||
				strings.HasPrefix(problem, "no record has the id policy:") || strings.HasSuffix(problem, "nobody has run it")
			if !missing {
				t.Errorf("%s: %s\n%.1000s", filepath.Base(file), problem, line)
			}
		}
		for what := range j.seen {
			if !strings.HasSuffix(what.name, "yielded") { // that takes a call 50 seconds; all else hubs have to show
				delete(j.seen, what)
			}
		}
		occurred.add(j.seen)
	}
}

// TestJournalsThatAreWrong breaks the records of a call, one way at a time. Each is found.
func TestJournalsThatAreWrong(t *testing.T) {
	t.Parallel()
	const at, later = `"2026-11-22T10:09:36.1Z"`, `"2026-11-22T10:09:36.2Z"`
	event := func(number, kind, data string) string {
		return `{"object":"tool_event","schema_version":"0.2.0","event_id":"evt_1.` + number + `","event_type":"` + kind + `","source":"mcp-toolhub",` +
			`"time":` + at + `,"invocation_id":"inv_1","tool_id":"hub.unknown_tool","data":` + data + `}`
	}
	good := []string{
		event("0", "tool.invocation.planned", `{}`), event("1", "tool.invocation.failed", `{"error_class":"unknown_tool"}`),
		event("2", "tool.result.created", `{"result_id":"res_1"}`),
		`{"object":"tool_result","schema_version":"0.2.0","result_id":"res_1","invocation_id":"inv_1","status":"failed","is_error":true,` +
			`"error":{"error_code":"unknown_tool","error_class":"unknown_tool","message":"x","recoverability":"fix_input"},"created_at":` + at + `}`,
		`{"object":"tool_invocation","schema_version":"0.2.0","invocation_id":"inv_1","tool_id":"hub.unknown_tool","status":"failed",` +
			`"status_transitions":[{"status":"planned","at":` + at + `},{"status":"failed","at":` + at + `}],` +
			`"external_mappings":[{"source":"mcp","role":"client"}],"created_at":` + at + `,"ended_at":` + at + `}`,
	}
	for _, c := range []struct{ line, was, is, want string }{
		{"", "", "", ""},
		{good[0], at, later, "comes after"},
		{good[0], good[0], good[1], "the first event of a call is tool.invocation.failed"},
		{good[1], good[1], event("1", "tool.invocation.started", `{}`), "it has begun: true"},
		{good[1], "evt_1.1", "evt_1.7", "comes after one of step 7"},
		{good[2], "res_1", "res_2", "no record has the id res_2"},
		{good[3], good[3], good[3] + "\n" + good[3], "comes after the end of its call"},
		{good[3], `"is_error":true`, `"is_error":false`, "is_error is false"},
		{good[3], `"error_class":"unknown_tool"`, `"error_class":"nonsense"`, "no tool_error"},
		{good[3], `"error_class":"unknown_tool"`, `"error_class":"timeout"`, "of class timeout ends as failed, not as timed_out"},
		{good[3], `"result_id":"res_1"`, `"persistence_refs":["dec_7"],"result_id":"res_1"`, "no record has the id dec_7"},
		{good[3], `"is_error"`, `"cancellation":{},"is_error"`, "of its cancellation"},
		{good[4], `"tool_id"`, `"native_call_id":"7","tool_id"`, "has no such request of its client"},
		{good[4], "hub.unknown_tool", "mcp.s.echo", "records of one call name the tools"},
		{good[4], `"status":"planned"`, `"status":"selected"`, "has the statuses"},
		{good[4], `"planned","at":` + at, `"planned","at":` + later, "is out of order"},
		{good[4], `"source":"mcp",`, ``, "no tool_external_mapping"},
		{good[4], `"tool_id"`, `"parent_invocation_id":"inv_2","tool_id"`, "no record has the id inv_2"},
		{good[4], `"tool_id"`, `"surface_id":"srf_2","tool_id"`, "no record has the id srf_2"},
	} {
		j := newJournalCheck(t)
		for _, line := range good {
			if line == c.line {
				line = strings.ReplaceAll(line, c.was, c.is)
			}
			for one := range strings.Lines(line) {
				j.take(json.RawMessage(one))
			}
		}
		j.check()
		found := c.want == "" && len(j.problems) == 0
		for problem := range j.problems {
			found = found || c.want != "" && strings.Contains(problem, c.want)
		}
		if !found {
			t.Errorf("%q in place of %q: want %q, got %q", c.is, c.was, c.want, slices.Collect(maps.Keys(j.problems)))
		}
	}
}

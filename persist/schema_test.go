package persist_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// schemas compiles the standard's schema for each kind of record, and skips the test where the standard is not at hand.
func schemas(t *testing.T) map[tool.Object]*jsonschema.Schema {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(root)
		if parent == root {
			t.Fatal("no go.mod above the working directory")
		}
		root = parent
	}
	dir := filepath.Join(root, "..", "shared", "agenttool", "schemas")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the Agent Tool schemas are not at hand: %v", err)
	}
	compiled := map[tool.Object]*jsonschema.Schema{}
	for kind, name := range map[tool.Object]string{tool.ObjectInvocation: "invocation", tool.ObjectResult: "result",
		tool.ObjectProgress: "progress", tool.ObjectEvent: "event", tool.ObjectPermissionDecision: "permission-decision"} {
		compiled[kind], err = jsonschema.NewCompiler().Compile(filepath.Join(dir, "agenttool-"+name+".schema.json"))
		if err != nil {
			t.Fatal(err)
		}
	}
	return compiled
}

// records are records of every kind, from nearly empty to complete.
func records() []tool.Record {
	at, half, zero := time.Now(), 50.5, 0.0
	all := persist.CallRecords()
	for _, input := range []string{`{}`, `null`, `"text"`, `[1]`, "{\n\t\"big\": 123456789012345678901234567890 }"} {
		raw := json.RawMessage(input)
		all = append(all, tool.Invocation{Head: tool.HeadOf(tool.ObjectInvocation), InvocationID: tool.NewInvocationID(),
			ToolID: tool.UnknownTool, Status: tool.StatusFailed, ModelInput: raw, ObservableInput: raw, PermissionInput: raw,
			ModelInputRef: persist.Ref(raw), PermissionInputRef: persist.Ref(raw), RuntimeRefs: []string{"r"},
			PermissionDecisions: []tool.DecisionID{"dec_1"},
			CreatedAt:           at, EndedAt: &at,
			ExternalMappings: []tool.ExternalMapping{{Source: "mcp", SessionID: "s", ServerID: "x"}}})
	}
	all = append(all, tool.Invocation{Head: tool.HeadOf(tool.ObjectInvocation), InvocationID: "inv", ToolID: "t",
		Status: tool.StatusPlanned})
	for _, r := range []tool.Result{
		{Status: tool.StatusSucceeded, Content: json.RawMessage(`[]`), StructuredContent: json.RawMessage(`[1, null]`)},
		{Status: tool.StatusSucceeded, ContentRef: persist.Ref(json.RawMessage(`[]`)), Summary: "a large result"},
		{Status: tool.StatusFailed, IsError: true, Error: &tool.Error{ErrorCode: "x", ErrorClass: tool.ClassTimeout, Message: "m"}},
		{Status: tool.StatusFailed, IsError: true, Error: &tool.Error{ErrorCode: "x", ErrorClass: tool.ClassExecutionFailed,
			Message: "m", Recoverability: "retry", RetryAfterMS: 5, OutcomeUnknown: true,
			NativeErrorRef: json.RawMessage(`{"code":-32603,"message":"m","data":1e400}`)}},
	} {
		r.Head, r.ResultID, r.InvocationID = tool.HeadOf(tool.ObjectResult), "res_1", tool.NewInvocationID()
		r.CreatedAt = at
		all = append(all, r)
	}
	for _, p := range []tool.ProgressRecord{{Sequence: 1},
		{Sequence: 2, Message: "m", Percent: &half, ElapsedMS: 7},
		{Sequence: 3, Percent: &zero}} {
		p.Head, p.ProgressID, p.Status = tool.HeadOf(tool.ObjectProgress), "prg_1", tool.StatusRunning
		p.InvocationID, p.Timestamp = tool.NewInvocationID(), at
		all = append(all, p)
	}
	for _, e := range []tool.Event{{EventType: tool.EventToolDeclared}, {EventType: tool.EventInvocationFailed, Subject: "s",
		InvocationID: "inv", ToolID: "mcp.a.b", Data: map[string]any{"error_class": "timeout", "nested": map[string]any{"a": []int{1}}}}} {
		e.Head, e.EventID, e.Source, e.Time = tool.HeadOf(tool.ObjectEvent), tool.NewEventID(), tool.EventSource, at
		all = append(all, e)
	}
	decided := func(d tool.PermissionDecision) {
		all = append(all, tool.PermissionDecisionRecord{Head: tool.HeadOf(tool.ObjectPermissionDecision), DecisionID: "dec_1",
			InvocationID: tool.NewInvocationID(), PermissionDecision: d, DecidedAt: at})
	}
	for _, b := range []tool.Behavior{tool.Allow, tool.Ask, tool.Deny, tool.Passthrough} {
		decided(tool.PermissionDecision{Behavior: b, RuleRefs: []string{"rule"}})
	}
	decided(tool.PermissionDecision{Behavior: tool.Ask, PolicyRefs: []string{"policy:sha256:0"},
		UpdatedInput: json.RawMessage(`{"a":1}`), UpdatedInputRef: "sha256:0;bytes=7", UserModified: true,
		SuggestedUpdates: []any{map[string]any{"type": "add_grant"}, struct{ Tool string }{"t"}}, BlockedPath: "/p",
		ContentBlocks: []map[string]any{{"type": "text", "text": "no"}}, AcceptFeedback: "yes", ExpiresAt: &at})
	return all
}

// TestRecordsAreTheStandards writes records through the journal and checks each line against the standard's schema.
func TestRecordsAreTheStandards(t *testing.T) {
	t.Parallel()
	compiled := schemas(t)
	dir := t.TempDir()
	j := open(t, persist.JournalConfig{Dir: dir})
	all := records()
	if err := j.Commit(context.Background(), all...); err != nil {
		t.Fatal(err)
	}
	seen := map[tool.Object]int{}
	i := 0
	err := persist.Read(dir, func(line json.RawMessage) bool {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(line)))
		if err != nil {
			t.Fatal(err)
		}
		kind := tool.Object(value.(map[string]any)["object"].(string))
		if kind != all[i].RecordObject() {
			t.Fatalf("line %d is a %s, want %s", i, kind, all[i].RecordObject())
		}
		if err := compiled[kind].Validate(value); err != nil {
			t.Errorf("%s\n%v", line, err)
		}
		seen[kind]++
		i++
		return true
	})
	if err != nil || i != len(all) {
		t.Fatalf("%d lines of %d, %v", i, len(all), err)
	}
	for kind := range compiled {
		if seen[kind] < 3 {
			t.Errorf("only %d records of kind %s were checked", seen[kind], kind)
		}
	}
}

// TestSchemasRefuse makes sure that the check can fail.
func TestSchemasRefuse(t *testing.T) {
	t.Parallel()
	for kind, schema := range schemas(t) {
		if err := schema.Validate(map[string]any{"object": string(kind)}); err == nil {
			t.Errorf("%s: an object without anything is accepted", kind)
		}
	}
}

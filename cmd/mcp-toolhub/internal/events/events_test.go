package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// journal is one that a test writes.
type journal struct {
	*testing.T
	*persist.Journal
	dir string
}

func newJournal(t *testing.T) *journal {
	t.Helper()
	dir := t.TempDir()
	j, err := persist.Open(persist.JournalConfig{Dir: dir, MaxBytes: 1 << 20, MaxFiles: 10}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return &journal{t, j, dir}
}

// begin is a call that has been planned and decided about.
func (j *journal) begin(name tool.Name, input string, at time.Time) *persist.Call {
	c := &persist.Call{}
	c.Begin(persist.CallHead{Invocation: tool.NewInvocationID(), Tool: name, Actor: "actor:http/ann", Created: at},
		tool.ExternalMapping{Source: "mcp", Role: "client", ToolName: string(name)})
	c.Input.Model = json.RawMessage(input)
	c.Move(tool.StatusSelected, at)
	c.Move(tool.StatusArgumentsReady, at)
	return c
}

// run runs a call to its end.
func (j *journal) run(c *persist.Call, s tool.Status, end persist.CallEnd) {
	j.Helper()
	at := c.Created.Add(time.Millisecond)
	c.Move(tool.StatusQueued, at)
	c.Move(tool.StatusRunning, at)
	c.Move(s, at)
	end.At = at
	if err := j.End(j.Context(), c, &end); err != nil {
		j.Fatal(err)
	}
}

// stream is what a stream that does not follow has.
func (j *journal) stream(o Options) (all []Message) {
	j.Helper()
	o.Dir = j.dir
	if err := Stream(j.Context(), o, func(m Message) error { all = append(all, m); return nil }); err != nil {
		j.Fatal(err)
	}
	return all
}

func ids(all []Message) (out []string) {
	for _, m := range all {
		out = append(out, string(m.ID))
	}
	return out
}

func TestSinceFilterAndResumption(t *testing.T) {
	t.Parallel()
	j, now := newJournal(t), time.Now()
	j.run(j.begin("mcp.s.old", `{}`, now.Add(-2*time.Hour)), tool.StatusSucceeded, persist.CallEnd{})
	j.run(j.begin("mcp.s.new", `{}`, now), tool.StatusFailed, persist.CallEnd{Error: &tool.Error{ErrorClass: tool.ClassTimeout}})
	all := j.stream(Options{})
	if len(all) != 14 {
		t.Fatalf("%d events, want 14", len(all))
	}
	if got := j.stream(Options{Since: now.Add(-time.Hour)}); len(got) != 7 || got[0].ID != all[7].ID {
		t.Errorf("since an hour ago: %q", ids(got))
	}
	for text, want := range map[string]int{
		`event.tool_id == "mcp.s.old" && event.event_type.endsWith(".created")`:  1,
		`event.data.error_class == "timeout"`:                                    1, // others have no such member
		`event.event_type.startsWith("tool.result.") && has(event.data)`:         2,
		`timestamp(event.time) > timestamp("2020-01-01T00:00:00Z")`:              14,
		`event.event_type in ["tool.invocation.failed", "tool.invocation.none"]`: 1,
	} {
		if got := j.stream(Options{Filter: text}); len(got) != want {
			t.Errorf("%s: %d events, want %d", text, len(got), want)
		}
	}
	for _, o := range []Options{{Filter: `event.`}, {Filter: `"x"`}, {Filter: `envent.x == 1`}, {Format: "xml"}} {
		o.Dir = j.dir
		if err := Stream(t.Context(), o, func(Message) error { return nil }); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	for i := range all { // whichever was the last, the rest follows and nothing else
		if got := ids(j.stream(Options{After: all[i].ID})); !slices.Equal(got, ids(all[i+1:])) {
			t.Errorf("after event %d come %q", i, got)
		}
	}
	if got := j.stream(Options{After: "evt_unknown.3"}); len(got) != len(all) {
		t.Errorf("after an event that the journal does not have come %d", len(got))
	}
}

// TestResumptionAcrossHubs: what another hub has written since then is not lost, though its file is older.
func TestResumptionAcrossHubs(t *testing.T) {
	t.Parallel()
	first := newJournal(t)
	other, err := persist.Open(persist.JournalConfig{Dir: first.dir, MaxBytes: 1 << 20, MaxFiles: 10}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	second := &journal{t, other, first.dir}
	second.run(second.begin("mcp.s.seen", `{}`, time.Now()), tool.StatusSucceeded, persist.CallEnd{})
	last := second.stream(Options{})
	first.run(first.begin("mcp.s.missed", `{}`, time.Now()), tool.StatusSucceeded, persist.CallEnd{})
	got := first.stream(Options{After: last[len(last)-1].ID})
	if len(got) != 7 || !strings.Contains(string(got[1].Text), "mcp.s.missed") {
		t.Errorf("after the last event come %d", len(got))
	}
}

// TestCloudEvents holds CloudEvents against the schema of the specification, and the data against the event.
func TestCloudEvents(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	j.run(j.begin("mcp.s.a", `{}`, time.Now()), tool.StatusSucceeded, persist.CallEnd{})
	schema := compile(t, filepath.Join("testdata", "cloudevents.schema.json"), "")
	plain := j.stream(Options{})
	for i, m := range j.stream(Options{Format: CloudEvents}) {
		check(t, schema, m.Text)
		var got struct {
			ID, Type, Source string
			Data             json.RawMessage
		}
		if err := json.Unmarshal(m.Text, &got); err != nil || got.ID != string(plain[i].ID) || string(got.Data) != string(plain[i].Text) {
			t.Errorf("%s of %s: %v", m.Text, plain[i].Text, err)
		}
	}
	if err := schema.Validate(map[string]any{"specversion": "1.0", "id": "1", "type": "x"}); err == nil {
		t.Error("the schema takes an event without a source")
	}
}

// acpSchema is the protocol's, which stands beside the project.
const acpSchema = "/work/shared/acp/v1.schema.json"

func compile(t *testing.T, file, at string) *jsonschema.Schema {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		t.Skipf("there is no %s here", filepath.Base(file))
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(file + at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t *testing.T, s *jsonschema.Schema, text []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

// acpOf is the journal as messages of the protocol. Each is valid.
func (j *journal) acpOf(o Options) (all []acpMessage) {
	j.Helper()
	o.Format = ACP
	update, ask := compile(j.T, acpSchema, "#/$defs/SessionNotification"), compile(j.T, acpSchema, "#/$defs/RequestPermissionRequest")
	call := map[bool]*jsonschema.Schema{true: compile(j.T, acpSchema, "#/$defs/ToolCall"), false: compile(j.T, acpSchema, "#/$defs/ToolCallUpdate")}
	for _, m := range j.stream(o) {
		var parts struct {
			Params struct{ Update, ToolCall json.RawMessage }
		}
		var raw struct{ Params json.RawMessage }
		var out acpMessage
		if err := errors.Join(json.Unmarshal(m.Text, &parts), json.Unmarshal(m.Text, &raw), json.Unmarshal(m.Text, &out)); err != nil {
			j.Fatal(err)
		}
		if out.Method == "session/update" {
			check(j.T, update, raw.Params)
			check(j.T, call[out.Params.Update.Update == "tool_call"], parts.Params.Update)
		} else {
			check(j.T, ask, raw.Params)
			check(j.T, call[false], parts.Params.ToolCall)
		}
		all = append(all, out)
	}
	return all
}

// TestACPToolCall: the statuses of a call, its input and output, what a tool of the hub has written, and what the protocol does not know.
func TestACPToolCall(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	file := filepath.Join(t.TempDir(), "a.txt")
	text := []byte(`[{"type":"text","text":"done"},{"type":"hologram","x":1},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text"},` +
		`{"type":"text","text":"a","annotations":7},{"type":"text","text":"b","annotations":{"audience":["all"]}},{"type":"resource_link","uri":"u","name":"n","size":"big"},` +
		`{"type":"resource","resource":{"uri":"u","text":"t","mimeType":7}},{"type":"text","text":"c","annotations":{"audience":["user"],"priority":0.5},"more":1}]`)
	wrote := fmt.Appendf(nil, `{"path":"a.txt","content":[{"type":"diff","path":%q,"oldText":null,"newText":"x"}],"locations":[{"path":%[1]q,"line":1}]}`, file)
	j.run(j.begin("mcp.s.a", `{"a":1}`, time.Now()), tool.StatusSucceeded, persist.CallEnd{CallResult: persist.CallResult{Content: text, Structured: wrote}})
	j.run(j.begin("code.write_file", `{"path":"a.txt"}`, time.Now()), tool.StatusSucceeded,
		persist.CallEnd{CallResult: persist.CallResult{Content: text, Structured: wrote}})
	j.run(j.begin("mcp.s.large", `{}`, time.Now()), tool.StatusSucceeded, persist.CallEnd{CallResult: persist.CallResult{ContentRef: "sha256:0;bytes=9"}})
	j.run(j.begin("mcp.s.bad", `{}`, time.Now()), tool.StatusTimedOut, persist.CallEnd{Error: &tool.Error{ErrorClass: tool.ClassTimeout, Message: "too slow"}})
	all := j.acpOf(Options{})
	if len(all) != 12 {
		t.Fatalf("%d messages, want 12", len(all))
	}
	var said []string
	for _, m := range all {
		u := m.Params.Update
		said = append(said, u.Update+" "+u.Status)
		if m.Params.Session != "actor:http/ann" || m.Params.Meta["toolhub/invocation"] != string(u.ID) {
			t.Errorf("%+v", m.Params)
		}
	}
	each := []string{"tool_call pending", "tool_call_update in_progress", "tool_call_update completed"}
	if want := slices.Concat(each, each, each, each[:2], []string{"tool_call_update failed"}); !slices.Equal(said, want) {
		t.Errorf("the messages are %q, want %q", said, want)
	}
	theirs, ours := all[2].Params.Update, all[5].Params.Update
	if len(theirs.Content) != 9 || !strings.Contains(string(theirs.Content[8]), `"content":{"type":"text","text":"c","annotations"`) || !strings.Contains(string(theirs.Content[1]), `hologram`) || len(theirs.Locations) != 0 ||
		!strings.Contains(string(theirs.RawOutput), `"structuredContent"`) {
		t.Errorf("a server's result is %s, %+v", theirs.Content, theirs)
	}
	if len(ours.Content) != 1 || !strings.Contains(string(ours.Content[0]), `"diff"`) || len(ours.Locations) != 1 || ours.Locations[0].Path != file ||
		*ours.Locations[0].Line != 1 {
		t.Errorf("what the hub wrote is %s at %v", ours.Content, ours.Locations)
	}
	if first := all[0].Params.Update; first.Title != "mcp.s.a" || string(first.RawInput) != `{"a":1}` || first.Kind != "other" {
		t.Errorf("%+v", first)
	}
	if large, bad := all[8].Params.Update, all[11].Params.Update; !strings.Contains(string(large.Content[0]), "bytes=9") ||
		!strings.Contains(string(bad.Content[0]), "too slow") {
		t.Errorf("%s, %s", large.Content, bad.Content)
	}
	// A stream that begins in the middle of a call still tells what it is.
	rest := j.acpOf(Options{Filter: `event.event_type == "tool.result.created"`})
	if len(rest) != 4 || rest[0].Params.Update.Update != "tool_call" || rest[0].Params.Update.Title != "mcp.s.a" {
		t.Errorf("%+v", rest)
	}
}

// TestACPPermission: a question has the options that its person has, in the four kinds.
func TestACPPermission(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	for _, suggested := range [][]any{nil, {policy.SuggestedGrant{Choice: policy.AllowSession}, policy.SuggestedGrant{Choice: policy.AllowAlways},
		policy.SuggestedGrant{Choice: policy.DenyAlways}}} {
		c := j.begin("mcp.s.write", `{"path":"/srv/a"}`, time.Now())
		c.Decide(&tool.PermissionDecision{Behavior: tool.Ask, Reason: map[string]any{"message": "it writes"}, SuggestedUpdates: suggested}, c.Created)
		c.Ask("apr_1", "", c.Created)
		c.AnswerInvalid("it is none", c.Created)
		if err := j.Note(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	unasked := j.begin("mcp.s.write", `{}`, time.Now()) // because nobody can be asked
	unasked.Decide(&tool.PermissionDecision{Behavior: tool.Ask}, unasked.Created)
	unasked.Decide(&tool.PermissionDecision{Behavior: tool.Deny}, unasked.Created)
	unasked.Move(tool.StatusDenied, unasked.Created)
	if err := j.End(t.Context(), unasked, &persist.CallEnd{At: unasked.Created, Error: &tool.Error{ErrorClass: tool.ClassPermissionDenied, Message: "no"}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, m := range j.acpOf(Options{}) {
		if u := m.Params.Update; u != nil && u.Status != "pending" && u.Status != "failed" {
			t.Errorf("a call that waits for a person is %s", u.Status)
		}
		if m.Method != "session/request_permission" {
			continue
		}
		if m.ID != "apr_1" || m.Params.ToolCall.Status != "pending" || !strings.Contains(string(m.Params.ToolCall.Content[0]), "it writes") {
			t.Errorf("%+v", m)
		}
		for _, o := range m.Params.Options {
			kinds = append(kinds, string(o.ID)+" "+o.Kind)
		}
	}
	want := []string{"allow_once allow_once", "deny_once reject_once", "allow_once allow_once", "allow_session allow_always",
		"allow_always allow_always", "deny_once reject_once", "deny_always reject_always"}
	if !slices.Equal(kinds, want) {
		t.Errorf("the options are %q, want %q", kinds, want)
	}
}

// TestACPLocationsOfRelativePaths: relative paths start where the call's executor says, in arguments and in what a search of
// the hub has found.
func TestACPLocationsOfRelativePaths(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	dir := t.TempDir()
	call := j.begin("code.search", `{"query":"x"}`, time.Now())
	call.Answered(tool.ExternalMapping{Source: "code", CWD: dir}, time.Now())
	j.run(call, tool.StatusSucceeded, persist.CallEnd{CallResult: persist.CallResult{Structured: json.RawMessage(
		`{"matches":[{"path":"a/b.go","line":7},{"path":"c.go","line":2}]}`)}})
	all := j.acpOf(Options{})
	found := all[len(all)-1].Params.Update.Locations
	if len(found) != 2 || found[0].Path != filepath.Join(dir, "a", "b.go") || *found[0].Line != 7 || found[1].Path != filepath.Join(dir, "c.go") {
		t.Errorf("the search has found %+v", found)
	}
	k := &knownTool{}
	k.Contract.Targets = []tool.TargetField{{Kind: "path", Pointer: "/path"}}
	if got := k.locations(json.RawMessage(`{"path":"a.txt"}`), dir); len(got) != 1 || got[0].Path != filepath.Join(dir, "a.txt") {
		t.Errorf("the argument leads to %+v", got)
	}
}

// TestACPKinds: each kind follows from the facts of a tool, which stand in the journal before its calls; arguments that name files are
// locations, and the first target stands in the title.
func TestACPKinds(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	want := map[string]string{}
	for _, c := range []struct{ name, annotations, properties, kind string }{
		{"read_file", `{"readOnlyHint":true}`, `"path":{"type":"string"}`, "read"},
		{"write_file", `{}`, `"path":{"type":"string"}`, "edit"},
		{"delete_file", `{"destructiveHint":true}`, `"path":{"type":"string"}`, "delete"},
		{"move_file", `{}`, `"source_path":{"type":"string"}`, "move"},
		{"searchIssues", `{"readOnlyHint":true}`, `"query":{"type":"string"}`, "search"},
		{"run_command", `{}`, `"command":{"type":"string"}`, "execute"},
		{"sequentialthinking", `{"readOnlyHint":true}`, `"thought":{"type":"string"}`, "think"},
		{"fetch", `{"readOnlyHint":true,"openWorldHint":true}`, `"url":{"type":"string"}`, "fetch"},
		{"frobnicate", `{}`, `"x":{"type":"string"}`, "other"},
	} {
		schema := json.RawMessage(`{"type":"object","properties":{` + c.properties + `}}`)
		name := tool.MCPName("s", c.name)
		f := facts.Of(&tool.Tool{Name: name, Server: "s", Native: c.name, InputSchema: schema, Declaration: json.RawMessage(`{"name":"` +
			c.name + `","title":"T ` + c.name + `","annotations":` + c.annotations + `}`)}, facts.Options{Trust: true})
		want[string(name)] = c.kind
		call := j.begin(name, `{"path":"/srv/a","source_path":"/srv/a","url":"https://h/x"}`, time.Now())
		call.Name(f)
		j.run(call, tool.StatusSucceeded, persist.CallEnd{})
	}
	got := map[string]string{}
	for _, m := range j.acpOf(Options{}) {
		u := m.Params.Update
		if u.Update != "tool_call" {
			continue
		}
		native, _, _ := strings.Cut(strings.TrimPrefix(u.Title, "T "), ":")
		got[string(tool.MCPName("s", native))] = u.Kind
		if native == "read_file" && (u.Title != "T read_file: /srv/a" || len(u.Locations) != 1 || u.Locations[0].Path != "/srv/a") {
			t.Errorf("%+v", u)
		}
	}
	for name, kind := range want {
		if got[name] != kind {
			t.Errorf("%s is of the kind %q, want %q", name, got[name], kind)
		}
	}
}

// TestACPCallWithoutAName: a malformed call that names no tool has a title, as the schema wants.
func TestACPCallWithoutAName(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	c := j.begin(tool.UnknownTool, `{}`, time.Now())
	c.Begin(persist.CallHead{Invocation: c.Invocation, Tool: tool.UnknownTool, Actor: "actor:http/ann", Created: c.Created}, tool.ExternalMapping{Source: "mcp", Role: "client"})
	j.run(c, tool.StatusValidationFailed, persist.CallEnd{Error: &tool.Error{ErrorClass: tool.ClassInvalidArguments, Message: "no name"}})
	if all := j.acpOf(Options{}); len(all) == 0 || all[0].Params.Update.Title != string(tool.UnknownTool) {
		t.Errorf("%+v", all)
	}
}

// TestStreamOverHTTP: what a stream has, how it is resumed, what it refuses, and that it ends with the right to read.
func TestStreamOverHTTP(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	j.run(j.begin("mcp.s.a", `{}`, time.Now()), tool.StatusSucceeded, persist.CallEnd{})
	s := &Server{Dir: j.dir, Logger: slog.New(slog.DiscardHandler)}
	may := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Serve(w, r, func() bool {
			select {
			case <-may:
				return false
			default:
				return true
			}
		})
	}))
	defer server.Close()
	get := func(query, last string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/events?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	read := func(resp *http.Response) (got []string) {
		t.Helper()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				got = append(got, strings.TrimSpace(id))
			}
		}
		return got
	}
	all := read(get("follow=false", ""))
	if want := ids(j.stream(Options{})); !slices.Equal(all, want) {
		t.Errorf("the stream has %q, want %q", all, want)
	}
	if got := read(get("follow=false", all[3])); !slices.Equal(got, all[4:]) {
		t.Errorf("after %s come %q", all[3], got)
	}
	for _, query := range []string{"format=xml", "filter=1%2B", "since=yesterday", "folow=true", "follow=maybe"} {
		if resp := get(query, ""); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", query, resp.Status)
		}
	}
	standing := get("", "") // from now on
	if standing.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v", standing.Header)
	}
	j.run(j.begin("mcp.s.b", `{}`, time.Now()), tool.StatusSucceeded, persist.CallEnd{})
	line := make([]byte, 4)
	if _, err := standing.Body.Read(line); err != nil || string(line) != "id: " {
		t.Errorf("%q, %v", line, err)
	}
	close(may)
	if got := read(standing); len(got) > 7 {
		t.Errorf("the stream has %q", got)
	}
}

// TestStreamIsBounded: one stream too many is refused, and a stream ends with its request.
func TestStreamIsBounded(t *testing.T) {
	t.Parallel()
	s := &Server{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	s.open.Store(maxStreams)
	w := httptest.NewRecorder()
	s.Serve(w, httptest.NewRequest(http.MethodGet, "/events", nil), func() bool { return true })
	if w.Code != http.StatusServiceUnavailable || s.open.Load() != maxStreams {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Stream(ctx, Options{Dir: s.Dir, Follow: true}, func(Message) error { return nil }); err != nil {
		t.Error(err)
	}
}

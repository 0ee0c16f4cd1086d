package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// checkJournal holds that the journal beneath dir is the standard's, and that each invocation has one terminal result.
// calls is how many invocations there are; 0 where that is not known.
func checkJournal(t testing.TB, dir string, calls int) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(dir, "*", "journal"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("journals: %q, %v", dirs, err)
	}
	checkRecords(t, dirs[0], calls)
}

// checkRecords is checkJournal for the journal in dir. calls below 0: some may have no result, because their hub was killed.
func checkRecords(t testing.TB, dir string, calls int) {
	t.Helper()
	j := newJournalCheck(t)
	j.cut, j.dir = isCut(t, dir), dir
	if err := persist.Read(dir, func(line json.RawMessage) bool { j.take(line); return true }); err != nil {
		t.Fatal(err)
	}
	if !j.cut {
		j.check()
	}
	for problem, line := range j.problems {
		t.Errorf("%s\n%.1000s", problem, line)
	}
	occurred.add(j.seen)
	if calls < 0 {
		return
	}
	begun, ended := 0, 0
	for id, c := range j.calls {
		begun += min(len(c.invocations), 1)
		ended += len(c.results)
		if len(c.results) != 1 {
			t.Errorf("the invocation %s has %d results", id, len(c.results))
		}
	}
	if begun == 0 || begun != ended || calls > 0 && begun != calls {
		t.Errorf("%d invocations of %d, and %d results", begun, calls, ended)
	}
}

// isCut reports whether the journal in dir has become so large that its hub may have removed the oldest file, and with it what later records refer to:
// TestSoak keeps three files of 1 MiB.
func isCut(t testing.TB, dir string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "journal-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			size += info.Size()
		}
	}
	return len(files) > 2 && size > 2<<20
}

// journalCheck holds the objects of one journal against each other and against their schemas.
type journalCheck struct {
	t        testing.TB
	cut      bool   // its first records are missing
	dir      string // where it is; "": these are no records of a hub
	schemas  map[tool.Object]*jsonschema.Schema
	problems map[string]json.RawMessage // what is wrong, each with the first record of which it holds
	seen     sightings
	ids      map[string]bool           // all that records define
	scopes   map[tool.SurfaceID]string // of surfaces
	offered  map[tool.SurfaceID][]tool.Name
	named    map[string]json.RawMessage // ids that records refer to, with the first record that does
	native   map[tool.Name][]string     // the native names of tools
	inputs   inputRefs
	calls    map[tool.InvocationID]*callCheck
}

func newJournalCheck(t testing.TB) *journalCheck {
	t.Helper()
	schemas, err := recordSchemas()
	if err != nil {
		t.Fatal(err)
	}
	return &journalCheck{t: t, schemas: schemas, problems: map[string]json.RawMessage{}, seen: sightings{}, ids: map[string]bool{}, scopes: map[tool.SurfaceID]string{},
		offered: map[tool.SurfaceID][]tool.Name{}, named: map[string]json.RawMessage{}, native: map[tool.Name][]string{}, inputs: inputRefs{}, calls: map[tool.InvocationID]*callCheck{}}
}

// anyRecord holds the members of all objects that the checks look at.
type anyRecord struct {
	Object        tool.Object             `json:"object"`
	Invocation    tool.InvocationID       `json:"invocation_id"`
	Tool          tool.Name               `json:"tool_id"`
	Surface       tool.SurfaceID          `json:"surface_id"`
	Status        tool.Status             `json:"status"`
	Redaction     tool.RedactionState     `json:"redaction_state"`
	Event         tool.EventType          `json:"event_type"`
	EventID       string                  `json:"event_id"`
	Decision      string                  `json:"decision_id"`
	Closes        string                  `json:"closes_decision_id"`
	Behavior      tool.Behavior           `json:"behavior"`
	Progress      string                  `json:"progress_id"`
	Sequence      int                     `json:"sequence"`
	Result        string                  `json:"result_id"`
	Mutation      string                  `json:"mutation_id"`
	Hook          string                  `json:"hook_id"`
	Parent        string                  `json:"parent_invocation_id"`
	Policy        string                  `json:"policy_ref"`
	Policies      []string                `json:"policy_refs"`
	Decisions     []string                `json:"permission_decision_refs"`
	Hooks         []string                `json:"hook_refs"`
	ModifiedBy    []string                `json:"modified_by"`
	Moves         []tool.StatusTransition `json:"status_transitions"`
	Mappings      []json.RawMessage       `json:"external_mappings"`
	Scope         string                  `json:"scope"`
	Profile       string                  `json:"profile"`
	Input         json.RawMessage         `json:"input_contract"`
	Output        json.RawMessage         `json:"output_contract"`
	Interface     string                  `json:"interface_id"`
	Execution     string                  `json:"execution_profile_id"`
	Permission    string                  `json:"permission_profile_id"`
	Namespace     string                  `json:"namespace_id"`
	InterfaceRef  string                  `json:"interface_ref"`
	ExecutionRef  string                  `json:"execution_profile_ref"`
	PermissionRef string                  `json:"permission_profile_ref"`
	InNamespace   string                  `json:"namespace"`
	Persistence   []string                `json:"persistence_refs"`
	Tools         []tool.Name             `json:"tool_refs"`
	Cancellation  json.RawMessage         `json:"cancellation"`
	Native        string                  `json:"native_call_id"`
	NativeIDs     []string                `json:"native_ids"`
	IsError       bool                    `json:"is_error"`
	Error         json.RawMessage         `json:"error"`
	Time          time.Time               `json:"time"`
	Created       time.Time               `json:"created_at"`
	Started       *time.Time              `json:"started_at"`
	Ended         *time.Time              `json:"ended_at"`
	Data          struct {
		Decision string `json:"decision_id"`
		Closes   string `json:"closes_decision_id"`
		Progress string `json:"progress_id"`
		Result   string `json:"result_id"`
		Hook     string `json:"hook_id"`
		Surface  string `json:"surface_id"`
	} `json:"data"`
}

// take holds one object against its schema, and notes what it defines, names and shows.
func (j *journalCheck) take(line json.RawMessage) {
	j.t.Helper()
	var r anyRecord
	if err := json.Unmarshal(line, &r); err != nil {
		j.wrong(line, "is no record: %v", err)
		return
	}
	j.seen.note(&r)
	j.valid(r.Object, line)
	if r.Object == tool.ObjectEvent && r.Event == tool.EventInvocationErased {
		return // of any call that the record store knows, at any later time
	}
	refs := []string{string(r.Invocation), string(r.Surface), r.Parent, r.Closes, r.Data.Decision, r.Data.Closes, r.Data.Progress, r.Data.Result,
		r.Data.Hook, r.Data.Surface}
	for _, id := range []string{r.EventID, r.Decision, r.Progress, r.Mutation, r.Hook, r.Interface, r.Execution, r.Permission, r.Namespace, r.Policy} {
		j.ids[id] = true
	}
	if r.Object == tool.ObjectResult {
		j.ids[r.Result] = true
	} else {
		refs = append(refs, r.Result)
	}
	if r.Object == tool.ObjectDeclaration {
		j.ids["declaration of "+string(r.Tool)] = true
		j.valid(tool.ObjectInputContract, r.Input)
		j.valid(tool.ObjectOutputContract, r.Output)
	}
	if r.Object == tool.ObjectInterface {
		j.native[r.Tool] = append(j.native[r.Tool], r.NativeIDs...)
	}
	if r.Object == tool.ObjectSurface {
		j.ids[string(r.Surface)] = true
		j.scopes[r.Surface], j.offered[r.Surface] = r.Scope, r.Tools
		j.surface(line)
	}
	if r.Object == tool.ObjectPermissionDecision {
		refs = append(refs, r.Policies...)
	}
	if r.Object == tool.ObjectInvocation {
		j.ids[string(r.Invocation)] = true
	}
	if r.Object == tool.ObjectDeclaration || r.Object == tool.ObjectInterface {
		refs = append(refs, r.InterfaceRef, r.ExecutionRef, r.PermissionRef, r.InNamespace)
	}
	if r.Object == tool.ObjectInvocation && r.Tool != tool.UnknownTool {
		refs = append(refs, "declaration of "+string(r.Tool))
	}
	for _, id := range slices.Concat(refs, r.Decisions, r.Hooks, r.ModifiedBy, r.Persistence) {
		if id != "" && j.named[id] == nil {
			j.named[id] = line
		}
	}
	for _, m := range r.Mappings {
		j.valid("tool_external_mapping", m)
	}
	if r.Error != nil && r.Object == tool.ObjectResult {
		j.valid("tool_error", r.Error)
	}
	if r.Invocation == "" || j.cut {
		return
	}
	j.inputs.take(j.t, &r, line)
	c := j.calls[r.Invocation]
	if c == nil {
		c = &callCheck{j: j}
		j.calls[r.Invocation] = c
	}
	c.take(&r, line)
}

// wrong notes what is wrong with a record, once.
func (j *journalCheck) wrong(line json.RawMessage, format string, args ...any) {
	problem := fmt.Sprintf(format, args...)
	if j.problems[problem] == nil {
		j.problems[problem] = line
	}
}

// valid holds an object against its schema.
func (j *journalCheck) valid(kind tool.Object, line json.RawMessage) {
	schema := j.schemas[kind]
	if schema == nil {
		return
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(line)))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		j.wrong(line, "no %s: %v", kind, err)
	}
}

// surface holds that a surface has all members that the specification names.
func (j *journalCheck) surface(line json.RawMessage) {
	var members map[string]any
	mustDecode(j.t, string(line), &members)
	for _, name := range []string{"surface_id", "scope", "created_at", "producer", "tool_refs", "loaded_tools", "deferred_tools", "blocked_tools",
		"excluded_tools", "selection_policy", "default_tool_choice", "capability_requirements", "model_capabilities", "role_constraints",
		"policy_refs", "runtime_refs", "surface_reason"} {
		if members[name] == nil {
			j.wrong(line, "the surface says nothing of %s", name)
		}
	}
}

// check holds the objects against each other.
func (j *journalCheck) check() {
	j.t.Helper()
	for id, line := range j.named {
		if !j.ids[id] {
			j.wrong(line, "no record has the id %s", id)
		}
	}
	j.inputs.check(j.t, j.dir)
	for _, c := range j.calls {
		c.check()
	}
}

// callCheck holds what the records of one invocation say.
type callCheck struct {
	j           *journalCheck
	events      []anyRecord // in their order, as all below
	invocations []anyRecord
	results     []anyRecord
	tools       []tool.Name // that records name as the one called
	asked       map[string]bool
	open        map[string]bool // those of asked that no decision has closed
	reports     int
	hooks       int  // that have begun, and not ended
	number      int  // of the step of the last event
	task        bool // the task that it has become has brought its result
	last        json.RawMessage
}

// take holds a record against those before it.
func (c *callCheck) take(r *anyRecord, line json.RawMessage) {
	if len(c.results) > 0 && (r.Object != tool.ObjectInvocation || len(c.invocations) > 0 && c.invocations[len(c.invocations)-1].Ended != nil) {
		c.ofTask(r, line)
		return
	}
	found := r.Object == tool.ObjectDeferredRef || strings.HasPrefix(string(r.Event), "tool.deferred.") // of the tools that a search has found
	if c.last = line; r.Tool != "" && !found && !slices.Contains(c.tools, r.Tool) {
		c.tools = append(c.tools, r.Tool)
	}
	switch r.Object {
	case tool.ObjectInvocation:
		c.invocations = append(c.invocations, *r)
	case tool.ObjectResult:
		c.results = append(c.results, *r)
	case tool.ObjectProgress:
		if c.reports++; r.Sequence != c.reports {
			c.j.wrong(line, "the report %d of a call has the sequence %d", c.reports, r.Sequence)
		}
	case tool.ObjectPermissionDecision:
		if r.Closes != "" && !c.asked[r.Closes] {
			c.j.wrong(line, "it closes %s, which has asked nothing before", r.Closes)
		}
		delete(c.open, r.Closes)
	case tool.ObjectEvent:
		c.event(r, line)
	}
}

// ofTask holds that a record that comes after the end of the call is of the one result of its task.
func (c *callCheck) ofTask(r *anyRecord, line json.RawMessage) {
	switch {
	case c.task:
	case r.Object == tool.ObjectTaskResult:
		c.task = true
		return
	case r.Object == tool.ObjectHook, r.Object == tool.ObjectResultPersistence:
		return
	case r.Object == tool.ObjectEvent && (rank(r.Event) == 0 || r.Event == tool.EventResultCreated || r.Event == tool.EventHookPostStarted):
		return
	}
	c.j.wrong(line, "%s comes after the end of its call", r.Object)
}

// event holds an event against those before it.
func (c *callCheck) event(r *anyRecord, line json.RawMessage) {
	if len(c.events) > 0 {
		before := c.events[len(c.events)-1]
		if r.Time.Before(before.Time) {
			c.j.wrong(line, "%s at %v comes after %s at %v", r.Event, r.Time, before.Event, before.Time)
		}
		again := slices.ContainsFunc(c.events, func(e anyRecord) bool { return e.Event == r.Event }) // queued, after it has waited for its client
		if !again && rank(r.Event) > 0 && slices.ContainsFunc(c.events, func(e anyRecord) bool { return rank(e.Event) > rank(r.Event) }) {
			c.j.wrong(line, "%s comes after %s", r.Event, before.Event)
		}
	} else if r.Event != tool.EventInvocationPlanned && r.Event != tool.EventToolDeclared {
		c.j.wrong(line, "the first event of a call is %s", r.Event)
	}
	if _, text, ok := strings.Cut(r.EventID, "."); ok {
		number, err := strconv.Atoi(strings.SplitN(text, ".", 2)[0])
		if err != nil || number < c.number {
			c.j.wrong(line, "the event %s comes after one of step %d", r.EventID, c.number)
		}
		c.number = number
	}
	switch r.Event {
	case tool.EventPermissionRequested:
		if c.asked == nil {
			c.asked, c.open = map[string]bool{}, map[string]bool{}
		}
		c.asked[r.Data.Decision], c.open[r.Data.Decision] = true, true
	case tool.EventPermissionDecided:
		if r.Data.Closes != "" && !c.asked[r.Data.Closes] {
			c.j.wrong(line, "the question %s is answered, and was not asked", r.Data.Closes)
		}
	case tool.EventHookPreStarted, tool.EventHookPostStarted:
		c.hooks++
	case tool.EventHookPreCompleted, tool.EventHookPostCompleted:
		if c.hooks--; c.hooks < 0 {
			c.j.wrong(line, "a hook has ended that has not begun")
		}
	}
	c.events = append(c.events, *r)
}

// rank is the place of an event in a call; 0 for one that may come anywhere.
func rank(e tool.EventType) int {
	return 1 + slices.IndexFunc([][]tool.EventType{
		{tool.EventInvocationPlanned}, {tool.EventInvocationSelected}, {tool.EventInvocationArgumentsReady}, {tool.EventInvocationQueued},
		{tool.EventInvocationStarted}, {tool.EventHookPostStarted},
		{tool.EventInvocationSucceeded, tool.EventInvocationFailed, tool.EventInvocationCanceled, tool.EventInvocationTimedOut, tool.EventInvocationYielded},
		{tool.EventResultCreated},
	}, func(same []tool.EventType) bool { return slices.Contains(same, e) })
}

// check holds what the records of the call say against each other, and against what its tool is.
func (c *callCheck) check() {
	if len(c.tools) > 1 {
		c.j.wrong(c.last, "records of one call name the tools %v", c.tools)
	}
	for i := range c.invocations {
		c.invocation(&c.invocations[i])
	}
	if len(c.results) > 1 {
		c.j.wrong(c.last, "a call has %d results", len(c.results))
	}
	if len(c.results) == 0 || len(c.invocations) == 0 || len(c.events) == 0 {
		return
	}
	r, inv := c.results[0], c.invocations[len(c.invocations)-1]
	if inv.Ended == nil || inv.Status != r.Status || c.hooks != 0 {
		c.j.wrong(c.last, "the result is %s, the invocation is %s, has the end %v, and runs %d hooks", r.Status, inv.Status, inv.Ended, c.hooks)
	}
	if len(c.open) > 0 && r.Redaction != tool.Erased { // which has no decisions any more
		c.j.wrong(c.last, "the call has ended, and nothing closes its questions %v", c.open)
	}
	if last := c.events[len(c.events)-1]; last.Event != tool.EventResultCreated || last.Data.Result != r.Result {
		c.j.wrong(c.last, "the last event is %s of %s", last.Event, last.Data.Result)
	}
	began := slices.ContainsFunc(c.events, func(e anyRecord) bool { return e.Event == tool.EventInvocationStarted })
	if began != (inv.Started != nil) {
		c.j.wrong(c.last, "the event of the start is there: %v; the invocation has the start %v", began, inv.Started)
	}
	c.class(&r, began)
	if cut := r.Status == tool.StatusCanceled || r.Status == tool.StatusTimedOut; cut && r.Cancellation == nil || string(r.Cancellation) != string(inv.Cancellation) {
		c.j.wrong(c.last, "a call that is %s says %s of its cancellation, and its result %s", r.Status, inv.Cancellation, r.Cancellation)
	}
	if asked := slices.ContainsFunc(c.events, func(e anyRecord) bool { return e.Event == tool.EventCancelRequested }); asked != (r.Cancellation != nil) {
		c.j.wrong(c.last, "the event of the cancellation is there: %v; the result says %s", asked, r.Cancellation)
	}
	own := !strings.Contains(string(inv.Tool), ".")                               // tool_search and the like, which every surface has, listed or not
	own = own || slices.ContainsFunc(inv.Mappings, func(m json.RawMessage) bool { // no tool
		return strings.Contains(string(m), `"role":"client"`) && !strings.Contains(string(m), `"tool_name"`)
	})
	if offered, ok := c.j.offered[inv.Surface]; ok && began && !own && !slices.Contains(offered, inv.Tool) {
		c.j.wrong(c.last, "%s has run, and its surface offers %v", inv.Tool, offered)
	}
}

// class holds that the class of an error is one of the status, and says of the tool what is true.
func (c *callCheck) class(r *anyRecord, began bool) {
	var e struct {
		Class tool.ErrorClass `json:"error_class"`
		Code  string          `json:"error_code"`
	}
	if r.Error != nil {
		mustDecode(c.j.t, string(r.Error), &e)
	}
	if r.IsError != (e.Class != "") || r.IsError == (r.Status == tool.StatusSucceeded || r.Status == tool.StatusYielded && e.Class == "") {
		c.j.wrong(c.last, "the result is %s, is_error is %v, the error is %q", r.Status, r.IsError, e.Class)
	}
	row := documentedClasses()[e.Class]
	want := row.status
	if e.Class != "" && !row.has(e.Code) && e.Code != string(e.Class) {
		c.j.wrong(c.last, "docs/errors.md says nothing of the code %s of %s", e.Code, e.Class)
	}
	if e.Class != "" && r.Status != want && r.Status != tool.StatusYielded {
		c.j.wrong(c.last, "a call with an error of class %s ends as %s, not as %s", e.Class, r.Status, want)
	}
	nobody := slices.Contains(c.tools, tool.UnknownTool)
	if began && nobody || e.Class == tool.ClassUnknownTool && !nobody {
		c.j.wrong(c.last, "%s of %v; it has begun: %v", e.Class, c.tools, began)
	}
	if len(c.tools) == 0 {
		c.j.wrong(c.last, "no record of the call names a tool")
	}
}

// documentedClass is what docs/errors.md says of a class: how a call with such an error ends, and the codes.
type documentedClass struct {
	status tool.Status
	codes  string
}

// has reports whether a code is among those of the class. http_STATUS is every status, and server_STATE every state.
func (c documentedClass) has(code string) bool {
	family, _, _ := strings.Cut(code, "_")
	any := map[string]string{"http": "`http_STATUS`", "server": "`server_STATE`"}[family]
	return strings.Contains(c.codes, "`"+code+"`") || any != "" && strings.Contains(c.codes, any)
}

var documentedClasses = sync.OnceValue(func() map[tool.ErrorClass]documentedClass {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "errors.md"))
	if err != nil {
		panic(err)
	}
	all := map[tool.ErrorClass]documentedClass{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| `([a-z_]+)` \\|.*\\|(.*)\\|$").FindAllStringSubmatch(string(page), -1) {
		all[tool.ErrorClass(row[1])] = documentedClass{tool.Status(row[2]), row[3]}
	}
	return all
})

// invocation holds what an invocation says of itself.
func (c *callCheck) invocation(r *anyRecord) {
	server, direct := strings.CutPrefix(r.Profile, "s/")
	if scope, ok := c.j.scopes[r.Surface]; ok && (direct && scope != "server:"+server || !direct && scope != "profile:"+r.Profile) {
		c.j.wrong(c.last, "a call in %s has a surface of %s", r.Profile, scope)
	}
	if len(r.Moves) == 0 || r.Moves[0].Status != tool.StatusPlanned || r.Moves[len(r.Moves)-1].Status != r.Status {
		c.j.wrong(c.last, "an invocation that is %s has the statuses %v", r.Status, r.Moves)
	}
	for i := range r.Moves {
		if i > 0 && r.Moves[i].At.Before(r.Moves[i-1].At) || r.Moves[i].At.Before(r.Created) || r.Ended != nil && r.Moves[i].At.After(*r.Ended) {
			c.j.wrong(c.last, "%s at %v is out of order", r.Moves[i].Status, r.Moves[i].At)
		}
		if i < len(r.Moves)-1 && lastStatus(r.Moves[i].Status) {
			c.j.wrong(c.last, "after %s comes %s", r.Moves[i].Status, r.Moves[i+1].Status)
		}
	}
	if lastStatus(r.Status) != (r.Ended != nil) {
		c.j.wrong(c.last, "an invocation that is %s has the end %v", r.Status, r.Ended)
	}
	if r.Started != nil && !slices.ContainsFunc(r.Moves, func(m tool.StatusTransition) bool { return m.At.Equal(*r.Started) }) {
		c.j.wrong(c.last, "the invocation began at %v, and has no such step", r.Started)
	}
	known, ran := r.Native == "", false
	for _, raw := range r.Mappings {
		var m tool.ExternalMapping
		mustDecode(c.j.t, string(raw), &m)
		known, ran = known || m.Role == "client" && m.JSONRPCRequestID == r.Native, ran || m.Role == "upstream"
		if m.Role == "upstream" && m.Source == "mcp" && m.ServerID != "" && !strings.HasPrefix(string(r.Tool), "mcp."+m.ServerID+".") {
			c.j.wrong(raw, "the server %s ran %s", m.ServerID, r.Tool)
		}
		if native := c.j.native[r.Tool]; m.Role == "upstream" && native != nil && !slices.Contains(native, cmp.Or(m.ToolName, m.Method)) {
			c.j.wrong(raw, "%s ran as %q, and its interface says %q", r.Tool, m.ToolName, native)
		}
	}
	if !known {
		c.j.wrong(c.last, "the call %s has no such request of its client", r.Native)
	}
	if server := r.Tool.Source() == tool.SourceMCP; server && r.Status == tool.StatusSucceeded && !ran {
		c.j.wrong(c.last, "%s has succeeded, and nobody has run it", r.Tool)
	}
}

// lastStatus reports whether a call with that status has ended.
func lastStatus(s tool.Status) bool {
	switch s {
	case tool.StatusSucceeded, tool.StatusFailed, tool.StatusValidationFailed, tool.StatusCanceled, tool.StatusTimedOut, tool.StatusDenied,
		tool.StatusBlocked, tool.StatusYielded:
		return true
	}
	return false
}

// officialSchemas are the standard's own.
var officialSchemas = filepath.Join("..", "..", "..", "..", "..", "shared", "agenttool", "schemas")

// recordSchemas returns the schemas of all objects: the standard's own where the standard is at hand, and those of testdata/schemas, which
// follow its text, for objects that have none there.
var recordSchemas = sync.OnceValues(func() (map[tool.Object]*jsonschema.Schema, error) {
	all := map[tool.Object]*jsonschema.Schema{}
	for _, dir := range []string{officialSchemas, filepath.Join("testdata", "schemas")} {
		entries, err := os.ReadDir(dir)
		if err != nil && dir != officialSchemas {
			return nil, err
		}
		for _, e := range entries {
			schema, err := jsonschema.NewCompiler().Compile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			all[objectOfSchema(e.Name())] = schema
		}
	}
	return all, nil
})

// objectOfSchema is the object whose schema has that file name, such as agenttool-progress.schema.json.
func objectOfSchema(file string) tool.Object {
	name := strings.TrimSuffix(strings.TrimPrefix(file, "agenttool-"), ".schema.json")
	name = strings.ReplaceAll(strings.TrimPrefix(name, "tool-"), "-", "_")
	if name == "deferred_tool" {
		return tool.ObjectDeferredRef
	}
	return tool.Object("tool_" + name)
}

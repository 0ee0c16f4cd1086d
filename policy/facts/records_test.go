package facts_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// standard returns the standard's schema of an object.
func standard(t *testing.T, object string) *jsonschema.Schema {
	t.Helper()
	file := filepath.Join(shared, "agenttool", "schemas", "agenttool-"+object+".schema.json")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the standard's schemas are not beside the project: nothing to hold the records against")
	}
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(file, doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile(file)
}

// TestRecords holds the records of every recorded tool against the standard's schemas.
func TestRecords(t *testing.T) {
	t.Parallel()
	schemas := map[string]*jsonschema.Schema{}
	for _, object := range []string{"tool-declaration", "tool-interface", "execution-profile", "permission-profile", "scheduler-policy"} {
		schemas[object] = standard(t, object)
	}
	full := facts.Options{Trust: true, Channel: "client"}
	placed := facts.State{Aliases: []string{"a"}, AlwaysLoad: true, Timeout: time.Second, MaxInlineChars: 1000, Excess: facts.ExcessCut,
		Credentials: []string{"env:TOKEN"}}
	for i, tl := range recorded(t) {
		o, state := facts.Options{}, facts.State{}
		if i%2 == 0 {
			o, state = full, placed
		}
		state.Deferred = i%3 == 0
		f := facts.Of(tl, o).In(state)
		for object, record := range map[string]tool.Record{"tool-declaration": f.Declaration(), "tool-interface": f.Interface(),
			"execution-profile": f.ExecutionProfile(), "permission-profile": f.PermissionProfile(), "scheduler-policy": f.SchedulerPolicy()} {
			text, err := json.Marshal(record)
			if err != nil {
				t.Fatalf("%s of %s: %v", object, tl.Name, err)
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if err := schemas[object].Validate(value); err != nil {
				t.Errorf("%s of %s: %v\n%s", object, tl.Name, err, text)
			}
			if !strings.HasPrefix(string(text), `{"object":"`+string(record.RecordObject())+`","schema_version":"0.2.0"`) {
				t.Errorf("%s begins with %.60s", object, text)
			}
		}
	}
}

// TestInterfaceHasTenPartitions: every field that the tool-interface page names is in the record, whatever its value.
func TestInterfaceHasTenPartitions(t *testing.T) {
	t.Parallel()
	tl := made(t, "get_thing", "Gets a thing.", "", "")
	tl.OutputSchema = json.RawMessage(`{"type":"object"}`)
	f := facts.Of(tl, facts.Options{}).In(facts.State{Timeout: time.Second, MaxInlineChars: 1})
	text, err := json.Marshal(f.Interface())
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]json.RawMessage
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	var rendering map[string]json.RawMessage
	if err := json.Unmarshal(record["rendering"], &rendering); err != nil {
		t.Fatal(err)
	}
	partitions := map[string]string{
		"identity":     "tool_id name aliases namespace native_ids user_facing_name",
		"discovery":    "search_hint description capability_refs schema_visibility should_defer always_load",
		"schemas":      "model_input_schema runtime_input_schema output_schema strict",
		"availability": "is_enabled requires_setup required_credentials model_requirements feature_gate_refs",
		"validation":   "schema_validation value_validation io_preflight_validation deny_before_io",
		"safety":       "is_read_only is_destructive is_open_world requires_user_interaction sandbox_profile classifier_input",
		"permission":   "permission_profile_ref permission_matcher permission_channel decision_ref",
		"execution":    "execution_profile_ref timeout_ms abort_semantics progress_schema context_modifier_policy",
		"result":       "result_mapper max_inline_chars persistence_policy_ref empty_result_policy redaction_policy_refs",
		"rendering":    "ui_summary activity_description progress_render_hint rejected_render_hint error_render_hint transcript_search_text",
	}
	for partition, fields := range partitions {
		for field := range strings.FieldsSeq(fields) {
			in := record
			if partition == "rendering" {
				in = rendering
			}
			if v, ok := in[field]; !ok || string(v) == "null" {
				t.Errorf("%s: %s is missing or null", partition, field)
			}
		}
	}
	if n := len(partitions); n != 10 {
		t.Errorf("%d partitions", n)
	}
}

// TestResultBounds: the least of what the hub lets through and what the tool says counts, and only the hub's bound cuts anything.
func TestResultBounds(t *testing.T) {
	t.Parallel()
	hub := facts.State{MaxInlineChars: 1000, Excess: facts.ExcessRefused}
	for _, c := range []struct {
		meta   string
		state  facts.State
		chars  int
		policy string
	}{
		{`{}`, facts.State{}, 0, "pass_through"}, {`{}`, hub, 1000, facts.ExcessRefused},
		{`{"anthropic/maxResultSizeChars":500}`, hub, 500, facts.ExcessRefused}, {`{"anthropic/maxResultSizeChars":500}`, facts.State{}, 500, "pass_through"},
		{`{"anthropic/maxResultSizeChars":5000}`, hub, 1000, facts.ExcessRefused}, {`{"anthropic/maxResultSizeChars":-1}`, hub, 1000, facts.ExcessRefused},
		{`{"anthropic/maxResultSizeChars":"500"}`, facts.State{}, 0, "pass_through"}, {`{"anthropic/maxResultSizeChars":1e99}`, hub, 1000, facts.ExcessRefused},
	} {
		f := facts.Of(declared(t, "s", `{"name":"get","_meta":`+c.meta+`}`), facts.Options{}).In(c.state)
		if o, i := f.OutputContract(), f.Interface(); o.MaxInline != c.chars || i.MaxInlineChars != c.chars || o.SizePolicy != c.policy {
			t.Errorf("%+v: %d, %d, %s", c, o.MaxInline, i.MaxInlineChars, o.SizePolicy)
		}
	}
}

func TestSchedulerPolicy(t *testing.T) {
	t.Parallel()
	const readOnly = `{"readOnlyHint":true}`
	reader := facts.Of(made(t, "get_thing", "", "", readOnly), facts.Options{Trust: true}).SchedulerPolicy()
	if !reader.ConcurrencySafe || len(reader.Locks) != 0 || reader.SiblingFailure != "ignore" || reader.Interrupt != "cancel" {
		t.Errorf("%+v", reader)
	}
	writer := facts.Of(made(t, "set_thing", "", "", ""), facts.Options{}).SchedulerPolicy()
	if writer.ConcurrencySafe || writer.Locks[0].Mode != "exclusive" || writer.Ordering != "serial" || writer.MaxParallel != 0 {
		t.Errorf("%+v", writer)
	}
	alone := facts.Of(made(t, "set_thing", "", "", ""), facts.Options{Overrides: []facts.Override{
		{Match: "*", Concurrency: facts.ConcurrencyExclusive, Interrupt: facts.InterruptBlock}}}).SchedulerPolicy()
	if alone.ConcurrencySafe || alone.MaxParallel != 1 || alone.Locks[0].Mode != "exclusive" || alone.Interrupt != "block" {
		t.Errorf("%+v", alone)
	}
	if p := facts.Of(made(t, "browser_get_text", "", "", readOnly), facts.Options{Trust: true}).SchedulerPolicy(); p.ConcurrencySafe {
		t.Errorf("two readers share a browser: %+v", p)
	}
}

func TestSearchHint(t *testing.T) {
	t.Parallel()
	for declaration, want := range map[string]string{
		`{"name":"get_big_thing","description":"x"}`:                                        "get big thing",
		`{"name":"get","title":"Get a big thing","description":"x"}`:                        "Get a big thing",
		`{"name":"get","description":"Gets the thing that was wanted most of all, always"}`: "get Gets the thing that was wanted most",
		`{"name":"get","_meta":{"anthropic/searchHint":"things great and small"}}`:          "things great and small",
	} {
		if got := facts.Of(declared(t, "s", declaration), facts.Options{}).SearchHint(); got != want {
			t.Errorf("%s: %q, want %q", declaration, got, want)
		}
	}
}

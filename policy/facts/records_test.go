package facts_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
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

// TestRecords: a journal has a line for each version of a recorded tool, and the standard's schemas hold of all objects that follow from it. They are
// the same where the version is known and where it is read.
func TestRecords(t *testing.T) {
	t.Parallel()
	schemas := map[tool.Object]*jsonschema.Schema{}
	for _, name := range []string{"tool-declaration", "tool-interface", "execution-profile", "permission-profile", "scheduler-policy", "event"} {
		schemas[tool.Object("tool_"+strings.ReplaceAll(strings.TrimPrefix(name, "tool-"), "-", "_"))] = standard(t, name)
	}
	dir := t.TempDir()
	j, err := persist.Open(persist.JournalConfig{Dir: dir, MaxBytes: 64 << 20, MaxFiles: 2}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	spaces := map[string]bool{}
	for i, tl := range recorded(t) {
		o := facts.Options{}
		if i%2 == 0 {
			o = facts.Options{Trust: true, Execution: facts.Execution{Timeout: time.Second, Credentials: []string{"env:TOKEN"}}}
		}
		f := facts.Of(tl, o)
		for _, object := range f.Objects() {
			if kind := rawjson.Text(object, "object"); kind == string(tool.ObjectNamespace) {
				if spaces[string(object)] {
					continue
				}
				spaces[string(object)] = true
			}
			want = append(want, string(object))
		}
		c := &persist.Call{}
		c.Begin(persist.CallHead{Invocation: tool.NewInvocationID(), Tool: tl.Name, Created: time.Now()}, tool.ExternalMapping{})
		c.Name(f)
		if err := j.End(t.Context(), c, &persist.CallEnd{At: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	err = persist.Read(dir, func(object json.RawMessage) bool {
		if rawjson.Text(object, "invocation_id") != "" {
			return true
		}
		if n < len(want) && string(object) != want[n] {
			t.Errorf("%s\nfollows from the journal, and\n%s\nfrom the facts", object, want[n])
		}
		n++
		kind := rawjson.Text(object, "object")
		if !strings.HasPrefix(string(object), `{"object":"`+kind+`","schema_version":"0.2.0"`) {
			t.Errorf("%s begins with %.60s", kind, object)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(object)))
		if schema := schemas[tool.Object(kind)]; err == nil && schema != nil {
			err = schema.Validate(value)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, object)
		}
		return !t.Failed()
	})
	if err != nil || n != len(want) {
		t.Errorf("%d objects of %d, %v", n, len(want), err)
	}
}

// TestInterfaceHasTenPartitions: the fields that the tool-interface page names are in the record, whatever their values, apart from what is known of a
// surface or a call alone: aliases, should_defer and their like, decision_ref, and how large results are treated.
func TestInterfaceHasTenPartitions(t *testing.T) {
	t.Parallel()
	tl := declared(t, "s", `{"name":"get_thing","description":"Gets a thing.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`)
	var record map[string]json.RawMessage
	for _, object := range facts.Of(tl, facts.Options{Execution: facts.Execution{Timeout: time.Second}}).Objects() {
		if rawjson.Text(object, "object") != string(tool.ObjectInterface) {
			continue
		}
		if err := json.Unmarshal(object, &record); err != nil {
			t.Fatal(err)
		}
	}
	var rendering map[string]json.RawMessage
	if err := json.Unmarshal(record["rendering"], &rendering); err != nil {
		t.Fatal(err)
	}
	partitions := map[string]string{
		"identity":     "tool_id name namespace native_ids user_facing_name",
		"discovery":    "search_hint description capability_refs",
		"schemas":      "model_input_schema runtime_input_schema output_schema strict",
		"availability": "is_enabled requires_setup required_credentials model_requirements feature_gate_refs",
		"validation":   "schema_validation value_validation io_preflight_validation deny_before_io",
		"safety":       "is_read_only is_destructive is_open_world requires_user_interaction sandbox_profile classifier_input",
		"permission":   "permission_profile_ref permission_matcher",
		"execution":    "execution_profile_ref timeout_ms abort_semantics progress_schema context_modifier_policy",
		"result":       "result_mapper empty_result_policy",
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
}

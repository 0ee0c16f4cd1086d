package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// checkRecord validates d against the standard's schema, where the standard is at hand.
func checkRecord(t *testing.T, d tool.PermissionDecision) {
	t.Helper()
	schema := decisionSchema(t)
	if schema == nil {
		return
	}
	text, err := json.Marshal(tool.PermissionDecisionRecord{Head: tool.HeadOf(tool.ObjectPermissionDecision), DecisionID: "dec_1", InvocationID: "inv_1",
		PermissionDecision: d, DecidedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Errorf("%s\n%v", text, err)
	}
}

func decisionSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		dir = filepath.Dir(dir)
		file := filepath.Join(dir, "shared", "agenttool", "schemas", "agenttool-permission-decision.schema.json")
		if _, err := os.Stat(file); err != nil {
			continue
		}
		schema, err := jsonschema.NewCompiler().Compile(file)
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
	return nil
}

func compile(t testing.TB, s policy.Settings) *policy.Engine {
	t.Helper()
	e, err := policy.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// user is one set of the user's rules.
func user(rules ...policy.Rule) []policy.Set {
	return []policy.Set{{Source: policy.User, Rules: rules}}
}

// writer is a tool of which nothing good is known.
func writer(name tool.Name) policy.Request {
	t := &tool.Tool{Name: name, Server: "x", SchemaDigest: "schema"}
	return policy.Request{Invocation: "inv_1", Tool: t, Facts: facts.Of(t, facts.Options{}), Input: json.RawMessage(`{}`),
		Actor: tool.Actor{Name: "ann", Door: "http", Session: "s1"}}
}

package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

const root = "../../../.." // of the repository

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(config.SchemaID, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(config.SchemaID)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// instance decodes a configuration file the way an editor does.
func instance(t *testing.T, path string, data []byte) any {
	t.Helper()
	var err error
	if strings.HasSuffix(path, ".json") {
		data, err = hujson.Standardize(data)
	} else {
		data, err = yaml.YAMLToJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchemaFileIsCurrent(t *testing.T) {
	t.Parallel()
	golden(t, filepath.Join(root, "config.schema.json"), string(config.Schema()))
}

// TestSchemaAcceptsWhatLoads looks at files of the hub. Files of clients hold keys of their own, which no schema knows.
func TestSchemaAcceptsWhatLoads(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	example := filepath.Join(root, "config.example.yaml")
	for _, path := range []string{example, "testdata/full.yaml"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(instance(t, path, data)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSchemaRefusesFaults(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	for _, text := range []string{
		"mcpServer: {}", "hub: {nmae: x}", "hub: 1", "mcpServers: {a: {}}", "mcpServers: {a: {command: [x]}}",
		"mcpServers: {a: {command: x, type: htp}}", "mcpServers: {a: {command: x, timeout: 1.5}}",
		"mcpServers: {a: {command: x, timeout: soon}}", "servers: {a: {command: x, comand: y}}",
		"hub: {auth: {tokens: [{name: a}]}}", "hub: {auth: {tokens: [{name: a, token: literal}]}}",
		"profiles: {p: {style: natve}}", "profiles: {p: {tools: [{name: x}]}}", "policy: {rulez: []}", "policy: {rules: [{match: x}]}", "deferred: {x: 1}",
		"persist: {journal: {max_bytes: lots}}", "hub: {http: {max_sessions: 0}}", "inputs: [{type: promptString}]",
	} {
		if s.Validate(instance(t, "x.yaml", []byte(text))) == nil {
			t.Errorf("the schema accepts %q", text)
		}
		if _, err := config.Parse("x.yaml", []byte(text), testEnv()); err == nil {
			t.Errorf("the parser accepts %q", text)
		}
	}
}

// TestSchemaAndParserKnowTheSameKeys walks every object of the schema. At each it gives the parser each key that the
// schema knows there, and one that it does not: only the latter may be unknown.
func TestSchemaAndParserKnowTheSameKeys(t *testing.T) {
	t.Parallel()
	var doc map[string]any
	if err := json.Unmarshal(config.Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	seen := 0
	var walk func(s map[string]any, wrap func(string) string)
	walk = func(s map[string]any, wrap func(string) string) {
		if ref, ok := s["$ref"].(string); ok {
			s = doc
			for _, key := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
				s = s[key].(map[string]any)
			}
		}
		if properties, ok := s["properties"].(map[string]any); ok {
			slip := "zz_no_such_key"
			if properties["httpUrl"] != nil {
				slip = "comand" // entries of servers may have keys of other clients
			}
			if !unknownKey(t, wrap(`{"`+slip+`": 1}`)) {
				t.Errorf("the parser takes any key in %s", wrap("{…}"))
			}
			for name, p := range properties {
				seen++
				member := func(inner string) string { return wrap(`{"` + name + `": ` + inner + `}`) }
				if unknownKey(t, member("null")) {
					t.Errorf("the parser does not know %s", member("…"))
				}
				walk(p.(map[string]any), member)
			}
		} else if more, ok := s["additionalProperties"].(map[string]any); ok {
			walk(more, func(inner string) string { return wrap(`{"a": ` + inner + `}`) })
		}
		if items, ok := s["items"].(map[string]any); ok {
			walk(items, func(inner string) string { return wrap(`[` + inner + `]`) })
		}
	}
	walk(doc, func(inner string) string { return inner })
	if seen < 150 {
		t.Errorf("walked over %d keys only", seen)
	}
}

func unknownKey(t *testing.T, text string) bool {
	t.Helper()
	_, err := config.Parse("x.json", []byte(text), testEnv())
	var faults textfile.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			if f.Message == "unknown key" {
				return true
			}
		}
	}
	return false
}

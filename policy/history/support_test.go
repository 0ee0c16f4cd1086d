package history_test

import (
	"encoding/json"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

const homeOf = "/home/ann"

// readers are the facts of tools that only read, and are asked about because of the network.
func readers() (c facts.Config) {
	yes := true
	for _, match := range []string{"mcp.fs.read_file", "mcp.fs.list_directory", "mcp.*.get_*"} {
		c.Tools = append(c.Tools, facts.Override{Match: match, ReadOnly: &yes, Network: &yes})
	}
	return c
}

// declared are the tools of the servers, as servers declare them.
func declared() history.Tools {
	all := make(map[tool.Name]*tool.Tool)
	for name, properties := range map[tool.Name]string{
		"mcp.fs.read_file":          `"path":{"type":"string"}`,
		"mcp.fs.list_directory":     `"path":{"type":"string"}`,
		"mcp.fs.write_file":         `"path":{"type":"string"},"content":{"type":"string"}`,
		"mcp.git.push":              `"repo_path":{"type":"string"},"branch":{"type":"string"},"force":{"type":"boolean"}`,
		"mcp.web.fetch":             `"url":{"type":"string","format":"uri"}`,
		"mcp.tracker.comment":       `"project":{"type":"string"},"issue_id":{"type":"string"},"body":{"type":"string"}`,
		"mcp.cluster.get_pods":      `"namespace":{"type":"string"}`,
		"mcp.cluster.restart":       `"namespace":{"type":"string"},"deployment":{"type":"string"}`,
		"mcp.cluster.scale":         `"namespace":{"type":"string"},"deployment":{"type":"string"},"replicas":{"type":"integer"}`,
		"mcp.cluster.delete_volume": `"namespace":{"type":"string"},"volume_id":{"type":"string"}`,
		"mcp.shell.run":             `"command":{"type":"string"}`,
		"mcp.mail.send":             `"to":{"type":"string"},"subject":{"type":"string"},"body":{"type":"string"}`,
		"mcp.crm.get_customer":      `"customer_id":{"type":"string"}`,
		"mcp.crm.delete_customer":   `"customer_id":{"type":"string"}`,
	} {
		schema := `{"type":"object","properties":{` + properties + `}}`
		_, rest, _ := strings.Cut(string(name), ".")
		server, native, _ := strings.Cut(rest, ".")
		all[name] = &tool.Tool{Name: name, Server: server, Native: native, InputSchema: json.RawMessage(schema), SchemaDigest: tool.Digest([]byte(schema)),
			Declaration: json.RawMessage(`{"name":"` + native + `","inputSchema":` + schema + `}`)}
	}
	return func(name tool.Name) *tool.Tool { return all[name] }
}

// policyOf makes the gate of the proof with some rules more.
func policyOf(more []policy.Rule) (*gate.Gate, error) {
	return gate.New(gate.Config{Sets: []policy.Set{{Source: policy.CommandLine, Rules: more}}, Tools: readers(),
		Limits: target.Config{AllowedWriteRoots: []string{homeOf}}}, gate.Options{Dir: homeOf, Home: homeOf, State: "/var/lib/hub"})
}

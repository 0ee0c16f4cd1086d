package gate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// There are clients that show three lines of a question: these say what runs, with which arguments, and why it is asked.
func TestAQuestionBeginsWithWhatMatters(t *testing.T) {
	t.Parallel()
	g := newGate(t, gate.Config{}, t.TempDir())
	long := strings.Repeat("x", 500)
	for input, want := range map[string]string{
		`{}`:                             `none`,
		`{"content":"hi","path":"a.go"}`: `path: "a.go", content: "hi"`, // where it leads comes first
		`{"mode":7,"\u0070ath":"\u002e\u002e/a\"b"}`:               `path: "../a\"b", mode: 7`, // and no escape hides it
		`{"path":"a.go","password":"hunter2","token":"hunter2"}`:   `path: "a.go", password: "[masked]", token: "[masked]"`,
		`{"path":"a","content":"one\ntwo` + long + `"}`:            `path: "a", content: "one\ntwo` + long[:32] + `… (468 bytes more)"`,
		`{"content":"#!/bin/sh\ngit push --force origin main\nx"}`: `content: "#!/bin/sh\ngit push --force origin main\n… (1 bytes more)"`, // no escape is cut in two
		`{"path: \"b\", path":1}`:                                  `"path: \"b\", path": 1`,                                               // no name passes for another argument
		`{"a":"` + long + `","b":"` + long + `","c":"` + long + `","path":"p"}`: `path: "p", a: "` + long[:40] + `… (460 bytes more)", b: "` +
			long[:40] + `… (460 bytes more)" … (1 more, see below)`,
	} {
		r, err := g.Request(t.Context(), policy.Request{Tool: writeTool(), Input: json.RawMessage(input),
			Actor: tool.Actor{Name: "a", Door: "http"}})
		if err != nil {
			t.Fatal(err)
		}
		d := g.Engine.Decide(r)
		text := gate.Message(gate.Asked{Request: &r, Decision: &d})
		lines := strings.Split(text, "\n")
		if lines[0] != "mcp-toolhub asks: may mcp.files.write_file (server files) run?" || lines[1] != "Arguments: "+want ||
			!strings.HasPrefix(lines[2], "Why: ") {
			t.Errorf("%.100s\n%s\nwant Arguments: %s", input, strings.Join(lines[:3], "\n"), want)
		}
		for _, line := range lines[:3] {
			if len(line) > 250 {
				t.Errorf("a long line: %s", line)
			}
		}
		if cut := strings.Contains(lines[1], "…"); cut != strings.Contains(text, "\nAll arguments: ") || strings.Contains(text, "hunter2") {
			t.Errorf("%.100s\n%s", input, text)
		}
	}
}

// The form is one required choice: there are clients that cannot submit an optional text, and clients that fill in defaults.
func TestTheFormIsOneRequiredChoice(t *testing.T) {
	t.Parallel()
	for revision, want := range map[string]string{
		"2025-06-18": `{"properties":{"answer":{"enum":["allow_once","deny_once"],"enumNames":["Allow once","Deny once"],"title":"Answer","type":"string"}},` +
			`"required":["answer"],"type":"object"}`,
		"2025-11-25": `{"properties":{"answer":{"oneOf":[{"const":"allow_once","title":"Allow once"},{"const":"deny_once","title":"Deny once"}],` +
			`"title":"Answer","type":"string"}},"required":["answer"],"type":"object"}`,
	} {
		if got := gate.Form([]policy.Choice{policy.AllowOnce, policy.DenyOnce}, nil, revision); string(got) != want {
			t.Errorf("%s: %s", revision, got)
		}
	}
	if choices := gate.Choices(&tool.PermissionDecision{}); choices[0] != policy.AllowOnce {
		t.Errorf("the first of %v is not to allow once", choices)
	}
}

// On a terminal of 80 columns and 24 lines there are clients that show the end of a long question, and not what it is about.
func TestAUsualQuestionFitsATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	grants, err := policy.OpenGrants(policy.GrantOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{}, gate.Options{Dir: dir, Grants: grants})
	if err != nil {
		t.Fatal(err)
	}
	w := writeTool()
	w.Description = strings.Repeat("Writes a file. ", 100)
	input := json.RawMessage(`{"content":"` + strings.Repeat("words ", 1000) + `","path":"deploy/release.sh","mode":420}`)
	r, err := g.Request(t.Context(), policy.Request{Tool: w, Input: input,
		Actor: tool.Actor{Name: "a", Door: "http", Client: tool.Client{Name: "c"}}})
	if err != nil {
		t.Fatal(err)
	}
	d := g.Engine.Decide(r)
	rows, text := 0, strings.ReplaceAll(gate.Message(gate.Asked{Request: &r, Decision: &d}), dir, "/home/ann/project")
	for line := range strings.Lines(text) {
		rows += 1 + len(line)/76
	}
	if rows > 24-5 { // the form takes the others
		t.Errorf("%d rows:\n%s", rows, text)
	}
}

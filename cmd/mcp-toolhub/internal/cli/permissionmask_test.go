//go:build e2e

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

const (
	maskedTools = `[{"name":"fetch","inputSchema":{"type":"object","properties":{"url":{"type":"string"},"headers":{"type":"object"}}}},
{"name":"run","inputSchema":{"type":"object","properties":{"command":{"type":"string"}}}},
{"name":"save","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}]`
	quietResult = `{"content":[{"type":"text","text":"done"}]}`
)

// What is secret in an address that a call names reaches its server, and nobody else: not the person who is asked, by the client
// or in the queue, not the journal, the log, the remembered answers, nor whoever asks for an explanation.
func TestAddressesAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	const address = "https://ann:hunter2@h.example/x?page=2&access_token=hunter2&X-Amz-Signature=hunter2#y"
	const shown = "https://ann:[masked]@h.example/x?page=2&access_token=[masked]&X-Amz-Signature=[masked]#y"
	calls := []struct{ name, args, want, brief string }{
		{"mcp.s.fetch", `{"url":"` + address + `"}`, `{"url":"` + shown + `"}`, `url: "` + shown + `"`},
		{"mcp.s.fetch", `{"url":"/x?token=hunter2"}`, `{"url":"/x?token=[masked]"}`, `url: "/x?token=[masked]"`},
		{"mcp.s.fetch", `{"headers":{"Referer":"` + address + `"},"https://a:hunter2@k/":1}`,
			`{"headers":{"Referer":"` + shown + `"},"https://a:[masked]@k/":1}`, ""},
		{"mcp.s.run", `{"command":"curl ` + address + `"}`, `{"command":"curl ` + shown + `"}`, `command: "curl ` + shown + `"`},
		{"mcp.s.run", `{"command":"curl h/?token=x;id"}`, `{"command":"curl h/?token=[masked];id"}`, `command: "curl h/?token=[masked];id"`}, // a command is not hidden
		{"mcp.s.save", `{"path":"https://ann:hunter2@h.example/.env"}`, `{"path":"https://ann:[masked]@h.example/.env"}`,
			`path: "https://ann:[masked]@h.example/.env"`},
	}
	l := &lane{t: t, version: rev2025, dir: t.TempDir()}
	l.state, l.far = filepath.Join(l.dir, "state"), filepath.Join(l.dir, "received")
	var tools []json.RawMessage
	mustDecode(t, maskedTools, &tools)
	results := map[string]json.RawMessage{"fetch": json.RawMessage(quietResult), "run": json.RawMessage(quietResult), "save": json.RawMessage(quietResult)}
	server := child(upstreamtest.Script{Tools: tools, Results: results, Record: l.far})
	l.config = configText(t, map[string]any{"s": with(server, "cwd", l.dir)}, map[string]any{"policy": map[string]any{"mode": "default"}})

	x := &exchange{w: l.client(everyCapability), answer: answerWith("allow_once", "")}
	var want []string
	for i, c := range calls {
		if got := x.call(c.name, c.args); !strings.Contains(got, `"status":"succeeded"`) {
			t.Errorf("%s: %s", c.args, got)
		}
		want = append(want, c.args)
		var question struct{ Message string }
		mustDecode(t, x.asked[i].params, &question)
		line := "\nArguments: " + c.brief + "\n"
		if c.brief == "" { // too long for that
			line = "\nAll arguments: " + c.want + "\n"
		}
		if !strings.Contains(question.Message, line) || strings.Contains(question.Message, "hunter2") {
			t.Errorf("%s: the question is\n%s", c.args, question.Message)
		}
	}
	queued := l.client("") // who cannot be asked waits in the queue
	for i, c := range calls {
		v, rest := l.waiting(queued, c.name, c.args)
		choice := policy.AllowAlways
		if i == 0 {
			choice = policy.AllowOnce // the others have that host, too
		}
		if text, err := json.Marshal(v); err != nil || v.Arguments != c.want || strings.Contains(string(text), "hunter2") {
			t.Errorf("%s: in the queue stands\n%s", c.args, text)
		}
		if _, err := l.queue().Answer(t.Context(), string(v.ID), control.Reply{Choice: choice}); err != nil {
			t.Error(err)
		}
		if got := rest(); !strings.Contains(got, `"status":"succeeded"`) {
			t.Errorf("%s: %s", c.args, got)
		}
		want = append(want, c.args)
	}
	for _, c := range calls {
		l.checkExplained(t, c.name, c.args)
	}
	_, log := l.end()
	if ran := l.ran(); strings.Join(ran, "\n") != strings.Join(want, "\n") {
		t.Errorf("the server got\n%s\nwant\n%s", strings.Join(ran, "\n"), strings.Join(want, "\n"))
	}
	l.checkKept(t, log)
}

// checkExplained asks why a call would be permitted.
func (l *lane) checkExplained(t *testing.T, name, args string) {
	t.Helper()
	for _, format := range []string{"table", "json"} {
		program, err := exec.LookPath("mcp-toolhub")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(l.dir, "explained.json") // a server that records nothing
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(l.config, l.far, l.far+"2")), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "policy", "explain", name, "--args", args, "-o", format, "--config", file, "--state-dir", l.state)
		cmd.Env, cmd.Dir = scratchEnv(l.dir), l.dir
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "hunter2") || !strings.Contains(string(out), name) {
			t.Errorf("policy explain %s --args %s: %v\n%s", name, args, err, out)
		}
	}
}

// checkKept looks for the secret in all that the hub has written.
func (l *lane) checkKept(t *testing.T, log string) {
	t.Helper()
	if strings.Contains(log, "hunter2") {
		t.Error("the log holds it")
	}
	seen := 0
	err := filepath.WalkDir(l.state, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "hunter2") {
			t.Errorf("%s holds it", path)
		}
		seen += strings.Count(string(text), "[masked]@")
		return err
	})
	if err != nil || seen < 10 {
		t.Errorf("%d addresses are recorded, %v", seen, err)
	}
}

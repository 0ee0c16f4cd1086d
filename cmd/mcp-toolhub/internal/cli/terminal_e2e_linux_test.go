//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// Whoever sits at the terminal where tools call was typed is asked there, is shown what runs with secrets masked, and what
// they answer counts, for the next call too where they say so.
func TestToolsCallAsksAtTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tool := `{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"password":{"type":"string"}}}}`
	config := configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: []json.RawMessage{json.RawMessage(tool)}})}, map[string]any{"policy": nil})
	file := filepath.Join(dir, "hub.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	call := func(text string) *exec.Cmd {
		cmd := exec.Command(program, "tools", "call", "mcp.s.echo", "--args", `{"text":"`+text+`","password":"hunter2"}`, "--config", file,
			"--state-dir", dir, "-o", "json")
		cmd.Dir, cmd.Env = dir, scratchEnv(dir)
		return cmd
	}
	for _, c := range []struct {
		name, keys string
		wants      []string
	}{
		{"once, with a sentence", "maybe\ny\nmind the gap\n", []string{`"structuredContent"`, "The person who allowed this call says: mind the gap"}},
		{"not", "n\nuse staging\n", []string{`"isError":true`, "says: use staging"}},
		{"end of the input", "\x04", []string{`"isError":true`, "a person denied this call"}},
		{"always", "a\n\n", []string{`"structuredContent"`}},
	} {
		p := newTerminal(t)
		wait := p.start(t, call(c.name))
		p.sees(t, "Answer [y/s/a/n/d]: ", 1)
		p.types(t, c.keys)
		got := wait()
		for _, want := range c.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s lacks %s\n%s", c.name, got, want, p.shown())
			}
		}
		if screen := p.shown(); !strings.Contains(screen, "may mcp.s.echo (server s) run?") || !strings.Contains(screen, `password: "[masked]"`) ||
			strings.Contains(screen, "hunter2") || !strings.Contains(screen, c.name) {
			t.Errorf("%s shows\n%s", c.name, screen)
		}
	}
	p := newTerminal(t)
	if got := p.start(t, call("always"))(); !strings.Contains(got, `"structuredContent"`) || strings.Contains(p.shown(), "Answer") {
		t.Errorf("asked although it was always allowed: %s\n%s", got, p.shown())
	}
}

// After the third equal answer the terminal of tools call has the offer, with the key o. Who takes it is not asked about more.
func TestOfferAtTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "hub.yaml")
	writeFile(t, file, "hub: {toolsets: {code: {root: ., allowed_write_roots: [notes]}}}\npolicy: {mode: default}\n")
	if err := os.Mkdir(filepath.Join(dir, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	for i, keys := range []string{"y\n\n", "y\n\n", "y\n\n", "o\n\n", ""} {
		cmd := exec.Command(program, "tools", "call", "code.write_file", "--args", fmt.Sprintf(`{"path":"notes/%d","content":"x"}`, i), "--config", file,
			"--state-dir", filepath.Join(dir, "state"), "-o", "json")
		cmd.Dir, cmd.Env = dir, scratchEnv(dir)
		p := newTerminal(t)
		wait := p.start(t, cmd)
		if keys != "" {
			p.sees(t, "Answer [", 1)
			p.types(t, keys)
		}
		if got := wait(); !strings.Contains(got, `"created":true`) {
			t.Errorf("call %d: %s\n%s", i, got, p.shown())
		}
		screen := p.shown()
		if offered := strings.Contains(screen, "/o]") && strings.Contains(screen, "Always allow writes below"); offered != (i == 3) {
			t.Errorf("call %d: an offer: %t\n%s", i, offered, screen)
		}
		if asked := strings.Contains(screen, "Answer ["); asked != (keys != "") {
			t.Errorf("call %d: asked: %t\n%s", i, asked, screen)
		}
	}
}

// At a terminal a person is asked about a project's config, with the commands and addresses in it. What they trust is used, now
// and later; what they do not trust is not, and nobody waits for an answer after an interrupt.
func TestTrustIsAskedAtTheTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const project = `
mcpServers:
  theirs: {command: mcp-toolhub, args: [--state-dir, "a\u202eb", demo-server], env: {TOKEN: hunter2}}
  web: {url: "http://127.0.0.1:1/mcp?token=hunter2"}
`
	writeFile(t, filepath.Join(dir, "mcp-toolhub.yaml"), project)
	if err := os.MkdirAll(filepath.Join(dir, "config", "mcp-toolhub"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "config", "mcp-toolhub", "config.yaml"), "mcpServers: {own: {command: mcp-toolhub, args: [demo-server]}}")
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	list := func() *exec.Cmd {
		cmd := exec.Command(program, "tools", "list")
		cmd.Dir, cmd.Env = dir, scratchEnv(dir)
		return cmd
	}
	const question = "Allow it? [y/N]: "
	for _, c := range []struct {
		name, keys, wants string
	}{{"an interrupt", "\x03", ""}, {"no", "maybe\nn\n", "mcp.own.add"}, {"end of the input", "\x04", "mcp.own.add"}, {"yes", "y\n", "mcp.theirs.add"}} {
		p := newTerminal(t)
		wait := p.start(t, list())
		p.sees(t, question, 1)
		p.types(t, c.keys)
		if got := wait(); c.wants == "" && got != "" || !strings.Contains(got, c.wants) {
			t.Errorf("%s: %s\n%s", c.name, got, p.shown())
		}
		screen := p.shown()
		for _, want := range []string{"you have not allowed it yet", `theirs: runs mcp-toolhub --state-dir "a\u202eb" demo-server, with the variables TOKEN`,
			`web: connects to "http://127.0.0.1:1/mcp?token=[masked]"`} {
			if !strings.Contains(screen, want) {
				t.Errorf("%s: the screen lacks %s:\n%s", c.name, want, screen)
			}
		}
		if strings.Contains(screen, "hunter2") {
			t.Errorf("%s: the screen shows a secret:\n%s", c.name, screen)
		}
	}
	p := newTerminal(t)
	if got := p.start(t, list())(); !strings.Contains(got, "mcp.theirs.add") || strings.Contains(p.shown(), question) {
		t.Errorf("it is asked about again, although it is trusted: %s\n%s", got, p.shown())
	}
	writeFile(t, filepath.Join(dir, "mcp-toolhub.yaml"), project+"  more: {command: nothing}\n")
	p = newTerminal(t)
	wait := p.start(t, list())
	p.sees(t, question, 1)
	p.types(t, "n\n")
	if got := wait(); !strings.Contains(got, "mcp.own.add") || !strings.Contains(p.shown(), "has changed since you allowed it") {
		t.Errorf("%s\n%s", got, p.shown())
	}
}

// The questions of a running hub are put there too, and what its servers ask besides is declined.
func TestToolsCallOfARunningHubAsksAtTheTerminal(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"y": `"status":"succeeded"`, "n": `"error_class":"approval_rejected"`} {
		dir := t.TempDir()
		cmd := exec.Command(program, "tools", "call", "mcp.s.echo", "--args", `{"text":"`+key+`","password":"hunter2"}`, "--url", p.url, "-o", "json")
		cmd.Dir, cmd.Env = dir, scratchEnv(dir)
		screen := newTerminal(t)
		wait := screen.start(t, cmd)
		screen.sees(t, "Answer [y/s/a/n/d]: ", 1)
		screen.types(t, key+"\n\n")
		if got := wait(); !strings.Contains(got, want) || strings.Contains(screen.shown(), "hunter2") {
			t.Errorf("%s: %s\n%s", key, got, screen.shown())
		}
	}
}

// Without a terminal the call waits in the queue, says so, and how to go on.
func TestToolsCallWaitsInTheQueue(t *testing.T) {
	t.Parallel()
	p := &permitted{t: t, state: t.TempDir()}
	file := filepath.Join(p.state, "hub.json")
	config := configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo")}})}, map[string]any{"policy": nil})
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "tools", "call", "mcp.s.echo", "--config", file, "--state-dir", p.state)
	var log syncBuffer
	cmd.Dir, cmd.Env, cmd.Stderr = p.state, scratchEnv(p.state), &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call can be answered", func() bool {
		all, err := control.Find(t.Context(), p.state)
		return err == nil && len(all) == 1
	})
	h := p.hub()
	v := p.pending(h)
	eventually(t, "it says that it waits", func() bool { return strings.Contains(log.String(), "mcp-toolhub approvals approve "+string(v.ID)) })
	if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: policy.AllowOnce}); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
}

// Whoever waits at a terminal for servers to start is told which they are, and can end that.
func TestWaitingForServersIsShownOnATerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mute := with(child(script(upstreamtest.NeverInitialises)), "timeout", "1h")
	config := configText(t, map[string]any{"good": child(upstreamtest.Script{}), "mute": mute}, nil)
	if err := os.WriteFile(filepath.Join(dir, "hub.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "tools", "list", "--config", "hub.json")
	cmd.Dir, cmd.Env = dir, scratchEnv(dir)
	p := newTerminal(t)
	wait := p.start(t, cmd)
	p.sees(t, "\x1b[Kwaiting for mute (", 2)
	p.types(t, "\x03")
	if out := wait(); out != "" || !strings.HasSuffix(p.shown(), "\r\x1b[K\rmcp-toolhub: interrupted while servers were starting\r\n") {
		t.Errorf("%s\n%q", out, p.shown())
	}
}

package cli

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestEventsTailFollows: events tail --follow prints what happens while it runs, in each format and filtered,
// until it is interrupted.
func TestEventsTailFollows(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no command can be interrupted there by itself")
	}
	p := startTokens(t, []map[string]string{{"name": "ann", "token": "${env:ANN}"}})
	const filter = `event.event_type == "tool.invocation.failed"`
	var tails []*exec.Cmd
	var lines []chan string
	for _, args := range [][]string{
		{"--state-dir", p.state, "--filter", filter},
		{"--state-dir", p.state, "--filter", filter, "--format", "cloudevents"},
		{"--state-dir", p.state, "--format", "acp", "--since", "1ms"},
	} {
		cmd := exec.CommandContext(t.Context(), "mcp-toolhub", append([]string{"events", "tail", "--follow"}, args...)...)
		cmd.Env, cmd.Stderr = scratchEnv(p.state), os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make(chan string, 10000)
		go func() {
			defer close(said)
			for all := bufio.NewScanner(out); all.Scan(); {
				said <- all.Text()
			}
		}()
		tails, lines = append(tails, cmd), append(lines, said)
	}
	w := p.client(rev2025, "Authorization", "Bearer ann-ann-ann-ann-ann").open()
	for i, want := range []string{`{"object":"tool_event",`, `{"specversion":"1.0",`, `{"jsonrpc":"2.0","method":"session/update",`} {
		eventually(t, "an event is printed", func() bool { // the command may not listen yet
			w.send(w.call("mcp.s.nothing", `{}`, ""))
			return len(lines[i]) > 0
		})
		if err := tails[i].Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		for line := range lines[i] {
			if !strings.HasPrefix(line, want) || i < 2 && !strings.Contains(line, "tool.invocation.failed") {
				t.Errorf("%d: %s", i, line)
			}
		}
		if err := tails[i].Wait(); err != nil && exitCode(tails[i].ProcessState.ExitCode()) != exitInterrupted {
			t.Errorf("%d ended with %v", i, err)
		}
	}
}

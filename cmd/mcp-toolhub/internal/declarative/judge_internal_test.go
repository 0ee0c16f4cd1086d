//go:build unix

package declarative

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
)

// declare reads a file whose command is text.
func declare(t testing.TB, members map[string]any) (*definition, []string) {
	t.Helper()
	all := map[string]any{"name": "x", "description": "Does x.", "permission": "write",
		"input_schema": json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"},"n":{"type":"integer"}},"required":["x","n"]}`)}
	for k, v := range members {
		all[k] = v
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := command.NewBounds(command.Config{Root: os.TempDir(), StdoutLimit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return parse("x.json", raw, bounds)
}

func declareText(t testing.TB, text string) (*definition, []string) {
	t.Helper()
	return declare(t, map[string]any{"command_type": "shell", "command": text})
}

// arena is a directory in which a program lies that leaves a trace.
type arena struct{ dir, marker, trace string }

func newArena(t testing.TB) *arena {
	t.Helper()
	dir := t.TempDir()
	a := &arena{dir: filepath.Join(dir, "work"), marker: filepath.Join(dir, "m"), trace: filepath.Join(dir, "trace")}
	a.reset(t)
	return a
}

// reset makes the directory as it was: what one text writes is none of the next one's scripts.
func (a *arena) reset(t testing.TB) {
	t.Helper()
	if err := os.RemoveAll(a.dir); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(a.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a.mark(t)
	write("own.sh", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
	write("own.py", "import sys\nprint(sys.argv)\n")
	write("f", "one\ntwo "+a.marker+"\n")
}

// mark puts the marker there, where a text has not left it as it was: a value may be the name of a file to write to.
func (a *arena) mark(t testing.TB) {
	t.Helper()
	text := "#!/bin/sh\n: > '" + a.trace + "'\n"
	if now, err := os.ReadFile(a.marker); err == nil && string(now) == text {
		return
	}
	if err := os.WriteFile(a.marker, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// values are what a caller may send to have the marker run.
func (a *arena) values() []string {
	m := a.marker
	return []string{m, "$(" + m + ")", "; " + m + " ;", "a[$(" + m + ")]", "`" + m + "`\n" + m, m + " a", "' ; " + m + "; \" ; " + m, ". -exec " + m + " ;", `BEGIN{system("` + m + `")}`,
		"1e " + m, "a=" + m, "x; exec " + m, "--exec=" + m}
}

// run runs the command of d with each value in each shell that is here, and says which of them ran the marker.
func (a *arena) run(t testing.TB, d *definition, values []string) []string {
	t.Helper()
	a.reset(t)
	var hit []string
	for i, x := range values {
		arguments, err := json.Marshal(map[string]any{"x": x, "n": 1})
		if err != nil {
			t.Fatal(err)
		}
		argv, err := d.argv(arguments)
		if err != nil {
			continue // refused by its "-"
		}
		programs := []string{argv[0]}
		if d.shell {
			if programs[0] = "sh"; i < 4 {
				programs = append(programs, "bash")
			}
		}
		for _, program := range programs {
			a.mark(t)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			cmd := osexec.CommandContext(ctx, program, argv[1:]...)
			cmd.Dir, cmd.Env, cmd.Stdin = a.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.dir}, strings.NewReader(string(arguments)+"\n")
			_, _ = cmd.CombinedOutput() // what it answers does not matter
			stop()
			if os.Remove(a.trace) == nil {
				hit = append(hit, fmt.Sprintf("%s: %q", program, x))
			}
		}
	}
	return hit
}

// TestDocumentedTexts: docs/declared-tools.md says what holds.
func TestDocumentedTexts(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/declared-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	seen, admitted := 0, false
	for line := range strings.Lines(string(page)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			admitted = strings.HasPrefix(heading, "Accepted")
		}
		text, ok := strings.CutPrefix(line, "    ")
		if !ok {
			continue
		}
		seen++
		text = strings.ReplaceAll(strings.TrimSpace(text), "{{text}}", "{{x}}")
		if d, faults := declareText(t, text); (d != nil) != admitted {
			t.Errorf("%s: %v", text, faults)
		}
	}
	if seen < 20 {
		t.Errorf("%d texts", seen)
	}
}

// TestTheMarkerIsRun shows that the test above could fail: the marker leaves its trace where it is run.
func TestTheMarkerIsRun(t *testing.T) {
	t.Parallel()
	a := newArena(t)
	d, _ := declareText(t, `echo {{x}}`)
	d.script = strings.Replace(d.script, "echo", "", 1)
	if hit := a.run(t, d, a.values()[:1]); len(hit) == 0 {
		t.Error("the marker was run and left no trace")
	}
}

// tokens are what random texts are made of. None of them does harm, and none goes on for ever.
func tokens() []string {
	return []string{"{{x}}", "{{x}}", "{{x}}", "timeout", "5", "nice", "-n", "env", "-i", "-", "A=1", "X=", "x=", "$X", `"$x"`, "$x", "sh", "-c", `'echo "$1"'`, `'"$1"'`, "bash", "xargs", "-I@", "@", "-l",
		"find", ".", "-exec", "-name", `\;`, "{}", "+", "|", "|", "&&", ";", ";", "(", ")", "{", "}", "if", "then", "fi", "for", "i", "in", "do", "done", `"$i"`, "$i", "case", "a", "esac", "a)", ";;", "echo", "printf",
		"%s", "cat", ">", "<", "out", "2>&1", "2>/dev/null", "!", "exec", "command", "eval", "read", "y", `"$y"`, "$y", "set", "--", "$(", `"$(`, `)"`, "`", "#", "\n", "'", `"`, `\`, "test", "-n", "awk", "sed", "'{print}'",
		"-p", "time", "nohup", "own.sh", "./own.sh", "--", "-s", "f", "2>", "<<E", "E", "[", "]", "[[", "]]", "$((", "))", "&", "-a", "export", "--signal=", "$'", "${x}", "${x#a}", "$1", "$@", "printf -v", ".", "local"}
}

// textOf makes a text of bytes.
func textOf(data []byte) string {
	all := tokens()
	var b strings.Builder
	for i, c := range data {
		token := all[int(c)%len(all)]
		if b.WriteString(token); !strings.HasSuffix(token, "=") && i+1 < len(data) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// tryText declares a text, and runs it where it is admitted.
func tryText(t testing.TB, a *arena, text string) (admitted bool) {
	t.Helper()
	d, faults := declareText(t, text)
	if d == nil {
		if len(faults) == 0 {
			t.Errorf("%q is refused for no reason", text)
		}
		return false
	}
	for _, hit := range a.run(t, d, a.values()[:3]) {
		t.Errorf("%q: %s is run", text, hit)
	}
	return true
}

func FuzzTexts(f *testing.F) {
	f.Add([]byte{3, 4, 0})
	f.Add([]byte{12, 0, 37, 14})
	a := newArena(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 20 {
			tryText(t, a, textOf(data))
		}
	})
}

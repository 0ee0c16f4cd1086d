//go:build unix

package command_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
)

// TestMain lets the test binary be the guard, and a hub that runs a command and is killed.
func TestMain(m *testing.M) {
	run.Main()
	if script := os.Getenv("COMMAND_TEST_HUB"); script != "" {
		hub(script)
		return
	}
	os.Exit(m.Run())
}

// hub runs a script until it is killed.
func hub(script string) {
	self, _ := os.Executable()
	r := command.NewRunner(self, slog.New(slog.DiscardHandler))
	b, err := command.NewBounds(command.Config{Environ: os.Environ()})
	if err != nil {
		panic(err)
	}
	s := specIn(b, "", time.Hour, "sh", "-c", script)
	fmt.Println("running")
	o, err := r.Run(context.Background(), s)
	fmt.Println(o, err)
}

func specIn(b *command.Bounds, dir string, timeout time.Duration, argv ...string) command.Spec {
	at, err := b.Dir(dir)
	if err != nil {
		panic(err)
	}
	program, err := b.Find(argv[0], at)
	if err != nil {
		panic(err)
	}
	env, _ := b.Environment()
	return command.Spec{Program: program, Argv: argv, Dir: at, Env: env, Timeout: timeout, StdoutLimit: 1 << 10, StderrLimit: 1 << 10}
}

// rig is a runner with bounds whose root is a directory of its own.
type rig struct {
	*command.Runner
	bounds *command.Bounds
	dir    string
}

func newRig(t *testing.T, env ...string) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := command.NewBounds(command.Config{Root: dir, Environ: append([]string{"PATH=" + os.Getenv("PATH")}, env...)})
	if err != nil {
		t.Fatal(err)
	}
	r := command.NewRunner("", slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rig{r, b, dir}
}

func (r *rig) sh(t *testing.T, script string) command.Outcome {
	t.Helper()
	return r.run(t, t.Context(), specIn(r.bounds, "", time.Minute, "sh", "-c", script))
}

func (r *rig) run(t *testing.T, ctx context.Context, s command.Spec) command.Outcome {
	t.Helper()
	o, err := r.Run(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "SECRET=x", "HOME=/nowhere")
	for _, c := range []struct {
		name, script, stdout, stderr string
		ending                       command.Ending
		code                         int
	}{
		{"output", "echo out; echo err >&2", "out\n", "err\n", command.Exited, 0},
		{"exit code", "exit 7", "", "", command.Exited, 7},
		{"signal", "kill -9 $$", "", "", command.Signaled, -1},
		{"input is at its end", "cat; echo $?", "0\n", "", command.Exited, 0},
		{"environment", `echo "$SECRET,$HOME"`, ",/nowhere\n", "", command.Exited, 0},
		{"not utf-8", `printf '\377a'`, "\uFFFDa", "", command.Exited, 0},
	} {
		o := r.sh(t, c.script)
		if o.Stdout.Text(nil) != c.stdout || o.Stderr.Text(nil) != c.stderr || o.Ending != c.ending || o.ExitCode != c.code {
			t.Errorf("%s: %+v %q %q", c.name, o, o.Stdout.Text(nil), o.Stderr.Text(nil))
		}
	}
	if o := r.sh(t, "pwd; echo $PWD"); o.Stdout.Text(nil) != r.dir+"\n"+r.dir+"\n" {
		t.Errorf("ran in %q", o.Stdout.Text(nil))
	}
	s := specIn(r.bounds, "", time.Minute, "cat")
	s.Stdin = []byte("given")
	if o := r.run(t, t.Context(), s); o.Stdout.Text(nil) != "given" {
		t.Errorf("%q", o.Stdout.Text(nil))
	}
	s = specIn(r.bounds, "", time.Minute, "true") // reads nothing
	s.Stdin = make([]byte, 1<<20)
	if o := r.run(t, t.Context(), s); o.ExitCode != 0 {
		t.Errorf("%+v", o)
	}
}

// What a command gets of the hub's environment is what is named, and nothing else.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	c := command.Config{Env: []string{"NAMED"}, Environ: []string{"PATH=/bin", "NAMED=1", "API_TOKEN=abcdef123", "LD_PRELOAD=x", "=odd", "EMPTY="}}
	b, err := command.NewBounds(c)
	if err != nil {
		t.Fatal(err)
	}
	env, secrets := b.Environment()
	if !slices.Equal(env, []string{"PATH=/bin", "NAMED=1"}) || secrets != nil {
		t.Errorf("%q %q", env, secrets)
	}
	env, secrets = b.Environment("API_TOKEN")
	if !slices.Contains(env, "API_TOKEN=abcdef123") || !slices.Equal(secrets, []string{"abcdef123"}) {
		t.Errorf("%q %q", env, secrets)
	}
	if names := b.Names("API_TOKEN"); !slices.Equal(names, []string{"API_TOKEN", "NAMED", "PATH"}) {
		t.Errorf("names %q", names)
	}
	r := newRig(t, "SECRET=x")
	own := r.sh(t, "env | sed 's/=.*//' | sort | grep -v -e '^_$' -e '^SHLVL$' -e '^OLDPWD$'").Stdout.Text(nil)
	if own != "MCP_TOOLHUB_CHILD\nMCP_TOOLHUB_DEPTH\nMCP_TOOLHUB_ENTRY\nPATH\nPWD\n" {
		t.Errorf("the command sees %q", own)
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.sh(t, `echo begin; head -c 50000000 /dev/zero | tr '\0' 'x'; echo; echo end; echo fine >&2`)
	text := o.Stdout.Text(nil)
	if o.Stdout.Bytes != 50000011 || !o.Stdout.Truncated() || !strings.HasPrefix(text, "begin\nx") || !strings.HasSuffix(text, "x\nend\n") ||
		!strings.Contains(text, "[… 49998987 bytes left out …]") || len(text) > 1100 {
		t.Errorf("%d bytes: %d kept: %.50q … %q", o.Stdout.Bytes, len(text), text, text[max(0, len(text)-50):])
	}
	if _, whole := o.Stdout.Raw(); whole || o.Stderr.Text(nil) != "fine\n" || o.Stderr.Truncated() {
		t.Errorf("%+v", o.Stderr)
	}
	o = r.sh(t, `i=0; while [ $i -lt 300 ]; do printf 'äöü'; i=$((i+1)); done`) // cut within characters
	if text := o.Stdout.Text(nil); strings.ContainsRune(text, '\uFFFD') || !o.Stdout.Truncated() {
		t.Errorf("%q", text)
	}
	if o := r.sh(t, "head -c 1024 /dev/zero"); o.Stdout.Truncated() || len(o.Stdout.Text(nil)) != 1024 {
		t.Errorf("%d bytes were cut", o.Stdout.Bytes)
	}
	if got := r.sh(t, "echo a-secret-b").Stdout.Text([]string{"secret"}); got != "a-[redacted]-b\n" {
		t.Errorf("%q", got)
	}
	// Secrets on both sides of what is left out: 512 bytes are kept of the beginning, and 512 of the end.
	text = r.sh(t, "printf '%0505d' 0; printf TOPSECRETVALUE; printf '%03000d' 0; printf TOPSECRETVALUE; printf '%0505d' 0").
		Stdout.Text([]string{"TOPSECRETVALUE"})
	if strings.ContainsAny(text, "TOPSECRVALU") || !strings.Contains(text, "[… 3028 bytes left out …]") {
		t.Errorf("a part of a secret is left: %q", text)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"project/sub", "more", "project-twin", "bin"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, mode := range map[string]os.FileMode{"project/run.sh": 0o755, "project/plain": 0o644, "bin/tool": 0o755} {
		if err := os.WriteFile(filepath.Join(top, file), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"project/out": "../more", "project/away": "/", "project/linked": "run.sh", "bin/alias": "tool"} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	project := filepath.Join(top, "project")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if here, err = filepath.EvalSymlinks(here); err != nil {
		t.Fatal(err)
	}
	away, err := filepath.Rel(here, project) // from where this test runs, as "." is from where the hub does
	if err != nil {
		t.Fatal(err)
	}
	b, err := command.NewBounds(command.Config{Root: project, Roots: []string{filepath.Join(top, "more")},
		Environ: []string{"PATH=.:" + away + ":" + filepath.Join(top, "bin")}})
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"": "project", ".": "project", "sub": "project/sub", "sub/..": "project", "out": "more", filepath.Join(top, "more"): "more",
		"..": "", "away": "", "../project-twin": "", "/": "", "nope": "", "run.sh": "", "a\x00b": "", "sub/../..": "",
	} {
		got, err := b.Dir(given)
		if want != "" && got != filepath.Join(top, want) || want == "" && err == nil {
			t.Errorf("dir %q: %q, %v", given, got, err)
		}
	}
	for name, want := range map[string]string{
		"./run.sh": "project/run.sh", "./linked": "project/run.sh", "tool": "bin/tool", "alias": "bin/tool", filepath.Join(top, "bin/tool"): "bin/tool",
		"run.sh": "", "./plain": "", "nope": "", "": "", "sub/": "", "./sub": "", "a\x00": "", "echo hello": "", "../bin": "",
	} {
		got, err := b.Find(name, project)
		if want != "" && got != filepath.Join(top, want) || want == "" && err == nil {
			t.Errorf("program %q: %q, %v", name, got, err)
		}
	}
	for _, bad := range []command.Config{{Root: filepath.Join(top, "nope")}, {Roots: []string{"relative"}}} {
		if _, err := command.NewBounds(bad); err == nil {
			t.Errorf("%+v is no fault", bad)
		}
	}
}

// What stands at the names by the time of the start is not what was found: nothing runs.
func TestExchanged(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"program", "directory", "parent"} {
		r := newRig(t)
		sub := filepath.Join(r.dir, "a", "sub")
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		run := filepath.Join(sub, "run")
		if err := os.WriteFile(run, []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		s := specIn(r.bounds, "a/sub", time.Minute, "./run")
		if o := r.run(t, t.Context(), s); o.Stdout.Text(nil) != "ran\n" {
			t.Fatalf("%+v", o)
		}
		at := map[string]string{"program": run, "directory": sub, "parent": filepath.Join(r.dir, "a")}[what]
		if err := os.Rename(at, filepath.Join(r.dir, "elsewhere")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(r.dir, "elsewhere"), at); err != nil {
			t.Fatal(err)
		}
		if o, err := r.Run(t.Context(), s); !errors.Is(err, command.ErrChanged) {
			t.Errorf("%s: %+v, %v", what, o, err)
		}
	}
}

// What cannot be started is an error, and leaves nothing.
func TestNoStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := filepath.Join(r.dir, "odd")
	if err := os.WriteFile(file, []byte("\x00\x01 no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Run(t.Context(), specIn(r.bounds, "", time.Minute, "./odd")); !errors.Is(err, command.ErrStart) ||
		strings.Contains(err.Error(), "/proc/") {
		t.Errorf("%v", err)
	}
	s := specIn(r.bounds, "", time.Minute, "true")
	for _, bad := range []command.Spec{{}, {Program: s.Program, Dir: s.Dir, Argv: s.Argv}} {
		if _, err := r.Run(t.Context(), bad); err == nil {
			t.Errorf("%+v ran", bad)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Run(canceled, s); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Run(t.Context(), s); !errors.Is(err, command.ErrClosed) {
		t.Error(err)
	}
}

// The program sees the name that it was called by, as busybox and its like need it.
func TestArgv0(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := specIn(r.bounds, "", time.Minute, "sh", "-c", "echo $0")
	s.Argv[0] = "other"
	if o := r.run(t, t.Context(), s); o.Stdout.Text(nil) != "other\n" {
		t.Errorf("%q", o.Stdout.Text(nil))
	}
}

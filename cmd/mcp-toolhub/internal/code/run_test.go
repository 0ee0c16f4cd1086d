//go:build unix

package code_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// runner is a toolset with code.run_command, in a project of its own.
type runner struct {
	*code.Toolset
	root, other string
	progress    func(tool.Progress)
}

func newRunner(t *testing.T, change func(*code.Config)) *runner {
	t.Helper()
	r := &runner{}
	var err error
	for _, dir := range []*string{&r.root, &r.other} {
		if *dir, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	cfg := code.Config{Enabled: true, Root: r.root, Home: r.other, Run: code.RunConfig{Enabled: true,
		Runner: command.NewRunner("", slog.New(slog.DiscardHandler)),
		Bounds: command.Config{Environ: []string{"PATH=" + os.Getenv("PATH"), "HUB_TOKEN=abc-123456", "LD_LIBRARY_PATH=/x"}}}}
	if change != nil {
		change(&cfg)
	}
	if r.Toolset, err = code.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cfg.Run.Runner.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// ran is what code.run_command says of a command.
type ran struct {
	Program, CWD, Ending, Signal, Stdout, Stderr string
	ExitCode                                     *int  `json:"exit_code"`
	StdoutBytes                                  int64 `json:"stdout_bytes"`
	StdoutTruncated                              bool  `json:"stdout_truncated"`
	DurationMS                                   int64 `json:"duration_ms"`
}

func (r *runner) execute(ctx context.Context, arguments string, permitted *tool.Command) (ran, bool, error) {
	all := r.Catalog().Tools
	reply, err := r.Execute(ctx, &tool.Execution{Tool: all[len(all)-1], Arguments: json.RawMessage(arguments), Command: permitted,
		Progress: func(p tool.Progress) {
			if r.progress != nil {
				r.progress(p)
			}
		}})
	if err != nil {
		return ran{}, false, err
	}
	var result struct {
		StructuredContent ran
		Content           []struct{ Text string }
		IsError           bool
	}
	if err := json.Unmarshal(reply.Result, &result); err != nil || len(result.Content) != 1 {
		return ran{}, false, fmt.Errorf("%s: %w", reply.Result, err)
	}
	return result.StructuredContent, result.IsError, nil
}

func argv(words ...string) string {
	raw, err := json.Marshal(map[string]any{"argv": words})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestRunCommand(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	if err := os.Mkdir(filepath.Join(r.root, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		arguments, stdout, stderr string
		code                      int
		isError                   bool
	}{
		{argv("printf", "%s|", "a b", "$HOME", "*", "'", "\n"), "a b|$HOME|*|'|\n|", "", 0, false},
		{argv("sh", "-c", "echo why >&2; exit 3"), "", "why\n", 3, true},
		{`{"argv":["pwd"],"cwd":"sub"}`, filepath.Join(r.root, "sub") + "\n", "", 0, false},
		{`{"argv":["pwd"],"cwd":"./sub/.."}`, r.root + "\n", "", 0, false},
		{argv("sh", "-c", `echo "$HUB_TOKEN$LD_LIBRARY_PATH."`), ".\n", "", 0, false},
		{argv("cat"), "", "", 0, false},
	} {
		got, isError, err := r.execute(t.Context(), c.arguments, nil)
		if err != nil || got.Stdout != c.stdout || got.Stderr != c.stderr || got.ExitCode == nil || *got.ExitCode != c.code || isError != c.isError || got.Ending != "exited" {
			t.Errorf("%s: %+v %v %v", c.arguments, got, isError, err)
		}
	}
	if got, isError, err := r.execute(t.Context(), argv("sh", "-c", "kill -TERM $$"), nil); err != nil || !isError || got.ExitCode != nil || got.Signal != "terminated" {
		t.Errorf("%+v %v", got, err)
	}
	if got, _, err := r.execute(t.Context(), argv("sh", "-c", "head -c 100000 /dev/zero"), nil); err != nil || !got.StdoutTruncated || got.StdoutBytes != 100000 ||
		!strings.Contains(got.Stdout, "bytes left out") || len(got.Stdout) > 66<<10 {
		t.Errorf("%d of %d bytes, %v", len(got.Stdout), got.StdoutBytes, err)
	}
}

func TestRunCommandRefuses(t *testing.T) {
	t.Parallel()
	r := newRunner(t, func(c *code.Config) { c.Run.Bounds.Timeout = time.Minute })
	if err := os.Symlink(r.other, filepath.Join(r.root, "away")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.root, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]struct {
		class tool.ErrorClass
		code  string
	}{
		`{}`:                                 {tool.ClassInvalidArguments, ""},
		`{"argv":[]}`:                        {tool.ClassInvalidArguments, ""},
		`{"argv":[""]}`:                      {tool.ClassInvalidArguments, ""},
		`{"argv":"ls -la"}`:                  {tool.ClassInvalidArguments, ""},
		`{"argv":["ls",1]}`:                  {tool.ClassInvalidArguments, ""},
		`{"argv":["ls","a\u0000b"]}`:         {tool.ClassInvalidArguments, ""},
		`{"argv":["ls"],"env":{"A":"b"}}`:    {tool.ClassInvalidArguments, ""},
		`{"argv":["ls"],"shell":true}`:       {tool.ClassInvalidArguments, ""},
		`{"argv":["ls"],"timeout_ms":60001}`: {tool.ClassInvalidArguments, ""},
		`{"argv":["ls"],"timeout_ms":0}`:     {tool.ClassInvalidArguments, ""},
		`{"argv":["ls"],"timeout_ms":-1}`:    {tool.ClassInvalidArguments, ""},
		`{"argv":["ls"],"cwd":"/"}`:          {tool.ClassSandboxViolation, "outside_roots"},
		`{"argv":["ls"],"cwd":".."}`:         {tool.ClassSandboxViolation, "outside_roots"},
		`{"argv":["ls"],"cwd":"away"}`:       {tool.ClassSandboxViolation, "outside_roots"},
		`{"argv":["ls"],"cwd":"~"}`:          {tool.ClassSandboxViolation, "outside_roots"},
		`{"argv":["ls"],"cwd":"nope"}`:       {tool.ClassInvalidArguments, "directory_not_found"},
		`{"argv":["ls"],"cwd":".ssh"}`:       {tool.ClassPermissionDenied, ""},
		`{"argv":["ls | cat"]}`:              {tool.ClassInvalidArguments, "program_not_found"},
		`{"argv":["cd","/"]}`:                {tool.ClassInvalidArguments, "program_not_found"},
		`{"argv":["./nope"]}`:                {tool.ClassInvalidArguments, "program_not_found"},
	} {
		_, _, err := r.execute(t.Context(), arguments, nil)
		var f *tool.Failure
		if !errors.As(err, &f) || f.Class != want.class || f.Code != want.code && want.code != "" {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	if s := string(r.Catalog().Tools[len(r.Catalog().Tools)-1].InputSchema); !strings.Contains(s, `"maximum":60000`) || !strings.Contains(s, `"default":60000`) {
		t.Errorf("the schema does not say how long: %s", s)
	}
	more := newRunner(t, func(c *code.Config) { c.Run.Bounds.Roots = []string{c.Home} })
	raw, _ := json.Marshal(map[string]any{"argv": []string{"pwd"}, "cwd": more.other})
	if got, _, err := more.execute(t.Context(), string(raw), nil); err != nil || got.Stdout != more.other+"\n" {
		t.Errorf("%+v %v", got, err)
	}
	off := newRunner(t, func(c *code.Config) { c.Run.Enabled = false })
	if len(off.Catalog().Tools) != 3 || off.RunsCommands() {
		t.Error("commands are run that nobody has enabled")
	}
}

// What was permitted is run, and nothing else.
func TestRunCommandPermitted(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	file := filepath.Join(r.root, "run")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(r.root, name), []byte("#!/bin/sh\necho "+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "a")
	write("b", "b")
	if err := os.Symlink("a", file); err != nil {
		t.Fatal(err)
	}
	dir, err := r.Dir("")
	if err != nil {
		t.Fatal(err)
	}
	program, err := r.Find("./run", dir)
	if err != nil || program != filepath.Join(r.root, "a") {
		t.Fatal(program, err)
	}
	permitted := &tool.Command{Program: program, Dir: dir}
	if got, _, err := r.execute(t.Context(), argv("./run"), permitted); err != nil || got.Stdout != "a\n" || got.Program != program {
		t.Errorf("%+v %v", got, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b", file); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.execute(t.Context(), argv("./run"), permitted)
	var f *tool.Failure
	if !errors.As(err, &f) || f.Class != tool.ClassPermissionDenied || f.Code != "command_changed" {
		t.Errorf("another program ran than the one that was permitted: %v", err)
	}
	if _, _, err := r.execute(t.Context(), argv("./b"), &tool.Command{Program: filepath.Join(r.root, "b"), Dir: r.other}); err == nil {
		t.Error("it ran elsewhere than was permitted")
	}
}

// A sensitive directory is one to run in where that was permitted, and what the operator refuses is never.
func TestRunCommandInSensitiveDirs(t *testing.T) {
	t.Parallel()
	r := newRunner(t, func(c *code.Config) { c.SensitivePaths = []string{"vault"} })
	for _, dir := range []string{".aws", "vault"} {
		if err := os.Mkdir(filepath.Join(r.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		call := fmt.Sprintf(`{"argv":["pwd"],"cwd":%q}`, dir)
		if _, _, err := r.execute(t.Context(), call, nil); err == nil {
			t.Errorf("ran in %s, where nobody has looked", dir)
		}
		at, err := r.Dir(dir)
		if err != nil {
			t.Fatal(err)
		}
		program, err := r.Find("pwd", at)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := r.execute(t.Context(), call, &tool.Command{Program: program, Dir: at})
		if ok := err == nil && got.Stdout == at+"\n"; ok != (dir == ".aws") {
			t.Errorf("permitted in %s: %+v, %v", dir, got, err)
		}
	}
}

// A running command says so now and then.
func TestRunCommandReports(t *testing.T) {
	t.Parallel()
	report := command.Report(func(p tool.Progress) {
		if !json.Valid(p.Params) || !strings.Contains(string(p.Params), "running for 5s, 12 bytes") {
			t.Errorf("%s", p.Params)
		}
	})
	report(5*time.Second, 12)
	if command.Report(nil) != nil {
		t.Error("nobody listens")
	}
}

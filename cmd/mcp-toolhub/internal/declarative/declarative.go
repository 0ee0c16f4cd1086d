// Package declarative is the toolset of the tools that a user declares: files *.json in one
// directory of the user's own configuration, each a command with a JSON Schema for its arguments.
// They become declarative.<name> and go through the one pipeline as every other tool does. A
// project directory declares none: what is checked out must not become a program.
//
// A file is taken whole or not at all. One with any fault is left out, with all its faults and
// their places; the others stay.
//
// The command gets the arguments as a JSON object on its standard input. It prints the text of the
// result, or the result as JSON if the file says so. What it writes to its standard error is for the
// log, and for the caller if it fails. Values reach its own arguments by templates, {{name}}, each of
// which stays within one argument. A shell's text reads a value from a variable, $ARG_name, or from an
// argument, and holds none itself.
package declarative

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Name is the toolset's name: the first word of its canonical names.
const Name = "declarative"

// Config says where the tools are declared, and what they may do.
type Config struct {
	Enabled bool
	Dir     string         // where the files are; "" for none
	Bounds  command.Config // of the commands

	Runner *command.Runner // runs the commands: left to cmd
	Logger *slog.Logger    // gets what commands write to their standard error: left to cmd
}

const (
	defaultStdout = 1 << 20 // bytes
	maxFiles      = 1000
	maxFileBytes  = 256 << 10
)

// Problem is a file that declares no tool, and why.
type Problem struct {
	File   string   // path
	Faults []string // FILE:LINE:COLUMN: what is wrong and what to do, in the order of the file
}

func (p *Problem) Error() string { return strings.Join(p.Faults, "; ") }

// Toolset executes the declared tools. It is immutable and safe for concurrent use.
type Toolset struct {
	bounds   *command.Bounds
	runner   *command.Runner
	logger   *slog.Logger
	tools    map[string]*definition // by native name
	problems []Problem
	catalog  tool.Catalog
}

// New reads the files of cfg.Dir. A directory that is not there declares nothing. Files with faults
// are in Problems; an error is a fault of cfg.
func New(cfg Config) (*Toolset, error) {
	bounds, err := command.NewBounds(cfg.Bounds)
	if err != nil {
		return nil, fmt.Errorf("declarative tools: %w", err)
	}
	if cfg.Runner == nil || cfg.Logger == nil {
		return nil, errors.New("declarative tools: there is nothing that runs commands, or no log")
	}
	t := &Toolset{bounds: bounds, runner: cfg.Runner, logger: cfg.Logger, tools: make(map[string]*definition)}
	t.read(cfg.Dir)
	t.publish()
	return t, nil
}

// read reads all files of dir, in the order of their names.
func (t *Toolset) read(dir string) {
	if dir == "" {
		return
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	refuse := func(file, format string, args ...any) {
		t.problems = append(t.problems, Problem{file, []string{file + ": " + fmt.Sprintf(format, args...)}})
	}
	if err != nil {
		refuse(dir, "the directory cannot be read (%v): make it readable for the user that runs the hub",
			command.Cause(err))
		return
	}
	if info, err := os.Stat(dir); err == nil && forAnybody(info) {
		refuse(dir, "everybody may write to the directory, so anybody could declare a tool: chmod o-w it")
		return
	}
	files, taken := 0, make(map[string][]*definition)
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if files++; files > maxFiles {
			refuse(dir, "there are over %d files: further ones are not read", maxFiles)
			break
		}
		data, why := readFile(file)
		if why != "" {
			refuse(file, "%s", why)
			continue
		}
		d, faults := parse(file, data, t.bounds)
		if len(faults) > 0 {
			t.problems = append(t.problems, Problem{file, faults})
			continue
		}
		taken[d.name] = append(taken[d.name], d)
	}
	t.take(taken)
}

// take takes the definitions whose names are their own. Of several files that declare one name none
// is taken: nothing is overridden and no suffix is invented.
func (t *Toolset) take(taken map[string][]*definition) {
	for name, all := range taken {
		if len(all) == 1 {
			t.tools[name] = all[0]
			continue
		}
		for i, d := range all {
			other := all[(i+1)%len(all)]
			fault := textfile.Fault{File: d.path, Position: d.nameAt,
				Message: fmt.Sprintf("the name %q is that of %s as well, "+
					"so neither is taken: rename one of them", name, other.path)}
			t.problems = append(t.problems, Problem{d.path, []string{fault.Error()}})
		}
	}
	slices.SortFunc(t.problems, func(a, b Problem) int { return strings.Compare(a.File, b.File) })
}

// publish makes the catalog.
func (t *Toolset) publish() {
	t.catalog = tool.Catalog{Server: Name, Source: Name, Title: "Declared tools", Tags: []string{Name}}
	for _, d := range t.tools {
		t.catalog.Tools = append(t.catalog.Tools, d.tool)
	}
	slices.SortFunc(t.catalog.Tools, func(a, b *tool.Tool) int {
		return strings.Compare(string(a.Name),
			string(b.Name))
	})
	for _, p := range t.problems {
		t.catalog.Excluded = append(t.catalog.Excluded, tool.Exclusion{Tool: filepath.Base(p.File), Origin: Name,
			Code:   "invalid_file",
			Reason: p.Error()})
	}
}

// Catalog lists the declared tools. It is the same at every call; the caller does not change it.
func (t *Toolset) Catalog() tool.Catalog { return t.catalog }

// Problems are the files that were left out, by name.
func (t *Toolset) Problems() []Problem { return t.problems }

// Dirs are the working directories of the tools, by canonical name: their paths start there.
func (t *Toolset) Dirs() map[tool.Name]string {
	dirs := make(map[tool.Name]string, len(t.tools))
	for _, d := range t.tools {
		if dir, err := t.bounds.Dir(d.workingDir); err == nil {
			dirs[d.tool.Name] = dir
		}
	}
	return dirs
}

// Env are the names of the variables that the command of each tool gets.
func (t *Toolset) Env() map[tool.Name][]string {
	all := make(map[tool.Name][]string, len(t.tools))
	for _, d := range t.tools {
		all[d.tool.Name] = t.bounds.Names(d.env...)
	}
	return all
}

// Timeout is the longest time of a call of the tool; 0 for tools that there are not.
func (t *Toolset) Timeout(native string) time.Duration {
	if d := t.tools[native]; d != nil {
		return cmp.Or(d.timeout, t.bounds.Config().Timeout)
	}
	return 0
}

// readFile returns what file holds, or why it is not read.
func readFile(file string) (data []byte, why string) {
	before, err := os.Lstat(file)
	switch {
	case err != nil:
		return nil, fmt.Sprintf("it cannot be read (%v): make it readable for the user that runs the hub",
			command.Cause(err))
	case before.Mode()&fs.ModeSymlink != 0:
		return nil, "it is a link, and what it leads to may be anybody's: put the file itself here"
	case !before.Mode().IsRegular():
		return nil, "it is no regular file: remove it"
	case forAnybody(before):
		return nil, "everybody may write to it, so anybody could change the tool: chmod o-w it"
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Sprintf("it cannot be read (%v): make it readable for the user that runs the hub",
			command.Cause(err))
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(before, now) {
		return nil, "it changed while it was read: reload the config"
	}
	data, err = io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Sprintf("it cannot be read (%v)", command.Cause(err))
	case len(data) > maxFileBytes:
		return nil, fmt.Sprintf("it is larger than %d bytes: shorten it", maxFileBytes)
	}
	return data, ""
}

// forAnybody reports whether everybody on the machine may write to a file.
func forAnybody(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0
}

// Execute runs e.Tool, which is one of the catalog. A command that fails is an answer with isError.
func (t *Toolset) Execute(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
	reply := tool.Reply{Mapping: tool.ExternalMapping{Source: Name, ToolName: e.Tool.Native}}
	d := t.tools[e.Tool.Native]
	if d == nil || d.tool.Version() != e.Tool.Version() {
		return reply, &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "tool_changed", Message: fmt.Sprintf(
			"the file that declares %q has changed or gone: list the tools again", e.Tool.Name)}
	}
	err := t.run(ctx, d, e, &reply)
	return reply, err
}

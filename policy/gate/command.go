package gate

import (
	"errors"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Commands finds the programs of commands. The executor that runs them uses the same.
type Commands interface {
	// Dir is the directory that given stands for, with every link followed; "" stands for the usual one.
	Dir(given string) (string, error)

	// Find is the file that a command beginning with name starts in dir, with every link followed.
	Find(name, dir string) (string, error)
}

const (
	directoryArgument = "cwd" // of tools that run commands
	maxWords          = 1000  // of a command that are looked at: no more are taken
	maxWord           = 4096  // bytes of one that can be a path
)

// findCommands sets the program and the directory of r's commands: decisions and grants are about
// files, not about names. A program that cannot be found is a fault of its target, so that nobody
// is asked about it. Words that lead to sensitive paths or to the hub's secrets become targets
// themselves, because a grant for the program does not cover them.
func (g *Gate) findCommands(r *policy.Request, find Commands) {
	var given string
	if raw, ok := rawjson.Get(r.Input, directoryArgument); ok {
		given, _ = rawjson.String(raw)
	}
	dir, dirErr := find.Dir(given)
	if dirErr == nil {
		r.CWD = dir
	}
	var more []target.Target
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Kind == target.Path && t.Argument == "/"+directoryArgument {
			t.Write = false // whether commands may run there has been looked at
		}
		if t.Kind != target.Command || t.Fault != "" {
			continue
		}
		if dirErr != nil {
			t.Fault = "cannot be run: " + dirErr.Error()
			if is := (interface{ Outside() bool })(nil); errors.As(dirErr, &is) && is.Outside() {
				t.Notes = append(t.Notes, target.OutOfBounds)
			}
			continue
		}
		path, err := find.Find(t.Executable, dir)
		if err != nil {
			t.Fault = "cannot be run: " + err.Error()
			continue
		}
		t.Runs(path)
		more = append(more, g.guardedWords(t, r.Input, target.NewRoot(dir, g.options.Home))...)
	}
	r.Targets = append(r.Targets, more...)
}

// guardedWords returns the words of the command t, or parts of them, that lead to sensitive paths
// and to the hub's secrets. It reads each word as a path. It does not know which further files a
// program opens, for instance below a directory.
func (g *Gate) guardedWords(t *target.Target, input []byte, root target.Root) []target.Target {
	value, _ := rawjson.Get(input, strings.TrimPrefix(t.Argument, "/"))
	var out []target.Target
	n := 0
	_ = rawjson.Elements(value, func(raw []byte) bool {
		word, _ := rawjson.String(raw)
		n++
		if n == 1 || len(word) > maxWord {
			return n < maxWords
		}
		for _, text := range pathsIn(word) {
			for _, path := range target.PathsOf(t.Argument, text, root) {
				if !g.limits.Guards(&path) {
					continue
				}
				// may be no path at all: no reason to deny, only one to ask, and to remember no
				// more than this very call
				if path.Fault != "" {
					path.Fault, path.Notes = "", append(path.Notes, target.Wildcard)
				}
				out = append(out, path)
			}
		}
		return n < maxWords
	})
	return out
}

// pathsIn are the parts of a command's word that may be a path: all of it, what follows a "=", an
// "@" (of a file that curl reads), or the letter of an option.
func pathsIn(word string) []string {
	var texts []string
	add := func(text string) {
		if text = strings.TrimPrefix(text, "@"); text != "" && text[0] != '-' {
			texts = append(texts, text)
		}
	}
	add(word)
	if _, after, ok := strings.Cut(word, "="); ok {
		add(after)
	} else if len(word) > 2 && word[0] == '-' && word[1] != '-' {
		add(word[2:])
	}
	return texts
}

// Permitted holds the paths, the command and the targets that a decision allows a call.
type Permitted struct {
	Aims    []tool.Aim    // its paths
	Command *tool.Command // nil where it has none, or its server finds it
	Targets []target.Target
}

// PermittedBy returns what a decision that lets r run allows.
func PermittedBy(r *policy.Request) Permitted {
	p := Permitted{Targets: r.Targets}
	for i := range r.Targets {
		switch t := &r.Targets[i]; {
		case t.Fault != "":
		case t.Kind == target.Path && !t.Remote:
			p.Aims = append(p.Aims, tool.Aim{Argument: t.Argument, Path: t.Resolved})
		case t.Kind == target.Command && t.Executable != "" && p.Command == nil &&
			r.Tool.Name.Source() != tool.SourceMCP:
			p.Command = &tool.Command{Program: t.Executable, Dir: r.CWD}
		}
	}
	return p
}

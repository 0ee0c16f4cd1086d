package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Config bounds commands for the operator. The zero value lets them run in the working directory, with the least of
// variables, for two minutes.
type Config struct {
	Root  string   // where commands run that name no directory; default the hub's working directory
	Roots []string // directories in which commands may run besides Root and what is beneath it
	// names of variables that are passed on, besides PATH, HOME and the few others that every
	// command gets
	Env []string

	Timeout time.Duration // of a command for which nobody says otherwise; default 2 min

	Environ []string // the hub's own environment, NAME=value: left to cmd
}

// DefaultTimeout is that of Config.
const DefaultTimeout = 2 * time.Minute

// Bounds of commands that say themselves what they need.
const (
	MaxTimeout  = 24 * time.Hour
	MaxOutput   = 16 << 20 // bytes
	StderrLimit = 16 << 10 // bytes kept of the error output where nothing else is said
)

// Problem says why something cannot be run: a code for programs, and a sentence for people that ends in what to do.
type Problem struct{ Code, Message string }

func (p *Problem) Error() string { return p.Message }

// Outside reports whether it is outside of the directories in which commands may run.
func (p *Problem) Outside() bool { return p.Code == CodeOutsideRoots }

// Refusal is err, of Dir or Find, as a failure of the class, unless err says that something is outside of the roots.
func Refusal(class tool.ErrorClass, message string, err error) *tool.Failure {
	f := &tool.Failure{Class: class, Message: message}
	var p *Problem
	if errors.As(err, &p) {
		if f.Code = p.Code; p.Outside() {
			f.Class = tool.ClassSandboxViolation
		}
	}
	return f
}

func problem(code, format string, args ...any) error {
	return &Problem{code, fmt.Sprintf(format, args...)}
}

// Codes of problems.
const (
	CodeNotFound      = "program_not_found"
	CodeNotExecutable = "program_not_executable"
	CodeNoDirectory   = "directory_not_found"
	CodeOutsideRoots  = "outside_roots"
	CodeChanged       = "command_changed"
)

// Bounds are a Config in use. They are immutable and safe for concurrent use.
type Bounds struct {
	config Config
}

// NewBounds checks the directories of c. It looks at the root once.
func NewBounds(c Config) (*Bounds, error) {
	root, err := filepath.Abs(c.Root)
	if err != nil {
		return nil, fmt.Errorf("find the working directory of commands: %w: name one by an absolute path", err)
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the working directory of commands, %q, is no directory: name one that exists", root)
	}
	c.Root = root
	for _, dir := range c.Roots {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("the root %q of commands is no absolute path: write it in full", dir)
		}
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	return &Bounds{c}, nil
}

// Config returns the config of the bounds, with its defaults.
func (b *Bounds) Config() Config { return b.config }

// Dir is the directory that given stands for, relative to the root where it is relative, with every
// link followed: where that is a directory in one of the roots. "" is the root.
func (b *Bounds) Dir(given string) (string, error) {
	path := given
	switch {
	case strings.ContainsRune(given, 0):
		return "", problem(CodeNoDirectory, "the directory holds a NUL character, which no path can: send it without")
	case network(given):
		return "", problem(CodeOutsideRoots,
			"%q is a network or device path, where nothing is run: name a local directory", hidden.Cut(given, 200))
	case !filepath.IsAbs(given):
		path = filepath.Join(b.config.Root, given)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", problem(CodeNoDirectory, "there is no directory %q: name one that exists", hidden.Cut(given, 200))
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", problem(CodeNoDirectory, "%q is no directory: name one", hidden.Cut(given, 200))
	}
	for _, root := range append([]string{b.config.Root}, b.config.Roots...) {
		if top, err := filepath.EvalSymlinks(root); err == nil && within(real, top) {
			return real, nil
		}
	}
	return "", problem(CodeOutsideRoots,
		"%q is outside of the directories in which commands may run: name one in the project, "+
			"or ask the person to allow it in the hub's config", hidden.Cut(given, 200))
}

func within(path, root string) bool {
	return path == root || strings.HasPrefix(path,
		strings.TrimSuffix(root, string(filepath.Separator))+string(filepath.Separator))
}

// network reports whether opening path would reach for another machine.
func network(path string) bool {
	return runtime.GOOS == "windows" && strings.HasPrefix(filepath.ToSlash(path), "//")
}

// Environment returns the variables of a command: of the hub's own the basic ones, those of the
// config, and those of more. Secrets are the values among them that must not be shown.
func (b *Bounds) Environment(more ...string) (env, secrets []string) {
	named := slices.Concat(b.config.Env, more)
	for _, entry := range b.config.Environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			continue
		}
		asked := slices.ContainsFunc(named, func(n string) bool { return run.SameVariable(n, name) })
		if !asked && !slices.ContainsFunc(basicNames(), func(n string) bool { return run.SameVariable(n, name) }) {
			continue
		}
		env = append(env, entry)
		if asked && secret.Variable(name) && len(value) >= minSecret {
			secrets = append(secrets, value)
		}
	}
	return env, secrets
}

// Names are the variables of Environment, sorted, without what they hold: for people who are asked about a command.
func (b *Bounds) Names(more ...string) []string {
	env, _ := b.Environment(more...)
	names := make([]string, 0, len(env))
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// minSecret is the length from which a value is taken for a secret: shorter ones stand in too many words.
const minSecret = 6

// basicNames are the variables that every command gets.
func basicNames() []string {
	if runtime.GOOS == "windows" {
		return []string{"PATH", "PATHEXT", "COMSPEC", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "TEMP", "TMP", "APPDATA",
			"LOCALAPPDATA",
			"PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "USERPROFILE", "HOMEDRIVE", "HOMEPATH"}
	}
	return []string{"PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}
}

// Find is the file that a command beginning with name starts in dir: absolute, with every link
// followed. It is looked for in the PATH that commands have, and never in dir but by a path.
func (b *Bounds) Find(name, dir string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return "", problem(CodeNotFound, "the program is empty or holds a NUL character: name a program")
	}
	if network(name) {
		return "", problem(CodeNotFound,
			"%q is a network or device path, from where nothing is run: name a local program", hidden.Cut(name, 200))
	}
	real, err := b.lookup(name, dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err == nil {
		err = regular(real)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", problem(CodeNotExecutable, "%q is no program that may be run: name an executable file",
			hidden.Cut(name, 200))
	case err != nil:
		return "", problem(CodeNotFound,
			"there is no program %q: name one that is installed, or give its path; a shell's own "+
				"commands, pipes and variables are none", hidden.Cut(name, 200))
	}
	return real, nil
}

func regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return fs.ErrPermission
	}
	return err
}

func (b *Bounds) lookup(name, dir string) (string, error) {
	if strings.Contains(filepath.ToSlash(name), "/") || filepath.VolumeName(name) != "" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return exec.LookPath(name)
	}
	return run.LookPath(name, b.config.Environ)
}

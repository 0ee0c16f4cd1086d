package child

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// Launcher starts children.
type Launcher struct {
	*run.Launcher
	Firsts firsts
	self   string // the hub's program
	origin string // of upstream.Config
}

// NewLauncher returns a launcher. self is the running program; origin names the config file to hubs that it starts.
func NewLauncher(self, origin string, log *slog.Logger) *Launcher {
	return &Launcher{Launcher: run.NewLauncher(self, log), self: self, origin: origin}
}

// Find returns the path of the program that start would run.
func (l *Launcher) Find(cfg settings.Server) (string, *fault.Fault) {
	path, err := lookCommand(cfg.Command, l.self, childEnv(os.Environ(), cfg))
	if err == nil {
		file := path
		if !filepath.IsAbs(file) {
			file = filepath.Join(cfg.Dir, file)
		}
		_, err = os.Stat(file)
	}
	if err != nil {
		return "", startFault(cfg, err)
	}
	return path, nil
}

// inheritedNames returns the environment variables that a child inherits. It gets all others, such
// as secrets of the hub, only if its entry names them.
func inheritedNames() []string {
	if runtime.GOOS == "windows" {
		return []string{"PATH", "PATHEXT", "COMSPEC", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "TEMP", "TMP", "APPDATA",
			"LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROCESSOR_ARCHITECTURE", "USERNAME",
			"USERPROFILE", "USERDOMAIN", "HOMEDRIVE", "HOMEPATH", "HOME", "LANG", "TZ", "NUMBER_OF_PROCESSORS"}
	}
	return []string{"PATH", "HOME", "TMPDIR", "TMP", "TEMP", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ",
		"TERM", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
		"XDG_CONFIG_DIRS", "XDG_DATA_DIRS"}
}

// childEnv returns the environment of a child: the inherited part of own, then what the config passes on or sets.
func childEnv(own []string, cfg settings.Server) []string {
	names := inheritedNames()
	var env []string
	for _, entry := range own {
		name, _, ok := strings.Cut(entry, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		if ok && (slices.Contains(names, name) || strings.HasPrefix(name, "LC_")) {
			env = append(env, entry)
		}
	}
	return slices.Concat(env, cfg.Passed, cfg.Env) // exec lets the last one of a name win
}

var errNoCommand = errors.New("no command given")

// lookCommand finds the program to run, in the PATH that the child will have.
func lookCommand(command, self string, env []string) (string, error) {
	switch {
	case command == "":
		return "", errNoCommand
	case command == settings.HubCommand && self != "":
		return self, nil
	case command != baseName(command):
		return command, nil // a path; relative ones start at the child's working directory
	}
	return run.LookPath(command, env)
}

func baseName(command string) string {
	separators := "/"
	if runtime.GOOS == "windows" {
		separators = `/\:`
	}
	if i := strings.LastIndexAny(command, separators); i >= 0 {
		return command[i+1:]
	}
	return command
}

// programName is the name of a program in lower case, without directory and extension.
func programName(command string) string {
	name := strings.ToLower(baseName(command))
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// installHint says how to install a well-known program.
func installHint(command string) string {
	switch command {
	case "npx", "npm", "node":
		return "install Node.js"
	case "uvx", "uv":
		return "install uv"
	case "python", "python3", "pip", "pipx":
		return "install Python"
	case "docker", "podman", "bun", "bunx", "deno", "go":
		return "install " + strings.TrimSuffix(command, "x")
	}
	return "install it"
}

// startFault explains why a child could not be started.
func startFault(cfg settings.Server, err error) *fault.Fault {
	switch {
	case errors.Is(err, errNoCommand):
		return &fault.Fault{What: "no command given", Hint: "set command in the server's entry", Cause: err}
	case errors.Is(err, exec.ErrNotFound):
		return &fault.Fault{
			What:  fmt.Sprintf("command %q was not found in PATH", cfg.Command),
			Hint:  installHint(cfg.Command) + " or give the full path",
			Cause: err,
		}
	case errors.Is(err, fs.ErrPermission):
		return &fault.Fault{
			What:  fmt.Sprintf("command %q may not be run", cfg.Command),
			Hint:  "make the file executable, or check who may read the working directory",
			Cause: err,
		}
	case errors.Is(err, fs.ErrNotExist) && cfg.Dir != "":
		return &fault.Fault{
			What:  fmt.Sprintf("command %q or working directory %q does not exist", cfg.Command, cfg.Dir),
			Hint:  "check command and cwd in the server's entry",
			Cause: err,
		}
	case errors.Is(err, fs.ErrNotExist):
		return &fault.Fault{
			What:  fmt.Sprintf("command %q does not exist", cfg.Command),
			Hint:  "check command in the server's entry",
			Cause: err,
		}
	}
	f := &fault.Fault{What: fmt.Sprintf("command %q could not be started", cfg.Command),
		Hint: "run the command by hand to see why", Cause: err}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		f.What += ": " + errno.Error()
	}
	if errors.Is(err, syscall.E2BIG) {
		f.Hint = "shorten args and env of the server's entry: a value may have 128 KiB on Linux"
	}
	return f
}

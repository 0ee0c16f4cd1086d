package upstream

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/guard"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/redact"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// process is a child that speaks MCP over its stdin and stdout, with everything that it starts itself.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File // our ends
	stdout *os.File
	stderr *stderrLog

	guards *guards
	child  guard.Child

	exited chan struct{} // closed once the child was waited for and all that it started is killed
	state  string        // how it exited; set before exited is closed
	read   chan struct{} // closed once stderr is read to its end
}

// Each step of stopping a child waits this long for the child to end.
const stopPatience = 2 * time.Second

// startProcess starts the child that cfg describes.
func startProcess(cfg ServerConfig, guards *guards, log *slog.Logger, redact *redact.Redactor) (_ *process, err error) {
	env := childEnv(os.Environ(), cfg.Env)
	name, err := lookCommand(cfg.Command, guards.self, env)
	if err != nil {
		return nil, err
	}
	mark := guards.get().Mark()
	defer func() {
		if err != nil {
			guards.get().Forget(mark)
		}
	}()
	env = append(append(env, guard.Nested(fmt.Sprintf("the entry %q of %s", cfg.ID, guards.origin))...), mark)
	cmd := exec.Command(name, cfg.Args...)
	cmd.Env, cmd.Dir = env, cfg.Dir
	var ends [6]*os.File // child's and our end of stdin, stdout, stderr
	for i := 0; i < len(ends); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeFiles(ends[:])
			return nil, fmt.Errorf("make pipes: %w", err)
		}
		ends[i], ends[i+1] = w, r
	}
	ends[0], ends[1] = ends[1], ends[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ends[0], ends[2], ends[4]
	err = guard.StartGroup(cmd)
	closeFiles([]*os.File{ends[0], ends[2], ends[4]})
	if err != nil {
		closeFiles([]*os.File{ends[1], ends[3], ends[5]})
		return nil, err
	}
	p := &process{
		guards: guards,
		child:  guards.get().Add(cmd.Process, mark),
		cmd:    cmd,
		stdin:  ends[1],
		stdout: ends[3],
		stderr: newStderrLog(log, cmd.Process.Pid, redact),
		exited: make(chan struct{}),
		read:   make(chan struct{}),
	}
	go func() {
		defer close(p.read)
		p.stderr.copyFrom(ends[5])
	}()
	go p.wait(ends[5])
	return p, nil
}

// wait reaps the child, and ends what it left behind.
func (p *process) wait(stderr *os.File) {
	err := p.cmd.Wait() // the error says no more than the state
	p.state = exitText(p.cmd.ProcessState, err)
	// What the child started and left running has lost its purpose. The group cannot have been given to somebody else
	// as long as a process of it lives, and where none does, there is nothing to kill.
	guard.KillGroup(p.cmd)
	p.child.KillStrays()
	p.guards.get().Remove(p.child)
	// A descendant that left the group may hold stderr open.
	waitFor(nil, p.read, drainTime)
	_ = stderr.Close()
	<-p.read
	close(p.exited)
}

// guards starts the group's guard when the first child needs it, so that a hub without children has none.
type guards struct {
	self   string // the program that the guard runs; "" makes one that guards nothing
	origin string // of Config
	log    *slog.Logger
	once   sync.Once
	it     *guard.Guard
}

func (g *guards) get() *guard.Guard {
	g.once.Do(func() {
		if g.self == "" {
			g.it = &guard.Guard{}
			return
		}
		var err error
		if g.it, err = guard.Start(g.self); err != nil {
			g.log.Warn("servers will survive a hub that is killed outright", "error", err)
		}
	})
	return g.it
}

// close ends the guard, if there is one.
func (g *guards) close() error {
	g.once.Do(func() { g.it = &guard.Guard{} })
	return g.it.Close()
}

// drainTime is how long the pipes of a child that has exited are read on where somebody else holds them. On a busy machine it
// takes a while until all is read that the child has written.
const drainTime = 2 * time.Second

// stop ends the child and its group, after its stdin was closed: it waits, asks, and then kills. Closing kill ends the
// waiting early. It returns when the child is gone.
func (p *process) stop(kill <-chan struct{}) {
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	for _, step := range []func(*exec.Cmd){guard.TermGroup, guard.KillGroup} {
		select {
		case <-p.exited:
			return
		case <-kill:
			guard.KillGroup(p.cmd)
			<-p.exited
			return
		case <-timer.C:
			step(p.cmd)
			timer.Reset(stopPatience)
		}
	}
	<-p.exited
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

func exitText(state *os.ProcessState, err error) string {
	if state == nil {
		return fmt.Sprintf("ended: %v", err)
	}
	if state.Exited() {
		return fmt.Sprintf("exited with status %d", state.ExitCode())
	}
	return "ended by " + state.String() // "signal: killed"
}

// inheritedNames are the environment variables that a child gets from the hub. Everything else, and with it every
// secret that the hub was given, it gets only if its entry names it.
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

// childEnv is the environment of a child: what of own is on the list, then what its entry sets.
func childEnv(own, set []string) []string {
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
	return append(env, set...) // exec lets the last one of a name win
}

// errNoCommand is an empty command in a server's entry.
var errNoCommand = errors.New("no command given")

// lookCommand finds the program to run, in the PATH that the child will have.
func lookCommand(command, self string, env []string) (string, error) {
	switch {
	case command == "":
		return "", errNoCommand
	case command == HubCommand && self != "":
		return self, nil
	case command != baseName(command):
		return command, nil // a path; relative ones start at the child's working directory
	}
	for _, entry := range slices.Backward(env) {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok && runtime.GOOS != "windows" {
			return lookIn(command, path)
		}
	}
	return exec.LookPath(command)
}

// lookIn finds command in the directories of path.
func lookIn(command, path string) (string, error) {
	for dir := range strings.SplitSeq(path, string(os.PathListSeparator)) {
		if dir == "" || !strings.HasPrefix(dir, "/") {
			continue // the working directory is no place to look for programs
		}
		if found, err := exec.LookPath(dir + "/" + command); err == nil {
			return found, nil
		}
	}
	return "", &exec.Error{Name: command, Err: exec.ErrNotFound}
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

// installHint says where a well-known launcher comes from.
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

// processFault explains why a child could not be started.
func processFault(cfg settings.Server, err error) *fault.Fault {
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
	f := &fault.Fault{What: fmt.Sprintf("command %q could not be started", cfg.Command), Hint: "run the command by hand to see why", Cause: err}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		f.What += ": " + errno.Error()
	}
	if errors.Is(err, syscall.E2BIG) {
		f.Hint = "shorten args and env of the server's entry: a value may have 128 KiB on Linux"
	}
	return f
}

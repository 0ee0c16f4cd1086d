package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// environmentArgument is the argument with which the program prints its environment.
const environmentArgument = "environment"

// environmentMark stands before and after that: the files of a shell may print, too.
const environmentMark = "\x00mcp-toolhub environment\x00"

// shellWithin bounds the time that a shell has to read its files.
const shellWithin = 5 * time.Second

// LoginEnvironment returns the environment that the person's shell has after a login, each variable
// as NAME=value: shell reads its files as it does in a terminal. self is the path of this program.
// It takes as long as those files do, and at most shellWithin.
func LoginEnvironment(ctx context.Context, shell, self string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, shellWithin)
	defer cancel()
	line := "exec '" + strings.ReplaceAll(self, "'", `'\''`) + "' " + environmentArgument
	cmd := exec.CommandContext(ctx, shell, "-l", "-i", "-c", line)
	// These keep a shell's files from asking something, and from starting a terminal of their own.
	ours := []string{"TERM=dumb", "DISABLE_AUTO_UPDATE=true", "ZSH_TMUX_AUTOSTART=false"}
	cmd.Env = append(os.Environ(), ours...)
	detach(cmd) // an interactive shell would take the terminal
	cmd.Cancel = func() error { KillGroup(cmd); return nil }
	cmd.WaitDelay = time.Second // for what the files have left running
	out, err := cmd.Output()
	parts := strings.Split(string(out), environmentMark)
	if len(parts) < 3 {
		return nil, fmt.Errorf("ask %s for the environment of a login: %w", shell,
			errors.Join(err, context.Cause(ctx)))
	}
	return slices.DeleteFunc(strings.Split(parts[1], "\x00"), func(entry string) bool {
		return slices.Contains(ours, entry)
	}), nil
}

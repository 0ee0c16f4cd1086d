package hub

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// OwnState lists the hub's entries of the state directory. It leaves all others alone: --state-dir
// may name a directory that holds more.
var OwnState = append(store.FileNames(), StateKey, PreviousKey, signin.FileName, signin.FileName+".key", GrantsFile,
	secrets.File,
	secrets.KeyFile, "catalogs", "embeddings", EvidenceKey, EvidenceKey+evidence.HeadsSuffix, "journal", "results",
	"run", LogFile, LogFile+".1", "imported.json")

// CommandLine returns a command of this program for a person to paste into a terminal. It names the
// state directory unless that is the default one of the home directory, and the program by its path
// unless PATH leads to it.
func CommandLine(state, words string) string {
	program := "mcp-toolhub"
	if self, err := os.Executable(); err == nil {
		found, err := exec.LookPath(program)
		a, _ := os.Stat(found)
		if b, _ := os.Stat(self); err != nil || !os.SameFile(a, b) {
			program = ShellWord(self)
		}
	}
	bare, err := config.StateDir("", func(name string) (string, bool) {
		if strings.HasPrefix(name, "XDG_") {
			return "", false
		}
		return os.LookupEnv(name)
	})
	line := program + " " + words
	if err != nil || bare != state {
		line += " --state-dir " + ShellWord(state)
	}
	return line
}

// LoginLine is the command by which a person signs in to a server of the settings. It works in any directory.
func LoginLine(s *config.Settings, server string, env config.Env) string {
	words := "login " + server
	if path, err := filepath.Abs(s.Path); err == nil && path != config.UserFile(env) {
		words += " --config " + ShellWord(path)
	}
	return CommandLine(s.StateDir, words)
}

// ShellWord quotes a path for a shell where it needs that.
func ShellWord(path string) string {
	if strings.Trim(path, "/.:\\-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// forOthers holds the permission bits of everybody but the owner.
const forOthers fs.FileMode = 0o077

// OpenStateDir makes the state directory. It takes from others the right to enter a directory that exists already, and
// to read the hub's files in it, and warns where they had it.
func OpenStateDir(dir string, logger *slog.Logger) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	if runtime.GOOS == "windows" {
		return nil // its modes say nothing about other users
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the state directory: %w", err)
	}
	defer root.Close()
	top, err := root.Stat(".")
	if err != nil {
		return fmt.Errorf("open the state directory: %w", err)
	}
	if top.Mode()&fs.ModeSticky != 0 {
		logger.Warn("the state directory is one that users share, such as /tmp: name one of your own with --state-dir",
			"path", dir)
	} else if err := closeToOthers(root, ".", top, logger); err != nil {
		return err
	}
	for _, name := range OwnState {
		err := fs.WalkDir(root.FS(), name, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil // not there, or gone by now; whoever needs it says so
			}
			info, err := entry.Info()
			if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
				return nil
			}
			return closeToOthers(root, name, info, logger)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// closeToOthers takes all rights to an entry of the state directory from others.
func closeToOthers(root *os.Root, name string, info fs.FileInfo, logger *slog.Logger) error {
	mode := info.Mode().Perm()
	if mode&forOthers == 0 {
		return nil
	}
	full := path.Join(root.Name(), name)
	if err := root.Chmod(name, mode&^forOthers); err != nil {
		return fmt.Errorf("the state directory is open to others: %w: make %q yours, or name another directory with "+
			"--state-dir", err, full)
	}
	logger.Warn("others could read the hub's state: the mode is mended", "path", full,
		"was", fmt.Sprintf("%04o", mode), "is", fmt.Sprintf("%04o", mode&^forOthers))
	return nil
}

// LogFile is the log of the hub in the background, in the state directory. One that has grown larger
// than maxLogFile when a hub starts becomes logFile.1.
const (
	LogFile    = "hub.log"
	MaxLogFile = 8 << 20
)

// version is set by -ldflags "-X …/hub.version=v1.2.3" where the source has no tag; "" otherwise.
var version string

// Version returns the version of the module, or the commit that the hub was built from.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

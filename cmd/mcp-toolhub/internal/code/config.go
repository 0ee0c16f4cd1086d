package code

import (
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
)

// Config is the built-in toolset code. The zero value serves the working directory.
type Config struct {
	Enabled        bool
	Root           string   // the project: relative paths start here; default the working directory
	SensitivePaths []string // globs; a path that matches is refused, whoever allows it

	SensitiveDirs []string // paths, not globs; read with what is in them where that was permitted, never written
	Secrets       []string // absolute paths, never read or written, whoever allows it: the hub's keys and records

	// Home is the directory that "~/" stands for in SensitivePaths and in the paths of calls. Without it "~/" in
	// SensitivePaths is an error. The default sensitive paths do not depend on it.
	Home string

	// AllowedWriteRoots are the directories in which files may be written, absolute. Without any
	// there are no tools that write.
	AllowedWriteRoots []string

	Protected []string  // absolute paths, never written, whoever allows it: what the hub itself goes by
	Run       RunConfig // of code.run_command
}

// RunConfig is code.run_command. The zero value is a toolset without it.
type RunConfig struct {
	Enabled bool
	Bounds  command.Config  // Root is that of the toolset
	Runner  *command.Runner // runs the commands: left to cmd
}

// Bounds of one search, which stops there and says so.
const (
	mostScanBytes  = 256 << 20
	mostSearchTime = 20 * time.Second
)

// mostCommandTime is the most that a call of code.run_command can ask for, where the operator does not bound it.
const mostCommandTime = 10 * time.Minute

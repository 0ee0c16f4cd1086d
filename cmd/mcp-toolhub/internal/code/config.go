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

	// SensitiveDirs are directories, as paths and not as globs, that are sensitive with all that lies in them, as the default
	// sensitive paths are: they are read where that has been permitted, and never written.
	SensitiveDirs []string

	// Secrets are directories and files, as absolute paths, that are neither read nor written, whoever allows it: what the hub
	// keeps its own keys, tokens and records in.
	Secrets []string

	// Home is the directory that "~/" stands for in SensitivePaths and in the paths of calls. Without it "~/" in
	// SensitivePaths is an error. The default sensitive paths do not depend on it.
	Home string

	// AllowedWriteRoots are the directories in which files may be written, absolute. Without any there are no tools that write.
	AllowedWriteRoots []string

	// Protected are files and directories, as absolute paths, that are never written, whoever allows it: what the hub itself
	// goes by.
	Protected []string
	Run       RunConfig // of code.run_command

	MaxScanBytes  int64         // bytes one search reads before it stops and says so; default 256 MiB
	MaxSearchTime time.Duration // how long one search runs before it stops and says so; default 20 s
}

// RunConfig is code.run_command. The zero value is a toolset without it.
type RunConfig struct {
	Enabled bool
	Bounds  command.Config  // Root is that of the toolset
	Runner  *command.Runner // runs the commands: left to cmd
}

const (
	defaultScanBytes  = 256 << 20
	defaultSearchTime = 20 * time.Second
)

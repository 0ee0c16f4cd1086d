// Package config reads the hub's one configuration file into the settings of the other packages.
//
// The file is YAML, JSON or JSON with comments. It may be a file that a client already has: the shapes of Claude
// Desktop, Claude Code, Cursor, Gemini CLI (mcpServers) and VS Code (servers and inputs) are accepted as they stand.
// The keys that a file may hold are one table (table.go, servers.go, clients.go): the reader walks a file along it and
// Schema prints it, so that what is read and what editors are told cannot differ.
//
// Every fault of a file is reported at once, as Faults, each with line, column and key path. No message holds a value
// of the file, since any of them may be a secret: only keys, types, names of variables and what was expected.
//
// The environment comes in through Env; what to do with the settings is the business of cmd.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/embed"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/limit"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// Log says how the hub logs.
type Log struct {
	Level  string // debug, info (default), warn or error
	Format string // auto (default: text on a terminal, JSON otherwise), text or json
}

// Hooks are the hooks of the file.
type Hooks struct {
	All []hook.Config
	Dir string // where their commands run, absolute; "" without hooks
}

// Telemetry says how the hub can be watched from outside.
type Telemetry struct {
	Metrics string // host:port for metrics alone; "" for the HTTP door
	Content bool   // traces have arguments and results of calls
}

// Settings is a configuration file without a fault, complete and expanded. It holds secrets: it is never printed.
type Settings struct {
	Path     string // of the file, as it was given
	StateDir string // absolute; holds all that the hub writes

	KeyringSignIns bool // the key of the sign-ins is in the system's keyring

	Upstream upstream.Config // Self and Version are left to cmd
	Secrets  []string        `json:"-"` // values of ${secret:…} and ${file:…} in the whole file
	// by server id: names of what its entry gives it to sign in with, sorted; never a value
	Credentials map[string][]string
	Profiles    []namespace.Profile // namespace.DefaultProfile first, then in the order of the file
	Deferred    deferred.Config     // of every profile
	Embeddings  embed.Config        // without a URL: none
	Results     limit.Config        // of every profile
	Stored      payload.Config
	Journal     persist.JournalConfig
	Store       string // of records: StoreSQLite, StoreOff, or the URL of a PostgreSQL database
	Records     persist.RecordsConfig
	Code        code.Config        // Run.Runner is left to cmd
	Declarative declarative.Config // Runner and Logger are left to cmd
	Policy      gate.Config
	Hooks       Hooks
	RuleFiles   []string          // absolute: files besides this one whose rules Policy holds
	Downstream  downstream.Config // Version is left to cmd
	Log         Log
	Telemetry   Telemetry

	// Read are Path and RuleFiles as they were just before they were read, by these names: one that
	// is another by now was changed since.
	Read map[string]fs.FileInfo

	// Warnings name entries that mean nothing to the hub, or were changed so that they do. Sorted by position.
	Warnings []textfile.Fault

	// Strays are those Warnings that say that an entry matches nothing, whatever tools there are.
	Strays []textfile.Fault

	// Patterns are all patterns over canonical names, of rules, profiles and deferred loading.
	// Whether they match a tool is seen when the servers have listed.
	Patterns []Pattern

	// TrustFile is the record of the trust in a project config; "" where the file was named or is the user's own. When
	// it changes, the settings are to be read again.
	TrustFile string

	// Uses says, a line each, what the config makes the hub start, reach and allow. Values stand
	// there as the file has them: no reference is expanded.
	Uses []string

	// Starts says what each server's entry runs or reaches, by its id, also of one that is disabled.
	Starts map[string]string

	// Digests are the SHA-256 of each file that was read, by its absolute path.
	Digests map[string]string

	// Variables are the SHA-256 of the value of each variable of the environment that was looked
	// up; of "" where it is not set.
	Variables map[string]string
}

// What Store may be besides a URL.
const (
	StoreSQLite = "sqlite" // a file in the state directory
	StoreOff    = "off"    // the hub keeps none up to date; there is the journal alone
)

// Pattern is a pattern over canonical names that stands in a file.
type Pattern struct {
	Place string // file:line:column
	Key   string // path of the key
	Text  string
}

// Env looks up a variable of the environment; it has the contract of os.LookupEnv. Nil is an empty environment.
type Env func(name string) (value string, ok bool)

// Source says what to load.
type Source struct {
	Path     string // of the file, see Find
	StateDir string // --state-dir; "" is the default of the function StateDir
	Env      Env
	HubTools []string // the names of the hub's own tools, which rules may name
	Project  bool     // found in the working directory: without a person's trust the error is an *UntrustedError
	Without  []string // keys of the file that are not read: what they refer to may be missing
	// a server whose entry refers to what is missing is left out, with
	// upstream.ServerConfig.Missing; otherwise that is a fault
	LeaveOut bool

	Secrets map[string]string // are as if they were stored, too
}

// maxFileBytes bounds a configuration file. Claude Code's ~/.claude.json, the largest file of a client that holds
// servers, reaches a few hundred kilobytes.
const maxFileBytes = 4 << 20

// Load reads and parses the file of src. The error is Faults where the file could be read.
func Load(src Source) (*Settings, error) {
	before, err := os.Stat(src.Path)
	if err != nil {
		return nil, fmt.Errorf("read config %q: %w", src.Path, readProblem(err))
	}
	data, err := readRegular(src.Path, maxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("read config %q: %w", src.Path, readProblem(err))
	}
	state, err := StateDir(src.StateDir, src.Env)
	if err != nil {
		return nil, err
	}
	s, err := parse(src, data, state)
	if err == nil {
		s.Read[src.Path] = before
	}
	if !src.Project {
		return s, err
	}
	if s != nil {
		s.followTrust(trustFile(state, src.Path))
	}
	return underTrust(state, src, s, err)
}

// LoadText says what Load would say if the file of src held data. The error is Faults.
func LoadText(src Source, data []byte) (*Settings, error) {
	state, err := StateDir(src.StateDir, src.Env)
	if err != nil {
		return nil, err
	}
	return parse(src, data, state)
}

// parse turns data, the content of the file of src, into settings. The path tells the format, is
// named in faults and anchors relative paths; the file itself is not read. The error is always
// Faults.
func parse(src Source, data []byte, state string) (*Settings, error) {
	path := src.Path
	r := newReader(src, state)
	r.note(path, data)
	root := r.tree(data)
	if root == nil {
		return nil, r.Faults.Sort()
	}
	root.Members = slices.DeleteFunc(root.Members,
		func(m textfile.Member) bool { return slices.Contains(src.Without, m.Key) })
	f, _ := fileShape(r, clientFile(path)).Read(r.Reader, root)
	s := build(r, root, &f, state)
	if len(r.Faults) > 0 {
		return nil, r.Faults.Sort()
	}
	s.Path, s.Read, s.Digests, s.Variables = path, r.read, r.digests, r.looked
	s.Upstream.Origin = absolute(path)
	s.Warnings, s.Strays, s.Patterns, s.Secrets = r.Warnings.Sort(), r.strays.Sort(), r.patterns, r.known
	return s, nil
}

var (
	errTooLarge   = errors.New("too large")
	errNotRegular = errors.New("not a regular file")
)

// readRegular reads a file of at most limit bytes. It looks before it opens, since opening a pipe may block for ever.
func readRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, errTooLarge
	}
	return data, nil
}

// readProblem says in words, and without the path, why a file could not be read, and what to do.
func readProblem(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file; check the path")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("permission denied; make the file readable for the user that runs the hub")
	case errors.Is(err, errNotRegular):
		return errors.New("it is not a regular file; name a file")
	case errors.Is(err, errTooLarge):
		return errors.New("it is too large; check the path")
	}
	return fmt.Errorf("%w; check the path", command.Cause(err))
}

// absolute returns p as an absolute path; p itself where the working directory is unknown.
func absolute(p string) string {
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}

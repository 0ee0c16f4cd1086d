// Package code is the built-in toolset "code": code.read_file, code.list_dir and code.search, where the operator names
// directories that may be written to, code.write_file and code.edit_file, and where that is enabled code.run_command.
//
// It reads the project and, where a path asks for it, what lies outside, but a sensitive path
// (keys, credentials, .env files) only where the call was permitted for that very path, and what
// lies below one never. Whatever name, link or race leads to a file, it is judged by the descriptor
// that was opened and not by the name that was asked for: it has to be the one that was permitted.
// What it cannot see is a second hard link to a sensitive file under a harmless name. Only regular
// files are read, so that no pipe or device can hold a call.
//
// It writes where a path led when the call was permitted, and nowhere else: the path is resolved
// again at use and its directory opened by descriptor, link by link refused, so that nothing that
// is put in its way in between leads elsewhere. A file is replaced whole, by a new one beside it
// that takes its name: a reader sees the old text or the new, other hard links to it keep
// the old, and mode, byte order mark and line endings stay. Extended attributes do not.
//
// Everything is bounded: lines, bytes, entries, time; whatever was cut is marked in the result. It
// takes its declarations to no client and its failures to no wire: both are for the pipeline.
package code

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Name is the toolset's name: the first word of its canonical names.
const Name = "code"

// Toolset executes the tools of the toolset code. It is immutable and safe for concurrent use.
type Toolset struct {
	root          string
	home          string
	sensitive     target.Globs // are read where that has been permitted
	never         target.Globs // are not, whoever permits it; all of them are sensitive, too
	maxScanBytes  int64
	maxSearchTime time.Duration
	writer        *writer // nil: nothing may be written
	catalog       tool.Catalog
	schemas       *schema.Cache   // of the declarations
	bounds        *command.Bounds // nil without code.run_command
	runner        *command.Runner // nil without code.run_command

	mostCommandTime time.Duration // that a call of code.run_command can ask for
}

// New checks cfg and returns its toolset. It looks at the root once, keeps nothing open and starts nothing. Whether the
// toolset is enabled is for the caller to heed.
func New(cfg Config) (*Toolset, error) {
	root, err := filepath.Abs(cfg.Root) // "" is the working directory
	if err != nil {
		return nil, fmt.Errorf("code: find the root %q: %w: set code.root to an absolute path", cfg.Root, err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("code: look at the root %q: %w: set code.root to an existing directory", root, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("code: the root %q is not a directory: set code.root to one", root)
	}
	secrets := append(slices.Clone(cfg.SensitivePaths), target.Literal(cfg.Secrets...)...)
	sensitive, err := newSensitivePaths(append(target.Literal(cfg.SensitiveDirs...), secrets...), cfg.Home)
	if err != nil {
		return nil, err
	}
	never, err := compileSensitive(append(processPaths(), secrets...), cfg.Home)
	if err != nil {
		return nil, err
	}
	t := &Toolset{
		root: root, home: cfg.Home, sensitive: sensitive, never: never, schemas: schema.NewCache(16),
		maxScanBytes: mostScanBytes, maxSearchTime: mostSearchTime,
	}
	d, err := t.open(root)
	if errors.Is(err, errSensitive) {
		return nil, fmt.Errorf("code: the root %q is a sensitive path, so that every call would be refused: "+
			"set code.root to another directory", root)
	}
	if err != nil {
		return nil, fmt.Errorf("code: open the root %q: %w: set code.root to a directory that can be read", root, err)
	}
	d.Close()
	if t.writer, err = newWriter(cfg, root); err != nil {
		return nil, err
	}
	if t.catalog, err = newCatalog(t.writer != nil); err != nil {
		return nil, err
	}
	if cfg.Run.Enabled {
		err = t.enableCommands(cfg.Run)
	}
	return t, err
}

// Catalog lists the tools of the toolset. It is the same at every call; the caller does not change it.
func (t *Toolset) Catalog() tool.Catalog { return t.catalog }

// Reports reports whether calls of the tool report progress.
func (t *Toolset) Reports(native string) bool { return native == search || native == runCommand }

// Timeout is the longest time of a call of the tool; 0 where it is not bounded by itself.
func (t *Toolset) Timeout(native string) time.Duration {
	switch {
	case native == search:
		return t.maxSearchTime // and then it says what it has found
	case native == runCommand && t.bounds != nil:
		return t.mostCommandTime
	}
	return 0
}

// Execute runs e.Tool, chosen by its native name. Whatever keeps a tool from its answer is a
// *tool.Failure; a binary file is an answer with isError, since only a result can carry what is
// known of the file. It reports progress of long searches and ends soon after ctx does.
func (t *Toolset) Execute(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
	a, err := t.call(ctx, e)
	a.mapping.Source, a.mapping.ToolName, a.mapping.CWD = Name, e.Tool.Native, cmp.Or(a.mapping.CWD, t.root)
	reply := tool.Reply{Mapping: a.mapping, Artifacts: a.artifacts}
	if err == nil {
		reply.Result, err = a.encode()
	}
	if err != nil {
		return reply, asFailure(ctx, err)
	}
	return reply, nil
}

// call checks the arguments, and makes the answer.
func (t *Toolset) call(ctx context.Context, e *tool.Execution) (answer, error) {
	if err := t.check(e); err != nil {
		return answer{}, err
	}
	switch e.Tool.Native {
	case runCommand:
		return t.runCommand(ctx, e)
	case readFile:
		return t.readFile(ctx, e)
	case listDir:
		return t.listDir(ctx, e)
	case search:
		return t.search(ctx, e)
	case writeFile:
		return t.writer.writeFile(ctx, e)
	}
	return t.writer.editFile(ctx, e)
}

// answer is a tool's own answer before it is encoded.
type answer struct {
	text       string // what a client shows that knows nothing of structured content
	note       string // second text block; "" for none
	structured any
	isError    bool
	artifacts  []tool.Artifact
	mapping    tool.ExternalMapping
}

// encode returns the result object of tools/call, without line breaks, as the lines of stdio need it.
func (a answer) encode() (json.RawMessage, error) {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	result := struct {
		Content    []block `json:"content"`
		Structured any     `json:"structuredContent"`
		IsError    bool    `json:"isError,omitempty"`
	}{[]block{{"text", a.text}}, a.structured, a.isError}
	if a.note != "" {
		result.Content = append(result.Content, block{"text", a.note})
	}
	raw, err := rawjson.Encode(result)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return raw, nil
}

package config

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// reader walks a file along the table and collects what is wrong, and what the settings say of the
// file. It is used once, by one goroutine.
type reader struct {
	*shape.Reader
	strays   textfile.Faults // of Settings
	patterns []Pattern       // of Settings
	origins  []string        // ids of servers, and toolsets
	hubTools []string        // of Source
	vars     *variables
	state    string            // the state directory
	env      Env               // of Source; vars looks there, too, and notes what the file refers to
	secrets  map[string]string // what ${secret:…} stands for, once that was needed
	more     map[string]string // Secrets of Source
	known    []string          // Secrets of Settings

	references []referred // in the order of the file

	outOfUse    []facts.Override       // what the entries of servers say of tools
	credentials map[string][]string    // of Settings
	read        map[string]fs.FileInfo // of Settings
	digests     map[string]string      // of Settings
	looked      map[string]string      // Variables of Settings

	leaveOut bool // of Source
	// within a server that is disabled or may be left out: its references that have no value;
	// otherwise nil
	missing *textfile.Faults
}

// storedSecrets returns what ${secret:…} stands for.
func (r *reader) storedSecrets() (map[string]string, error) {
	if r.secrets != nil {
		return r.secrets, nil
	}
	file := filepath.Join(r.state, secrets.File)
	if info, err := os.Stat(file); err == nil {
		r.read[file] = info
	}
	all, err := secrets.Read(r.state)
	if err != nil {
		return nil, err
	}
	maps.Copy(all, r.more)
	r.secrets = all
	return all, nil
}

func newReader(src Source, state string) *reader {
	r := &reader{state: state, env: src.Env, more: src.Secrets, leaveOut: src.LeaveOut,
		Reader:   &shape.Reader{File: src.Path},
		hubTools: src.HubTools, credentials: make(map[string][]string),
		read: make(map[string]fs.FileInfo), digests: make(map[string]string), looked: make(map[string]string)}
	r.vars = newVariables(src.Path, func(name string) (string, bool) {
		value, set := src.Env.lookup(name)
		r.looked[name] = tool.Digest([]byte(value))
		return value, set
	})
	r.Expand = r.expand
	return r
}

// note remembers what a file held that the settings come from.
func (r *reader) note(path string, data []byte) { r.digests[realPath(path)] = tool.Digest(data) }

// tree reads the text of the file, or reports why it cannot and returns nil.
func (r *reader) tree(data []byte) *textfile.Node {
	if len(data) > maxFileBytes {
		r.Fault(textfile.At(1, 1), "the file is larger than 4 MiB", "check the path")
		return nil
	}
	return r.Parsed(textfile.Parse(r.File, data))
}

// stray warns of an entry that matches nothing.
func (r *reader) stray(p textfile.Position, message, hint string) {
	before := len(r.Warnings)
	r.Warn(p, message, hint)
	r.strays = append(r.strays, r.Warnings[before:]...)
}

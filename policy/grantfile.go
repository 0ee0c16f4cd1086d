package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// grantFile is the file of always-grants. People may read it and add or remove entries, but the hub
// writes it anew at every change, so comments do not survive. Several hubs may share it: a change
// is made under a lock, to the current content, and the new file replaces the old one in one step.
type grantFile struct{ path string }

const grantFileHead = `# What people have allowed or denied for good when mcp-toolhub asked them.
# The hub writes this file anew at every change: comments of yours are not kept. To take an
# answer back, remove its entry.
`

// change replaces the grants of the file by those that f returns, and returns them.
func (g *grantFile) change(f func([]Grant) ([]Grant, error)) ([]Grant, error) {
	unlock, err := statefile.Lock(g.path)
	if err != nil {
		return nil, fmt.Errorf("change grants: %w", err)
	}
	defer unlock()
	list, err := g.read()
	if err != nil {
		return nil, err
	}
	if list, err = f(list); err != nil {
		return nil, err
	}
	text, err := encodeGrants(list)
	if err == nil {
		err = statefile.Write(g.path, text)
	}
	if err != nil {
		return nil, fmt.Errorf("write grants: %w", err)
	}
	return list, nil
}

// Damaged stands between the name of a file of grants that was set aside and the time of that.
const Damaged = ".damaged-"

// setAside renames the file, which has a fault.
func (g *grantFile) setAside() error {
	unlock, err := statefile.Lock(g.path)
	if err != nil {
		return fmt.Errorf("set damaged grants aside: %w", err)
	}
	defer unlock()
	if _, err := g.read(); err == nil {
		return nil // another hub was quicker
	}
	return os.Rename(g.path, g.path+Damaged+time.Now().UTC().Format("20060102T150405.000000Z"))
}

// read returns the grants of the file, none where there is no file.
func (g *grantFile) read() ([]Grant, error) {
	data, err := readFile(g.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read grants: %w", err)
	}
	return parseGrants(g.path, data)
}

// encodeGrants writes each grant on one line of JSON, which YAML reads as well.
func encodeGrants(list []Grant) ([]byte, error) {
	text := []byte(grantFileHead + "grants:\n")
	if len(list) == 0 {
		return []byte(grantFileHead + "grants: []\n"), nil
	}
	for _, g := range list {
		g.Created, g.Expires = g.Created.UTC().Truncate(time.Second), g.Expires.UTC().Truncate(time.Second)
		line, err := rawjson.Encode(g)
		if err != nil {
			return nil, err
		}
		// the one character that JSON takes as it is and YAML does not
		line = bytes.ReplaceAll(line, []byte("\u007f"), []byte(`\u007f`))
		text = append(append(append(text, "  - "...), line...), '\n')
	}
	return text, nil
}

func parseGrants(file string, data []byte) ([]Grant, error) {
	var list []Grant
	if err := readText(file, data, each("grants", &list, readGrant)); err != nil {
		return nil, err
	}
	return list, nil
}

func readGrant(r *shape.Reader, n *textfile.Node) (g Grant, sound bool) {
	sound = shape.ReadFields(r, n,
		text("id", &g.ID),
		text("then", &g.Then),
		text("tool", &g.Tool),
		text("actor", &g.Actor),
		each("targets", &g.Scopes, readScope),
		text("exact", &g.Exact),
		text("schema", &g.Schema),
		text("says", &g.Says),
		text("by", &g.By),
		instant("created", &g.Created),
		instant("expires", &g.Expires))
	if !sound {
		return g, false
	}
	if err := g.check(); err != nil {
		r.Fault(n.Position, err.Error(), "")
	}
	if g.ID == "" {
		r.Fault(n.Position, "the grant has no id, so it could not be revoked", "write id: and any word")
	}
	return g, true
}

func readScope(r *shape.Reader, n *textfile.Node) (s Scope, sound bool) {
	sound = shape.ReadFields(r, n,
		text("kind", &s.Kind),
		text("under", &s.Under),
		text("host", &s.Host),
		text("executable", &s.Executable),
		text("as", &s.As),
		text("cwd", &s.CWD),
		text("argument", &s.Argument),
		text("resource", &s.Resource),
		boolean("remote", &s.Remote),
		boolean("write", &s.Write))
	return s, sound
}

package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
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
# The hub writes this file anew at every change: comments of yours are not kept. To take an answer back, remove its entry.
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
	if err := statefile.Write(g.path, []byte(encodeGrants(list))); err != nil {
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

func encodeGrants(list []Grant) string {
	var b strings.Builder
	b.WriteString(grantFileHead)
	if len(list) == 0 {
		b.WriteString("grants: []\n")
		return b.String()
	}
	b.WriteString("grants:\n")
	for _, g := range list {
		entry := "  - "
		put := func(key, value string) {
			if value != "" {
				b.WriteString(entry + key + ": " + value + "\n")
				entry = "    "
			}
		}
		quoted := func(key, text string) {
			if text != "" {
				put(key, yamlQuote(text))
			}
		}
		put("id", yamlQuote(g.ID))
		put("then", string(g.Then))
		quoted("tool", string(g.Tool))
		quoted("actor", g.Actor)
		for i, s := range g.Scopes {
			if i == 0 {
				b.WriteString("    targets:\n")
			}
			b.WriteString("      - " + s.yaml() + "\n")
		}
		quoted("exact", g.Exact)
		quoted("schema", g.Schema)
		quoted("says", g.Says)
		quoted("by", g.By)
		quoted("created", stamp(g.Created))
		quoted("expires", stamp(g.Expires))
	}
	return b.String()
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// yamlQuote writes a text in double quotes, as YAML and JSON both read it. Invalid UTF-8 is
// replaced: the grant then covers less, not more.
func yamlQuote(text string) string {
	return strings.ReplaceAll(string(rawjson.Quote(strings.ToValidUTF8(text, "\ufffd"))), "\u007f", `\u007f`)
}

// yaml is the scope on one line.
func (s *Scope) yaml() string {
	parts := []string{"kind: " + yamlQuote(string(s.Kind))}
	for _, p := range []struct{ key, value string }{
		{"under", s.Under}, {"host", s.Host}, {"executable", s.Executable}, {"as", s.As}, {"cwd", s.CWD},
		{"argument", s.Argument}, {"resource", s.Resource},
	} {
		if p.value != "" {
			parts = append(parts, p.key+": "+yamlQuote(p.value))
		}
	}
	if s.Remote {
		parts = append(parts, "remote: true")
	}
	if s.Write {
		parts = append(parts, "write: true")
	}
	return "{" + strings.Join(parts, ", ") + "}"
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

package clients

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// recordFile holds what connect did, in the state directory.
const recordFile = "connections.json"

// connection records what connect did to one client.
type connection struct {
	Path     string   `json:"path"`     // every link followed
	Created  bool     `json:"created"`  // there was no file
	Backup   string   `json:"backup"`   // the file as it is without the hub; "" where there was none
	Before   string   `json:"before"`   // SHA-256 of that
	After    string   `json:"after"`    // SHA-256 of the file with the hub
	Replaced []string `json:"replaced"` // servers that were taken out; see replacedName
	Tool     bool     `json:"tool"`     // the client's own command has written
	Step     int      `json:"step"`     // which run of connect this was

	Earlier *connection `json:"earlier,omitempty"` // the connect before, if this one has changed what that wrote
	Was     string      `json:"was,omitempty"`     // the file as it was between the two
}

// copies returns the paths of the files as they were between two connects.
func (c *connection) copies() (all []string) {
	for ; c != nil && c.Was != ""; c = c.Earlier {
		all = append(all, c.Was)
	}
	return all
}

// Connections is the record of the clients that connect has changed. Its methods plan and make changes.
type Connections struct {
	state string
	env   Env
	all   map[string]*connection // by key
}

// key returns the key of the connection of a file: the id of the client, and the file's path behind it where the
// client has another file as well, such as by CLAUDE_CONFIG_DIR.
func (s *Connections) key(c *Client, path string) string {
	if r := s.all[c.ID]; r == nil && !c.other || r != nil && r.Path == path {
		return c.ID
	}
	return c.ID + " " + path
}

// of returns the keys of a client's connections; those of the last step alone where last is set.
func (s *Connections) of(c *Client, last bool) (keys []string) {
	step := 0
	for _, r := range s.all {
		step = max(step, r.Step)
	}
	for key, r := range s.all {
		if id, _, _ := strings.Cut(key, " "); id == c.ID && (!last || r.Step == step) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// OpenConnections reads the record in the state directory. Nobody else may change it until unlock is called.
func OpenConnections(state string, env Env) (s *Connections, unlock func(), err error) {
	file := filepath.Join(state, recordFile)
	if unlock, err = statefile.Lock(file); err != nil {
		return nil, nil, fmt.Errorf("open the record of connections: %w", err)
	}
	s = &Connections{state: state, env: env, all: map[string]*connection{}}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, unlock, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s.all)
	}
	if err != nil {
		unlock()
		return nil, nil, fmt.Errorf("read the record of connections %q: %w", file, err)
	}
	return s, unlock, nil
}

// IDs returns the ids of the connected clients; of the last step alone where last is set.
func (s *Connections) IDs(last bool) []string {
	var ids []string
	for _, c := range All() {
		if len(s.of(&c, last)) > 0 {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Broken names the files that connect has changed, and that start a program which is not there.
func (s *Connections) Broken() (all []string) {
	for _, c := range All() {
		for _, key := range s.of(&c, false) {
			f, err := c.ReadClient(s.all[key].Path)
			if err != nil || f.Entry(c.Place, EntryName) == nil {
				continue
			}
			server := c.server(*f.Entry(c.Place, EntryName))
			if server == nil || !filepath.IsAbs(server.Command) {
				continue
			}
			if _, err := os.Stat(server.Command); errors.Is(err, fs.ErrNotExist) {
				all = append(all, fmt.Sprintf("%s: %s starts %s, which is not there", c.ID, s.all[key].Path, server.Command))
			}
		}
	}
	return all
}

// Plan says what connect, disconnect or undo will do to one client. Do carries it out.
type Plan struct {
	*Client
	Doc      *Document
	After    []byte     // of the file; nil where it goes
	Commands [][]string // run in place of changing the file
	Failed   error      // of a command, after Do: the file was changed then
	// path of the backup of an earlier connect, which nobody restores or removes now; "" for none
	Kept    string
	removed []string         // as connection.Replaced
	base    []byte           // the file without the hub
	trees   []*textfile.Node // what the file says, and will say: for Mask
	record  *connection      // afterwards; nil for none
	back    bool             // record is that of an earlier connect
	key     string           // of record
}

// Nothing reports whether the plan changes nothing.
func (p *Plan) Nothing() bool {
	return len(p.Commands) == 0 && (p.After == nil) == (p.Doc.Raw == nil) && bytes.Equal(p.After, p.Doc.Raw)
}

// ReadText parses a file. Faults name it as path.
func ReadText(format splice.Format, d *Document, path string) (*splice.File, error) {
	f, err := splice.Read(format, d.Raw)
	var faults textfile.Faults
	if errors.As(err, &faults) {
		return nil, named(faults, path)
	}
	return f, err
}

func named(faults textfile.Faults, path string) error {
	faults = slices.Clone(faults)
	for i := range faults {
		faults[i].File = path
	}
	return faults
}

// ReadClient reads and parses the client's file, which exists.
func (c *Client) ReadClient(path string) (*splice.File, error) {
	d, err := Open(path)
	if err != nil {
		return nil, err
	}
	return ReadText(c.Format, d, path)
}

// replaces reports whether an earlier connect has taken that server out. c may be nil.
func (c *connection) replaces(name string) bool { return c != nil && slices.Contains(c.Replaced, name) }

// Connect plans to write the hub into the file of a client, and to take out the servers for which
// replaced returns true. A hub that somebody has put there by hand, as EntryName, is replaced, too.
func (s *Connections) Connect(c *Client, h Hub, replaced func(*Server) bool) (*Plan, error) {
	entry, err := c.entry(h)
	if err != nil {
		return nil, err
	}
	path := c.File(s.env)
	if path == "" {
		return nil, fmt.Errorf("%s: the environment names no home directory", c.Title)
	}
	c = c.reading(path)
	d, err := Open(path)
	if err != nil {
		return nil, err
	}
	current, err := ReadText(c.Format, d, path)
	if err != nil {
		return nil, err
	}
	base, raw := current, d.Raw
	key := s.key(c, d.Path)
	old := s.all[key]
	if d.Raw == nil { // somebody has deleted the file: the client starts afresh
		old = nil
	}
	if old != nil && old.Path == d.Path {
		base, raw, err = s.without(c, old, d, current)
		switch {
		case err != nil && current.Entry(c.Place, EntryName) != nil:
			return nil, err
		case err != nil: // there is nothing of that connect left, and nothing to bring back
			old, base, raw = nil, current, d.Raw
		}
	}
	p := &Plan{Client: c, Doc: d, base: raw, key: key}
	with := base
	for _, place := range append([]splice.Place{c.Place}, c.projectPlaces(base)...) {
		for _, e := range base.Entries(place) {
			if server := c.server(e); server != nil && (old.replaces(c.replacedName(place, e.Name)) ||
				replaced(server) || place.Path[0] == c.Path[0] && h.stands(server)) {
				if with, err = with.TakeKeepingKey(place, e.Name); err != nil {
					return nil, fmt.Errorf("%s: take out %q: %w", path, e.Name, err)
				}
				p.removed = append(p.removed, c.replacedName(place, e.Name))
			}
		}
	}
	if with.Entry(c.Place, EntryName) != nil {
		return nil, fmt.Errorf("%s:%d: a server %q stands there that connect has not written: rename or remove it",
			path, base.Entry(c.Place, EntryName).Line, EntryName)
	}
	if with, err = with.Put(c.Place, EntryName, entry); err != nil {
		return nil, placed(err, path)
	}
	p.trees = []*textfile.Node{current.Root, with.Root}
	have := []string{EntryName} // an entry by hand that says the same
	if old != nil {
		have = old.Replaced
	}
	now := current.Entry(c.Place, EntryName)
	if slices.Equal(p.removed, have) && now != nil && splice.Equal(with.Entry(c.Place, EntryName).Value, now.Value) {
		p.After, p.record = d.Raw, old
		return p, nil
	}
	if err := d.replaceable(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p.After = with.Bytes()
	p.record = s.newRecord(p, old)
	if last := s.all[key]; last != nil && last.Backup != "" && last.Backup != p.record.Backup {
		if _, err := os.Stat(last.Backup); err == nil {
			p.Kept = last.Backup
		}
	}
	p.useTool(current, h)
	return p, nil
}

// newRecord returns the record of a planned connect. old is that of the connect before; nil for none.
func (s *Connections) newRecord(p *Plan, old *connection) *connection {
	r := &connection{Path: p.Doc.Path, Created: p.base == nil, Before: sum(p.base), After: sum(p.After),
		Replaced: p.removed}
	if p.base != nil {
		r.Backup = s.backupName(old, r.Path, "")
	}
	if old != nil && old.Path == r.Path {
		r.Earlier, r.Was = old, s.backupName(nil, r.Path, r.Backup)
	}
	return r
}

// useTool lets the client's own command connect it, where it has one that can. Other users could
// read a token on its command line.
func (p *Plan) useTool(current *splice.File, h Hub) {
	if p.tool == nil || h.Token != "" || slices.ContainsFunc(p.removed, isOfProject) {
		return
	}
	program, err := exec.LookPath(p.tool.program)
	if err != nil {
		return
	}
	p.record.Tool = true
	for _, e := range current.Entries(p.Place) {
		if e.Name == EntryName || slices.Contains(p.removed, e.Name) {
			p.Commands = append(p.Commands, append([]string{program}, p.tool.remove(e.Name)...))
		}
	}
	p.Commands = append(p.Commands, append([]string{program}, p.tool.add(EntryName, h)...))
}

// projectMark stands in a replacedName before the project.
const projectMark = "\x00"

// replacedName is the name of a server that was taken out. That of a single project has the project
// behind it. The client's own command changes servers for all projects only.
func (c *Client) replacedName(p splice.Place, name string) string {
	if len(p.Path) > len(c.Place.Path) {
		name += projectMark + p.Path[1]
	}
	return name
}

func (c *Client) replacedPlace(replaced string) (p splice.Place, name string) {
	name, project, found := strings.Cut(replaced, projectMark)
	if !found {
		return c.Place, name
	}
	return splice.Place{Path: []string{"projects", project, "mcpServers"}}, name
}

func isOfProject(replaced string) bool { return strings.Contains(replaced, projectMark) }

// placed adds the path of the file to an error.
func placed(err error, path string) error {
	var faults textfile.Faults
	if errors.As(err, &faults) {
		return named(faults, path)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// backupName returns the path of the backup: the one in use, otherwise one beside the file that does
// not exist yet, and is not taken.
func (s *Connections) backupName(old *connection, path, taken string) string {
	if old != nil && old.Backup != "" && old.Path == path {
		return old.Backup
	}
	for i := 1; ; i++ {
		name := path + ".before-toolhub"
		if i > 1 {
			name += fmt.Sprint("-", i)
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) && name != taken {
			return name
		}
	}
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// without takes out of the file what connect has put there, and returns the file and its text. If
// nobody else has written since, or the file is gone or empty, that is the file from before
// connect. Otherwise the edit of connect is taken back; where others have written within it, the
// hub is taken out, and each replaced server is put back that is missing. The text is nil where
// there was no file.
func (s *Connections) without(c *Client, old *connection, d *Document, current *splice.File) (*splice.File, []byte,
	error) {
	var before *splice.File
	var backup []byte
	if old.Created {
		before, _ = splice.Read(c.Format, nil)
	}
	if old.Backup != "" {
		was, err := Open(old.Backup)
		if err == nil && was.Raw != nil && sum(was.Raw) == old.Before {
			backup = was.Raw
			if before, err = splice.Read(c.Format, backup); err != nil {
				before = nil
			}
		}
	}
	emptied := len(bytes.TrimSpace(d.Raw)) == 0 // or it is not there: what it held is in the backup alone
	switch {
	case (sum(d.Raw) == old.After || emptied) && (backup != nil || old.Created):
		f, err := splice.Read(c.Format, backup)
		return f, backup, err
	case d.Raw == nil:
		return nil, nil,
			fmt.Errorf("%s: the file is not there, and its backup %q was changed: put one of them in its place", d.Path,
				old.Backup)
	}
	if f := c.undone(before, current, old); f != nil {
		return f, f.Bytes(), nil
	}
	f, err := current, error(nil)
	if f.Entry(c.Place, EntryName) != nil {
		if f, err = c.takeHub(f, before); err != nil {
			return nil, nil, placed(err, d.Path)
		}
	}
	for _, replaced := range old.Replaced {
		place, name := c.replacedPlace(replaced)
		if f.Entry(place, name) != nil {
			continue
		}
		if before == nil {
			return nil, nil,
				fmt.Errorf("%s: the backup %q, with the server %q that was replaced, is not there or was changed",
					d.Path, old.Backup, name)
		}
		text, err := before.Text(place, name)
		if err == nil {
			f, err = f.PutText(place, name, text)
		}
		if err != nil {
			return nil, nil, placed(err, d.Path)
		}
	}
	return f, f.Bytes(), nil
}

// undone returns the file without what connect has done to it. All else stays as others have
// written it. It returns nil where the edit of connect cannot be told from theirs.
func (c *Client) undone(before, current *splice.File, old *connection) *splice.File {
	if before == nil {
		return nil
	}
	entry, err := c.written(current)
	if err != nil {
		return nil
	}
	with := before
	for _, replaced := range old.Replaced {
		place, name := c.replacedPlace(replaced)
		if with, err = with.TakeKeepingKey(place, name); err != nil {
			return nil
		}
	}
	with, err = with.Put(c.Place, EntryName, entry)
	if err != nil || sum(with.Bytes()) != old.After {
		return nil
	}
	return splice.Undo(with, current)
}

// written returns the hub's entry in a file as connect writes it.
func (c *Client) written(f *splice.File) (splice.Object, error) {
	e := f.Entry(c.Place, EntryName)
	if e == nil {
		return nil, errNoHub
	}
	s := c.server(*e)
	if s == nil {
		return nil, errNoHub
	}
	h := Hub{Command: s.Command, Args: s.Args, URL: s.URL}
	if len(s.Headers) > 0 {
		h.Token = strings.TrimPrefix(s.Headers[0].Value, "Bearer ")
	}
	return c.entry(h)
}

var errNoHub = errors.New("the hub is not there")

// takeHub takes the hub out of a file. The key above it goes where connect has put it there, and
// nothing else is below. before is the file from before connect; nil where it is not known.
func (c *Client) takeHub(f, before *splice.File) (*splice.File, error) {
	take := f.Take
	if before != nil && before.At(c.Path...) != nil {
		take = f.TakeKeepingKey
	}
	f, err := take(c.Place, EntryName)
	top, key := splice.Place{Path: c.Path[:len(c.Path)-1]}, c.Path[len(c.Path)-1]
	if err != nil || before == nil || f.Entry(top, key) == nil || before.Entry(top, key) != nil {
		return f, err
	}
	if n := f.At(c.Path...); len(n.Members)+len(n.Items) > 0 { // also items without a name
		return f, nil
	}
	if text, err := f.Text(top, key); err != nil || f.Format == splice.JSON &&
		!strings.HasSuffix(strings.Join(strings.Fields(text), ""), "{}") {
		return f, nil // somebody's comment stands there
	}
	return f.Take(top, key)
}

// Disconnect plans to take out of a client's files what connect has put there. With last it plans to
// take back the last connect alone: a client that was connected before stays so.
func (s *Connections) Disconnect(c *Client, last bool) (plans []*Plan, err error) {
	keys := s.of(c, last)
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s is not connected by this hub: mcp-toolhub connect %s connects it", c.Title, c.ID)
	}
	for _, key := range keys {
		undo := s.disconnect
		if last && s.all[key].Earlier != nil {
			undo = s.takeBack
		}
		p, planErr := undo(c, s.all[key])
		if planErr != nil {
			err = errors.Join(err, planErr)
			continue
		}
		p.key = key
		plans = append(plans, p)
	}
	return plans, err
}

// takeBack plans to take back the last of several connects. If nobody else has written since, the
// file becomes what it was before that, byte for byte.
func (s *Connections) takeBack(c *Client, old *connection) (*Plan, error) {
	d, err := Open(old.Path)
	if err != nil {
		return nil, err
	}
	current, err := ReadText(c.Format, d, old.Path)
	if err != nil {
		return nil, err
	}
	base, raw, err := s.without(c, old, d, current)
	if err != nil {
		return nil, err
	}
	was, err := c.ReadClient(old.Was)
	var entry splice.Object
	if err == nil {
		entry, err = c.written(was)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the copy %q from before the last connect is not there or was changed: "+
			"mcp-toolhub undo %s takes the hub out", old.Path, old.Was, c.ID)
	}
	after := was
	if sum(d.Raw) != old.After {
		after = base
		for _, replaced := range old.Earlier.Replaced {
			place, name := c.replacedPlace(replaced)
			if after.Entry(place, name) == nil {
				continue
			}
			if after, err = after.TakeKeepingKey(place, name); err != nil {
				return nil, placed(err, old.Path)
			}
		}
		if after, err = after.Put(c.Place, EntryName, entry); err != nil {
			return nil, placed(err, old.Path)
		}
	}
	earlier := *old.Earlier
	earlier.Created, earlier.Backup, earlier.Before = raw == nil, old.Backup, sum(raw)
	earlier.After = sum(after.Bytes())
	return &Plan{Client: c, Doc: d, After: after.Bytes(), base: raw, record: &earlier, back: true,
		trees: []*textfile.Node{current.Root, after.Root}}, nil
}

func (s *Connections) disconnect(c *Client, old *connection) (*Plan, error) {
	d, err := Open(old.Path)
	if err != nil {
		return nil, err
	}
	_, lost := os.Stat(old.Backup)
	if d.Raw == nil && errors.Is(lost, fs.ErrNotExist) || sum(d.Raw) == old.Before {
		return &Plan{Client: c, Doc: d, After: d.Raw}, nil
	}
	current, err := ReadText(c.Format, d, old.Path)
	if err != nil {
		return nil, err
	}
	p := &Plan{Client: c, Doc: d}
	after, text, err := s.without(c, old, d, current)
	if err != nil {
		return nil, err
	}
	p.After, p.trees = text, []*textfile.Node{current.Root, after.Root}
	now, err := Open(c.File(s.env)) // the client's own command changes no other file
	if old.Tool && sum(d.Raw) != old.After && len(old.Replaced) == 0 && err == nil && now.Path == old.Path {
		if program, err := exec.LookPath(c.tool.program); err == nil && current.Entry(c.Place, EntryName) != nil {
			p.Commands = [][]string{append([]string{program}, c.tool.remove(EntryName)...)}
		}
	}
	return p, nil
}

package clients_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
)

var hub = clients.Hub{Command: "/opt/bin/mcp-toolhub", Args: []string{"serve", "--stdio", "--config", `/home/ann/a "b".yaml`}}

var remote = clients.Hub{URL: "http://127.0.0.1:8808/mcp", Token: "token-of-the-hub"}

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))) // most tests wait for the disk
	os.Exit(m.Run())
}

// samples returns what each client writes, by its id.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "samples.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range archive.Files {
		all[f.Name] = f.Data
		if !bytes.Contains(archive.Comment, []byte("\n"+f.Name+": ")) {
			t.Errorf("the sample %q names no source", f.Name)
		}
	}
	return all
}

// machine is a home directory with clients, and the hub's state beside it.
type machine struct {
	t    testing.TB
	env  clients.Env
	home string
}

func newMachine(t testing.TB) machine {
	home := t.TempDir()
	return machine{t, clients.Env{OS: "linux", Lookup: func(name string) (string, bool) { return home, name == "HOME" }}, home}
}

func (m machine) write(id string, data []byte, mode os.FileMode) string {
	m.t.Helper()
	path := clients.ByID(id).File(m.env)
	must(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(m.t, os.WriteFile(path, data, mode))
	must(m.t, os.Chmod(path, mode))
	return path
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// connections opens the record, lets use it, and closes it.
func (m machine) connections(use func(s *clients.Connections) error) error {
	m.t.Helper()
	s, unlock, err := clients.OpenConnections(filepath.Join(m.home, "state"), m.env)
	must(m.t, err)
	defer unlock()
	return use(s)
}

func (m machine) connect(id string, h clients.Hub, replaced func(*clients.Server) bool) error {
	return m.connections(func(s *clients.Connections) error {
		p, err := s.Connect(clients.ByID(id), h, replaced)
		if err != nil {
			return err
		}
		return s.Do(context.Background(), []*clients.Plan{p})
	})
}

func (m machine) disconnect(id string) error {
	return m.connections(func(s *clients.Connections) error {
		plans, err := s.Disconnect(clients.ByID(id), false)
		if err != nil {
			return err
		}
		return s.Do(context.Background(), plans)
	})
}

func none(*clients.Server) bool { return false }

func contents(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// variants of a sample that mean the same.
func variants(data []byte) map[string][]byte {
	crlf := bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	return map[string][]byte{
		"as it is": data, "CRLF": crlf, "BOM": append([]byte("\xef\xbb\xbf"), data...), "BOM and CRLF": append([]byte("\xef\xbb\xbf"), crlf...),
		"no last line end": bytes.TrimRight(data, "\n"), "empty lines at the end": append(slices.Clone(data), "\n \n\n"...), "empty": {},
		"white space": []byte("\n\n"),
	}
}

// TestConnectAndDisconnect: after both, each client's file is byte for byte what it was, and so is its mode. In between, the hub is
// there, every byte of the file still is, and its other servers read the same.
func TestConnectAndDisconnect(t *testing.T) {
	t.Parallel()
	all := samples(t)
	for _, c := range clients.All() {
		if all[c.ID] == nil {
			t.Errorf("there is no sample of %s", c.Title)
		}
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel() // the disk makes it wait
			for name, data := range variants(all[c.ID]) {
				for _, h := range []clients.Hub{hub, remote} {
					if h.URL != "" && c.ID == "claude-desktop" {
						continue
					}
					m := newMachine(t)
					path := m.write(c.ID, data, 0o640)
					before, err := c.ReadClient(path)
					must(t, err)
					if err := m.connect(c.ID, h, none); err != nil {
						t.Errorf("%s, %s: %v", c.ID, name, err)
						continue
					}
					now := contents(t, path)
					if missing := notWithin(string(data), now); missing >= 0 {
						t.Errorf("%s, %s: byte %d of the file is gone:\n%s", c.ID, name, missing, now)
					}
					if bytes.Contains(data, []byte("\r\n")) &&
						strings.Contains(strings.ReplaceAll(now, "\r\n", ""), "\n") {
						t.Errorf("%s, %s: mixed line ends:\n%q", c.ID, name, now)
					}
					f, err := c.ReadClient(path)
					must(t, err)
					servers := c.Read(f, path)
					i := slices.IndexFunc(servers, func(s clients.Server) bool { return s.Name == clients.EntryName })
					if i < 0 || h.URL == "" && (!servers[i].IsHub() || !slices.Equal(servers[i].Args, h.Args)) ||
						servers[i].URL != h.URL ||
						servers[i].SSE || servers[i].Disabled ||
						h.Token != "" && (len(servers[i].Headers) != 1 ||
							servers[i].Headers[0].Value != "Bearer "+h.Token) {
						t.Errorf("%s, %s: the hub does not read as it was written: %+v\n%s", c.ID, name, servers, now)
						continue
					}
					same := func(a, b clients.Server) bool { return a.Same(b) }
					if !slices.EqualFunc(c.Read(before, path), slices.Delete(servers, i, i+1), same) {
						t.Errorf("%s, %s: other servers have changed", c.ID, name)
					}
					for _, file := range []string{path, path + ".before-toolhub"} {
						if info, err := os.Stat(file); err != nil ||
							runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
							t.Errorf("%s, %s: %s: %v, %v", c.ID, name, file, info, err)
						}
					}
					must(t, m.disconnect(c.ID))
					info, err := os.Stat(path)
					must(t, err)
					if got := contents(t, path); got != string(data) || info.Mode().Perm() != 0o640 {
						t.Errorf("%s, %s: afterwards the file is other, mode %o:\n%s", c.ID, name, info.Mode(), got)
					}
					if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
						t.Errorf("%s, %s: left behind: %q", c.ID, name, left)
					}
				}
			}
		})
	}
}

// notWithin returns the index of the first byte of part that is not in whole, in the same order; -1 for none.
func notWithin(part, whole string) int {
	for i := range len(part) {
		at := strings.IndexByte(whole, part[i])
		if at < 0 {
			return i
		}
		whole = whole[at+1:]
	}
	return -1
}

// TestNoFile: a client without a file gets one for its owner alone, which disconnect takes away.
func TestNoFile(t *testing.T) {
	t.Parallel()
	for _, c := range clients.All() {
		m := newMachine(t)
		path := c.File(m.env)
		must(t, m.connect(c.ID, hub, none))
		info, err := os.Stat(path)
		must(t, err)
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %o", c.ID, info.Mode())
		}
		must(t, m.disconnect(c.ID))
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: the file is still there", c.ID)
		}
	}
}

// TestReplace takes out all servers of a client, and brings them back although somebody has written in between.
func TestReplace(t *testing.T) {
	t.Parallel()
	for id, data := range samples(t) {
		c := clients.ByID(id)
		m := newMachine(t)
		path := m.write(id, data, 0o600)
		before, err := c.ReadClient(path)
		must(t, err)
		if err := m.connect(id, hub, func(*clients.Server) bool { return true }); err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		f, err := c.ReadClient(path)
		must(t, err)
		for _, s := range c.Read(f, path) {
			if s.Name != clients.EntryName {
				t.Errorf("%s: %q is still there:\n%s", id, s.Name, contents(t, path))
			}
		}
		if f, err = f.Put(c.Place, "another", splice.Object{{Key: "command", Value: "true"}}); err != nil {
			t.Fatal(err)
		}
		must(t, os.WriteFile(path, f.Bytes(), 0o600))
		if err := m.disconnect(id); err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		after, err := c.ReadClient(path)
		must(t, err)
		if was, is := before.At("projects"), after.At("projects"); !splice.Equal(was, is) {
			t.Errorf("%s: servers of a project have not come back:\n%s", id, contents(t, path))
		}
		for _, e := range before.Entries(c.Place) {
			if back := after.Entry(c.Place, e.Name); back == nil || !splice.Equal(back.Value, e.Value) {
				t.Errorf("%s: %q has not come back:\n%s", id, e.Name, contents(t, path))
			}
		}
		if after.Entry(c.Place, clients.EntryName) != nil || after.Entry(c.Place, "another") == nil {
			t.Errorf("%s: it should have lost the hub alone:\n%s", id, contents(t, path))
		}
	}
}

// TestConnectAgain: a second connect changes the entry, and disconnect still brings back the file of before the first, with what somebody
// else has written in between.
func TestConnectAgain(t *testing.T) {
	t.Parallel()
	for id, data := range samples(t) {
		if id == "claude-desktop" {
			continue
		}
		m := newMachine(t)
		path := m.write(id, data, 0o600)
		must(t, m.connect(id, hub, none))
		first := contents(t, path)
		must(t, m.connect(id, hub, none))
		if contents(t, path) != first {
			t.Errorf("%s: the same again changes the file", id)
		}
		must(t, m.connect(id, remote, none))
		if now := contents(t, path); strings.Contains(now, "--stdio") || !strings.Contains(now, remote.URL) {
			t.Errorf("%s: the entry is the old one:\n%s", id, now)
		}
		must(t, m.disconnect(id))
		if contents(t, path) != string(data) {
			t.Errorf("%s: afterwards the file is other:\n%s", id, contents(t, path))
		}

		must(t, m.connect(id, hub, none))
		f, err := clients.ByID(id).ReadClient(path)
		must(t, err)
		other := splice.Object{{Key: "command", Value: "true"}}
		f, err = f.Put(clients.ByID(id).Place, "another", other)
		must(t, err)
		must(t, os.WriteFile(path, f.Bytes(), 0o600))
		must(t, m.connect(id, remote, none))
		must(t, m.disconnect(id))
		f, err = splice.Read(clients.ByID(id).Format, data)
		must(t, err)
		f, err = f.Put(clients.ByID(id).Place, "another", other)
		must(t, err)
		if contents(t, path) != string(f.Bytes()) {
			t.Errorf("%s: what somebody else has written:\n%s\nwant:\n%s", id, contents(t, path), f.Bytes())
		}
	}
}

// TestSeveralConfigDirs: the servers of each directory that Claude Code was used with are found, and each file is connected by itself.
func TestSeveralConfigDirs(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	files := map[string]string{}
	for _, dir := range []string{"", ".claude-work", ".claude-home"} {
		path := filepath.Join(m.home, dir, ".claude.json")
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		files[path] = `{"mcpServers": {"of` + dir + `": {"command": "true"}}}`
		must(t, os.WriteFile(path, []byte(files[path]), 0o600))
	}
	c := clients.ByID("claude-code")
	if found := c.Sources(m.env); len(found) != len(files) {
		t.Errorf("found %d files", len(found))
	}
	must(t, m.connections(func(s *clients.Connections) error {
		var plans []*clients.Plan
		for _, one := range append(c.Others(m.env), c) {
			p, err := s.Connect(one, hub, none)
			must(t, err)
			p.Commands = nil
			plans = append(plans, p)
		}
		return s.Do(t.Context(), plans)
	}))
	for path := range files {
		if !strings.Contains(contents(t, path), hub.Command) {
			t.Errorf("%s has no hub", path)
		}
	}
	must(t, m.disconnect("claude-code"))
	for path, was := range files {
		if got := contents(t, path); got != was {
			t.Errorf("%s is other afterwards: %s", path, got)
		}
	}
}

// TestUndoOfTheLastConnect: after a second connect with something else, the first undo brings back the file of the first, byte for byte,
// or with what somebody else has written since; the second undo brings back the file of before.
func TestUndoOfTheLastConnect(t *testing.T) {
	t.Parallel()
	for id, data := range samples(t) {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			c := clients.ByID(id)
			other := clients.Hub{Command: hub.Command, Args: append(slices.Clone(hub.Args), "--profile", "other")}
			undo := func(m machine) {
				t.Helper()
				must(t, m.connections(func(s *clients.Connections) error {
					plans, err := s.Disconnect(c, true)
					must(t, err)
					return s.Do(t.Context(), plans)
				}))
			}
			for _, replaced := range []func(*clients.Server) bool{none, func(*clients.Server) bool { return true }} {
				m := newMachine(t)
				path := m.write(id, data, 0o600)
				must(t, m.connect(id, hub, replaced))
				first := contents(t, path)
				must(t, m.connect(id, other, none))
				must(t, m.connect(id, hub, none))
				undo(m)
				undo(m)
				if got := contents(t, path); got != first {
					t.Errorf("%s: after the undo of the second connect:\n%s\nwant:\n%s", id, got, first)
				}
				undo(m)
				if got := contents(t, path); got != string(data) {
					t.Errorf("%s: after the undo of both:\n%s", id, got)
				}
				if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
					t.Errorf("%s: left behind: %q", id, left)
				}
			}

			m, fresh := newMachine(t), newMachine(t)
			another := func(path string) {
				f, err := c.ReadClient(path)
				must(t, err)
				f, err = f.Put(c.Place, "another", splice.Object{{Key: "command", Value: "true"}})
				must(t, err)
				must(t, os.WriteFile(path, f.Bytes(), 0o600))
			}
			path, want := m.write(id, data, 0o600), fresh.write(id, data, 0o600)
			must(t, m.connect(id, hub, none))
			must(t, m.connect(id, other, none))
			another(path)
			undo(m)
			another(want)
			must(t, fresh.connect(id, hub, none))
			if got := contents(t, path); got != contents(t, want) {
				t.Errorf("%s: with what somebody else has written:\n%s\nwant:\n%s", id, got, contents(t, want))
			}
			undo(m)
			must(t, fresh.disconnect(id))
			if got := contents(t, path); got != contents(t, want) {
				t.Errorf("%s: after the undo of both, with that:\n%s\nwant:\n%s", id, got, contents(t, want))
			}
		})
	}
}

// TestRefusals: what connect leaves alone, and what it says.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ id, text, want string }{
		{"cursor", "{\n  \"mcpServers\": {\n    oops\n", "mcp.json:3:5: not valid JSON here"},
		{"codex", "a = 1\nb = = 2\n", "config.toml:2:5: not valid TOML here"},
		{"goose", "a: 1\nb: [1\nc: 2\n", "config.yaml:"},
		{"cursor", "[]", "mcp.json:1:1: the file holds a list, not a mapping"},
		{"cursor", `{"mcpServers": []}`, "mcp.json:1:16: mcpServers: holds a list"},
		{"cursor", `{"mcpServers": {}, "mcpServers": {}}`, "this key stands here twice"},
		{"goose", "extensions: none\n", "config.yaml:1:13: extensions: holds a string"},
		{"cursor", `{"mcpServers": {"toolhub": {"command": "other"}}}`, `mcp.json:1: a server "toolhub" stands there`},
		{"cursor", `{"mcpServers": {"toolhub": {"url": "https://other.example/mcp"}}}`, `mcp.json:1: a server "toolhub" stands there`},
		{"cursor", "\xff\xfe{\x00}\x00", "UTF-16"},
		{"codex", "mcp_servers = { a = { command = \"x\" } }\n", "edit the file by hand"},
	} {
		m := newMachine(t)
		path := m.write(test.id, []byte(test.text), 0o600)
		err := m.connect(test.id, hub, none)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v", test.text, err)
		}
		if contents(t, path) != test.text {
			t.Errorf("%q was changed", test.text)
		}
	}
	m := newMachine(t)
	path := m.write("cursor", []byte("{}"), 0o444)
	if err := m.connect("cursor", hub, none); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a read-only file: %v", err)
	}
	if left, _ := filepath.Glob(path + "?*"); contents(t, path) != "{}" || len(left) > 0 {
		t.Errorf("a read-only file was changed, or something is left: %q", left)
	}
}

// TestLink: a link stays one, and the file that it leads to changes.
func TestLink(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	path := m.write("cursor", nil, 0o600)
	real := filepath.Join(m.home, "dotfiles", "cursor.json")
	must(t, os.MkdirAll(filepath.Dir(real), 0o755))
	must(t, os.WriteFile(real, []byte("{}\n"), 0o600))
	must(t, os.Remove(path))
	if err := os.Symlink(real, path); err != nil {
		t.Skip("this system makes no links here: ", err)
	}
	must(t, m.connect("cursor", hub, none))
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(contents(t, real), clients.EntryName) {
		t.Errorf("the link: %v, %v; the file: %s", info.Mode(), err, contents(t, real))
	}
	must(t, m.disconnect("cursor"))
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 || contents(t, real) != "{}\n" {
		t.Errorf("the link: %v, %v; the file: %s", info.Mode(), err, contents(t, real))
	}
	must(t, os.Remove(real))
	if err := m.connect("cursor", hub, none); err == nil || !strings.Contains(err.Error(), "leads nowhere") {
		t.Errorf("a link that leads nowhere: %v", err)
	}
}

// TestAllOrNothing: where one of two files was changed meanwhile, neither is written, and nothing is recorded.
func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	cursor, kiro := m.write("cursor", []byte("{}"), 0o600), m.write("kiro", []byte("{}"), 0o600)
	err := m.connections(func(s *clients.Connections) error {
		var plans []*clients.Plan
		for _, id := range []string{"cursor", "kiro"} {
			p, err := s.Connect(clients.ByID(id), hub, none)
			must(t, err)
			plans = append(plans, p)
		}
		must(t, os.WriteFile(kiro, []byte(`{"x": 1}`), 0o600))
		return s.Do(context.Background(), plans)
	})
	if err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("a file that was changed meanwhile: %v", err)
	}
	if contents(t, cursor) != "{}" || contents(t, kiro) != `{"x": 1}` {
		t.Errorf("written: %s, %s", contents(t, cursor), contents(t, kiro))
	}
	must(t, m.connections(func(s *clients.Connections) error {
		if ids := s.IDs(false); len(ids) > 0 {
			t.Errorf("recorded: %q", ids)
		}
		return nil
	}))
	for _, path := range []string{cursor, kiro} {
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// TestFileIsGone: where the client's file is gone or empty, disconnect brings back from the backup what it held. So does connect where it
// is empty.
func TestFileIsGone(t *testing.T) {
	t.Parallel()
	for id, data := range samples(t) {
		for i, gone := range []func(path string) error{os.Remove, func(path string) error { return os.Truncate(path, 0) }} {
			m := newMachine(t)
			path := m.write(id, data, 0o640)
			must(t, m.connect(id, hub, func(*clients.Server) bool { return true }))
			with := contents(t, path)
			must(t, gone(path))
			if i > 0 {
				must(t, m.connect(id, hub, func(*clients.Server) bool { return true }))
				if contents(t, path) != with {
					t.Errorf("%s: connected again: %s", id, contents(t, path))
				}
				must(t, gone(path))
			}
			must(t, m.disconnect(id))
			if contents(t, path) != string(data) {
				t.Errorf("%s: afterwards the file is other:\n%s", id, contents(t, path))
			}
		}
	}
	m := newMachine(t)
	path := m.write("cursor", []byte("{}"), 0o600)
	must(t, m.connect("cursor", hub, none))
	must(t, os.Remove(path))
	must(t, os.WriteFile(path+".before-toolhub", []byte("{} // mine"), 0o600))
	if err := m.disconnect("cursor"); err == nil || !strings.Contains(err.Error(), "its backup") {
		t.Errorf("a backup that was changed: %v", err)
	}
	must(t, os.Remove(path+".before-toolhub"))
	must(t, m.disconnect("cursor"))
}

// TestConnectAfterDeletion: a client whose file somebody has deleted since the last connect is as one that never had a file. The backup of
// what it held stays, and the plan names it.
func TestConnectAfterDeletion(t *testing.T) {
	t.Parallel()
	for id, data := range samples(t) {
		m := newMachine(t)
		fresh := clients.ByID(id).File(m.env)
		must(t, m.connect(id, hub, none))
		want := contents(t, fresh)
		must(t, m.disconnect(id))

		path := m.write(id, data, 0o644)
		must(t, m.connect(id, hub, none))
		must(t, os.Remove(path))
		must(t, m.connections(func(s *clients.Connections) error {
			p, err := s.Connect(clients.ByID(id), hub, none)
			must(t, err)
			if p.Kept != path+".before-toolhub" {
				t.Errorf("%s: the plan keeps %q", id, p.Kept)
			}
			return s.Do(t.Context(), []*clients.Plan{p})
		}))
		if got := contents(t, path); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", id, info.Mode(), err)
		}
		must(t, m.disconnect(id))
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: the file is still there", id)
		}
		if got := contents(t, path+".before-toolhub"); got != string(data) {
			t.Errorf("%s: the backup holds %q", id, got)
		}
	}
}

// TestHomeBehindLink: a client's file that connect makes below a link is the same one for the next connect.
func TestHomeBehindLink(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	link := filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(m.home, link); err != nil {
		t.Skip(err)
	}
	m.env.Lookup = func(name string) (string, bool) { return link, name == "HOME" }
	must(t, m.connect("cursor", hub, none))
	must(t, m.connect("cursor", remote, none))
	must(t, m.disconnect("cursor"))
	if _, err := os.Stat(clients.ByID("cursor").File(m.env)); err == nil {
		t.Error("the file is still there")
	}
}

// TestKeyAboveTheHub: after somebody else has written, the key above the hub goes if connect has put it there, and stays if not.
func TestKeyAboveTheHub(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ id, text string }{
		{"gemini", "{\n  \"theme\": \"dark\"\n}\n"},
		{"zed", "{\n  // mine\n  \"theme\": \"dark\", // too\n}\n"},
		{"vscode", "{\"theme\": \"dark\"}"},
		{"opencode", "{\n  \"theme\": \"dark\",\n  \"mcp\": {\n  }\n}\n"},
		{"amp", "{\n  \"amp.mcpServers\": {},\n  \"theme\": \"dark\"\n}\n"},
		{"amp", "{\"amp.mcpServers\": { }, \"theme\": \"dark\"}"},
		{"goose", "theme: dark\nextensions:\n  # none yet\nz: 1\n"},
		{"goose", "theme: dark\nextensions: {}\n"},
		{"goose", "theme: dark\n"},
		{"continue", "theme: dark\nmcpServers:\nz: 1\n"},
		{"continue", "theme: dark\n"},
		{"goose", "theme: dark\nextensions:\n  a:\n    cmd: x\n\n# end\nz: 1\n"},
		{"continue", "theme: dark\nmcpServers:\n  - name: a\n    command: x\nz: 1\n"},
		{"codex", "theme = 'dark'\n"},
		{"codex", "theme = 'dark'"},
		{"goose", "a: 1\r\ntheme: dark"},
		{"continue", "theme: dark\nmcpServers:"},
	} {
		m := newMachine(t)
		path := m.write(test.id, []byte(test.text), 0o600)
		must(t, m.connect(test.id, hub, func(*clients.Server) bool { return true }))
		must(t, os.WriteFile(path, []byte(strings.Replace(contents(t, path), "dark", "light", 1)), 0o600))
		must(t, m.disconnect(test.id))
		if got, want := contents(t, path), strings.Replace(test.text, "dark", "light", 1); got != want {
			t.Errorf("%s: %q has become %q", test.id, want, got)
		}
	}
}

// TestUndoOfReplace: what somebody else has written elsewhere stays, and all else is what it was before connect --replace, byte for byte.
func TestUndoOfReplace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ id, text string }{
		{"cursor", "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"a\"\n    },\n    \"b\": {\"command\": \"b\"}\n  },\n  \"end\": 1\n}\n"},
		{"cursor", "{\n\t\"theme\": \"dark\",\n\t\"mcpServers\": {\n\t\t\"a\": {\n\t\t\t\"command\": \"a\"\n\t\t}\n\t},\n\t\"end\": 1\n}"},
		{"cursor", "{\"theme\": \"dark\", \"mcpServers\": {\"a\": {\"command\": \"a\"}, \"b\": {\"command\": \"b\"}}, \"end\": 1}"},
		{"cursor", "{\"theme\":\"dark\",\"mcpServers\":{ \"a\" : {\"command\":\"a\"} , \"b\":{\"command\":\"b\"} },\"end\":1}"},
		{"vscode", "{\n    // mine\n    \"theme\": \"dark\",\n    \"servers\": {\n        // a\n        \"a\": {\n            \"command\": \"a\", // too\n        }, // behind a\n" +
			"        /* b */ \"b\": {\"command\": \"b\"}, // behind b\n        // end\n    },\n    \"end\": 1,\n}\n"},
		{"vscode", "{\n  \"servers\": {\n      \"a\": { \"command\": \"a\" },\n  },\n  \"theme\": \"dark\",\n  \"end\": 1,\n}\n"},
		{"zed", "{\n  \"context_servers\": {\n    \"a\": {\n      \"command\": \"a\",\n      \"args\": []\n    }, \"b\":\n    {\n      \"command\": \"b\",\n    },\n  },\n  \"theme\": \"dark\",\n  \"end\": 1,\n}\n"},
		{"codex", "theme = 'dark'\n\n# a\n[mcp_servers.a] # too\ncommand = \"a\"\n  [mcp_servers.a.env]\n  X = \"1\"\n\n\n[t]\nend = 1\n"},
		{"codex", "theme = 'dark'\n[mcp_servers]\na = { command = \"a\" } # a\nb.command = \"b\"\n\n[t]\nend = 1"},
		{"goose", "theme: dark\nextensions:\n    # a\n    a:\n        type: stdio\n        cmd: a # too\n\n    b:\n        type: stdio\n        cmd: b\n# end\nend: 1\n"},
		{"goose", "extensions:\n  a: {type: stdio, cmd: a}\ntheme: dark\nend: 1"},
		{"continue", "theme: dark\nmcpServers:\n- name: a\n  command: a\n\n-   command: b\n    name: b # b\nend: 1\n"},
		{"continue", "mcpServers:\n    - name: a\n      command: a\n    # b\n    - name: b\n      command: b\ntheme: dark\nend: 1\n"},
	} {
		t.Run(test.id, func(t *testing.T) {
			t.Parallel()
			add := "end: 2\nadded: {x: [1]}"
			if id := clients.ByID(test.id); id.Format == splice.JSON {
				add = `end": {"x": [2]}, "added": 1`
			} else if id.Format == splice.TOML {
				add = "end = 2\nadded = { x = [1] }"
			}
			one := strings.NewReplacer("dark", "light")
			two := strings.NewReplacer("dark", "light", `end": 1`, add, "end: 1", add, "end = 1", add)
			for _, text := range []string{test.text, strings.ReplaceAll(test.text, "\n", "\r\n"),
				"\ufeff" + test.text} {
				for i, edit := range []*strings.Replacer{one, two, one, two} {
					m := newMachine(t)
					path := m.write(test.id, []byte(text), 0o600)
					h := []clients.Hub{hub, remote}[i/2]
					must(t, m.connect(test.id, h, func(*clients.Server) bool { return true }))
					with := contents(t, path)
					if strings.Contains(with, `"a"`) || !strings.Contains(with, clients.EntryName) {
						t.Errorf("%s: %q", test.id, with)
					}
					must(t, os.WriteFile(path, []byte(edit.Replace(with)), 0o600))
					must(t, m.disconnect(test.id))
					if got, want := contents(t, path), edit.Replace(text); got != want {
						t.Errorf("%s:\n%q, want\n%q", test.id, got, want)
					}
				}
			}
		})
	}
}

// TestUndoBesideAnother: a server that somebody else has put right behind or before the hub stays, and the replaced ones stand where they stood.
func TestUndoBesideAnother(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ id, text, after, add, want string }{
		{"cursor", "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"a\"\n    },\n    \"b\": {\"command\": \"b\"}\n  }\n}\n", "    }", ",\n    \"new\": {\n      \"command\": \"n\"\n    }",
			"{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"a\"\n    },\n    \"b\": {\"command\": \"b\"},\n    \"new\": {\n      \"command\": \"n\"\n    }\n  }\n}\n"},
		{"cursor", "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"a\"\n    }\n  }\n}\n", "mcpServers\": {", "\n    \"new\": {\n      \"command\": \"n\"\n    },",
			"{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"n\"\n    },\n    \"a\": {\n      \"command\": \"a\"\n    }\n  }\n}\n"},
		{"codex", "[mcp_servers.a]\ncommand = \"a\"\n\n[t]\nx = 1\n", "yaml\"]\n", "\n[mcp_servers.new]\ncommand = \"n\"\n", "[mcp_servers.a]\ncommand = \"a\"\n\n[t]\nx = 1\n\n[mcp_servers.new]\ncommand = \"n\"\n"},
		{"goose", "extensions:\n  a:\n      cmd: a\nz: 1\n", "timeout: 300\n", "  new:\n    cmd: n\n", "extensions:\n  a:\n      cmd: a\n  new:\n    cmd: n\nz: 1\n"},
		{"continue", "mcpServers:\n  - name: a\n    command: a\n\nz: 1\n", "yaml\"]\n", "  - name: new\n    command: n\n", "mcpServers:\n  - name: a\n    command: a\n  - name: new\n    command: n\n\nz: 1\n"},
	} {
		m := newMachine(t)
		path := m.write(test.id, []byte(test.text), 0o600)
		must(t, m.connect(test.id, hub, func(*clients.Server) bool { return true }))
		must(t, os.WriteFile(path, []byte(strings.Replace(contents(t, path), test.after, test.after+test.add, 1)), 0o600))
		must(t, m.disconnect(test.id))
		if got := contents(t, path); got != test.want {
			t.Errorf("%s:\n%q, want\n%q", test.id, got, test.want)
		}
	}
}

// TestKeyWithMore: the key that connect has put there stays where somebody else has put something below it, as much as is there.
func TestKeyWithMore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ id, text, after, more string }{
		{"cursor", "{\n  \"x\": 1\n}\n", "\"mcpServers\": {", "\n    // \"gh\": {\"command\": \"gh\"},\n"},
		{"continue", "name: x\n", "mcpServers:\n", "  - uses: docker/mcp\n    with: {TOKEN: abc}\n"},
		{"continue", "", "mcpServers:\n", "  - uses: docker/mcp\n"},
	} {
		m := newMachine(t)
		path := m.write(test.id, []byte(test.text), 0o600)
		must(t, m.connect(test.id, hub, none))
		must(t, os.WriteFile(path, []byte(strings.Replace(contents(t, path), test.after, test.after+test.more, 1)), 0o600))
		must(t, m.disconnect(test.id))
		if got := contents(t, path); !strings.Contains(got, test.after+test.more) || strings.Contains(got, "toolhub") {
			t.Errorf("%s: %q", test.id, got)
		}
	}
	m := newMachine(t)
	path := m.write("goose", nil, 0o600)
	must(t, m.connect("goose", hub, none))
	must(t, os.WriteFile(path, []byte("extensions: {toolhub: {type: stdio, cmd: x}}\n"), 0o600))
	must(t, m.disconnect("goose"))
	if got := contents(t, path); strings.Contains(got, "toolhub") {
		t.Errorf("%q", got)
	}
}

// TestWrittenWhileAsked: what a client has written since the change was shown stays, also where the change is one of the client's own command.
func TestWrittenWhileAsked(t *testing.T) { // not parallel: it sets PATH
	bin := t.TempDir()
	must(t, os.WriteFile(filepath.Join(bin, "claude"), []byte("#!/bin/sh\nexit 1\n"), 0o700))
	t.Setenv("PATH", bin)
	m := newMachine(t)
	path := m.write("claude-code", []byte(`{"n": 1}`), 0o600)
	err := m.connections(func(s *clients.Connections) error {
		plan, err := s.Connect(clients.ByID("claude-code"), hub, none)
		if err != nil {
			return err
		}
		must(t, os.WriteFile(path, []byte(`{"n": 2}`), 0o600))
		return s.Do(t.Context(), []*clients.Plan{plan})
	})
	if err == nil || contents(t, path) != `{"n": 2}` {
		t.Errorf("%v: %s", err, contents(t, path))
	}
}

// TestByHand: a hub that somebody has put there by hand is replaced, and comes back, also after somebody else has written.
func TestByHand(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{`{"command": "mcp-toolhub", "args": ["serve", "--config", "/old.yaml"]}`, `{"url": "http://localhost:9/mcp/p/a"}`,
		`{"url": "https://hub.example/mcp"}`, `{"command": "npx", "args": ["mcp-remote", "https://hub.example/mcp"]}`} {
		m := newMachine(t)
		h, text := hub, `{"mcpServers": {"toolhub": `+entry+`}, "theme": "dark"}`
		h.IsOwn = func(address string) bool { return address == "https://hub.example/mcp" }
		path := m.write("cursor", []byte(text), 0o600)
		for range 2 {
			must(t, m.connect("cursor", h, none))
			if now := contents(t, path); !strings.Contains(now, "/home/ann") || strings.Contains(now, entry) {
				t.Errorf("connected: %s", now)
			}
		}
		must(t, os.WriteFile(path, []byte(strings.Replace(contents(t, path), "dark", "light", 1)), 0o600))
		must(t, m.disconnect("cursor"))
		if got, want := contents(t, path), strings.Replace(text, "dark", "light", 1); got != want {
			t.Errorf("disconnected: %s", got)
		}
	}
	m := newMachine(t)
	path := m.write("cursor", nil, 0o600)
	must(t, m.connect("cursor", hub, none))
	byHand := contents(t, path)
	must(t, m.disconnect("cursor"))
	m.write("cursor", []byte(byHand), 0o600)
	must(t, m.connect("cursor", hub, none))
	if err := m.disconnect("cursor"); err == nil || contents(t, path) != byHand {
		t.Errorf("one that is the same: %v: %s", err, contents(t, path))
	}
}

// TestPaths: where the files are on each system.
func TestPaths(t *testing.T) {
	t.Parallel()
	env := func(goos string) clients.Env {
		vars := map[string]string{"HOME": "/h", "USERPROFILE": "/u", "APPDATA": "/u/AppData/Roaming"}
		return clients.Env{OS: goos, Lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }}
	}
	for id, want := range map[string][3]string{
		"claude-desktop": {"/h/.config/Claude/claude_desktop_config.json", "/h/Library/Application Support/Claude/claude_desktop_config.json",
			"/u/AppData/Roaming/Claude/claude_desktop_config.json"},
		"claude-code": {"/h/.claude.json", "/h/.claude.json", "/u/.claude.json"},
		"vscode": {"/h/.config/Code/User/mcp.json", "/h/Library/Application Support/Code/User/mcp.json",
			"/u/AppData/Roaming/Code/User/mcp.json"},
		"zed":      {"/h/.config/zed/settings.json", "/h/.config/zed/settings.json", "/u/AppData/Roaming/Zed/settings.json"},
		"goose":    {"/h/.config/goose/config.yaml", "/h/.config/goose/config.yaml", "/u/AppData/Roaming/Block/goose/config/config.yaml"},
		"amp":      {"/h/.config/amp/settings.json", "/h/.config/amp/settings.json", "/u/.config/amp/settings.json"},
		"windsurf": {"/h/.codeium/windsurf/mcp_config.json", "/h/.codeium/windsurf/mcp_config.json", "/u/.codeium/windsurf/mcp_config.json"},
	} {
		for i, goos := range []string{"linux", "darwin", "windows"} {
			if got := filepath.ToSlash(clients.ByID(id).File(env(goos))); got != want[i] {
				t.Errorf("%s on %s: %s", id, goos, got)
			}
		}
	}
	if got := clients.ByID("cursor").File(clients.Env{OS: "linux", Lookup: func(string) (string, bool) { return "", false }}); got != "" {
		t.Errorf("without a home directory: %q", got)
	}
}

// FuzzConnect: whatever a file of a client holds, connect refuses it, or disconnect brings it back byte for byte. Where somebody else has
// written in between, the file without the hub means what it meant.
func FuzzConnect(f *testing.F) {
	ids := []string{"cursor", "goose", "codex", "continue"}
	for id, data := range samples(f) {
		for _, v := range variants(data) {
			f.Add(string(v), uint8(max(0, slices.Index(ids, id))))
		}
	}
	for _, text := range []string{`{"mcpServers":{"a":{}/*x*/,}}`, "{//\n}", `{"mcpServers":{"a":1//x` + "\n}}", "extensions: {}\n",
		"extensions:\n", "\ta"} {
		for i := range ids {
			f.Add(text, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		c := clients.ByID(ids[int(which)%len(ids)])
		before, err := splice.Read(c.Format, []byte(text))
		if err != nil {
			return
		}
		entry := splice.Object{{Key: "command", Value: "mcp-toolhub"}, {Key: "args", Value: []string{"serve", "\x7f\u2028"}}}
		with, err := before.Put(c.Place, clients.EntryName, entry)
		if err != nil {
			return
		}
		if missing := notWithin(text, string(with.Bytes())); missing >= 0 {
			t.Fatalf("byte %d of %q is gone: %q", missing, text, with.Bytes())
		}
		if without, err := with.Take(c.Place, clients.EntryName); err == nil && without.Entry(c.Place, clients.EntryName) != nil {
			t.Fatalf("it is still there: %q", without.Bytes())
		} else if err != nil && c.Format == splice.JSON {
			t.Fatalf("%q: %v", with.Bytes(), err)
		}
		m := newMachine(t)
		path := m.write(c.ID, []byte(text), 0o600)
		if m.connect(c.ID, hub, none) != nil {
			return
		}
		must(t, m.disconnect(c.ID))
		if got := contents(t, path); got != text {
			t.Fatalf("%q has become %q", text, got)
		}
	})
}

// TestTimeout: import takes a client's own timeout along. Of two clients the one that waits longer
// counts, and one without a timeout waits as long as the hub.
func TestTimeout(t *testing.T) {
	t.Parallel()
	gemini := func(timeout string) string { return `{"mcpServers": {"x": {"command": "x"` + timeout + `}}}` }
	codex := func(timeout string) string { return "[mcp_servers.x]\ncommand = \"x\"\n" + timeout }
	for name, test := range map[string]struct {
		gemini, codex string
		want          any
	}{
		"neither":            {gemini(""), codex(""), nil},
		"milliseconds":       {gemini(`, "timeout": 600000`), "", "10m"},
		"seconds":            {"", codex("tool_timeout_sec = 90.5"), "1m30.5s"},
		"many seconds":       {"", codex("tool_timeout_sec = 7200"), "2h"},
		"no number":          {gemini(`, "timeout": "soon"`), "", nil},
		"too long":           {gemini(`, "timeout": 2147483647`), "", "24h"},
		"the longer":         {gemini(`, "timeout": 5000`), codex("tool_timeout_sec = 90"), "1m30s"},
		"one waits as usual": {gemini(`, "timeout": 5000`), codex(""), nil},
		"one waits longer":   {gemini(""), codex("tool_timeout_sec = 3600"), "1h"},
		"a long start":       {"", codex("startup_timeout_sec = 120"), "30m"},
		"a usual start":      {"", codex("startup_timeout_sec = 20\ntool_timeout_sec = 60"), "1m"},
	} {
		var all []clients.Server
		for id, data := range map[string]string{"gemini": test.gemini, "codex": test.codex} {
			m := newMachine(t)
			path := m.write(id, []byte(data), 0o600)
			f, err := clients.ByID(id).ReadClient(path)
			must(t, err)
			all = append(all, clients.ByID(id).Read(f, path)...)
		}
		var got any
		for _, member := range clients.Merge(all)[0].Entry() {
			if member.Key == "timeout" {
				got = member.Value
			}
		}
		if got != test.want {
			t.Errorf("%s: timeout %v, want %v", name, got, test.want)
		}
	}
}

// TestTwoFilesOfOneClient: a client that reads another file in another shell is connected in both, and disconnected from both
// wherever that is asked for. A file whose hub has been moved is named.
func TestTwoFilesOfOneClient(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	other := m
	other.env.Lookup = func(name string) (string, bool) {
		return map[string]string{"HOME": m.home, "CLAUDE_CONFIG_DIR": filepath.Join(m.home, "work")}[name], true
	}
	one := m.write("claude-code", []byte(`{"one": 1}`), 0o600)
	two := other.write("claude-code", []byte(`{"two": 2}`), 0o600)
	moved := clients.Hub{Command: filepath.Join(m.home, "moved", "mcp-toolhub"), Args: []string{"serve"}}
	must(t, m.connect("claude-code", moved, none))
	must(t, other.connect("claude-code", hub, none))
	must(t, other.connect("claude-code", moved, none))
	must(t, m.connections(func(s *clients.Connections) error {
		all := s.Broken()
		for i, path := range []string{one, two} {
			if want := "claude-code: " + path + " starts " + moved.Command + ", which is not there"; len(all) != 2 || all[i] != want {
				t.Errorf("broken: %q, want %q", all, want)
			}
		}
		return nil
	}))
	must(t, m.disconnect("claude-code"))
	if contents(t, one) != `{"one": 1}` || contents(t, two) != `{"two": 2}` {
		t.Errorf("one is %s, two is %s", contents(t, one), contents(t, two))
	}
	must(t, m.connections(func(s *clients.Connections) error {
		if ids := s.IDs(false); len(ids) > 0 {
			t.Errorf("recorded: %q", ids)
		}
		return nil
	}))
}

package code

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// permittedFor executes a call that was permitted for paths, named relative to the directory that holds "root" and "home".
func (p *project) permittedFor(t *testing.T, native string, args object, paths ...string) (result, *tool.Failure) {
	t.Helper()
	e := &tool.Execution{}
	for _, path := range paths {
		e.Aims = append(e.Aims, tool.Aim{Argument: "/path", Path: filepath.Join(filepath.Dir(p.root), path)})
	}
	return p.execute(t, t.Context(), native, args, e)
}

func newGuarded(t *testing.T) *project {
	t.Helper()
	return newProject(t, map[string]string{
		"root/.env": secret, "root/plain": "fine\n", "root/other.pem": "pem\n", "root/dir/a": "needle\n", "root/dir/b.pem": secret,
		"root/dir/sub/.env": secret, "root/dir/sub/c": "needle\n", "home/.ssh/id": secret, "home/.ssh/deep/id": secret, "root/vault/x": secret,
		"state/token": secret, "declared/tool.json": "{}\n", "root/keys/.env": "mine\n",
	}, func(c *Config) {
		c.SensitivePaths = []string{"vault"}
		c.Secrets = []string{filepath.Join(filepath.Dir(c.Root), "state")}
		c.SensitiveDirs = []string{filepath.Join(filepath.Dir(c.Root), "declared")}
	})
}

// A sensitive path is opened where the call was permitted for that very path, and nowhere else.
func TestReadsWhatWasPermitted(t *testing.T) {
	t.Parallel()
	p := newGuarded(t)
	denied := string(tool.ClassPermissionDenied)
	for _, c := range []struct {
		path, permitted string
		want            string // the code, "" for success
	}{
		{".env", "root/.env", ""},
		{"dir/../.env", "root/.env", ""},
		{"~/.ssh/id", "home/.ssh/id", ""},
		{"../declared/tool.json", "declared/tool.json", ""},
		{"plain", "root/plain", ""},
		{".env", "", denied},
		{"../declared/tool.json", "", denied},
		{".env", "root/plain", codePathChanged},
		{"plain", "root/.env", codePathChanged},
		{"other.pem", "root/.env", codePathChanged},
		{"dir/b.pem", "root/dir", codePathChanged}, // a directory is not what lies in it
		{".env", "root", codePathChanged},
		{"vault/x", "root/vault/x", codeProtected},
		{"../state/token", "state/token", codeProtected},
		{"../state/token", "", denied},
		{"none.pem", "root/none.pem", codeFileNotFound},
	} {
		var paths []string
		if c.permitted != "" {
			paths = []string{c.permitted}
		}
		r, f := p.permittedFor(t, readFile, object{"path": c.path}, paths...)
		switch {
		case c.want == "" && f != nil:
			t.Errorf("%s permitted for %q: %v", c.path, c.permitted, f)
		case c.want == "" && r.text() == "":
			t.Errorf("%s permitted for %q: nothing is read", c.path, c.permitted)
		case c.want != "" && (f == nil || f.ErrorCode() != c.want):
			t.Errorf("%s permitted for %q: %v, want %s", c.path, c.permitted, f, c.want)
		}
	}
	if _, f := p.permittedFor(t, readFile, object{"path": ".env"}, "root/plain", "root/.env"); f != nil {
		t.Errorf("permitted for one of two ways in which programs read the path: %v", f)
	}
	e := &tool.Execution{Aims: []tool.Aim{{Argument: "/other", Path: filepath.Join(p.root, ".env")}}}
	if _, f := p.execute(t, t.Context(), readFile, object{"path": ".env"}, e); f == nil {
		t.Error("what was permitted of another argument was taken for the path")
	}
}

// Below a directory that was permitted, what is sensitive stays closed, be the directory sensitive itself.
func TestReadsNothingSensitiveBelow(t *testing.T) {
	t.Parallel()
	p := newGuarded(t)
	mustLink(t, filepath.Join(p.home, ".ssh"), filepath.Join(p.root, "linked"))
	for _, path := range []string{"~/.ssh", "linked"} {
		r, f := p.permittedFor(t, listDir, object{"path": path, "recursive": true}, "home/.ssh")
		if f != nil {
			t.Fatal(f)
		}
		if got := r.text(); got != "deep/ [sensitive]\nid [sensitive]\n" {
			t.Errorf("a listing of keys:\n%s", got)
		}
	}
	r, f := p.permittedFor(t, listDir, object{"path": "dir", "recursive": true}, "root/dir")
	if f != nil {
		t.Fatal(f)
	}
	for _, e := range decode[dirContent](t, r).Entries {
		if guarded := e.Path == "b.pem" || e.Path == "sub/.env"; guarded != (e.Note == noteSensitive) || guarded && e.Size != nil {
			t.Errorf("listed: %+v", e)
		}
	}
	for path, permitted := range map[string]string{"~/.ssh": "home/.ssh", "linked": "home/.ssh", "dir": "root/dir", ".": "root"} {
		r, f := p.permittedFor(t, search, object{"query": "T.*SECRET", "path": path}, permitted)
		if f != nil {
			t.Fatalf("%s: %v", path, f)
		}
		if c := decode[searchContent](t, r); len(c.Matches) != 0 || c.Skipped.Sensitive == 0 {
			t.Errorf("a search in %s: %+v", path, c)
		}
	}
	r, f = p.permittedFor(t, search, object{"query": "T.*SECRET", "path": "~/.ssh/id"}, "home/.ssh/id")
	if f != nil || len(decode[searchContent](t, r).Matches) != 1 {
		t.Errorf("a search in one file that was permitted: %v, %+v", f, r)
	}
	for _, native := range []string{listDir, search} {
		args := object{"path": "~/.ssh"}
		if native == search {
			args["query"] = "x"
		}
		if _, f := p.permittedFor(t, native, args); f == nil || f.Class != tool.ClassPermissionDenied {
			t.Errorf("%s where nobody has looked: %v", native, f)
		}
		if _, f := p.permittedFor(t, native, args, "root"); f == nil || f.Code != codePathChanged {
			t.Errorf("%s permitted for another path: %v", native, f)
		}
	}
}

// What was permitted is where the path led at that moment.
func TestReadSwappedAfterTheCheck(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(t *testing.T, p *project){
		"a link leads to another sensitive file": func(t *testing.T, p *project) {
			must(t, os.Remove(filepath.Join(p.root, "link")))
			mustLink(t, filepath.Join(p.home, ".ssh", "id"), filepath.Join(p.root, "link"))
		},
		"a link leads to a plain file": func(t *testing.T, p *project) {
			must(t, os.Remove(filepath.Join(p.root, "link")))
			mustLink(t, filepath.Join(p.root, "plain"), filepath.Join(p.root, "link"))
		},
		"the file becomes a link": func(t *testing.T, p *project) {
			must(t, os.Remove(filepath.Join(p.root, "keys", ".env")))
			mustLink(t, filepath.Join(p.home, ".ssh", "id"), filepath.Join(p.root, "keys", ".env"))
		},
		"its directory becomes a link": func(t *testing.T, p *project) {
			must(t, os.Rename(filepath.Join(p.root, "keys"), filepath.Join(p.root, "keys-old")))
			mustLink(t, filepath.Join(p.root, "dir", "sub"), filepath.Join(p.root, "keys"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newGuarded(t)
			mustLink(t, filepath.Join("keys", ".env"), filepath.Join(p.root, "link"))
			for _, path := range []string{"link", "keys/.env"} {
				if r, f := p.permittedFor(t, readFile, object{"path": path}, "root/keys/.env"); f != nil || r.text() != "mine\n" {
					t.Fatalf("%s before: %v", path, f)
				}
			}
			swap(t, p)
			if _, f := p.permittedFor(t, readFile, object{"path": "link"}, "root/keys/.env"); f == nil || f.Code != codePathChanged {
				t.Errorf("read elsewhere: %v", f)
			}
		})
	}
}

// A directory below one that was permitted is entered where it lies, and not where a link leads that has taken its place.
func TestReadsBelowTheTop(t *testing.T) {
	t.Parallel()
	p := newGuarded(t)
	r := p.reading(&tool.Execution{Aims: []tool.Aim{{Argument: "/path", Path: filepath.Join(p.root, "dir")}}})
	d, err := r.first(filepath.Join(p.root, "dir"))
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	inside, err := r.below(filepath.Join(p.root, "dir", "sub"))
	if err != nil {
		t.Fatal(err)
	}
	inside.Close()
	must(t, os.Rename(filepath.Join(p.root, "dir", "sub"), filepath.Join(p.root, "dir", "old")))
	mustLink(t, p.root, filepath.Join(p.root, "dir", "sub"))
	if o, err := r.below(filepath.Join(p.root, "dir", "sub", "plain")); !errors.Is(err, errChanged) {
		t.Errorf("%v, %v", o, err)
	}
}

// Where a file system calls one file by two names that differ in case only, either is what was permitted. Here two hard links
// are that; two files are not.
func TestReadsByTheFilesOtherName(t *testing.T) {
	t.Parallel()
	p := newGuarded(t)
	if err := os.Link(filepath.Join(p.root, "plain"), filepath.Join(p.root, "PLAIN")); err != nil {
		t.Skip(err)
	}
	must(t, os.WriteFile(filepath.Join(p.root, "Plain"), []byte("another\n"), 0o600))
	for path, want := range map[string]string{"PLAIN": "", "Plain": codePathChanged} {
		if _, f := p.permittedFor(t, readFile, object{"path": path}, "root/plain"); (f == nil) != (want == "") || f != nil && f.Code != want {
			t.Errorf("%s permitted for plain: %v", path, f)
		}
	}
}

func TestHoldsLink(t *testing.T) {
	t.Parallel()
	p := newGuarded(t)
	mustLink(t, filepath.Join(p.root, "dir"), filepath.Join(p.root, "way"))
	for path, want := range map[string]bool{"dir/a": false, "dir": false, "way": true, "way/a": true, "none": true} {
		if got := holdsLink(filepath.Join(p.root, path)); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

// What the toolset takes for sensitive, permission asks about: otherwise a call could be permitted without anybody having
// been asked.
func FuzzPermissionKnowsWhatIsSensitive(f *testing.F) {
	own, err := newSensitivePaths(nil, "")
	if err != nil {
		f.Fatal(err)
	}
	limits, err := target.NewLimits(target.Config{}, target.HubPaths{})
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range []string{"/p/.env", "/p/.env.x/y", "/p/.ENV. ", "/p/a.pem.", "/p/x.KEY . .", "/home/a/.s\u200csh/x", "/h/.\u017fsh/id", "/proc/1/environ",
		"/sys/x", "/a/.config/gcloud/x", "/a/.gnupg", "/a/b/.aws", "/p/a.\u212aey", "/p/a.pem/..x", "/p/.env.*0"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if runtime.GOOS == "windows" || !strings.HasPrefix(path, "/") || filepath.Clean(path) != path || strings.ToValidUTF8(path, "") != path {
			t.Skip("no resolved path of a system with one root")
		}
		if !own.Match(path) {
			return
		}
		if limits.Sensitive(&target.Target{Kind: target.Path, Given: path, Resolved: path}) == "" {
			t.Errorf("%+q is sensitive here, and not for permission", path)
		}
	})
}

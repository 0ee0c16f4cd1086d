package code

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// judged is what the permission finds that a call is aimed at, by the way that the pipeline goes.
func (p *project) judged(t testing.TB, native string, args object) []tool.Aim {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	plan := target.Find(facts.Of(p.tool(t, native), facts.Options{Trust: true}))
	found, err := plan.Resolve(t.Context(), raw, target.NewRoot(p.root, p.home))
	if err != nil {
		t.Fatal(err)
	}
	var aims []tool.Aim
	for _, one := range found {
		if one.Kind != target.Path || !one.Write || one.Fault != "" {
			t.Fatalf("%v is aimed at %+v", args, one)
		}
		aims = append(aims, tool.Aim{Argument: one.Argument, Path: one.Resolved})
	}
	return aims
}

// callAs executes a call that was permitted for aims.
func (p *project) callAs(t testing.TB, native string, args object, aims []tool.Aim) *tool.Failure {
	t.Helper()
	_, f := p.execute(t, t.Context(), native, args, &tool.Execution{Aims: aims})
	return f
}

func mustLink(t testing.TB, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
}

// TestPathSwappedAfterTheCheck puts another thing in the place of what was judged, before the call uses it.
func TestPathSwappedAfterTheCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path string // what the call names
		swap func(t *testing.T, p *project)
	}{
		"file becomes a link": {"dir/f", func(t *testing.T, p *project) {
			must(t, os.Remove(filepath.Join(p.root, "dir/f")))
			mustLink(t, filepath.Join(p.home, "f"), filepath.Join(p.root, "dir/f"))
		}},
		"file becomes a link inside": {"dir/f", func(t *testing.T, p *project) {
			must(t, os.Remove(filepath.Join(p.root, "dir/f")))
			mustLink(t, "../other", filepath.Join(p.root, "dir/f"))
		}},
		"missing file becomes a link": {"dir/new", func(t *testing.T, p *project) {
			mustLink(t, filepath.Join(p.home, "new"), filepath.Join(p.root, "dir/new"))
		}},
		"directory becomes a link": {"dir/f", func(t *testing.T, p *project) {
			must(t, os.Rename(filepath.Join(p.root, "dir"), filepath.Join(p.root, "was")))
			mustLink(t, p.home, filepath.Join(p.root, "dir"))
		}},
		"missing directory becomes a link": {"none/f", func(t *testing.T, p *project) {
			mustLink(t, p.home, filepath.Join(p.root, "none"))
		}},
		"project becomes a link": {"f", func(t *testing.T, p *project) {
			must(t, os.Rename(p.root, p.root+".was"))
			mustLink(t, p.home, p.root)
		}},
		"link leads elsewhere": {"link/f", func(t *testing.T, p *project) {
			must(t, os.Remove(filepath.Join(p.root, "link")))
			mustLink(t, p.home, filepath.Join(p.root, "link"))
		}},
		"link of a link": {"link/f", func(t *testing.T, p *project) {
			must(t, os.Rename(filepath.Join(p.root, "dir"), filepath.Join(p.root, "was")))
			mustLink(t, p.home, filepath.Join(p.root, "dir"))
		}},
	} {
		for _, native := range []string{writeFile, editFile} {
			t.Run(name+" "+native, func(t *testing.T) {
				t.Parallel()
				p := newProject(t, map[string]string{"root/dir/f": "old\n", "root/other": "old\n", "home/f": "old\n", "root/f": "old\n"}, writable)
				mustLink(t, "dir", filepath.Join(p.root, "link"))
				args := object{"path": tc.path, "content": "new\n", "overwrite": true}
				if native == editFile {
					args = object{"path": tc.path, "edits": replace("old", "new")}
				}
				aims := p.judged(t, native, args)
				tc.swap(t, p)
				before := p.snapshot(t)
				f := p.callAs(t, native, args, aims)
				if f == nil || f.Code != codePathChanged || !strings.Contains(f.Message, "changed since the call was permitted") {
					t.Errorf("failure %v, want %s", f, codePathChanged)
				}
				p.mustNotChange(t, before, name)
			})
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestPathSwappedAtUse goes on from where the path was resolved for the last time: only descriptors help there.
func TestPathSwappedAtUse(t *testing.T) {
	t.Parallel()
	change := func(during func()) *change {
		return &change{given: "f", createDirs: true, make: func(string, *document) (document, error) {
			if during != nil {
				during()
			}
			return documentOf("new\n"), nil
		}}
	}
	files := map[string]string{"root/dir/f": "old\n", "home/f": "old\n", "home/g": "g\n"}
	for name, tc := range map[string]struct {
		path           string
		before, during func(t *testing.T, p *project)
		elsewhere      string // where the new text may be found, in the directory that was opened
	}{
		"file, before": {path: "dir/f", before: func(t *testing.T, p *project) {
			must(t, os.Remove(filepath.Join(p.root, "dir/f")))
			mustLink(t, filepath.Join(p.home, "f"), filepath.Join(p.root, "dir/f"))
		}},
		"file, to its neighbour": {path: "dir/f", before: func(t *testing.T, p *project) {
			must(t, os.Rename(filepath.Join(p.root, "dir/f"), filepath.Join(p.root, "dir/g")))
			mustLink(t, "g", filepath.Join(p.root, "dir/f"))
		}},
		"directory, before": {path: "dir/f", before: func(t *testing.T, p *project) {
			must(t, os.RemoveAll(filepath.Join(p.root, "dir")))
			mustLink(t, p.home, filepath.Join(p.root, "dir"))
		}},
		"new directory, before": {path: "none/deep/f", before: func(t *testing.T, p *project) { mustLink(t, p.home, filepath.Join(p.root, "none")) }},
		"new directory, during": {path: "none/f", during: func(t *testing.T, p *project) { mustLink(t, p.home, filepath.Join(p.root, "none")) }},
		"file, during": {path: "dir/f", during: func(t *testing.T, p *project) {
			must(t, os.Remove(filepath.Join(p.root, "dir/f")))
			mustLink(t, filepath.Join(p.home, "f"), filepath.Join(p.root, "dir/f"))
		}},
		"new file, during": {path: "dir/new", during: func(t *testing.T, p *project) {
			mustLink(t, filepath.Join(p.home, "new"), filepath.Join(p.root, "dir/new"))
		}},
		"directory, during": {path: "dir/f", elsewhere: "was/f", during: func(t *testing.T, p *project) {
			must(t, os.Rename(filepath.Join(p.root, "dir"), filepath.Join(p.root, "was")))
			mustLink(t, p.home, filepath.Join(p.root, "dir"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, files, writable)
			home := filepath.Join(p.home, "f")
			if tc.before != nil {
				tc.before(t, p)
			}
			_, err := put(t.Context(), filepath.Join(p.root, filepath.FromSlash(tc.path)), change(func() {
				if tc.during != nil {
					tc.during(t, p)
				}
			}))
			if (err == nil) != (tc.elsewhere != "") {
				t.Errorf("error %v", err)
			}
			if tc.elsewhere != "" && p.file(t, tc.elsewhere) != "new\n" {
				t.Error("the directory that was opened does not hold the new text")
			}
			if data, err := os.ReadFile(home); err != nil || string(data) != "old\n" {
				t.Errorf("what lies outside holds %q, %v", data, err)
			}
			if found, err := os.ReadDir(p.home); err != nil || len(found) != 2 {
				t.Errorf("outside there is %v, %v", found, err)
			}
		})
	}
}

// TestLinksAreFollowedToo: what a link leads to is written, and the link stays.
func TestLinksAreFollowedToo(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/dir/f": "old\n", "home/f": "old\n", "home/d/x": ""}, writable)
	mustLink(t, "dir/f", filepath.Join(p.root, "in"))
	mustLink(t, "../home/f", filepath.Join(p.root, "out"))
	mustLink(t, "../home/d", filepath.Join(p.root, "outdir"))
	mustLink(t, "../home/none", filepath.Join(p.root, "dangling"))
	mustLink(t, "round", filepath.Join(p.root, "round"))
	c := decode[written](t, p.mustCall(t, writeFile, object{"path": "in", "content": "new\n", "overwrite": true}))
	if info, err := os.Lstat(filepath.Join(p.root, "in")); err != nil || info.Mode()&fs.ModeSymlink == 0 || p.file(t, "dir/f") != "new\n" || c.Path != "dir/f" {
		t.Errorf("through a link: %+v, %v", c, err)
	}
	for path, code := range map[string]string{"out": codeOutsideRoots, "outdir/new": codeOutsideRoots, "dangling": codeOutsideRoots,
		"round": codePathRefused, "outdir/../home/f": codePathRefused, "/proc/self/root" + p.root + "/dir/f": codePathRefused,
		"/proc/self/cwd/x": codePathRefused, "/dev/fd/1": ""} {
		before := p.snapshot(t)
		_, f := p.call(t, writeFile, object{"path": path, "content": "x", "overwrite": true})
		if f == nil || code != "" && f.ErrorCode() != code && !strings.HasPrefix(path, "/proc/") {
			t.Errorf("%s: %v, want %s", path, f, code)
		}
		p.mustNotChange(t, before, path)
	}
}

// TestPermittedElsewhere: what somebody has looked at and permitted is written wherever it lies, but for what is never written.
func TestPermittedElsewhere(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"home/f": "old\n", "home/.env": "A=1\n", "root/hub.yaml": "x\n", "home/state/grants.yaml": "g\n"}, writable,
		func(c *Config) {
			c.Protected = []string{filepath.Join(c.Root, "hub.yaml")}
			c.SensitiveDirs = []string{filepath.Join(c.Home, "state")}
		})
	write := func(path string) object { return object{"path": path, "content": "new\n", "overwrite": true} }
	for path, code := range map[string]string{"~/f": "", "~/.env": "", "~/new/n": "", "hub.yaml": codeProtected,
		"~/state/grants.yaml": codeProtected, "~/state/new": codeProtected} {
		args := write(path)
		f := p.callAs(t, writeFile, args, p.judged(t, writeFile, args))
		got := ""
		if f != nil {
			got = f.ErrorCode()
		}
		if got != code {
			t.Errorf("%s: %v, want %q", path, f, code)
		}
	}
	// Permission for one path is none for another, and none for a path that was not looked at.
	if f := p.callAs(t, writeFile, write("b"), []tool.Aim{{Argument: "/path", Path: filepath.Join(p.root, "a")}}); f == nil || f.Code != codePathChanged {
		t.Errorf("permitted for another path: %v", f)
	}
	if f := p.callAs(t, writeFile, write("~/b"), []tool.Aim{{Argument: "/other", Path: filepath.Join(p.home, "b")}}); f == nil || f.Code != codeOutsideRoots {
		t.Errorf("permitted for another argument: %v", f)
	}
}

// TestHardLinks: a file with other names needs a person's permission, and they keep the text that it has.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"home/outside": "old\n"}, writable)
	outside, inside := filepath.Join(p.home, "outside"), filepath.Join(p.root, "inside")
	if err := os.Link(outside, inside); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	args := object{"path": "inside", "edits": replace("old", "new")}
	if _, f := p.call(t, editFile, args); f == nil || f.Class != tool.ClassPermissionDenied {
		t.Errorf("edited, and nobody was asked: %v", f)
	}
	r, f := p.execute(t, t.Context(), editFile, args, &tool.Execution{Aims: p.judged(t, editFile, args)})
	if f != nil {
		t.Fatal(f)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "old\n" || p.file(t, "inside") != "new\n" {
		t.Errorf("outside %q, %v; inside %q", data, err, p.file(t, "inside"))
	}
	if c := decode[written](t, r); len(c.Notes) != 1 || c.Notes[0] != noteHardLinks || !strings.Contains(r.text(), "hard links") {
		t.Errorf("the result does not tell: %+v", c)
	}
}

// TestCaseTwins: a name in other letters is another file, or the same one where the file system says so.
func TestCaseTwins(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/Readme": "old\n"}, writable)
	_, same := os.Stat(filepath.Join(p.root, "README"))
	_, f := p.call(t, writeFile, object{"path": "README", "content": "new\n"})
	if same == nil {
		if f == nil || f.Code != codePathConflict {
			t.Errorf("the same file: %v", f)
		}
	} else if f != nil || p.file(t, "README") != "new\n" {
		t.Errorf("another file: %v", f)
	}
	if p.file(t, "Readme") != "old\n" {
		t.Error("the file of the other letters has changed")
	}
}

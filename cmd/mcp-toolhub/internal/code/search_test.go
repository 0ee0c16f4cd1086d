package code

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSearchSelects(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"root/.git/HEAD": "needle", "root/.gitignore": "build/\n*.log\n!keep.log\n/top.txt\n# needle\n",
		"root/a.go": "needle", "root/a_test.go": "needle", "root/b.js": "needle", "root/sub/c.go": "needle", "root/sub/top.txt": "needle",
		"root/top.txt": "needle", "root/x.log": "needle", "root/keep.log": "needle", "root/build/out.go": "needle",
		"root/sub/.ignore": "inner.txt\n!x.log\n", "root/sub/inner.txt": "needle", "root/sub/x.log": "needle", "root/.hidden/h.go": "needle",
		"root/.dot.go": "needle", "root/.env": "needle", "root/key.pem": "needle", "root/bin": "needle\x00", "outside/o.go": "needle",
		"root/deep/er/d.go": "needle", "root/crlf.txt": "a\r\nneedle\r\n",
	})
	if err := os.Symlink("a.go", filepath.Join(p.root, "link.go")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	for _, tc := range []struct {
		args object
		want string
	}{
		{object{}, "a.go a_test.go b.js crlf.txt deep/er/d.go keep.log sub/c.go sub/top.txt sub/x.log"},
		{object{"glob": "*.go"}, ".dot.go a.go a_test.go deep/er/d.go sub/c.go"},
		{object{"glob": "!*_test.go"}, "a.go b.js crlf.txt deep/er/d.go keep.log sub/c.go sub/top.txt sub/x.log"},
		{object{"glob": "*.{js,log}"}, "b.js keep.log sub/x.log x.log"},
		{object{"glob": "sub/*.go"}, "sub/c.go"},
		{object{"glob": "/a.go"}, "a.go"},
		{object{"glob": "deep/**/*.go"}, "deep/er/d.go"},
		{object{"glob": "**/d.go"}, "deep/er/d.go"},
		{object{"glob": "er/"}, "deep/er/d.go"},
		{object{"glob": "!sub/"}, "a.go a_test.go b.js crlf.txt deep/er/d.go keep.log"},
		{object{"glob": "*.pem"}, ""},
		{object{"path": "sub"}, "sub/c.go sub/top.txt sub/x.log"},
		{object{"path": "sub", "glob": "c.*"}, "sub/c.go"},
		{object{"path": "sub", "glob": "sub/c.go"}, "sub/c.go"},
		{object{"path": "build"}, "build/out.go"},
		{object{"path": ".hidden"}, ".hidden/h.go"},
		{object{"path": "x.log"}, "x.log"},
		{object{"path": "link.go"}, "link.go"},
		{object{"path": "bin"}, ""},
		{object{"path": "../outside"}, filepath.ToSlash(filepath.Join(filepath.Dir(p.root), "outside", "o.go"))},
	} {
		tc.args["query"] = "ne+dle"
		r := p.mustCall(t, search, tc.args)
		c := decode[searchContent](t, r)
		var got []string
		for _, m := range c.Matches {
			got = append(got, m.Path)
			if m.Text != "needle" || m.Column != 1 || m.Cut {
				t.Errorf("%v: %+v", tc.args, m)
			}
		}
		if strings.Join(got, " ") != tc.want || c.Truncated {
			t.Errorf("%v:\n got %s\nwant %s", tc.args, strings.Join(got, " "), tc.want)
		}
	}
	r := p.mustCall(t, search, object{"query": "needle"})
	if c := decode[searchContent](t, r); c.Skipped.Sensitive != 2 || c.Skipped.Binary != 1 || c.FilesSearched != 9 {
		t.Errorf("skipped %+v of %d", c.Skipped, c.FilesSearched)
	}
	if !strings.HasPrefix(r.text(), "a.go:1:needle\n") || !strings.Contains(r.text(), "\ncrlf.txt:2:needle\n") ||
		!strings.Contains(r.note(), "2 sensitive") {
		t.Errorf("text %q, note %q", r.text(), r.note())
	}
	if r := p.mustCall(t, search, object{"query": "nothing like it"}); r.text() != "no match in 9 files" {
		t.Errorf("text %q", r.text())
	}
}

func TestSearchBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1000) + "needle" + strings.Repeat("z", 1000)
	p := newProject(t, map[string]string{
		"root/a": strings.Repeat("needle\n", 50), "root/b": long + "\n", "root/c": strings.Repeat("y", 2<<20) + "needle\n",
	})
	c := decode[searchContent](t, p.mustCall(t, search, object{"query": "needle", "path": "a", "limit": 50}))
	if len(c.Matches) != 50 || c.Truncated {
		t.Errorf("exactly the limit: %d, truncated %v", len(c.Matches), c.Truncated)
	}
	r := p.mustCall(t, search, object{"query": "needle", "limit": 49})
	c = decode[searchContent](t, r)
	if len(c.Matches) != 49 || !c.Truncated || c.TruncatedBy != cutLimit || !strings.Contains(r.note(), "first 49 matches") {
		t.Errorf("over the limit: %s, note %q", r.raw, r.note())
	}
	m := decode[searchContent](t, p.mustCall(t, search, object{"query": "needle", "path": "b"})).Matches[0]
	if m.Column != 2001 || !m.Cut || len(m.Text) > mostMatchBytes || !strings.Contains(m.Text, "éneedlez") || strings.Contains(m.Text, "\uFFFD") {
		t.Errorf("long line: %+v", m)
	}
	c = decode[searchContent](t, p.mustCall(t, search, object{"query": "needle", "path": "c"}))
	if len(c.Matches) != 0 || c.LongLines != 1 {
		t.Errorf("line over the window: %+v", c)
	}

	small := newProject(t, map[string]string{"root/a": strings.Repeat("x\n", 15000), "root/b": "needle\n"})
	small.maxScanBytes = 20_000
	c = decode[searchContent](t, small.mustCall(t, search, object{"query": "needle"}))
	if !c.Truncated || c.TruncatedBy != cutBytes || c.BytesSearched != 20_000 || c.FilesSearched != 1 {
		t.Errorf("bound of bytes: %+v", c)
	}
	brief := newProject(t, map[string]string{"root/a": "needle\n"})
	brief.maxSearchTime = time.Nanosecond
	c = decode[searchContent](t, brief.mustCall(t, search, object{"query": "needle"}))
	if !c.Truncated || c.TruncatedBy != cutTime {
		t.Errorf("bound of time: %+v", c)
	}
}

func TestIgnorePatterns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, path string
		dir, want  bool
	}{
		{"foo", "foo", false, true},
		{"foo", "a/b/foo", false, true},
		{"foo", "foobar", false, false},
		{"/foo", "foo", false, true},
		{"/foo", "a/foo", false, false},
		{"foo/", "foo", false, false},
		{"foo/", "a/foo", true, true},
		{"doc/frotz", "doc/frotz", false, true},
		{"doc/frotz", "a/doc/frotz", false, false},
		{"foo/*", "foo/a", false, true},
		{"foo/*", "foo/a/b", false, false},
		{"**/foo/bar", "x/y/foo/bar", false, true},
		{"abc/**", "abc/x/y", false, true},
		{"abc/**", "abc", true, false},
		{"a/**/b", "a/b", false, true},
		{"a/**/b", "a/x/y/b", false, true},
		{"*.o", "a/b.o", false, true},
		{"a?c", "abc", false, true},
		{"[a-c]x", "bx", false, true},
		{"[!a-c]x", "bx", false, false},
		{`\#x`, "#x", false, true},
		{`\!x`, "!x", false, true},
		{"x   ", "x", false, true},
		{`x\ `, "x ", false, true},
		{"x\r", "x", false, true},
		{"a{b,c}", "ab", false, false},
		{"a{b,c}", "a{b,c}", false, true},
		{"*{b}", "a{b}", false, true},
		{"**", "any/thing", false, true},
		{"# x", "# x", false, false},
		{"", "x", false, false},
		{"/", "x", true, false},
		{"[a", "[a", false, false},
	} {
		p, ok := parsePattern(tc.text, false)
		if got := ok && p.match(tc.path, tc.dir); got != tc.want {
			t.Errorf("%q on %q: %v, want %v (%+v)", tc.text, tc.path, got, tc.want, p)
		}
	}
}

// FuzzIgnore feeds what a cloned repository may hold: nothing may panic or match outside of the directory.
func FuzzIgnore(f *testing.F) {
	f.Add("*.log\n!keep\n/a/**/b/\n", "a/x/b", true)
	f.Add("{a,b}{c,d}[!x]\\", "ac", false)
	f.Add("**/**/**/x*y*z*\n\\", "q/xyz", false)
	f.Fuzz(func(t *testing.T, text, path string, dir bool) {
		if path == "" || strings.HasPrefix(path, "/") {
			return
		}
		levels := []ignoreLevel{{dir: filepath.FromSlash("/p"), patterns: parseIgnore(strings.NewReader(text))}}
		ignored(levels, filepath.FromSlash("/p/"+path), dir)
		if ignored(levels, filepath.FromSlash("/px/"+path), dir) {
			t.Errorf("%q speaks of another directory", text)
		}
		if g, err := parseGlob(text); err == nil && g != nil && len(text) <= mostGlob {
			g.match(path, dir)
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	files := map[string]string{}
	for i := range 500 {
		files[fmt.Sprintf("root/%d/%04d.go", i%20, i)] = strings.Repeat("func main() { return nil, fmt.Errorf(text) }\n", 200)
	}
	p := newProject(b, files)
	for b.Loop() {
		p.mustCall(b, search, object{"query": `Err[a-z]+\(nothing`})
	}
}

// TestIgnoreFilesAbove holds which directories above the searched one have a say.
func TestIgnoreFilesAbove(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		".gitignore": "*.go\n", "root/.gitignore": "*.log\n", "root/a/b/x.log": "needle", "root/a/b/x.go": "needle",
		"outside/.gitignore": "*.log\n", "outside/a/x.log": "needle",
		"repo/.git/HEAD": "", "repo/.gitignore": "*.log\n", "repo/a/x.log": "needle", "repo/a/x.go": "needle",
	})
	for path, want := range map[string]int{
		"a/b":           1, // x.go: what stands above the project does not count
		"../outside/a":  1, // neither project nor repository
		"../repo/a":     1, // x.go
		"a/b/x.log":     1, // named
		"../outside":    0,
		"../repo/a/../": 1,
	} {
		c := decode[searchContent](t, p.mustCall(t, search, object{"query": "needle", "path": path}))
		if len(c.Matches) != want {
			t.Errorf("%s: %+v, want %d", path, c.Matches, want)
		}
	}
}

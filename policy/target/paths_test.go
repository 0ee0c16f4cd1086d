package target_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// plan returns the plan of a tool with the given properties; name says whether it reads or writes.
func plan(tb testing.TB, name, properties string, overrides ...facts.Override) *target.Plan {
	tb.Helper()
	schema := `{"type":"object","properties":{` + properties + `}}`
	if !json.Valid([]byte(schema)) {
		tb.Fatalf("%s is no JSON", schema)
	}
	return target.Find(facts.Of(&tool.Tool{Name: tool.MCPName("s", name), Server: "s", Native: name,
		Declaration: json.RawMessage(`{}`), InputSchema: json.RawMessage(schema)}, facts.Options{Overrides: overrides}))
}

var readOnly = facts.Override{Match: "*", ReadOnly: new(true)}

func resolve(tb testing.TB, p *target.Plan, arguments any, root target.Root) []target.Target {
	tb.Helper()
	text, ok := arguments.(string)
	if !ok {
		raw, err := json.Marshal(arguments)
		if err != nil {
			tb.Fatal(err)
		}
		text = string(raw)
	}
	got, err := p.Resolve(tb.Context(), json.RawMessage(text), root)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return got
}

// one resolves one path for a tool that writes.
func one(tb testing.TB, path string, root target.Root) target.Target {
	tb.Helper()
	got := resolve(tb, plan(tb, "write", `"path":{"type":"string"}`), map[string]string{"path": path}, root)
	if len(got) == 0 {
		tb.Fatalf("%q is no target", path)
	}
	return got[0]
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// tree makes a project with a link out of it, and returns its root, really called so.
func tree(tb testing.TB) (root target.Root, outside string) {
	tb.Helper()
	top, err := filepath.EvalSymlinks(tb.TempDir())
	must(tb, err)
	project, outside := filepath.Join(top, "project"), filepath.Join(top, "outside")
	for _, dir := range []string{filepath.Join(project, "src"), filepath.Join(outside, "deep"), filepath.Join(top, "home", ".ssh")} {
		must(tb, os.MkdirAll(dir, 0o700))
	}
	for _, file := range []string{filepath.Join(project, "src", "a.go"), filepath.Join(outside, "b.go"), filepath.Join(top, "home", ".ssh", "id_rsa")} {
		must(tb, os.WriteFile(file, []byte("x"), 0o600))
	}
	link := func(to, at string) {
		if err := os.Symlink(to, at); err != nil {
			tb.Skipf("no symbolic links here: %v", err)
		}
	}
	link(outside, filepath.Join(project, "out"))
	link(filepath.Join(outside, "deep"), filepath.Join(project, "deep"))
	link(filepath.Join(outside, "new.go"), filepath.Join(project, "dangling.go"))
	link("circle", filepath.Join(project, "circle"))
	link(filepath.Join(top, "home", ".ssh"), filepath.Join(project, "keys"))
	link("src/a.go", filepath.Join(project, "inside.go"))
	return target.NewRoot(project, filepath.Join(top, "home")), outside
}

// TestRoot: a root that was followed once, and one that is followed each time, lead to the same paths.
func TestRoot(t *testing.T) {
	t.Parallel()
	made, _ := tree(t)
	link := filepath.Join(filepath.Dir(made.Dir), "link")
	must(t, os.Symlink(made.Dir, link))
	for _, root := range []target.Root{made, {Dir: made.Dir, Home: made.Home}, target.NewRoot(link, made.Home), {Dir: link, Home: made.Home}} {
		for given, want := range map[string]string{"src/a.go": filepath.Join(made.Dir, "src", "a.go"), "../x": filepath.Join(filepath.Dir(made.Dir), "x"),
			filepath.Join(root.Dir, "inside.go"): filepath.Join(made.Dir, "src", "a.go"), root.Dir + "2": root.Dir + "2"} {
			got := one(t, given, root)
			if got.Resolved != want || got.Fault != "" {
				t.Errorf("%q in %q: %+v, want %q", given, root.Dir, got, want)
			}
			if found := limits(t, target.Config{}).Judge([]target.Target{got}, root); (len(found) == 0) != strings.HasPrefix(want, made.Dir+"/") {
				t.Errorf("%q in %q: %+v", given, root.Dir, found)
			}
		}
	}
	for given, want := range map[string]string{"tmp": "/tmp", "/": "/", "..": "/"} {
		if real, err := filepath.EvalSymlinks(want); runtime.GOOS == "linux" && err == nil && real == want {
			if got := one(t, given, target.NewRoot("/", "")); got.Resolved != want {
				t.Errorf("%q in /: %+v", given, got)
			}
		}
	}
}

func TestPathAttacks(t *testing.T) {
	t.Parallel()
	root, outside := tree(t)
	in := func(elements ...string) string { return filepath.Join(append([]string{root.Dir}, elements...)...) }
	for _, c := range []struct {
		given, want string // want "": a fault
		note        target.Note
		within      bool
	}{
		{"src/a.go", in("src", "a.go"), "", true},
		{"./src//a.go", in("src", "a.go"), "", true},
		{"", in(), "", true},
		{".", in(), "", true},
		{in("src"), in("src"), "", true},
		{"new/file.go", in("new", "file.go"), target.Missing, true},
		{"../outside/b.go", filepath.Join(outside, "b.go"), "", false},
		{"src/../../outside/b.go", filepath.Join(outside, "b.go"), "", false},
		{"new/../../outside/b.go", filepath.Join(outside, "b.go"), "", false},
		{"../project2/x", filepath.Join(filepath.Dir(root.Dir), "project2", "x"), target.Missing, false},
		{"out/b.go", filepath.Join(outside, "b.go"), target.Symlink, false},
		{"out/new.go", filepath.Join(outside, "new.go"), target.Symlink, false},
		{"dangling.go", filepath.Join(outside, "new.go"), target.Symlink, false},
		{"inside.go", in("src", "a.go"), target.Symlink, true},
		{"keys/id_rsa", filepath.Join(root.Home, ".ssh", "id_rsa"), target.Symlink, false},
		{"~/.ssh/id_rsa", filepath.Join(root.Home, ".ssh", "id_rsa"), target.Home, false},
		{"$HOME/.ssh/id_rsa", filepath.Join(root.Home, ".ssh", "id_rsa"), target.Home, false},
		{"${HOME}/x", filepath.Join(root.Home, "x"), target.Home, false},
		{"file://" + filepath.ToSlash(in("src", "a.go")), in("src", "a.go"), "", true},
		{"FILE://localhost" + filepath.ToSlash(in("src", "%61.go")), in("src", "a.go"), "", true},
		{"src/*.go", in("src", "*.go"), target.Wildcard, true},
		{"src/a.go\x00.txt", "", "", false},
		{"\x00", "", "", false},
		{"src/a\ufffd.go", "", "", false},
		{"circle/x", "", "", false},
		{"~root/.ssh/id_rsa", "", "", false},
		{"$SECRET/x", "", "", false},
		{"src/$(id)", "", "", false},
		{"src/`id`", "", "", false},
		{"%APPDATA%/x", "", "", false},
		{strings.Repeat("a/", 5000), "", "", false},
	} {
		if runtime.GOOS == "windows" && strings.Contains(c.given, "file://") {
			continue
		}
		got := one(t, c.given, root)
		if c.want == "" {
			if got.Fault == "" {
				t.Errorf("%q: %+v, want a fault", c.given, got)
			}
			continue
		}
		if got.Resolved != c.want || got.Fault != "" || c.note != "" && !got.Has(c.note) || !got.Write {
			t.Errorf("%q: %+v, want %q with %q", c.given, got, c.want, c.note)
		}
		if target.Within(got.Resolved, root.Dir) != c.within {
			t.Errorf("%q is within the project: want %t", c.given, c.within)
		}
	}
}

// TestDotsAfterALink: the system goes up from where a link leads, and programs that clean a path first from where it stands.
func TestDotsAfterALink(t *testing.T) {
	t.Parallel()
	root, outside := tree(t)
	got := resolve(t, plan(t, "write", `"path":{"type":"string"}`), map[string]string{"path": "deep/../b.go"}, root)
	if len(got) != 2 || got[0].Resolved != filepath.Join(outside, "b.go") || got[1].Resolved != filepath.Join(root.Dir, "b.go") ||
		!got[1].Has(target.Lexical) || got[0].Has(target.Lexical) {
		t.Errorf("%+v", got)
	}
}

func TestProcessFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("/proc is of Linux")
	}
	root, _ := tree(t)
	for _, path := range []string{"/proc/self/root/etc/passwd", "/proc/self/cwd/x", "/proc/thread-self/root/x", "/proc/1/root/etc/passwd",
		fmt.Sprintf("/proc/%d/root/etc/passwd", os.Getpid()), "/dev/fd/0", "/dev/stdin", "/proc/../proc/self/root/x", "//proc//self/environ"} {
		if got := one(t, path, root); got.Fault == "" {
			t.Errorf("%q: %+v, want a fault", path, got)
		}
	}
	must(t, os.Symlink("/proc/self/root", filepath.Join(root.Dir, "top")))
	if got := one(t, "top/etc/passwd", root); got.Fault == "" {
		t.Errorf("%+v, want a fault", got)
	}
}

func TestNatureOfFiles(t *testing.T) {
	t.Parallel()
	root, outside := tree(t)
	must(t, os.Link(filepath.Join(outside, "b.go"), filepath.Join(root.Dir, "hard.go")))
	if got := one(t, "hard.go", root); !got.Has(target.HardLink) && runtime.GOOS != "windows" {
		t.Errorf("a second name is not told of: %+v", got)
	}
	must(t, os.WriteFile(filepath.Join(root.Dir, "caf\u00e9.txt"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(root.Dir, "Makefile"), nil, 0o600))
	for given, note := range map[string]target.Note{"cafe\u0301.txt": target.UnicodeTwin, "makefile": target.CaseTwin} {
		got := one(t, given, root)
		if runtime.GOOS == "linux" {
			if got.Has(note) || !got.Has(target.Missing) {
				t.Errorf("%q: %+v, which nobody has asked for", given, got)
			}
			if got.Twins(); !got.Has(note) {
				t.Errorf("%q: %+v, want %s once it is asked for", given, got, note)
			}
		} else if filepath.Base(got.Resolved) == given && !got.Has(target.Missing) {
			t.Errorf("%q is not called so: %+v", given, got)
		}
	}
	if runtime.GOOS != "windows" {
		socket := filepath.Join(root.Dir, "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Skipf("no sockets here: %v", err)
		}
		defer l.Close()
		if got := one(t, "s", root); !got.Has(target.Special) {
			t.Errorf("%+v", got)
		}
	}
}

func TestRemotePaths(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"/etc/../etc/passwd": "/etc/passwd", "a/b": "a/b", "/proc/self/root/x": "/proc/self/root/x",
		`a\..\..\b`: "../b", "~/x": "~/x", `C:\x\..\y`: "C:/y"} {
		got := one(t, given, target.Root{Remote: true})
		if got.Resolved != want || !got.Remote || got.Fault != "" {
			t.Errorf("%q: %+v, want %q", given, got, want)
		}
	}
	for _, given := range []string{"a\x00b", `\\host\share`, "//host/share"} {
		if got := one(t, given, target.Root{Remote: true}); got.Fault == "" {
			t.Errorf("%q: %+v, want a fault", given, got)
		}
	}
	if got := one(t, "a", target.Root{}); got.Fault == "" {
		t.Errorf("relative to nothing: %+v", got)
	}
}

// TestNested: what a schema leaves open is looked through, however deep it stands.
func TestNested(t *testing.T) {
	t.Parallel()
	root, _ := tree(t)
	p := plan(t, "write", `"options":{"type":"object"},"list":{"type":"array","items":{"type":"object"}},"text":{"type":"string"},
		"map":{"type":"object","additionalProperties":{"type":"object","properties":{"path":{"type":"string"}}}},
		"known":{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}},
		"any":{"patternProperties":{".*":{"type":"object"}}}`)
	for arguments, want := range map[string]string{
		`{"options":{"path":"/a/b"}}`:                            "path /options/path b",
		`{"options":{"deep":[[{"x":{"file_path":"c"}}]]}}`:       "path /options/deep/0/0/x/file_path c",
		`{"list":[{"path":"c"},{"url":"https://h.example/x"}]}`:  "path /list/0/path c, url /list/1/url x",
		`{"map":{"k":{"path":"c"}}}`:                             "path /map/k/path c",
		`{"any":{"k":{"x":"/etc/passwd"}}}`:                      "path /any/k/x passwd",
		`{"known":{"path":"c","content":"/etc/passwd"}}`:         "path /known/path c",
		`{"known":{"PATH":"c"}}`:                                 "path /known/PATH c",
		`{"other":{"path":"c"}}`:                                 "path /other/path c",
		`{"options":{"paths":["c",{"path":"d"}],"argv":["rm"]}}`: "path /options/paths/0 c, path /options/paths/1/path d, command /options/argv rm",
		`{"options":{"id":"7","note":"plain"},"text":"/x"}`:      "",
		`{"options":{"/etc/passwd":"x","plain/key":"y"}}`:        "path /options/~1etc~1passwd passwd",
		`{"options":{"path":"${X}/y"}}`:                          "path /options/path y",
	} {
		var got []string
		for _, tg := range resolve(t, p, arguments, root) {
			if tg.Fault != "" {
				t.Errorf("%s: %s", arguments, tg.Fault)
			}
			got = append(got, string(tg.Kind)+" "+tg.Argument+" "+filepath.Base(tg.Given))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", arguments, strings.Join(got, ", "), want)
		}
	}
	deep := strings.Repeat(`{"a":`, 80) + `{"path":"x"}` + strings.Repeat(`}`, 80)
	if got := resolve(t, p, `{"options":`+deep+`}`, root); len(got) != 1 || got[0].Fault != "" || got[0].Given != "x" {
		t.Errorf("deep: %+v", got)
	}
	heavy := strings.Repeat(`{"a":`, 900) + `"` + strings.Repeat("x", 3<<20) + `"` + strings.Repeat(`}`, 900)
	if got := resolve(t, p, `{"options":`+heavy+`}`, root); len(got) != 1 || got[0].Fault == "" {
		t.Errorf("heavy: %d targets", len(got))
	}
}

// TestEndsOfFiles: what a tool for files calls its source and destination are paths.
func TestEndsOfFiles(t *testing.T) {
	t.Parallel()
	root, _ := tree(t)
	const ends = `"source":{"type":"string"},"destination":{"type":"string"}`
	for name, want := range map[string]int{"move_file": 2, "copyFiles": 2, "create_directory": 2, "translate": 0} {
		got := resolve(t, plan(t, name, ends), `{"source":"a","destination":"b"}`, root)
		if len(got) != want {
			t.Errorf("%s: %+v, want %d targets", name, got, want)
		}
		for _, tg := range got {
			if tg.Kind != target.Path || !tg.Write {
				t.Errorf("%s: %+v", name, tg)
			}
		}
	}
}

// TestArgumentsInDisguise: a key may be spelled otherwise, or hold a list; programs take what they take.
func TestArgumentsInDisguise(t *testing.T) {
	t.Parallel()
	root, _ := tree(t)
	p := plan(t, "write", `"path":{"type":"string"},"text":{"type":"string"},"edits":{"type":"array","items":{"type":"object","properties":{"file_path":{"type":"string"}}}}`)
	for arguments, want := range map[string]string{
		`{"path":"a","path":"b"}`: "/path a, /path b",
		`{"PATH":"a"}`:            "/PATH a key_variant",
		`{"\u0070ath":"a"}`:       "/path a",
		`{"path":["a","b"]}`:      "/path/0 a, /path/1 b",
		`{"path":{"x":1}}`:        "/path fault",
		`{"path":7}`:              "/path fault",
		`{"path":null}`:           "",
		`{"text":"/etc/passwd"}`:  "",
		`{"edits":[{"file_path":"a"},{"file_path":"b"}]}`: "/edits/0/file_path a, /edits/1/file_path b",
		`{"edits":{"file_path":"a"}}`:                     "/edits fault, /edits/file_path a undeclared",
		`{"output_file":"a"}`:                             "/output_file a undeclared",
		`{"x":"/etc/passwd","y":"plain","z":"ftp://h/"}`:  "/x passwd undeclared, /z  undeclared",
	} {
		var got []string
		for _, tg := range resolve(t, p, arguments, root) {
			text := tg.Argument + " " + filepath.Base(tg.Given)
			if tg.Kind == target.URL {
				text = tg.Argument + " "
			}
			if tg.Fault != "" {
				text = tg.Argument + " fault"
			}
			for _, n := range []target.Note{target.KeyVariant, target.Undeclared} {
				if tg.Has(n) {
					text += " " + string(n)
				}
			}
			got = append(got, text)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", arguments, strings.Join(got, ", "), want)
		}
	}
	for _, arguments := range []string{``, `[]`, `null`, `{"path":`, `"x"`} {
		if _, err := p.Resolve(t.Context(), json.RawMessage(arguments), root); err == nil {
			t.Errorf("%s: no error", arguments)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Resolve(ctx, json.RawMessage(`{"path":"a"}`), root); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	many := `{"path":["` + strings.Repeat(`a","`, 5000) + `a"]}`
	got := resolve(t, p, many, root)
	if last := got[len(got)-1]; len(got) != 1001 || last.Fault == "" {
		t.Errorf("%d targets, the last %+v", len(got), last)
	}
}

// open opens a resolved file as whoever writes to one does.
func open(resolved string) (*os.File, error) {
	dir, err := target.OpenDir(filepath.Dir(resolved))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return target.OpenIn(dir, filepath.Base(resolved))
}

// TestOpen: what was judged is what is opened, whatever has been put into its place since.
func TestOpen(t *testing.T) {
	t.Parallel()
	root, outside := tree(t)
	src := filepath.Join(root.Dir, "src")
	file := one(t, "src/a.go", root)
	f, err := open(file.Resolved)
	must(t, err)
	f.Close()

	must(t, os.WriteFile(filepath.Join(outside, "a.go"), []byte("precious"), 0o600))
	must(t, os.Rename(src, src+"2"))
	must(t, os.Symlink(outside, src)) // the directory has become a link
	if _, err := open(file.Resolved); !errors.Is(err, target.ErrChanged) {
		t.Errorf("a directory that has become a link: %v", err)
	}
	must(t, os.Remove(src))
	must(t, os.Rename(src+"2", src))
	must(t, os.Remove(file.Resolved))
	must(t, os.Symlink(filepath.Join(outside, "a.go"), file.Resolved)) // the file has become a link
	if _, err := open(file.Resolved); !errors.Is(err, target.ErrChanged) {
		t.Errorf("a file that has become a link: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(outside, "a.go")); err != nil || string(text) != "precious" {
		t.Errorf("outside: %q, %v", text, err)
	}
	if _, err := open("src/a.go"); err == nil {
		t.Error("a relative path is opened")
	}
}

// TestOpenWhileSwapped opens a file while somebody exchanges its directory for a link as fast as can be.
func TestOpenWhileSwapped(t *testing.T) {
	t.Parallel()
	root, outside := tree(t)
	must(t, os.WriteFile(filepath.Join(outside, "a.go"), []byte("secret"), 0o600))
	src := filepath.Join(root.Dir, "src")
	must(t, os.Symlink(outside, src+".link"))
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
			}
			_ = os.Rename(src, src+".dir")
			_ = os.Rename(src+".link", src)
			_ = os.Rename(src, src+".link")
			_ = os.Rename(src+".dir", src)
		}
	}()
	opened, refused := 0, 0
	for range 3000 {
		f, err := open(filepath.Join(src, "a.go"))
		if err != nil {
			refused++
			continue
		}
		text, err := io.ReadAll(f)
		f.Close()
		if err != nil || string(text) != "x" {
			t.Errorf("read %q, %v", text, err)
		}
		opened++
	}
	close(done)
	<-stopped
	t.Logf("%d opened, %d refused", opened, refused)
}

func TestNotesAreNotShared(t *testing.T) {
	t.Parallel()
	root, _ := tree(t)
	p := plan(t, "write", `"paths":{"type":"array","items":{"type":"string"}}`)
	got := resolve(t, p, map[string]any{"PATHS": []string{"~/x", "src/a.go", "out/b.go"}}, root)
	if len(got) != 3 || !slices.Equal(got[1].Notes, []target.Note{target.KeyVariant}) {
		t.Errorf("%+v", got)
	}
}

// TestMakeDir: what is missing is made, and no link is followed on the way.
func TestMakeDir(t *testing.T) {
	t.Parallel()
	root, outside := tree(t)
	must(t, os.Symlink(outside, filepath.Join(root.Dir, "away")))
	for path, ok := range map[string]bool{"src": true, "a/b/c": true, "src/new": true, "src/a.go": false, "src/a.go/x": false, "away": false, "away/x": false} {
		d, err := target.MakeDir(filepath.Join(root.Dir, filepath.FromSlash(path)), 0o755)
		if (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
		if err != nil {
			continue
		}
		must(t, d.Mkdir("inside", 0o755))
		d.Close()
		if info, err := os.Stat(filepath.Join(root.Dir, path, "inside")); err != nil || !info.IsDir() {
			t.Errorf("%s: what was opened is another directory", path)
		}
	}
	if _, err := os.Lstat(filepath.Join(outside, "x")); err == nil {
		t.Error("a directory was made outside")
	}
	if _, err := target.MakeDir("relative", 0o755); err == nil {
		t.Error("a relative path is made")
	}
}

// TestWriting: directories that may be written to take the place of the root's own, through links too.
func TestWriting(t *testing.T) {
	t.Parallel()
	root, outside := tree(t)
	must(t, os.Symlink("src", filepath.Join(root.Dir, "alias")))
	limits, err := target.NewLimits(target.Config{}, target.HubPaths{})
	must(t, err)
	p := plan(t, "write", `"path":{"type":"string"}`)
	own, narrow := root, root.Writing(filepath.Join(root.Dir, "alias"))
	for path, may := range map[string][2]bool{"n": {true, false}, "src/n": {true, true}, "alias/n": {true, true}, "srcs/n": {true, false},
		"src/../n": {true, false}, outside + "/n": {false, false}} {
		for i, r := range []target.Root{own, narrow} {
			found := limits.Judge(resolve(t, p, map[string]any{"path": path}, r), r)
			if (len(found) == 0) != may[i] || len(found) > 0 && found[0].Code != target.OutsideRoots {
				t.Errorf("%s in root %d: %+v", path, i, found)
			}
		}
	}
	if found := limits.Judge(resolve(t, p, map[string]any{"path": "n"}, root.Writing()), root.Writing()); len(found) != 1 {
		t.Errorf("nothing may be written to: %+v", found)
	}
}

// TestPathsOf says what Resolve says of the same path.
func TestPathsOf(t *testing.T) {
	t.Parallel()
	root, _ := tree(t)
	p := plan(t, "write", `"path":{"type":"string"}`)
	for _, path := range []string{"src/a.go", "../x", "~/y", "$HOME/z", "a\x00b", "src/../src/a.go", "/proc/self/root/etc", "", "new", "file:///etc/passwd"} {
		want := resolve(t, p, map[string]any{"path": path}, root)
		if got := target.PathsOf("/path", path, root); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", path, got, want)
		}
	}
}

// TestTrimmedPathsAreJudged: many programs take white space away at the ends of a path, stop at a NUL character, or read file
// URLs, so a path is judged in that reading, too, wherever it stands.
func TestTrimmedPathsAreJudged(t *testing.T) {
	t.Parallel()
	l := limits(t, target.Config{})
	p := plan(t, "get", `"path":{"type":"string"},"url":{"type":"string"},"more":{"type":"object"}`)
	judged := func(root target.Root, arguments string) []string {
		targets, err := p.Resolve(t.Context(), json.RawMessage(arguments), root)
		must(t, err)
		var codes []string
		for _, found := range l.Judge(targets, root) {
			codes = append(codes, found.Code)
		}
		return codes
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, path := range []string{" /etc/shadow", "/etc/shadow ", "/etc/shadow\n", "\r\n/etc/shadow", "/etc/shadow\t", "\u00a0/etc/shadow", "/etc/shadow\u3000", "\u2028/etc/shadow",
		"\ufeff/etc/shadow", "\u200b/etc/shadow", "/etc/shadow\x00", "/etc/shadow\x00.txt", " /etc/shadow \x00.txt", "\x00/etc/shadow", "\x1f/etc/shadow", "\v/etc/shadow\f",
		" file:///etc/shadow", "file:///etc/shadow\n", "fi\nle:///etc/shadow", "file:/etc/shadow", `file:\etc\shadow`, "file:etc/shadow", "file://other/etc/shadow",
		"file:////etc/shadow", "file:///etc/%73hadow", "file:///x/%2e%2e/etc/shadow"} {
		for _, root := range []target.Root{{Dir: home}, {Remote: true, Dir: "/srv"}} {
			if !root.Remote && runtime.GOOS == "windows" {
				continue
			}
			for _, arguments := range []string{`{"path":%s}`, `{"more":{"path":%s}}`, `{"more":{"q":%s}}`, `{"q":%s}`, `{"url":%s}`} {
				if arguments == `{"url":%s}` && !strings.Contains(path, "le:") {
					continue
				}
				arguments = strings.Replace(arguments, "%s", string(rawjson.Quote(path)), 1)
				if codes := judged(root, arguments); !slices.Contains(codes, target.Sensitive) {
					t.Errorf("%s: %q", arguments, codes)
				}
			}
		}
	}
	for _, path := range []string{"src/a.go", " src/a.go ", "a b", "notes\n"} {
		if codes := judged(target.Root{Dir: home}, `{"path":`+string(rawjson.Quote(path))+`}`); len(codes) > 0 {
			t.Errorf("%q: %q", path, codes)
		}
	}
}

package code

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// writable lets the tools write in the project.
func writable(c *Config) { c.AllowedWriteRoots = []string{c.Root} }

func (p *project) file(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// snapshot is what every file below the project and its home holds, by name.
func (p *project) snapshot(t testing.TB) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(filepath.Dir(p.root), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			all[path] = d.Type().String()
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// mustNotChange fails where anything has changed since before.
func (p *project) mustNotChange(t testing.TB, before map[string]string, what any) {
	t.Helper()
	after := p.snapshot(t)
	for name, text := range after {
		if old, ok := before[name]; !ok || old != text {
			t.Errorf("%v: %q has changed from %q to %q", what, name, before[name], text)
		}
	}
	if len(before) > len(after) {
		t.Errorf("%v: files have gone", what)
	}
}

func TestWritingIsOptIn(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	for _, native := range []string{writeFile, editFile} {
		_, err := p.Execute(t.Context(), &tool.Execution{Tool: &tool.Tool{Native: native}, Arguments: json.RawMessage(`{"path":"a","content":"x"}`)})
		var f *tool.Failure
		if !errors.As(err, &f) || f.Class != tool.ClassUnknownTool {
			t.Errorf("%s without roots: %v", native, err)
		}
	}
	if len(p.Catalog().Tools) != 3 {
		t.Errorf("without roots there are %d tools", len(p.Catalog().Tools))
	}
	c := newProject(t, nil, writable).Catalog()
	if len(c.Tools) != 5 || strings.Contains(strings.Join(c.Tags, " "), "readonly") {
		t.Fatalf("catalog with roots: %d tools, tags %v", len(c.Tools), c.Tags)
	}
	for _, tl := range c.Tools[3:] {
		compileSchema(t, tl.InputSchema)
		compileSchema(t, tl.OutputSchema)
		if bytes.ContainsAny(tl.Declaration, "\n\t") {
			t.Errorf("%s: the declaration has line breaks", tl.Name)
		}
		f := facts.Of(tl, facts.Options{Trust: true})
		if f.ReadOnly.Value || !f.Has("write") || !f.Has("filesystem") || f.Has("dangerous") || f.Has("readonly") || f.Network.Value ||
			f.Kind.Value != "file_operation" || f.Concurrency.Value != facts.ConcurrencyByTarget {
			t.Errorf("%s: facts %+v", tl.Name, f)
		}
		if len(f.Arguments) != 1 || f.Arguments[0].Pointer != "/path" || f.Arguments[0].Kind != facts.ArgumentPath || !f.Arguments[0].Write {
			t.Errorf("%s: arguments %+v", tl.Name, f.Arguments)
		}
		if got := strings.Join(f.WriteEffects.Value, " "); got != "create update" {
			t.Errorf("%s: write effects %q", tl.Name, got)
		}
		if got := strings.Join(f.Access.Value, " "); got != "read write filesystem" {
			t.Errorf("%s: access %q", tl.Name, got)
		}
	}
	for name, dirs := range map[string][]string{"missing": {filepath.Join(t.TempDir(), "none")}, "relative": {"."}} {
		if _, err := New(Config{Root: t.TempDir(), AllowedWriteRoots: dirs}); err == nil || !strings.Contains(err.Error(), "allowed_write_roots") {
			t.Errorf("%s root to write in: %v", name, err)
		}
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	files := map[string]string{"root/lf": "a\nb\n", "root/crlf": "a\r\nb\r\n", "root/bom": "\xef\xbb\xbfa\n", "root/mixed": "a\r\nb\n",
		"root/end": "a\nb", "root/bin": "a\x00b", "root/same": "x\n"}
	for name, tc := range map[string]struct {
		args    object
		want    string // of the file
		endings string
	}{
		"new":                          {object{"path": "n", "content": "one\ntwo"}, "one\ntwo", "lf"},
		"empty":                        {object{"path": "n", "content": ""}, "", "none"},
		"new, as it is":                {object{"path": "n", "content": "a\r\nb\nc\r"}, "a\r\nb\nc\r", "mixed"},
		"new CRLF":                     {object{"path": "n", "content": "a\r\nb\r\n"}, "a\r\nb\r\n", "crlf"},
		"new with mark":                {object{"path": "n", "content": "\ufeffa"}, "\xef\xbb\xbfa", "none"},
		"new directories":              {object{"path": "x/y/z/n", "content": "a\n"}, "a\n", "lf"},
		"replaces":                     {object{"path": "lf", "content": "c\n", "overwrite": true}, "c\n", "lf"},
		"keeps CRLF":                   {object{"path": "crlf", "content": "c\nd\n", "overwrite": true}, "c\r\nd\r\n", "crlf"},
		"CRLF stays once":              {object{"path": "crlf", "content": "c\r\nd\r\n", "overwrite": true}, "c\r\nd\r\n", "crlf"},
		"CRLF, mixed by will":          {object{"path": "crlf", "content": "c\r\nd\n", "overwrite": true}, "c\r\nd\n", "mixed"},
		"keeps LF":                     {object{"path": "lf", "content": "c\r\nd\r\n", "overwrite": true}, "c\nd\n", "lf"},
		"keeps the mark":               {object{"path": "bom", "content": "c\n", "overwrite": true}, "\xef\xbb\xbfc\n", "lf"},
		"mark only once":               {object{"path": "bom", "content": "\ufeffc\n", "overwrite": true}, "\xef\xbb\xbfc\n", "lf"},
		"mixed is as it comes":         {object{"path": "mixed", "content": "c\nd\r\n", "overwrite": true}, "c\nd\r\n", "mixed"},
		"no last ending":               {object{"path": "end", "content": "c\nd", "overwrite": true}, "c\nd", "lf"},
		"text in the place of no text": {object{"path": "bin", "content": "text\n", "overwrite": true}, "text\n", "lf"},
		"letters beyond ASCII":         {object{"path": "ä/ö.txt", "content": "ü🎉\n"}, "ü🎉\n", "lf"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, files, writable)
			path := tc.args["path"].(string)
			_, existed := files["root/"+path]
			r := p.mustCall(t, writeFile, tc.args)
			if got := p.file(t, path); got != tc.want {
				t.Errorf("the file holds %q, want %q", got, tc.want)
			}
			c := decode[written](t, r)
			abs := filepath.Join(p.root, filepath.FromSlash(path))
			if c.Path != path || c.Created == existed || !c.Changed || c.SizeBytes != int64(len(tc.want)) || c.LineEndings != tc.endings ||
				c.ContentTruncated || len(c.Content) != 1 || c.Content[0].Path != abs || c.Content[0].Type != "diff" ||
				len(c.Locations) != 1 || c.Locations[0] != (location{abs, 1}) {
				t.Errorf("result %+v", c)
			}
			if c.Created && (c.Content[0].OldText != nil || c.Content[0].NewText != documentBody(tc.want)) {
				t.Errorf("diff of a new file %+v", c.Content[0])
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(abs), ".toolhub-*")); err != nil || len(left) > 0 {
				t.Errorf("files are left: %v", left)
			}
		})
	}
	p := newProject(t, files, writable)
	if c := decode[written](t, p.mustCall(t, writeFile, object{"path": "same", "content": "x\n", "overwrite": true})); c.Changed || len(c.Content) > 0 {
		t.Errorf("the same text: %+v", c)
	}
}

func documentBody(raw string) string { d := documentOf(raw); return d.body }

func TestWriteFileRefuses(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/there": "old\n", "root/dir/x": "", "home/outside": "o\n", "root/.ssh/id": secret,
		"root/caf\u00e9": "nfc\n", "root/.env": secret, "root/hub.yaml": "policy:\n", "root/secret.mine": "s"},
		writable, func(c *Config) {
			c.Protected = []string{filepath.Join(c.Root, "hub.yaml")}
			c.SensitivePaths = []string{"*.mine"}
		})
	huge := strings.Repeat("x", 4<<20+1)
	denied, sandbox := string(tool.ClassPermissionDenied), codeOutsideRoots
	for name, tc := range map[string]struct {
		args any
		code string
	}{
		"exists":                    {object{"path": "there", "content": "new"}, codePathConflict},
		"directory":                 {object{"path": "dir", "content": "new", "overwrite": true}, codeIsDirectory},
		"directory by its slash":    {object{"path": "new/", "content": "x"}, codeIsDirectory},
		"root":                      {object{"path": "/", "content": "x"}, codeIsDirectory},
		"project":                   {object{"path": ".", "content": "x"}, codeIsDirectory},
		"file as directory":         {object{"path": "there/x", "content": "x"}, codeNotRegular},
		"no directory":              {object{"path": "none/x", "content": "x", "create_dirs": false}, codeNoDirectory},
		"outside":                   {object{"path": p.home + "/new", "content": "x"}, sandbox},
		"outside, there":            {object{"path": p.home + "/outside", "content": "x", "overwrite": true}, sandbox},
		"outside by dots":           {object{"path": "../home/new", "content": "x"}, sandbox},
		"outside by deep dots":      {object{"path": "dir/../../home/new", "content": "x"}, sandbox},
		"outside by missing dots":   {object{"path": "none/../../home/new", "content": "x"}, sandbox},
		"outside by tilde":          {object{"path": "~/new", "content": "x"}, sandbox},
		"outside by variable":       {object{"path": "$HOME/new", "content": "x"}, sandbox},
		"outside by URL":            {object{"path": "file://" + p.home + "/new", "content": "x"}, sandbox},
		"a variable":                {object{"path": "$TMPDIR/new", "content": "x"}, codePathRefused},
		"a home":                    {object{"path": "~root/new", "content": "x"}, codePathRefused},
		"NUL in the path":           {object{"path": "a\x00b", "content": "x"}, codePathRefused},
		"half a character in path":  {json.RawMessage(`{"path":"a\ud800","content":"x"}`), codePathRefused},
		"keys":                      {object{"path": ".ssh/id", "content": "x", "overwrite": true}, denied},
		"keys in other letters":     {object{"path": ".SSH/new", "content": "x"}, denied},
		"environment":               {object{"path": ".env", "content": "x", "overwrite": true}, denied},
		"hooks":                     {object{"path": ".git/hooks/pre-commit", "content": "x"}, denied},
		"what the operator names":   {object{"path": "secret.mine", "content": "x", "overwrite": true}, codeProtected},
		"the hub's own file":        {object{"path": "hub.yaml", "content": "x", "overwrite": true}, codeProtected},
		"a twin of it":              {object{"path": "HUB.yaml", "content": "x"}, codeProtected},
		"another spelling of it":    {object{"path": "dir/../hub.yaml", "content": "x", "overwrite": true}, codeProtected},
		"below it":                  {object{"path": "hub.yaml/x", "content": "x"}, codeProtected},
		"the same name, decomposed": {object{"path": "cafe\u0301", "content": "x"}, codePathConflict},
		"NUL in the content":        {object{"path": "n", "content": "a\x00b"}, codeNotText},
		"half a character":          {json.RawMessage(`{"path":"n","content":"a\ud83dz"}`), codeNotText},
		"the other half":            {json.RawMessage(`{"path":"n","content":"\udf89"}`), codeNotText},
		"bytes":                     {json.RawMessage("{\"path\":\"n\",\"content\":\"a\xffb\"}"), codeNotText},
		"too long":                  {object{"path": "n", "content": huge}, "invalid_arguments"},
		"no content":                {object{"path": "n"}, "invalid_arguments"},
		"content is null":           {object{"path": "n", "content": nil}, "invalid_arguments"},
		"no path":                   {object{"content": "x"}, "invalid_arguments"},
		"unknown":                   {object{"path": "n", "content": "x", "mode": 7}, "invalid_arguments"},
		"overwrite is a word":       {object{"path": "there", "content": "x", "overwrite": "true"}, "invalid_arguments"},
	} {
		if runtime.GOOS == "windows" && strings.HasPrefix(name, "outside by URL") {
			continue
		}
		before := p.snapshot(t)
		_, f := p.call(t, writeFile, tc.args)
		if f == nil || f.ErrorCode() != tc.code {
			t.Errorf("%s: %v, want %s", name, f, tc.code)
		}
		p.mustNotChange(t, before, name)
	}
	if r, f := p.call(t, writeFile, json.RawMessage(`{"path":"ok","content":"\ud83c\udf89\ufffd\\ud800"}`)); f != nil || p.file(t, "ok") != "🎉\ufffd\\ud800" {
		t.Errorf("whole pairs are text: %v %v", r, f)
	}
}

// TestWriteRoots: the directories that the operator names count, and not the project.
func TestWriteRoots(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/sub/x": "", "root/sub2/x": "", "home/out/x": ""}, func(c *Config) {
		c.AllowedWriteRoots = []string{filepath.Join(c.Root, "sub"), filepath.Join(c.Home, "out")}
	})
	for path, code := range map[string]string{"sub/n": "", "sub/d/n": "", "~/out/n": "", "n": codeOutsideRoots, "sub2/n": codeOutsideRoots,
		"sub/../n": codeOutsideRoots, "~/n": codeOutsideRoots, "~/outer/n": codeOutsideRoots} {
		_, f := p.call(t, writeFile, object{"path": path, "content": "x"})
		if (f == nil) != (code == "") || f != nil && f.Code != code {
			t.Errorf("%s: %v, want %q", path, f, code)
		}
	}
}

func TestWriteKeepsTheMode(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes are the system's own there")
	}
	p := newProject(t, map[string]string{"root/run.sh": "#!/bin/sh\n", "root/shut": "x\n"}, writable)
	for name, mode := range map[string]fs.FileMode{"run.sh": 0o751, "shut": 0o640} {
		path := filepath.Join(p.root, name)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		p.mustCall(t, writeFile, object{"path": name, "content": "new\n", "overwrite": true})
		p.mustCall(t, editFile, object{"path": name, "edits": []object{{"old": "new", "new": "newer"}}})
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), mode)
		}
	}
	p.mustCall(t, writeFile, object{"path": "fresh", "content": ""})
	info, err := os.Stat(filepath.Join(p.root, "fresh"))
	if err != nil || info.Mode().Perm()&0o111 != 0 || info.Mode().Perm()&0o600 != 0o600 {
		t.Errorf("a new file has mode %v, %v", info.Mode(), err)
	}
	if os.Geteuid() == 0 {
		return // nothing is read-only for root
	}
	if err := os.Chmod(filepath.Join(p.root, "shut"), 0o440); err != nil {
		t.Fatal(err)
	}
	if _, f := p.call(t, writeFile, object{"path": "shut", "content": "x", "overwrite": true}); f == nil || f.Code != codeAccessDenied {
		t.Errorf("a read-only file: %v", f)
	}
}

// TestReadersSeeOneText would fail were a file written in place: some reader would see a part.
func TestReadersSeeOneText(t *testing.T) {
	t.Parallel()
	texts := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 100_000)}
	p := newProject(t, map[string]string{"root/f": texts[0]}, writable)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if data, err := os.ReadFile(filepath.Join(p.root, "f")); err != nil || string(data) != texts[0] && string(data) != texts[1] {
					t.Errorf("a reader saw %d bytes that are neither text: %v", len(data), err)
					return
				}
			}
		})
	}
	for i := range 20 {
		p.mustCall(t, writeFile, object{"path": "f", "content": texts[(i+1)%2], "overwrite": true})
	}
	close(done)
	readers.Wait()
}

// TestWritesComeOneByOne has many calls that each add a line: none is lost.
func TestWritesComeOneByOne(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/f": "end\n"}, writable)
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			p.mustCall(t, editFile, object{"path": "f", "edits": []object{{"old": "end", "new": "line\nend"}}})
		})
	}
	calls.Wait()
	if got := strings.Count(p.file(t, "f"), "line\n"); got != 20 {
		t.Errorf("%d of 20 lines are there", got)
	}
}

// TestStaleFile has another program change the file between reading and replacing.
func TestStaleFile(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/f": "old\n"}, writable)
	path := filepath.Join(p.root, "f")
	for name, meddle := range map[string]func() error{
		"changed": func() error { return os.WriteFile(path, []byte("theirs, longer\n"), 0o600) },
		"same size": func() error {
			return errors.Join(os.WriteFile(path, []byte("hey\n"), 0o600), os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
		},
		"replaced, at the same time": func() error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(path+".new", []byte("new\n"), 0o600), os.Chtimes(path+".new", time.Time{}, info.ModTime()),
				os.Rename(path+".new", path))
		},
		"grown, at the same time": func() error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(path, []byte("longer\n"), 0o600), os.Chtimes(path, time.Time{}, info.ModTime()))
		},
		"gone": func() error { return os.Remove(path) },
	} {
		if err := os.WriteFile(path, []byte("old\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var theirs map[string]string
		_, err := put(t.Context(), path, &change{given: "f", make: func(string, *document) (document, error) {
			if err := meddle(); err != nil {
				t.Fatal(err)
			}
			theirs = p.snapshot(t)
			return documentOf("ours\n"), nil
		}})
		var f *tool.Failure
		if !errors.As(writeFailure("f", err), &f) || f.Code != codePathChanged {
			t.Errorf("%s: %v", name, err)
		}
		p.mustNotChange(t, theirs, name)
	}
	var theirs map[string]string
	_, err := put(t.Context(), filepath.Join(p.root, "new"), &change{given: "new", make: func(string, *document) (document, error) {
		if err := os.WriteFile(filepath.Join(p.root, "new"), []byte("theirs\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		theirs = p.snapshot(t)
		return documentOf("ours\n"), nil
	}})
	if !errors.Is(err, errExists) {
		t.Errorf("a file that appears: %v", err)
	}
	p.mustNotChange(t, theirs, "appears")
}

// TestTakeEmpty covers file systems without hard links.
func TestTakeEmpty(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/temp": "x", "root/there": "y"}, writable)
	dir, err := target.OpenDir(p.root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := (&destination{dir: dir, name: "there"}).takeEmpty("temp"); !errors.Is(err, errExists) || p.file(t, "there") != "y" {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := (&destination{dir: dir, name: "new"}).takeEmpty("temp"); err != nil || p.file(t, "new") != "x" {
		t.Errorf("a free name: %v", err)
	}
	if err := (&destination{dir: dir, name: "newer"}).takeEmpty("none"); err == nil {
		t.Error("nothing to give the name to")
	}
	if _, err := os.Stat(filepath.Join(p.root, "newer")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("an empty file is left")
	}
}

func TestCanceledWrite(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/f": "old\n"}, writable)
	before := p.snapshot(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, f := p.callCtx(t, ctx, writeFile, object{"path": "f", "content": "x", "overwrite": true}, nil)
	if f == nil || f.Class != tool.ClassCanceled {
		t.Errorf("canceled: %v", f)
	}
	p.writer.turn <- struct{}{} // another call holds the turn
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, f := p.callCtx(t, ctx, editFile, object{"path": "f", "edits": []object{{"old": "old", "new": "x"}}}, nil); f == nil || f.Class != tool.ClassTimeout {
		t.Errorf("waiting for its turn: %v", f)
	}
	p.mustNotChange(t, before, "canceled")
}

func TestResultIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789\n", 100_000)
	p := newProject(t, map[string]string{"root/f": long, "root/big": strings.Repeat("x", mostFileBytes+1)}, writable)
	for _, args := range []object{{"path": "n", "content": long}, {"path": "f", "content": strings.ReplaceAll(long, "5", "55"), "overwrite": true}} {
		r := p.mustCall(t, writeFile, args)
		c := decode[written](t, r)
		if !c.ContentTruncated || len(r.raw) > 200_000 || len(r.text()) > 200_000 || c.AddedLines != 100_000 {
			t.Errorf("%s: %d bytes, +%d lines, truncated %t", args["path"], len(r.raw), c.AddedLines, c.ContentTruncated)
		}
	}
	r := p.mustCall(t, editFile, object{"path": "n", "edits": []object{{"old": "9\n", "new": "9!\n", "replace_all": true}}})
	if c := decode[written](t, r); c.Replacements != 100_000 || !c.ContentTruncated || len(r.raw) > 200_000 {
		t.Errorf("replace_all: %d replacements, %d bytes", c.Replacements, len(r.raw))
	}
	for native, args := range map[string]object{
		writeFile: {"path": "big", "content": "x", "overwrite": true}, editFile: {"path": "big", "edits": []object{{"old": "y", "new": "z"}}},
	} {
		if _, f := p.call(t, native, args); f == nil || f.Code != codeTooLarge {
			t.Errorf("%s of a large file: %v", native, f)
		}
	}
	lines := strings.Repeat("\n", mostDiffLines)
	r = p.mustCall(t, writeFile, object{"path": "lines", "content": lines})
	r = p.mustCall(t, writeFile, object{"path": "lines", "content": "\n\nx" + lines, "overwrite": true})
	if c := decode[written](t, r); !c.ContentTruncated || c.AddedLines-c.RemovedLines != 2 || len(c.Locations) != 1 || c.Locations[0].Line != 1 {
		t.Errorf("very many lines: %+v", c)
	}
	if _, _, err := replaceAll(documentOf(long), []replacement{{"0", wholeText(strings.Repeat("y", 1000)), true}}); err == nil {
		t.Error("a text that grows without bound is built")
	}
	grow := object{"path": "n", "edits": []object{{"old": "0", "new": strings.Repeat("y", 1000), "replace_all": true}}}
	if _, f := p.call(t, editFile, grow); f == nil || f.Code != codeTooLarge {
		t.Errorf("a file that would grow too large: %v", f)
	}
}

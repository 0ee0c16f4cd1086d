package code

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func TestListDir(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"root/b.go": "bb", "root/a/deep/x": "", "root/a/y": "yyy", "root/.env": secret, "root/.git/config": "", "root/.hidden": "",
		"root/.ssh/id": secret, "outside/o": "",
	})
	if err := os.Mkdir(filepath.Join(p.root, "none"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(p.root, "link")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	for _, tc := range []struct {
		args object
		text string
	}{
		{object{}, ".env [sensitive]\n.git/\n.hidden\n.ssh/ [sensitive]\na/\nb.go\nlink -> a\nnone/\n"},
		{object{"recursive": true}, ".env [sensitive]\n.git/ [git_internal]\n.hidden\n.ssh/ [sensitive]\na/\nb.go\nlink -> a\nnone/\n" +
			"a/deep/\na/y\na/deep/x\n"},
		{object{"path": "a"}, "deep/\ny\n"},
		{object{"path": "link"}, "deep/\ny\n"},
		{object{"path": "none"}, "(empty directory)"},
		{object{"path": "../outside"}, "o\n"},
		{object{"limit": 2}, ".env [sensitive]\n.git/\n"},
		{object{"recursive": true, "limit": 9}, ".env [sensitive]\n.git/ [git_internal]\n.hidden\n.ssh/ [sensitive]\na/\nb.go\nlink -> a\nnone/\na/deep/\n"},
	} {
		r := p.mustCall(t, listDir, tc.args)
		c := decode[dirContent](t, r)
		if r.text() != tc.text {
			t.Errorf("%v:\n%s\nwant\n%s", tc.args, r.text(), tc.text)
		}
		if _, limited := tc.args["limit"]; c.Truncated != limited || limited == (r.note() == "") {
			t.Errorf("%v: truncated %v, note %q", tc.args, c.Truncated, r.note())
		}
	}
	c := decode[dirContent](t, p.mustCall(t, listDir, object{}))
	if e := c.Entries[5]; e.Path != "b.go" || e.Type != "file" || *e.Size != 2 {
		t.Errorf("%+v", e)
	}
	for path, code := range map[string]string{"b.go": codeNotDirectory, "missing": codeFileNotFound, ".ssh": string(tool.ClassPermissionDenied)} {
		if _, f := p.call(t, listDir, object{"path": path}); f == nil || f.ErrorCode() != code {
			t.Errorf("%s: %v, want %s", path, f, code)
		}
	}
}

func TestListDirBounds(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 3000 {
		files[fmt.Sprintf("root/many/%04d", i)] = ""
	}
	p := newProject(t, files)
	r := p.mustCall(t, listDir, object{"path": "many", "limit": 1000})
	c := decode[dirContent](t, r)
	if len(c.Entries) != 1000 || !c.Truncated || c.Entries[999].Path != "0999" || !strings.Contains(r.note(), "1000") {
		t.Errorf("%d entries, truncated %v, note %q", len(c.Entries), c.Truncated, r.note())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, f := p.callCtx(t, ctx, listDir, object{"recursive": true}, nil); f == nil || f.Class != tool.ClassCanceled {
		t.Errorf("canceled: %v", f)
	}
}

package code

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestSpecialFiles would hang where a pipe is opened as a file is.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/plain": "needle\n", "home/.ssh/id": secret})
	if err := syscall.Mkfifo(filepath.Join(p.root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", filepath.Join(p.root, "to-pipe")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/root", filepath.Join(p.root, "slash")); err != nil {
		t.Fatal(err)
	}
	denied := string(tool.ClassPermissionDenied)
	for path, code := range map[string]string{
		"pipe": codeNotRegular, "to-pipe": codeNotRegular, "/dev/null": codeNotRegular, "/dev/zero": codeNotRegular,
		"/proc/self/environ": denied, "/proc/self/root" + p.root + "/plain": denied,
		"slash" + p.home + "/.ssh/id": denied, "slash/proc/self/environ": denied, "slash" + p.root + "/plain": "",
	} {
		_, f := p.call(t, readFile, object{"path": path})
		got := ""
		if f != nil {
			got = f.ErrorCode()
		}
		if got != code {
			t.Errorf("%q: error code %q, want %q", path, got, code)
		}
	}
	if c := decode[searchContent](t, p.mustCall(t, search, object{"query": "needle"})); len(c.Matches) != 1 || c.FilesSearched != 1 {
		t.Errorf("search beside a pipe: %+v", c)
	}
	if c := decode[dirContent](t, p.mustCall(t, listDir, object{})); len(c.Entries) != 4 || c.Entries[0].Type != "other" {
		t.Errorf("list with a pipe: %+v", c)
	}
	// A pipe that takes the place of a file between the look and the opening.
	f, err := os.OpenFile(filepath.Join(p.root, "pipe"), os.O_RDONLY|openFlags, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := judge(f, filepath.Join(p.root, "pipe"), p.sensitive, errSensitive); err == nil {
		t.Error("a pipe was let through")
	}
	before := openDescriptors(t)
	for range 50 {
		p.call(t, readFile, object{"path": "pipe"})
		p.call(t, readFile, object{"path": "slash" + p.home + "/.ssh/id"})
		p.call(t, search, object{"query": "x"})
		p.call(t, listDir, object{"recursive": true})
	}
	if after := openDescriptors(t); after > before+20 { // other tests run meanwhile
		t.Errorf("%d descriptors became %d", before, after)
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// TestWritingSpecialFiles: nothing is written to what is no regular file, and nothing is put in its place.
func TestWritingSpecialFiles(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/f": "old\n"}, writable)
	pipe := filepath.Join(p.root, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	mustLink(t, "pipe", filepath.Join(p.root, "to-pipe"))
	mustLink(t, "/proc/self/root", filepath.Join(p.root, "slash"))
	for path, code := range map[string]string{
		"pipe": codeNotRegular, "to-pipe": codeNotRegular, "pipe/x": codeNotRegular, "/dev/null": codeProtected, "/dev/shm/x": codeProtected,
		"/proc/self/environ": codePathRefused, "/proc/self/root" + p.root + "/f": codePathRefused, "slash" + p.root + "/f": codePathRefused,
		"/proc/sys/kernel/core_pattern": codeProtected, "/sys/x": codeProtected, "/proc/self/fd/1": codePathRefused,
	} {
		args := object{"path": path, "content": "new\n", "overwrite": true}
		if _, f := p.call(t, writeFile, args); f == nil || f.ErrorCode() != code {
			t.Errorf("%s: %v, want %s", path, f, code)
		}
		raw := object{"path": path, "edits": replace("old", "new")}
		if f := p.callAs(t, editFile, raw, []tool.Aim{{Argument: "/path", Path: path},
			{Argument: "/path", Path: filepath.Join(p.root, path)}, {Argument: "/path", Path: p.root + "/pipe"}}); f == nil {
			t.Errorf("%s was permitted, and written", path)
		}
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 || p.file(t, "f") != "old\n" {
		t.Errorf("the pipe is %v, %v", info.Mode(), err)
	}
	before := openDescriptors(t)
	for range 50 {
		p.call(t, writeFile, object{"path": "pipe", "content": "x", "overwrite": true})
		p.call(t, writeFile, object{"path": "f", "content": "x", "overwrite": true})
		p.call(t, writeFile, object{"path": "f", "content": "x"})
		p.call(t, editFile, object{"path": "f", "edits": replace("none", "x")})
		p.call(t, writeFile, object{"path": "f/x", "content": "x"})
	}
	if after := openDescriptors(t); after > before+40 { // other tests open some, too
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

package target

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrChanged says that a path has changed since it was judged: a link stands where none did.
var ErrChanged = errors.New("the path has changed since it was judged: send the call again")

// ErrOther says that a path does not name the kind of file that was to be opened.
var ErrOther = errors.New("another kind of file")

// PathsOf resolves text as a path to write to, as Resolve would now: to one target, or to two where
// programs read it in two ways. argument is its JSON pointer. Code that opens the path itself sees
// by it whether the path still leads to the target that was judged.
func PathsOf(argument, text string, root Root) []Target {
	return paths(Target{Argument: argument, Given: cut(text), Write: true}, text, root)
}

// OpenDir opens a resolved directory by descriptor, from the top of the file system on, and follows
// no link on the way: a resolved path has none, so one that is there now was put there since. What
// is done through the returned root stays in that directory, wherever its path leads by then. The
// caller closes it.
func OpenDir(resolved string) (*os.Root, error) { return openDir(resolved, enter) }

// MakeDir opens a resolved directory as OpenDir does, and makes what of it does not exist with the
// bits of perm that the process leaves to what it makes.
func MakeDir(resolved string, perm fs.FileMode) (*os.Root, error) {
	return openDir(resolved, func(dir *os.Root, name string) (*os.Root, error) {
		next, err := enter(dir, name)
		if !errors.Is(err, fs.ErrNotExist) {
			return next, err
		}
		if err := dir.Mkdir(name, perm); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		return enter(dir, name)
	})
}

func openDir(resolved string, enter func(dir *os.Root, name string) (*os.Root, error)) (*os.Root, error) {
	if !filepath.IsAbs(resolved) || filepath.Clean(resolved) != resolved {
		return nil, fmt.Errorf("open directory %q: the path is not resolved: resolve it first", resolved)
	}
	volume := filepath.VolumeName(resolved)
	at, err := os.OpenRoot(volume + string(filepath.Separator))
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(resolved[len(volume):], string(filepath.Separator)) {
		if name == "" {
			continue
		}
		next, err := enter(at, name)
		at.Close()
		if err != nil {
			return nil, fmt.Errorf("open directory %q: %w", resolved, err)
		}
		at = next
	}
	return at, nil
}

// enter opens the directory name in dir and makes sure that what was opened is what stands there, and no link.
func enter(dir *os.Root, name string) (*os.Root, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, notA(before, "directory")
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(before, now) {
		next.Close()
		return nil, ErrChanged
	}
	return next, nil
}

func notA(info fs.FileInfo, what string) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		return ErrChanged
	}
	return fmt.Errorf("is no %s: send the path of one: %w", what, ErrOther)
}

// OpenIn opens the regular file name in dir, which OpenDir has opened, by descriptor, for reading and
// writing, and follows no link.
func OpenIn(dir *os.Root, name string) (*os.File, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, notA(before, "regular file")
	}
	f, err := dir.OpenFile(name, os.O_RDWR|noFollow, 0)
	if err != nil {
		if now, statErr := dir.Lstat(name); statErr == nil && now.Mode()&fs.ModeSymlink != 0 {
			return nil, ErrChanged
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		var now fs.FileInfo
		if now, err = dir.Lstat(name); err == nil && !(os.SameFile(info, now) && os.SameFile(info, before)) {
			err = ErrChanged
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

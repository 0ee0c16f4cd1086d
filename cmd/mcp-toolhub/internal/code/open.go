package code

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// opened is a regular file or a directory that may be read.
type opened struct {
	*os.File
	info  fs.FileInfo
	names []string // that it may have, with every link followed; the likeliest first
}

// locate returns the absolute, clean path that an argument stands for. It looks at nothing.
func (t *Toolset) locate(arg string) (string, error) {
	if strings.ContainsRune(arg, 0) {
		return "", invalid("", "argument \"path\" holds a NUL character, which no path can: send the path without it")
	}
	if rest, ok := strings.CutPrefix(filepath.ToSlash(arg), "~"); ok && (rest == "" || rest[0] == '/') {
		if t.home == "" {
			return "", invalid(codeHomeNotDefined, "%q: the home directory is not known here: send an absolute path",
				hidden.Cut(arg, 200))
		}
		return filepath.Join(t.home, rest), nil
	}
	if runtime.GOOS == "windows" && strings.HasPrefix(filepath.ToSlash(arg), "//") {
		// Opening \\host\share sends the user's credentials to host.
		return "", failure(tool.ClassSandboxViolation, codeNetworkPath,
			"%q is a network or device path, which is never opened: send a path on a local drive", hidden.Cut(arg, 200))
	}
	if filepath.IsAbs(arg) {
		return filepath.Clean(arg), nil
	}
	return filepath.Join(t.root, arg), nil
}

// show returns path as results name it: relative to the root where it lies inside, with slashes.
func (t *Toolset) show(path string) string {
	rel, err := filepath.Rel(t.root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}

// open opens path, absolute and clean, if it is not sensitive.
func (t *Toolset) open(path string) (*opened, error) {
	return t.openBut(path, t.sensitive, errSensitive)
}

// openBut opens path, absolute and clean, unless it is one of those that are refused: with err. The
// name is judged before anything is touched, and what was opened is judged once more by its own
// descriptor, so that no link and no exchange of the file in between leads to what is refused.
func (t *Toolset) openBut(path string, refused target.Globs, refusal error) (*opened, error) {
	if refused.Match(path) {
		return nil, refusal
	}
	info, err := os.Stat(path) // opening alone may act on a device
	if err != nil {
		return nil, err
	}
	if !readable(info) {
		return nil, errNotRegular
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	o, err := judge(f, path, refused, refusal)
	if err != nil {
		f.Close()
	}
	return o, err
}

// judge decides about f, which was opened as path, by what f is now.
func judge(f *os.File, path string, refused target.Globs, refusal error) (*opened, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !readable(info) {
		return nil, errNotRegular
	}
	names, err := realNames(f, info, path)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(names, refused.Match) {
		return nil, refusal
	}
	return &opened{File: f, info: info, names: names}, nil
}

func readable(info fs.FileInfo) bool { return info.Mode().IsRegular() || info.IsDir() }

// resolvedName finds f's name by following path again, and refuses where that leads to another file by now. It serves
// where the system does not tell the name of a descriptor.
func resolvedName(info fs.FileInfo, path string) ([]string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errChanged, err)
	}
	now, err := os.Lstat(real)
	if err != nil || !os.SameFile(now, info) {
		return nil, errChanged
	}
	return []string{real}, nil
}

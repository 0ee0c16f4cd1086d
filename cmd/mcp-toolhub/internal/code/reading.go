package code

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// pathArgument is the JSON pointer of the argument that says what a call reads.
const pathArgument = "/path"

// reading opens what one call may read. It is for one goroutine.
type reading struct {
	*Toolset
	permitted []string // where the path of the call led when it was permitted; none where nobody has looked
	top       string   // the directory that first has opened, with every link followed
}

func (t *Toolset) reading(e *tool.Execution) *reading {
	r := &reading{Toolset: t}
	for _, a := range e.Aims {
		if a.Argument == pathArgument {
			r.permitted = append(r.permitted, a.Path)
		}
	}
	return r
}

// first opens the path of the call. Where the call was permitted for it, it has to lead where it led then, and may be
// sensitive; where nobody has looked, it may not.
func (r *reading) first(path string) (*opened, error) {
	if len(r.permitted) == 0 {
		return r.hold(r.open(path))
	}
	o, err := r.openBut(path, r.never, errNever)
	if err == nil && !r.permits(o) {
		o.Close()
		return nil, errMoved
	}
	return r.hold(o, err)
}

func (r *reading) hold(o *opened, err error) (*opened, error) {
	if err == nil && o.info.IsDir() {
		r.top = o.names[0]
	}
	return o, err
}

// permits reports whether the call was permitted for a path that leads to o.
func (r *reading) permits(o *opened) bool {
	return slices.ContainsFunc(r.permitted, func(p string) bool {
		if slices.Contains(o.names, p) {
			return true
		}
		// File systems may call a file by other names than its own: in another letter case, or short ones on Windows.
		now, err := os.Lstat(p)
		if err != nil || !os.SameFile(now, o.info) {
			return false
		}
		alike := slices.ContainsFunc(o.names, func(name string) bool { return target.Alike(p, name) })
		return alike || runtime.GOOS == "windows" && !holdsLink(p)
	})
}

// holdsLink reports whether a link stands on path, absolute, or that cannot be told.
func holdsLink(path string) bool {
	for at := path; ; at = filepath.Dir(at) {
		if filepath.Dir(at) == at {
			return false
		}
		if info, err := os.Lstat(at); err != nil || info.Mode()&(os.ModeSymlink|os.ModeIrregular) != 0 {
			return true
		}
	}
}

// below opens what lies in the directory that first has opened: no sensitive path, whatever was permitted.
func (r *reading) below(path string) (*opened, error) {
	o, err := r.open(path)
	if err != nil {
		return nil, err
	}
	top := strings.TrimSuffix(r.top, string(filepath.Separator)) + string(filepath.Separator)
	if !slices.ContainsFunc(o.names, func(name string) bool { return strings.HasPrefix(name, top) }) {
		o.Close()
		return nil, errChanged // a link stands in its way by now
	}
	return o, nil
}

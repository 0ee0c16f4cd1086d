package code

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
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
	if err == nil && !slices.ContainsFunc(o.names, r.permits) {
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

func (r *reading) permits(name string) bool {
	return slices.ContainsFunc(r.permitted, func(p string) bool {
		// These systems call a file by other names than its own, and tell the one that was used.
		return p == name || (runtime.GOOS == "darwin" || runtime.GOOS == "windows") && foldPath(p) == foldPath(name)
	})
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

package code

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// ReadBelow reads a regular file below root that is not sensitive, at most that many bytes of it.
// No link leads out of root. secrets are further paths that are never read.
func ReadBelow(root, name string, most int64, secrets ...string) ([]byte, error) {
	sensitive, err := newSensitivePaths(target.Literal(secrets...), "")
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	info, err := dir.Stat(name) // opening alone may act on a device
	if err != nil {
		return nil, outside(err, root)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, outside(err, root)
	}
	defer f.Close()
	o, err := judge(f, f.Name(), sensitive, errSensitive)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(o, most+1))
	if int64(len(raw)) > most {
		return nil, fmt.Errorf("it is larger than %d MiB", most>>20)
	}
	return raw, err
}

// outside says what to do where os.Root, and not the system, has refused a path.
func outside(err error, root string) error {
	if _, system := errors.AsType[syscall.Errno](err); system {
		return err
	}
	return fmt.Errorf("the file is outside the allowed directories: a link in its path is absolute, or leads out of "+
		"%q: list the directory "+
		"where the file is, and have it named by its path there", root)
}

package code

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/inode"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// destination is a place for a file, opened: whatever happens to its path by now, it stays the
// directory that was opened.
type destination struct {
	dir   *os.Root // nil where the directory does not exist yet
	name  string
	file  *os.File // nil where there is none
	info  fs.FileInfo
	names uint64 // how many the file has
	raw   []byte // of the file, once read
}

// openDestination opens the directory of path, resolved, and the file if it is there and may be written.
func openDestination(path string, c *change) (*destination, error) {
	d := &destination{name: filepath.Base(path)}
	dir, err := target.OpenDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) && c.createDirs {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	d.dir = dir
	if err := d.openFile(c); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *destination) openFile(c *change) error {
	info, err := d.dir.Lstat(d.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return invalid(codeIsDirectory, "%q is a directory: send the path of a file", hidden.Cut(c.given, 200))
	case info.Mode().IsRegular() && c.onlyNew:
		return failure(tool.ClassExecutionFailed, codePathConflict,
			"%q is there already: change it with edit_file, or set overwrite to replace the whole file",
			hidden.Cut(c.given, 200))
	}
	// For writing, although nothing is written to it: what may not be written is not replaced either.
	if d.file, err = target.OpenIn(d.dir, d.name); err != nil {
		return err
	}
	if d.info, err = d.file.Stat(); err != nil {
		return err
	}
	d.names = inode.Names(d.info)
	return nil
}

func (d *destination) close() {
	if d.file != nil {
		d.file.Close()
	}
	if d.dir != nil {
		d.dir.Close()
	}
}

// read returns the file as text.
func (d *destination) read() (*document, error) {
	raw, err := io.ReadAll(io.LimitReader(d.file, mostFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > mostFileBytes {
		return nil, invalid(codeTooLarge,
			"the file has over %d bytes, which this tool does not change: use another way", mostFileBytes)
	}
	d.raw = raw
	doc := parseDocument(raw)
	return &doc, nil
}

// replace puts a new file with data in the place of the one that was read, or where none was. The
// new file is whole and on the disk before it has the name.
func (d *destination) replace(data []byte) (err error) {
	temp := ".toolhub-" + rand.Text() + ".tmp"
	perm := fs.FileMode(0o666) // less what the process keeps back
	if d.file != nil {
		perm = 0o600 // nobody else sees it before it has the mode of the old one
	}
	f, err := d.dir.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = d.dir.Remove(temp)
		}
	}()
	if err := d.fill(f, data); err != nil {
		return err
	}
	if d.file == nil {
		err = d.take(temp)
	} else if err = d.unchanged(); err == nil {
		d.file.Close() // Windows renames over no open file
		d.file = nil
		err = d.dir.Rename(temp, d.name)
	}
	if err == nil {
		d.sync()
	}
	return err
}

// fill writes the new file, with the mode and the owner of the old one, and closes it.
func (d *destination) fill(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil && d.file != nil {
		if err = inode.KeepOwner(f, d.info); err == nil && runtime.GOOS != "windows" {
			err = f.Chmod(d.info.Mode().Perm())
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// unchanged makes sure that the file which is about to be replaced is the one that was read.
func (d *destination) unchanged() error {
	now, err := d.dir.Lstat(d.name)
	if err != nil {
		return fmt.Errorf("%w: %w", errChanged, err)
	}
	if !os.SameFile(now, d.info) || now.Size() != d.info.Size() || !now.ModTime().Equal(d.info.ModTime()) {
		return errChanged
	}
	return nil
}

// take gives the new file its name, unless another file has it by now.
func (d *destination) take(temp string) error {
	switch err := d.dir.Link(temp, d.name); {
	case err == nil:
		return d.dir.Remove(temp)
	case errors.Is(err, fs.ErrExist):
		return errExists
	default:
		return d.takeEmpty(temp)
	}
}

// takeEmpty is take for file systems without hard links: it reserves the name with an empty file.
func (d *destination) takeEmpty(temp string) error {
	f, err := d.dir.OpenFile(d.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errExists
	}
	if err != nil {
		return err
	}
	f.Close()
	if err = d.dir.Rename(temp, d.name); err != nil {
		_ = d.dir.Remove(d.name)
	}
	return err
}

// sync puts the new name on the disk. Not every system can do that, and none is any worse off for having tried.
func (d *destination) sync() {
	if dir, err := d.dir.Open("."); err == nil {
		_ = dir.Sync()
		dir.Close()
	}
}

package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mcp-toolhub/mcp-toolhub/internal/inode"
)

// mostBytes bounds the file of a client. The largest is Claude Code's, which reaches some hundred kilobytes.
const mostBytes = 16 << 20

// errChanged means that somebody else has written a file since it was read.
var errChanged = errors.New("it was changed meanwhile: nothing was written: run the command again")

// Document holds a file as it was read. Links were followed.
type Document struct {
	Path string      // where it is, every link followed
	Raw  []byte      // nil where there is no file
	info fs.FileInfo // nil where there is no file
}

// Open reads a file, which need not exist.
func Open(path string) (*Document, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, linkErr := os.Lstat(path); linkErr == nil {
			return nil, fmt.Errorf("read %q: it is a link that leads nowhere: mend or remove it", path)
		}
		return &Document{Path: resolved(path)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	d := &Document{Path: real}
	if d.info, err = os.Stat(real); err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	if !d.info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %q: it is not a regular file", path)
	}
	f, err := os.Open(real)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	defer f.Close()
	if d.Raw, err = io.ReadAll(io.LimitReader(f, mostBytes+1)); err == nil && len(d.Raw) > mostBytes {
		err = errors.New("it is larger than 16 MiB")
	}
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	return d, nil
}

// resolved returns the path of a file that is not there, as it will be once the file is: every link
// among its directories followed.
func resolved(path string) string {
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = resolved(dir)
	}
	return filepath.Join(real, filepath.Base(path))
}

// unchanged fails where the file is not as it was read.
func (d *Document) unchanged() error {
	now, err := Open(d.Path)
	switch {
	case err != nil:
		return err
	case (now.info == nil) != (d.info == nil), now.info != nil &&
		!os.SameFile(now.info, d.info), !bytes.Equal(now.Raw, d.Raw):
		return fmt.Errorf("write %q: %w", d.Path, errChanged)
	}
	return nil
}

// Change gives a file a new content, or removes it.
type Change struct {
	*Document
	After []byte    // nil takes the file away
	Like  *Document // whose mode and owner a new file gets; nil: its owner's alone
	made  string    // path of the file that holds After until Path does
}

// Apply makes all changes or none. Each file keeps mode and owner, and is whole at every moment.
func Apply(changes []*Change) (err error) {
	defer func() {
		for _, c := range changes {
			_ = c.drop()
		}
	}()
	for _, c := range changes {
		if err := c.stage(); err != nil {
			return fmt.Errorf("write %q: %w", c.Path, err)
		}
	}
	for _, c := range changes {
		if err := c.unchanged(); err != nil {
			return err
		}
	}
	for i, c := range changes {
		if err := c.commit(); err != nil {
			err = fmt.Errorf("write %q: %w", c.Path, err)
			for _, done := range changes[:i] {
				err = errors.Join(err, done.takeBack())
			}
			return err
		}
	}
	return nil
}

// writable fails where the file may not be changed.
func (d *Document) writable() error {
	if d.info != nil && d.info.Mode().Perm()&0o200 == 0 {
		return errors.New("the file is read-only: perhaps a manager of dotfiles keeps it so: put the entry there, " +
			"or make it writable")
	}
	return nil
}

// replaceable fails where the file may not be changed, or no other can take its place with the same owner.
func (d *Document) replaceable() error {
	if _, err := os.Stat(filepath.Dir(d.Path)); err != nil {
		return d.writable() // the directory is made with the file
	}
	probe := &Change{Document: d, After: []byte{}}
	err := probe.stage()
	return errors.Join(err, probe.drop())
}

// stage writes the new file beside the old one.
func (c *Change) stage() error {
	if err := c.writable(); err != nil {
		return err
	}
	if c.After == nil {
		return nil
	}
	dir := filepath.Dir(c.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".toolhub-*.tmp") // for its owner alone until it has the mode of the old one
	if err != nil {
		return fmt.Errorf("no file can be made in its directory: make that writable: %w", err)
	}
	c.made = f.Name()
	_, err = f.Write(c.After)
	like := c.info
	if like == nil && c.Like != nil {
		like = c.Like.info
	}
	if err == nil && like != nil {
		if err = inode.KeepOwner(f, like); err == nil && runtime.GOOS != "windows" {
			err = f.Chmod(like.Mode().Perm())
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// drop removes what stage has written, unless commit has used it.
func (c *Change) drop() error {
	if c.made == "" {
		return nil
	}
	return os.Remove(c.made)
}

func (c *Change) commit() error {
	if c.After == nil {
		return os.Remove(c.Path)
	}
	if err := os.Rename(c.made, c.Path); err != nil {
		return err
	}
	c.made = ""
	return nil
}

// takeBack writes what the file held before the change.
func (c *Change) takeBack() error {
	now, err := Open(c.Path)
	if err != nil || (now.Raw == nil) == (c.Raw == nil) && bytes.Equal(now.Raw, c.Raw) {
		return err
	}
	back := &Change{Document: now, After: c.Raw, Like: c.Document}
	if err := back.stage(); err != nil {
		return err
	}
	return back.commit()
}

package payload

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

// place is where payloads and entries are kept. An object has a key with slashes. All methods may
// be called concurrently, also by several processes.
type place interface {
	// write makes an object of what fill writes. It appears whole or not at all, and is durable
	// when write returns nil. With once, an object that is there stays, and the error is
	// fs.ErrExist.
	write(ctx context.Context, key string, once bool, fill func(io.Writer) error) error

	// open opens an object to be read, before ctx ends. The error is fs.ErrNotExist where there is none.
	open(ctx context.Context, key string) (io.ReadCloser, error)

	// list calls each for all objects whose keys begin with prefix, which ends with a slash, until it returns an error.
	list(ctx context.Context, prefix string, each func(object) error) error

	// remove removes an object. It may be gone already.
	remove(ctx context.Context, key string) error

	// lock keeps others out who remove results, or who count the versions of an artifact. The error
	// is fs.ErrNotExist where nothing was ever stored.
	lock() (unlock func(), err error)

	// String names the place in messages. It holds no secrets.
	String() string

	close() error
}

// object is what is known of an object without reading it.
type object struct {
	key     string
	size    int64
	changed time.Time
	sum     string // of its bytes, where the place knows one
}

func (o object) equal(other object) bool {
	return o.key == other.key && o.size == other.size && o.sum == other.sum && o.changed.Equal(other.changed)
}

// directory is a place on this machine. Directories have mode 0700, files 0600.
type directory string

func (d directory) path(key string) string { return filepath.Join(string(d), filepath.FromSlash(key)) }

func (d directory) write(_ context.Context, key string, once bool, fill func(io.Writer) error) error {
	path := d.path(key)
	if once { // and its caller holds the lock
		if _, err := os.Lstat(path); err == nil {
			return fs.ErrExist
		}
	}
	if err := statefile.WriteFrom(path, fill); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	// The directory itself may be new, too.
	return errors.Join(statefile.SyncDir(dir), statefile.SyncDir(filepath.Dir(dir)))
}

func (d directory) open(_ context.Context, key string) (io.ReadCloser, error) {
	return os.Open(d.path(key))
}

func (d directory) list(ctx context.Context, prefix string, each func(object) error) error {
	return filepath.WalkDir(d.path(prefix), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return ignoreGone(errors.Join(err, ctx.Err()))
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreGone(err)
		}
		key := strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(path, string(d))), "/")
		return each(object{key: key, size: info.Size(), changed: info.ModTime()})
	})
}

func (d directory) remove(_ context.Context, key string) error {
	return ignoreGone(os.Remove(d.path(key)))
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d directory) lock() (unlock func(), err error) {
	if _, err := os.Stat(string(d)); err != nil {
		return nil, err
	}
	return statefile.Lock(d.path("retention"))
}

func (d directory) String() string { return string(d) }

func (d directory) close() error { return nil }

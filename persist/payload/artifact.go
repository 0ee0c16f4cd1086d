package payload

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// nextVersion returns the version of an artifact that is about to be stored: that of the last one
// under its name where the bytes are the same, and otherwise the next. After a crash a number may
// be missing; none stands for two artifacts that differ.
func (s *Store) nextVersion(ctx context.Context, e Entry) (int, error) {
	unlock, err := s.lock()
	if err == nil {
		defer unlock()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	prefix := namesPrefix + tool.Digest([]byte(e.Actor+"\n"+string(e.Tool)+"\n"+e.Name)) + "/"
	for {
		last := 0
		err := s.place.list(ctx, prefix, func(o object) error {
			last = max(last, versionOf(o))
			return nil
		})
		if err == nil && last > 0 {
			digest, readErr := s.read(ctx, prefix+strconv.Itoa(last))
			if string(digest) == e.Digest {
				return last, nil
			}
			err = readErr
		}
		if err != nil {
			return 0, err
		}
		err = s.place.write(ctx, prefix+strconv.Itoa(last+1), true, func(f io.Writer) error {
			_, err := io.WriteString(f, e.Digest)
			return err
		})
		if !errors.Is(err, fs.ErrExist) {
			return last + 1, err
		}
	}
}

// versionOf is the version that an object holds the digest of; 0 for none.
func versionOf(o object) int {
	n, _ := strconv.Atoi(path.Base(o.key))
	return n
}

// forgetVersions removes all versions of a name but the last, and that one when nothing was stored
// under the name for as long as entries are kept.
func (s *Store) forgetVersions(ctx context.Context, now time.Time) error {
	last := make(map[string]int)
	return errors.Join(s.place.list(ctx, namesPrefix, func(o object) error {
		name := path.Dir(o.key)
		last[name] = max(last[name], versionOf(o))
		return nil
	}), s.place.list(ctx, namesPrefix, func(o object) error {
		stay := s.cfg.MaxAge + keepEntries
		if versionOf(o) < last[path.Dir(o.key)] {
			stay = grace // whoever writes the next one may have read it
		}
		if now.Sub(o.changed) <= stay {
			return nil
		}
		return s.place.remove(ctx, o.key)
	}))
}

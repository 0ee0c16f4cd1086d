package sessionid

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The record has a directory for each caller, so that nobody pushes out what is recorded of others.
// Each session that was ended is an empty file there, whose name begins with the session's
// beginning. Of many sessions the oldest files are removed: so where there are maxEnded, all
// sessions are over that began no later than the oldest of them.
const (
	maxEnded  = 10_000 // that are recorded of one caller
	lookAfter = 1_000  // sessions more, and the record is looked through
)

func (b *Issuer) of(h Holder) string {
	sum := sha256.Sum256([]byte(h.Caller))
	return filepath.Join(b.dir, hex.EncodeToString(sum[:16]))
}

func (s Session) file() string { return fmt.Sprintf("%012d-%s", s.Begun, s.Name) }

// End records that a session of h is over for good.
func (b *Issuer) End(s Session, h Holder) error {
	if b.dir == "" {
		return nil
	}
	dir := b.of(h)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("record the end of a session: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, s.file()), os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("record the end of a session: %w", err)
	}
	b.mu.Lock()
	b.ended++
	look := b.ended >= lookAfter
	if look {
		b.ended = 0
	}
	b.mu.Unlock()
	if look {
		b.forget()
	}
	return nil
}

func (b *Issuer) isEnded(s Session, h Holder) (bool, error) {
	entries, err := os.ReadDir(b.of(h)) // by name, so the oldest first
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, fmt.Errorf("look whether a session is over: %w", err)
	case len(entries) >= maxEnded && s.Begun <= begun(entries[0]):
		return true, nil
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == s.file() }), nil
}

// forget removes what need not be recorded any more: sessions that are too old to be taken up, and of each caller the
// oldest beyond maxEnded. What cannot be removed is left for the next time.
func (b *Issuer) forget() {
	oldest := time.Now().Add(-Lifetime).Unix()
	callers, _ := os.ReadDir(b.dir)
	for _, caller := range callers {
		dir := filepath.Join(b.dir, caller.Name())
		entries, _ := os.ReadDir(dir)
		for i, e := range entries {
			if len(entries)-i > maxEnded || begun(e) < oldest {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
}

// begun is the beginning of the session that a file stands for; 0 where it stands for none.
func begun(e fs.DirEntry) int64 {
	at, _, _ := strings.Cut(e.Name(), "-")
	n, _ := strconv.ParseInt(at, 10, 64)
	return n
}

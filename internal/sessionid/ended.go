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

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

// The record has a directory for each caller, so that nobody pushes out what is recorded of others.
// Each session that was ended is an empty file there, whose name begins with the session's
// beginning. Of many sessions the oldest files are removed, and the file "before" says that all
// sessions are over that began no later.
const (
	maxEnded   = 10_000 // that are recorded of one caller
	lookAfter  = 1_000  // sessions more, and the record is looked through
	beforeName = "before"
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
	dir := b.of(h)
	before, err := readBefore(dir)
	if err != nil || s.Begun <= before {
		return true, err
	}
	switch _, err := os.Lstat(filepath.Join(dir, s.file())); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, fmt.Errorf("look whether a session is over: %w", err)
	}
	return true, nil
}

// readBefore returns the latest beginning of the sessions that are no longer recorded one by one; 0 where all are.
func readBefore(dir string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, beforeName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look whether a session is over: %w", err)
	}
	before, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("look whether a session is over: %w: remove %q", err, filepath.Join(dir, beforeName))
	}
	return before, nil
}

// forget removes what need not be recorded any more: sessions that are too old to be taken up, and of each caller the
// oldest beyond maxEnded. What cannot be removed is left for the next time.
func (b *Issuer) forget() {
	callers, _ := os.ReadDir(b.dir)
	for _, caller := range callers {
		if caller.IsDir() {
			forgetOf(filepath.Join(b.dir, caller.Name()))
		}
	}
}

func forgetOf(dir string) {
	entries, err := os.ReadDir(dir) // by name, so the oldest first
	if err != nil {
		return
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return begun(e) == 0 })
	oldest := time.Now().Add(-Lifetime).Unix()
	if extra := len(entries) - maxEnded; extra > 0 {
		before := begun(entries[extra-1])
		oldest = max(oldest, before+1)
		if said, err := readBefore(dir); err == nil && before > said {
			text := strconv.FormatInt(before, 10)
			if statefile.Write(filepath.Join(dir, beforeName), []byte(text)) != nil {
				return
			}
		}
	}
	for _, e := range entries {
		if begun(e) < oldest {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// begun is the beginning of the session that a file stands for; 0 where it stands for none.
func begun(e fs.DirEntry) int64 {
	at, _, ok := strings.Cut(e.Name(), "-")
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

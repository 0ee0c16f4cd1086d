package persist

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

// errInUse is the error of openExclusive for a file that another process holds.
var errInUse = errors.New("another process holds the file")

// files is the current file of a journal and its closed ones. Only one goroutine uses it at a time.
type files struct {
	cfg    JournalConfig
	logger *slog.Logger

	current  *os.File // nil after a failure that left nothing to go on with: the next write begins a new file
	path     string
	size     int64 // bytes written
	synced   int64 // of them on the disk for certain
	unsynced int   // records between the two
	stuck    bool  // a new file could not be begun, and the log knows
	locked   bool  // the current file is
	waiting  bool  // files would be removed if the Keeper had them
	over     bool  // and they all take what they may

	number atomic.Int64            // of the current file: how many there were before it
	isOpen func(number int64) bool // see Journal.isOpen

	held map[string]bool // the keys of the standing records in the current file

	// left are files that this hub has written to before: it holds them until its end, because
	// calls in them may be open.
	left []leftFile

	settled chan error // gets the outcome of the sync in the background; nil while there is none

	// What that sync covers.
	upTo        int64
	upToRecords int
}

// leftFile is a file that is full or has failed.
type leftFile struct {
	file   *os.File
	path   string
	number int64
}

// maxLeft bounds the files that a hub holds.
const maxLeft = 100

// leave goes on holding a file that nothing more is written to. Everything in it is synced, or has failed.
func (f *files) leave(file *os.File, path string, number int64) {
	if !f.locked {
		closeHeld(file)
		return
	}
	f.left = append(f.left, leftFile{file, path, number})
	if len(f.left) > maxLeft { // after many failures of the disk
		closeHeld(f.left[0].file)
		f.left = f.left[1:]
	}
}

// use makes file the current one.
func (f *files) use(file *os.File, path string, size int64, locked bool) {
	f.locked = locked
	f.number.Add(1)
	f.current, f.path, f.size, f.synced, f.unsynced, f.settled = file, path, size, size, 0, nil
	f.held = nil
}

// openFirst goes on with a closed file that has room, or begins a new one.
func (f *files) openFirst() error {
	if !f.adopt() {
		if err := f.begin(); err != nil {
			return err
		}
	}
	f.makeRoom()
	return nil
}

// makeRoom removes old files, or asks the Keeper for that.
func (f *files) makeRoom() {
	if f.clean(); f.waiting {
		f.cfg.Kept.Hurry()
	}
}

// write puts b at the end of the journal, and on the disk if it is to be durable. When it fails, it returns how many
// records were lost: those of b, and after a failed sync those written since the last good one.
func (f *files) write(b *batch) (lost int, err error) {
	before := f.path
	standing, keys := f.standing(b)
	if lost, err := f.makeReady(int64(len(standing) + len(b.bytes))); err != nil {
		f.forget(keys)
		return lost + b.records, err
	}
	if f.path != before {
		standing, keys = f.standing(b)
	}
	text, at := b.bytes, f.size
	if len(b.bytes) > 0 {
		if len(standing) > 0 {
			text = append(standing, text...)
		}
		if _, err := f.current.WriteAt(text, f.size); err != nil {
			f.forget(keys)
			lost := b.records
			if f.cutBack(f.size); f.current == nil {
				lost += f.unsynced
			}
			return lost, &JournalError{Op: "write journal", Path: f.path, Err: err}
		}
		f.size += int64(len(text))
		f.unsynced += b.records
	}
	if b.durable && f.cfg.SyncWithin == 0 {
		if lost, err := f.sync(); err != nil {
			return lost, err
		}
	}
	if f.cfg.Kept != nil && len(text) > 0 {
		w := Written{filepath.Base(f.path), at, text, b.calls}
		for i := range w.Calls {
			w.Calls[i].At += int64(len(standing))
		}
		f.cfg.Kept.Take(w)
	}
	return 0, nil
}

// makeReady provides a current file with room for n bytes. A full file stays in use if no new one
// can be begun: too large a file is better than lost records.
func (f *files) makeReady(n int64) (lost int, err error) {
	if f.current == nil {
		return 0, f.begin()
	}
	if f.size == 0 || f.size+n <= f.cfg.MaxBytes {
		return 0, nil
	}
	if lost, err := f.sync(); err != nil {
		return lost, err
	}
	full, path, number := f.current, f.path, f.number.Load()
	if err := f.begin(); err != nil {
		if !f.stuck {
			f.logger.Warn("the journal goes on in a file larger than it should be", "error", err)
		}
		f.stuck = true
		return 0, nil
	}
	f.stuck = false
	f.leave(full, path, number)
	f.makeRoom()
	return 0, nil
}

// sync puts what was written on the disk. After a failed sync the system may have dropped the data
// and call the next sync good all the same. So the file is cut back to what is certain, and never
// used again.
func (f *files) sync() (lost int, err error) {
	if f.current == nil || f.synced == f.size {
		return 0, nil
	}
	// The system reports an error to one sync of a file only, so that of the one in the background counts here.
	if err := errors.Join(f.settle(), f.current.Sync()); err != nil {
		lost, f.unsynced = f.unsynced, 0
		if f.cfg.SyncWithin == 0 { // otherwise they count already, and may be there
			f.cutBack(f.synced)
		}
		f.abandon()
		return lost, &JournalError{Op: "sync journal", Path: f.path, Err: err}
	}
	f.synced, f.unsynced = f.size, 0
	return 0, nil
}

// cutBack ends the current file at size, so that a half-written line never stands before a whole one. Where even that
// fails, the file is given up: Read passes over an unfinished last line.
func (f *files) cutBack(size int64) {
	if err := f.current.Truncate(size); err != nil {
		f.abandon()
		return
	}
	f.size = size
}

// abandon gives the current file up.
func (f *files) abandon() {
	if f.current == nil {
		return
	}
	_ = f.settle() // the file is synced, or has failed already
	f.leave(f.current, f.path, f.number.Load())
	f.current = nil
}

// close syncs the current file, and lets go of all files.
func (f *files) close() (lost int, err error) {
	lost, err = f.sync()
	f.abandon()
	for _, l := range f.left {
		closeHeld(l.file)
	}
	f.left = nil
	return lost, err
}

// begin creates a new file whose name follows all others and makes it the current one. The old current file is left as
// it is.
func (f *files) begin() error {
	for tries := 1; ; tries++ {
		names, err := Files(f.cfg.Dir)
		if err != nil {
			return &JournalError{Op: "list journal", Path: f.cfg.Dir, Err: err}
		}
		path := filepath.Join(f.cfg.Dir, nextName(names, time.Now()))
		file, locked, err := openExclusive(path, true)
		if tries < 100 && (errors.Is(err, fs.ErrExist) || errors.Is(err, errInUse)) {
			continue // another hub was quicker, or is looking whether the file is in use: take the name after it
		}
		if err == nil {
			if err = statefile.SyncDir(f.cfg.Dir); err != nil {
				removeHeld(file, path)
			}
		}
		if err != nil {
			return &JournalError{Op: "create journal", Path: path, Err: err}
		}
		if !locked {
			f.logger.Warn("the journal's file system knows no locks: old journal files are not removed", "dir",
				f.cfg.Dir)
		}
		f.use(file, path, 0, locked)
		return nil
	}
}

// adopt makes the newest closed file that has room the current one, and reports whether there was
// any. Files in which calls of a killed hub are open are for EndKilled.
func (f *files) adopt() bool {
	names, err := Files(f.cfg.Dir)
	if err != nil {
		return false
	}
	for i := len(names) - 1; i >= 0; i-- {
		path := filepath.Join(f.cfg.Dir, names[i])
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() >= f.cfg.MaxBytes || f.expired(info) {
			continue
		}
		file, locked, err := openExclusive(path, false)
		if err != nil {
			continue
		}
		if size, err := cutTail(file); err == nil && locked && settles(f.cfg.Dir, names[i], file, size) {
			// a restored backup may be readable for others; where that stays so, records still
			// matter more
			file.Chmod(0o600)
			if cut := info.Size() - size; cut > 0 {
				f.logger.Info("cut off a journal line that a crash left unfinished", "file", path, "bytes", cut)
			}
			f.use(file, path, size, true)
			return true
		}
		closeHeld(file) // nothing was written
	}
	return false
}

// cutTail cuts off what follows the last line break of file, and returns the size of the rest.
func cutTail(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	size, end := info.Size(), info.Size()
	var chunk [4096]byte
	for end > 0 {
		start := max(0, end-int64(len(chunk)))
		n, err := file.ReadAt(chunk[:end-start], start)
		if err != nil && err != io.EOF {
			return 0, err
		}
		for n > 0 && chunk[n-1] != '\n' {
			n--
		}
		end = start + int64(n)
		if n > 0 {
			break
		}
	}
	if end == size {
		return size, nil
	}
	return end, file.Truncate(end)
}

// clean removes closed files that are too many or too old, that the Keeper has, and in which no
// call is open. A file that cannot be removed is left for the next time.
func (f *files) clean() {
	names, err := Files(f.cfg.Dir)
	if err != nil {
		return
	}
	settled := readSettled(f.cfg.Dir)
	kept, total, waiting := 1, int64(0), false // with the current file
	defer func() {
		f.waiting, f.over = waiting, waiting && total > int64(f.cfg.MaxFiles-1)*f.cfg.MaxBytes
	}()
	isDue := func(path string, info fs.FileInfo) bool {
		if kept < f.cfg.MaxFiles && !f.expired(info) {
			return false
		}
		has := f.cfg.Kept == nil || info.Size() == 0 || f.cfg.Kept.Has(filepath.Base(path), info.Size())
		waiting = waiting || !has && kept >= f.cfg.MaxFiles
		return has
	}
	for i := len(names) - 1; i >= 0; i-- {
		path := filepath.Join(f.cfg.Dir, names[i])
		if path == f.path {
			continue
		}
		if at := slices.IndexFunc(f.left, func(l leftFile) bool { return l.path == path }); at >= 0 {
			info, err := f.left[at].file.Stat()
			if err != nil || !isDue(path, info) || f.isOpen(f.left[at].number) {
				kept++
				total += sizeOf(info)
				continue
			}
			f.remove(f.left[at].file, path)
			f.left = slices.Delete(f.left, at, at+1)
			continue
		}
		file, locked, err := openExclusive(path, false)
		if err != nil {
			continue // in use, gone, or not ours
		}
		info, err := file.Stat()
		if err == nil && locked && isDue(path, info) && isSettled(settled[names[i]], file, info.Size()) {
			f.remove(file, path)
			continue
		}
		kept++
		total += sizeOf(info)
		closeHeld(file) // nothing was written
	}
}

// sizeOf returns the size of a file; 0 where nothing is known of it.
func sizeOf(info fs.FileInfo) int64 {
	if info == nil {
		return 0
	}
	return info.Size()
}

func (f *files) remove(file *os.File, path string) {
	if err := removeHeld(file, path); err != nil {
		f.logger.Warn("cannot remove an old journal file", "file", path, "error", err)
	} else if f.cfg.Kept == nil {
		f.logger.Warn("an old journal file is removed with its calls, which no record store has: see persist.journal",
			"file", path)
	}
}

// expired reports whether a file was last written too long ago.
func (f *files) expired(info fs.FileInfo) bool {
	return f.cfg.MaxAge > 0 && time.Since(info.ModTime()) > f.cfg.MaxAge
}

// beginSync syncs what was written so far, in the background, and calls done when that has ended. It returns false if
// there is nothing to sync.
func (f *files) beginSync(done func()) bool {
	if f.current == nil || f.synced == f.size || f.settled != nil {
		return false
	}
	settled, file := make(chan error, 1), f.current
	f.settled, f.upTo, f.upToRecords = settled, f.size, f.unsynced
	go func() {
		settled <- file.Sync()
		done()
	}()
	return true
}

// endSync returns how the sync in the background went. After a failure the file is given up as it
// is, and all records in it that are not certain are counted as lost, although some may be there.
func (f *files) endSync() (lost int, err error) {
	if f.settled == nil { // the file was synced or given up meanwhile
		return 0, nil
	}
	if err := f.settle(); err != nil {
		lost, f.unsynced = f.unsynced, 0
		f.abandon()
		return lost, &JournalError{Op: "sync journal", Path: f.path, Err: err}
	}
	if f.upTo > f.synced {
		f.synced, f.unsynced = f.upTo, f.unsynced-f.upToRecords
	}
	return 0, nil
}

// settle waits for the sync in the background and returns its outcome.
func (f *files) settle() error {
	if f.settled == nil {
		return nil
	}
	err := <-f.settled
	f.settled = nil
	return err
}

package persist

import (
	"os"
	"path/filepath"
)

// use makes file the current one.
func (f *files) use(file *os.File, path string, size int64, locked bool) {
	f.current, f.path, f.size, f.synced, f.unsynced = file, path, size, size, 0
	f.locked, f.syncs, f.tail = locked, 0, f.tail[:0]
	f.redo, f.coming, f.settled = nil, nil, nil
}

// keep remembers what was written and not synced, as far as it fits into the redo file.
func (f *files) keep(bytes []byte) {
	if f.cfg.SyncWithin == 0 && int64(len(f.tail)) == f.size-f.synced && len(f.tail)+len(bytes) <= redoHalf-redoHeader {
		f.tail = append(f.tail, bytes...)
	}
}

// wantRedo has a redo file made in the background, once the current file has seen enough syncs to be worth it. Where
// the journal knows no locks, nobody would take it over.
func (f *files) wantRedo() {
	if f.syncs++; f.syncs != redoAfter || f.cfg.SyncWithin > 0 || !f.locked || f.redo != nil || f.coming != nil || !hasRoom(f.cfg.Dir, redoSpare) {
		return
	}
	coming := make(chan *redo, 1)
	f.coming = coming
	path := f.path
	go func() {
		r, err := newRedo(path, filepath.Base(path))
		if err == nil {
			if err = syncDir(filepath.Dir(path)); err != nil {
				r.remove()
				r = nil
			}
		}
		if err != nil {
			f.logger.Debug("the journal has no redo file: its records are synced one by one", "error", err)
		}
		coming <- r
	}()
}

// awaitRedo waits for a redo file that is being made.
func (f *files) awaitRedo() {
	if f.coming != nil {
		f.redo, f.coming = <-f.coming, nil
	}
}

// syncRedo makes what is not synced durable in the redo file, and reports whether it has. An error means that the journal
// file must not be used again.
func (f *files) syncRedo() (done bool, err error) {
	select {
	case f.redo = <-f.coming:
		f.coming = nil
	default:
	}
	if f.redo == nil || int64(len(f.tail)) != f.size-f.synced || len(f.tail) > redoHalf-redoHeader {
		return false, nil
	}
	if !f.redo.fits(len(f.tail)) {
		if err := f.settle(); err != nil {
			return false, err
		}
		// The half that was filled just now is synced in the background, while the other one is written.
		settled, file := make(chan error, 1), f.current
		f.settled = settled
		go func() { settled <- datasync(file) }()
		f.redo.turn()
	}
	if err := f.redo.put(f.synced, f.tail); err != nil {
		f.logger.Warn("the journal's redo file cannot be written: the journal goes on without it", "error", err)
		f.leaveRedo() // it still holds what may not be synced yet
		return false, f.settle()
	}
	return true, nil
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
		settled <- datasync(file)
		done()
	}()
	return true
}

// endSync looks how the sync in the background went. After a failure the file is given up as it is, and all records in
// it that are not certain are counted as lost, although some may be there.
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

// finish syncs the current file itself and removes its redo file, which nobody needs then.
func (f *files) finish() error {
	f.awaitRedo()
	err := f.settle()
	if err == nil && f.redo != nil {
		if err = datasync(f.current); err == nil {
			f.redo.remove()
			f.redo = nil
		}
	}
	return err
}

// leaveRedo ends the use of the redo file but keeps it for whoever takes the journal file over.
func (f *files) leaveRedo() {
	if f.redo != nil {
		f.redo.file.Close() // what counts in it is synced
		f.redo = nil
	}
}

// recover brings a closed file up to what its redo file holds, and reports whether it is. If not, nobody may write to it:
// a later try would put older records over newer ones.
func (f *files) recover(file *os.File, path string) bool {
	bytes, err := replay(file, path, filepath.Base(path))
	switch {
	case err != nil:
		f.logger.Warn("what a loss of power took from the journal cannot be restored; the file is left as it is, until that works",
			"file", path, "error", err)
	case bytes > 0:
		f.logger.Info("restored journal records that a loss of power had taken", "file", path, "bytes", bytes)
	}
	return err == nil
}

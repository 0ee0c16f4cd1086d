package persist

import "time"

// write writes batch after batch until nothing is due. The caller is the writer.
func (j *Journal) write() {
	for j.writeOne() {
	}
}

// writeOne does what is due and reports whether something is due again by now. If not, the caller
// is the writer no longer, and when the journal was closed meanwhile, the file is closed. Only the
// writer touches the files.
func (j *Journal) writeOne() (more bool) {
	j.mu.Lock()
	if j.isDue() {
		do := j.take()
		j.mu.Unlock()
		j.carryOut(do)
		j.mu.Lock()
		if j.isDue() {
			j.mu.Unlock()
			return true
		}
	}
	closed := j.closed
	j.writer = closed // nobody writes after the one who closes the file
	j.mu.Unlock()
	if closed {
		j.behind.Stop()
		if lost, err := j.files.close(); err != nil {
			j.tell(&j.writing, lost, err)
		}
		close(j.stopped)
	}
	return false
}

// writerStep is one round of the writer's loop.
type writerStep struct {
	settled bool   // look how the sync in the background went
	batch   *batch // write it; nil: nothing
	tidy    bool   // remove old files
	sync    bool   // begin the next sync in the background
}

// take takes what is due upon the caller. It is called with mu held.
func (j *Journal) take() (do writerStep) {
	if j.settled {
		j.settled, j.syncing, do.settled = false, false, true
	}
	if j.next.isReady() {
		do.batch = j.next
		j.next = &batch{}
	}
	j.wantTidy, do.tidy = false, j.wantTidy
	if j.wantSync && !j.syncing {
		j.wantSync, j.syncing, do.sync = false, true, true
	}
	return do
}

// slowWrite is the duration of a write beyond which callers leave the next one to a goroutine.
const slowWrite = 100 * time.Millisecond

func (j *Journal) carryOut(do writerStep) {
	began := time.Now()
	defer func() {
		j.mu.Lock()
		j.slow = time.Since(began) > slowWrite || j.writing.err != nil
		j.mu.Unlock()
	}()
	if do.settled {
		lost, err := j.files.endSync()
		j.tell(&j.keeping, lost, err)
	}
	if do.batch != nil {
		lost, err := j.files.write(do.batch)
		j.finish(do.batch, lost, err)
	}
	if do.tidy {
		j.files.clean()
	}
	j.weigh()
	if do.sync && !j.files.beginSync(func() { j.signal(func() { j.settled = true }) }) {
		j.mu.Lock()
		j.syncing = false // there was nothing to sync
		j.mu.Unlock()
	}
}

// finish tells everybody who waits for it how it went.
func (j *Journal) finish(b *batch, lost int, err error) {
	j.tell(&j.writing, lost, err)
	j.mu.Lock()
	j.queued -= len(b.bytes)
	if within := j.files.cfg.SyncWithin; within > 0 && err == nil && !j.trailing {
		j.trailing = true
		j.behind.Reset(within)
	}
	j.signalRoom()
	if b.err = err; b.done != nil {
		close(b.done)
	}
	j.mu.Unlock()
}

// tell keeps the outcome of an attempt for Healthy. It logs only the first of several failures, and
// the recovery: a full disk must not fill the log as well.
func (j *Journal) tell(t *attempt, lost int, err error) {
	j.mu.Lock()
	before, total := t.err, t.lost+int64(lost)
	t.err, t.lost = err, total
	if err == nil {
		t.lost = 0
	}
	j.mu.Unlock()
	switch {
	case err != nil && before == nil:
		j.logger.Error("the journal cannot be written: records are being lost", "error", err, "lost", total)
	case err == nil && before != nil:
		j.logger.Info("the journal is written again", "lost", total)
	}
}

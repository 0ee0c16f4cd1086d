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
		j.carryOut()
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

// slowWrite is the duration of a write beyond which callers leave the next one to a goroutine.
const slowWrite = 100 * time.Millisecond

// carryOut does what is due. It is called with mu held, and gives it up meanwhile.
func (j *Journal) carryOut() {
	began, settled, tidy, sync, b := time.Now(), j.settled, j.wantTidy, false, j.next
	if settled {
		j.settled, j.syncing = false, false
	}
	if j.wantTidy = false; j.wantSync && !j.syncing {
		j.wantSync, j.syncing, sync = false, true, true
	}
	isReady := b.isReady()
	if isReady {
		j.next = &batch{}
	}
	j.mu.Unlock()
	if settled {
		lost, err := j.files.endSync()
		j.tell(&j.keeping, lost, err)
	}
	if isReady {
		lost, err := j.files.write(b)
		j.finish(b, lost, err)
	}
	if tidy {
		j.files.clean()
	}
	j.weigh()
	begun := sync && j.files.beginSync(func() { j.signal(func() { j.settled = true }) })
	j.mu.Lock()
	if sync && !begun {
		j.syncing = false // there was nothing to sync
	}
	j.slow = time.Since(began) > slowWrite || j.writing.err != nil
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

package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	defaultMaxBytes = 64 << 20
	defaultMaxFiles = 10

	// queueBytes bounds the encoded records that wait to be written. Callers wait for room beyond it, which is how a
	// disk that cannot keep up slows the hub down instead of filling its memory.
	queueBytes = 16 << 20
)

// ErrClosed is returned by Commit and Note after Close.
var ErrClosed = errors.New("append to journal: the journal is closed because the hub is stopping; start the hub again")

// Journal appends records to files of JSON lines. It is safe for concurrent use. The one who opens it closes it.
type Journal struct {
	files   *files
	logger  *slog.Logger
	stopped chan struct{} // closed when all is written and the file is closed

	mu     sync.Mutex
	next   *batch             // being collected
	open   map[*Call]fileSpan // calls that have lines and no last one
	queued int                // bytes in next and in the batch being written
	room   chan struct{}      // closed when queued shrinks; nil while nobody waits for that
	writer bool               // somebody is writing, and looks for more before ending
	closed bool

	// With SyncWithin, a sync in the background follows the writes.
	behind   *time.Timer // runs while trailing
	trailing bool        // something was written after the last sync began
	wantSync bool        // it is time for the next one
	syncing  bool        // the last one has not ended, as far as anybody has looked
	settled  bool        // it has ended, and nobody has looked
	wantTidy bool        // old files may be removed now

	slow    bool    // the last step took long, or failed
	writing attempt // with writing, and syncing before Commit returns
	keeping attempt // with syncing afterwards

	full atomic.Pointer[JournalError] // why new calls are refused; nil: they are not
}

// attempt is the outcome of the last write or sync.
type attempt struct {
	err  error
	lost int64 // records lost since it last went well
}

// batch holds the records of one write.
type batch struct {
	bytes   []byte
	records int
	names   []tool.Standing // what the records name
	calls   []Line          // the lines of calls in bytes, where there is a Keeper
	durable bool            // somebody waits for it, or is about to write it

	done chan struct{} // closed when err is final; nil while nobody waits
	err  error
}

// ticket is a caller's part in a batch.
type ticket struct {
	batch *batch
	write bool // the caller is the writer from now on
	wait  bool // somebody else writes, or is to do so
}

// Open opens the journal in cfg.Dir, which it creates if need be, and starts its writer. An error is a *JournalError.
// The log is told about files and failures, never what a record holds.
func Open(cfg JournalConfig, logger *slog.Logger) (*Journal, error) {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	if cfg.MaxFiles <= 0 {
		cfg.MaxFiles = defaultMaxFiles
	}
	if err := makeDir(cfg.Dir); err != nil {
		return nil, &JournalError{Op: "create journal directory", Path: cfg.Dir, Err: err}
	}
	f := &files{cfg: cfg, logger: logger}
	if err := f.openFirst(); err != nil {
		return nil, err
	}
	return newJournal(f, logger), nil
}

func newJournal(f *files, logger *slog.Logger) *Journal {
	j := &Journal{files: f, logger: logger, stopped: make(chan struct{}), next: &batch{},
		open: make(map[*Call]fileSpan)}
	f.isOpen = j.isOpen
	j.behind = time.AfterFunc(time.Hour, func() { j.signal(func() { j.trailing, j.wantSync = false, true }) })
	j.behind.Stop()
	j.weigh()
	return j
}

// makeDir creates dir for this user alone, and makes its name durable.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return statefile.SyncDir(filepath.Dir(dir))
}

// isReady reports whether something is to be written now. It is called with the journal's mu held.
func (b *batch) isReady() bool { return b.durable || len(b.bytes) > 0 }

// Commit adds records, next to each other, and waits until they and everything queued before them
// are written, so that they outlive this process however it ends, and unless SyncWithin allows more
// time, until they are on the disk. It returns a *JournalError if they are not; later calls try
// anew, so the journal recovers by itself once the cause is gone. If ctx ends first, ctx's error is
// returned and the records may still be written: to record the end of a call that was cancelled,
// pass a context that was not. A caller who finds nobody writing writes itself, because waking
// somebody else takes longer than a disk that works; it returns when its write ends, even if
// ctx is done before. A disk that was slow the last time, or failed, is left to a goroutine.
func (j *Journal) Commit(ctx context.Context, records ...tool.Record) error {
	var lines []byte
	for _, r := range records {
		n, err := len(lines), error(nil)
		if lines, err = appendChecked(lines, r); err != nil {
			return err
		}
		lines = endLine(lines, n)
	}
	t, err := j.put(ctx, true, entry{lines: lines, records: len(records)})
	if err != nil {
		return err
	}
	return j.wait(ctx, t)
}

// commitTimeout bounds the wait for a disk that hangs.
const commitTimeout = 10 * time.Second

// errLate says that the wait for a batch, or for room in the queue, is over. A batch may still be
// written.
var errLate = errors.New("wait for the journal: its disk has not answered for 10 s")

// wait returns when the batch is written, or with ctx's error when ctx ends.
func (j *Journal) wait(ctx context.Context, t ticket) error {
	b := t.batch
	if !t.wait {
		if j.writeOne() {
			go j.write() // what others have queued meanwhile must not make the caller wait
		}
		return b.err
	}
	if t.write {
		go j.write()
	}
	late := time.NewTimer(commitTimeout)
	defer late.Stop()
	select {
	case <-b.done:
		return b.err
	case <-late.C:
		return errLate
	case <-ctx.Done():
		return fmt.Errorf("wait for the journal: %w", ctx.Err())
	}
}

// entry is what goes into a batch: the lines of records, and what these name.
type entry struct {
	lines   []byte
	records int
	names   []tool.Standing
	line    *callRecord // that lines has alone; nil where it has others
	open    *Call       // of which this is a line, and not the last one; nil for none
}

// put adds an entry to the batch that is being collected, once there is room. Where durable is set,
// the caller waits for the batch after that.
func (j *Journal) put(ctx context.Context, durable bool, e entry) (t ticket, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.waitForRoom(ctx, len(e.lines)); err != nil {
		return t, err
	}
	b := j.next
	if e.line != nil && j.files.cfg.Kept != nil {
		b.calls = append(b.calls, Line{int64(len(b.bytes)), e.line.summary()})
	}
	if b.bytes == nil {
		b.bytes = e.lines // nobody else appends to them
	} else {
		b.bytes = append(b.bytes, e.lines...)
	}
	b.records += e.records
	b.names = append(b.names, e.names...)
	if e.open != nil {
		span, known := j.open[e.open]
		// the line goes to the current file, or to the next one
		if span.last = j.files.number.Load() + 1; !known {
			span.first = span.last - 1
		}
		j.open[e.open] = span
	}
	b.durable = b.durable || durable
	j.queued += len(e.lines)
	t = ticket{batch: b, write: j.claim()}
	if t.wait = durable && (!t.write || j.slow); t.wait && b.done == nil {
		b.done = make(chan struct{})
	}
	return t, nil
}

// claim reports whether the caller is to write, because something is due and nobody else does. It
// is called with mu held.
func (j *Journal) claim() bool {
	if j.writer || !j.isDue() {
		return false
	}
	j.writer = true
	return true
}

// isDue reports whether there is something to write now. It is called with mu held.
func (j *Journal) isDue() bool {
	return j.next.isReady() || j.settled || j.wantTidy || j.wantSync && !j.syncing
}

// signal sets a flag that makes something due, and does it unless somebody else is writing.
func (j *Journal) signal(set func()) {
	j.mu.Lock()
	set()
	write := j.claim()
	j.mu.Unlock()
	if write {
		j.write()
	}
}

// waitForRoom returns when n more bytes fit in the queue, when ctx ends, or when nothing was written
// for 10 s. Records larger than the whole queue fit when it is empty. It is called with mu held, and
// gives it up while it waits.
func (j *Journal) waitForRoom(ctx context.Context, n int) error {
	for {
		switch {
		case j.closed:
			return ErrClosed
		case j.queued == 0 || j.queued+n <= queueBytes:
			return nil
		}
		if j.room == nil {
			j.room = make(chan struct{})
		}
		room := j.room
		j.mu.Unlock()
		var err error
		select {
		case <-room:
		case <-time.After(commitTimeout):
			err = errLate
		case <-ctx.Done():
			err = fmt.Errorf("wait for room in the journal's queue: %w", ctx.Err())
		}
		j.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// Queued returns how many bytes of records wait to be written.
func (j *Journal) Queued() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queued
}

// Tidy removes old files as a new file does: more of them may be kept elsewhere by now.
func (j *Journal) Tidy() { j.signal(func() { j.wantTidy = true }) }

// Healthy returns nil if the last write and the last sync went well and there is room, otherwise
// the *JournalError that says what is wrong.
func (j *Journal) Healthy() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if full := j.full.Load(); full != nil && j.writing.err == nil {
		return full
	}
	return cmp.Or(j.writing.err, j.keeping.err)
}

// errLimit says that nothing is removed to make room.
var errLimit = errors.New("it takes all the space that persist.journal gives it, and the record store does not have " +
	"the oldest calls, so new calls are refused")

// weigh notes whether the journal is at its limit. Only the writer calls it.
func (j *Journal) weigh() {
	was := j.full.Load() != nil
	is := j.files.over && j.files.cfg.Kept.Healthy() != nil
	switch {
	case is && !was:
		err := &JournalError{Op: "keep journal", Path: j.files.cfg.Dir, Err: errLimit}
		j.full.Store(err)
		j.logger.Error("the journal is full: new calls are refused", "error", err)
	case was && !is:
		j.full.Store(nil)
		j.logger.Info("the journal has room again")
	}
}

// Close writes and syncs what is queued, ends the writer and closes the file. Calling it again is harmless and returns
// the same: nil, or why the last write failed. What comes later gets ErrClosed.
func (j *Journal) Close() error {
	j.mu.Lock()
	first := !j.closed
	j.closed = true
	j.signalRoom()
	idle := first && !j.writer
	j.writer = j.writer || idle
	j.mu.Unlock()
	if idle {
		j.write()
	}
	<-j.stopped
	return j.Healthy()
}

// signalRoom wakes all that wait for room. It is called with mu held.
func (j *Journal) signalRoom() {
	if j.room != nil {
		close(j.room)
		j.room = nil
	}
}

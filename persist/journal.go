package persist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	defaultMaxBytes = 64 << 20
	defaultMaxFiles = 10

	// queueBytes bounds the encoded records that wait to be written. Callers wait for room beyond it, which is how a
	// disk that cannot keep up slows the hub down instead of filling its memory.
	queueBytes = 16 << 20

	// keepBytes is the largest batch buffer that is kept for reuse; a burst must not hold its memory for ever.
	keepBytes = 1 << 20

	// holdFor is how long records that nobody waits for may stay in memory, so that those of a quick call's beginning
	// are written together with those of its end; holdBytes is how many of them.
	holdFor   = 2 * time.Millisecond
	holdBytes = 64 << 10
)

// ErrClosed is returned by Append and Commit after Close.
var ErrClosed = errors.New("append to journal: the journal is closed because the hub is stopping; start the hub again")

// Journal appends records to files of JSON lines. It is safe for concurrent use. The one who opens it closes it.
type Journal struct {
	files   *files
	logger  *slog.Logger
	wake    chan struct{} // holds one value when there is something to do
	stopped chan struct{} // closed when the writer has ended
	lines   sync.Pool     // of *[]byte: where callers encode

	mu     sync.Mutex
	next   *batch        // being collected
	spare  []byte        // buffer for the batch after that
	queued int           // bytes in next and in the batch being written
	room   chan struct{} // closed when queued shrinks; nil while nobody waits for that
	hold   *time.Timer   // runs while next holds records that nobody waits for
	closed bool
	failed error // of the last batch; nil when it went well
	lost   int64 // records lost since the journal last worked
}

// batch is what one write puts on the disk.
type batch struct {
	bytes   []byte
	records int
	durable bool          // somebody waits until it is on the disk
	due     bool          // it was held for long enough, or is large enough
	done    chan struct{} // closed when err is final
	err     error
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
	j := newJournal(f, logger)
	go j.run()
	return j, nil
}

// newJournal returns a journal whose writer has not begun.
func newJournal(f *files, logger *slog.Logger) *Journal {
	j := &Journal{files: f, logger: logger, wake: make(chan struct{}, 1), stopped: make(chan struct{}), next: newBatch(nil)}
	j.lines.New = func() any { return new([]byte) }
	j.hold = time.AfterFunc(holdFor, j.release)
	j.hold.Stop()
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
	return syncDir(filepath.Dir(dir))
}

func newBatch(buffer []byte) *batch {
	return &batch{bytes: buffer[:0], done: make(chan struct{})}
}

// Append queues records, in their order and next to each other, and does not wait until they are written: that begins
// with the next Commit, or after 2 ms. It waits only while the queue is full, and then returns ctx's error if ctx ends. Any error means that none of the records was
// queued: ErrClosed, or a record that is no JSON. Records that are lost later, because the disk fails, are counted in
// the log and make Healthy fail.
func (j *Journal) Append(ctx context.Context, records ...tool.Record) error {
	_, err := j.enqueue(ctx, false, records)
	return err
}

// Commit is Append, and waits until the records and everything queued before them are on the disk. It returns a
// *JournalError if they are not; later calls try anew, so the journal recovers by itself once the cause is gone. If
// ctx ends first, ctx's error is returned and the records may still be written: to record the end of a call that was
// cancelled, pass a context that was not.
func (j *Journal) Commit(ctx context.Context, records ...tool.Record) error {
	b, err := j.enqueue(ctx, true, records)
	if err != nil {
		return err
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return fmt.Errorf("wait for the journal: %w", ctx.Err())
	}
}

// enqueue encodes records and adds them to the batch that is being collected, which it returns.
func (j *Journal) enqueue(ctx context.Context, durable bool, records []tool.Record) (*batch, error) {
	buffer := j.lines.Get().(*[]byte)
	lines := (*buffer)[:0]
	defer func() {
		if cap(lines) <= keepBytes {
			*buffer = lines
			j.lines.Put(buffer)
		}
	}()
	for _, r := range records {
		var err error
		if lines, err = appendRecord(lines, r); err != nil {
			return nil, err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.waitForRoom(ctx, len(lines)); err != nil {
		return nil, err
	}
	b := j.next
	if !durable && len(b.bytes) == 0 {
		j.hold.Reset(holdFor)
	}
	b.bytes = append(b.bytes, lines...)
	b.records += len(records)
	b.durable = b.durable || durable
	b.due = b.due || len(b.bytes) >= holdBytes
	j.queued += len(lines)
	if b.durable || b.due {
		j.wakeWriter()
	}
	return b, nil
}

// release lets the batch that is being collected be written although nobody waits for it.
func (j *Journal) release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.next.bytes) > 0 {
		j.next.due = true
		j.wakeWriter()
	}
}

// wakeWriter tells the writer to look for a batch.
func (j *Journal) wakeWriter() {
	select {
	case j.wake <- struct{}{}:
	default: // it has been told already
	}
}

// waitForRoom returns when n more bytes fit in the queue. Records larger than the whole queue fit when it is empty. It
// is called with mu held, and gives it up while it waits.
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
		if len(j.next.bytes) > 0 {
			j.next.due = true // there is no room to hold anything
			j.wakeWriter()
		}
		room := j.room
		j.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		}
		j.mu.Lock()
		if ctx.Err() != nil {
			return fmt.Errorf("wait for room in the journal's queue: %w", ctx.Err())
		}
	}
}

// Healthy returns nil if the last write went well, otherwise the *JournalError that it ended in.
func (j *Journal) Healthy() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failed
}

// Close writes and syncs what is queued, ends the writer and closes the file. Calling it again is harmless and returns
// the same: nil, or why the last write failed. What Append and Commit have not queued by then gets ErrClosed.
func (j *Journal) Close() error {
	j.mu.Lock()
	j.closed = true
	j.signalRoom()
	j.wakeWriter()
	j.mu.Unlock()
	<-j.stopped
	return j.Healthy()
}

// signalRoom lets everybody who waits for room look again. It is called with mu held.
func (j *Journal) signalRoom() {
	if j.room != nil {
		close(j.room)
		j.room = nil
	}
}

// run is the writer: the only goroutine that touches the files after Open.
func (j *Journal) run() {
	defer close(j.stopped)
	for {
		b := j.take()
		if b == nil {
			if lost, err := j.files.close(); err != nil {
				j.note(lost, err)
			}
			return
		}
		lost, err := j.files.write(b)
		j.finish(b, lost, err)
	}
}

// take returns the batch that was collected, once it is to be written, or nil when the journal is closed and all is
// written.
func (j *Journal) take() *batch {
	for {
		j.mu.Lock()
		if b := j.next; b.durable || b.due || j.closed && len(b.bytes) > 0 {
			j.hold.Stop()
			j.next = newBatch(j.spare)
			j.spare = nil
			j.mu.Unlock()
			return b
		}
		closed := j.closed
		j.mu.Unlock()
		if closed {
			return nil
		}
		<-j.wake
	}
}

// finish gives back what b held and tells everybody who waits for it how it went.
func (j *Journal) finish(b *batch, lost int, err error) {
	j.note(lost, err)
	j.mu.Lock()
	j.queued -= len(b.bytes)
	if cap(b.bytes) <= keepBytes {
		j.spare = b.bytes
	}
	j.signalRoom()
	j.mu.Unlock()
	b.err = err
	close(b.done)
}

// note keeps the outcome of a write for Healthy, and logs the first failure of a row and the recovery from it: a full
// disk must not fill the log as well.
func (j *Journal) note(lost int, err error) {
	j.mu.Lock()
	before, total := j.failed, j.lost+int64(lost)
	j.failed, j.lost = err, total
	if err == nil {
		j.lost = 0
	}
	j.mu.Unlock()
	switch {
	case err != nil && before == nil:
		j.logger.Error("the journal cannot be written: records are being lost", "error", err, "lost", total)
	case err == nil && before != nil:
		j.logger.Info("the journal is written again", "lost", total)
	}
}

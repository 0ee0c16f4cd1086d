package store

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// fillAfter is the time between a line of the journal and the store: lines of that time are taken
// in together. A store that has failed is tried again as often. The hub is idle where no line has
// come for that time.
const fillAfter = 2 * time.Second

const (
	// maxRecent bounds the lines that wait in memory. Where there are more, the store reads them
	// from the journal's files.
	maxRecent = 8 << 20

	// maxUnindexed bounds the lines that wait for the full-text index while the hub is busy. A search
	// waits until they are indexed.
	maxUnindexed = 50_000
)

// Filler keeps a store up to date with a journal. No call waits for it. It implements persist.Keeper.
type Filler struct {
	open   func(context.Context) (Store, error)
	dir    string
	bounds persist.RecordsConfig
	logger *slog.Logger
	hurry  chan struct{} // has a value where the store is to be filled now
	came   chan struct{} // has a value where a line has come since nothing was behind

	surplus atomic.Int64   // see Surplus
	sayFull rate.Sometimes // that there is one

	mu      sync.Mutex
	store   Store     // nil: not open
	problem error     // why it cannot be written
	failed  bool      // it could not be written, and has not caught up since
	behind  time.Time // since when the journal has lines that the store has not; zero: it has none
	wanted  bool      // the journal would remove files that the store does not have
	recent  []persist.Written
	bytes   int // of recent
}

// NewFiller returns a Filler for the journal in dir. It opens the store once there is something to
// keep, and again after a failure.
func NewFiller(open func(context.Context) (Store, error), dir string, bounds persist.RecordsConfig,
	logger *slog.Logger) *Filler {
	return &Filler{open: open, dir: dir, bounds: bounds, logger: logger, hurry: make(chan struct{}, 1),
		came: make(chan struct{}, 1), sayFull: rate.Sometimes{Interval: time.Hour}}
}

// Take keeps what was written in memory until the store has it.
func (f *Filler) Take(w persist.Written) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isBehind()
	switch {
	case f.failed:
		return
	case f.bytes+len(w.Text) > maxRecent:
		f.recent, f.bytes = nil, 0
	}
	f.recent, f.bytes = append(f.recent, w), f.bytes+len(w.Text)
	if f.bytes >= batchBytes {
		f.Hurry()
	}
}

// next returns what one transaction takes in of the recent lines.
func (f *Filler) next() []persist.Written {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, bytes := 0, 0
	for ; n < len(f.recent) && bytes < batchBytes; n++ {
		bytes += len(f.recent[n].Text)
	}
	next := f.recent[:n:n]
	if f.recent, f.bytes = f.recent[n:], f.bytes-bytes; len(f.recent) == 0 {
		f.recent = nil
	}
	return next
}

// hasBatch reports whether a transaction's worth of recent lines waits.
func (f *Filler) hasBatch() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes >= batchBytes
}

// Has reports whether the store has a journal file up to that size, for certain. It does not wait.
func (f *Filler) Has(file string, size int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	has := f.store != nil && f.store.Has(file, size)
	f.wanted = f.wanted || !has
	return has
}

// Hurry makes Run fill the store now.
func (f *Filler) Hurry() { signal(f.hurry) }

// signal puts a value into a channel that has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Healthy returns nil, or why the store cannot be written. A store that is written again is healthy
// while it catches up: see Lag.
func (f *Filler) Healthy() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem
}

// Lag returns how long the oldest line of the journal waits for the store, about; 0 where none does.
func (f *Filler) Lag() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.behind.IsZero() {
		return 0
	}
	return time.Since(f.behind)
}

// Surplus returns how many calls this process has removed although they were not too old: the store was too large.
func (f *Filler) Surplus() int64 { return f.surplus.Load() }

// FullAdvice says that Surplus is above 0, and what to do.
const FullAdvice = "the record store is full, so calls are removed before persist.records.max_age: raise " +
	"persist.records.max_bytes, or lower max_age"

// isBehind notes that the journal has lines that the store has not. It is called with mu held.
func (f *Filler) isBehind() {
	if f.behind.IsZero() {
		f.behind = time.Now()
		signal(f.came)
	}
}

// Run fills the store until ctx ends. Close follows. j is the journal that this process writes.
func (f *Filler) Run(ctx context.Context, j *persist.Journal) {
	next := time.NewTimer(fillAfter)
	defer next.Stop()
	f.mu.Lock()
	f.isBehind() // for all that anybody knows
	f.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.came:
			next.Reset(fillAfter)
			continue
		case <-f.hurry:
		case <-next.C:
		}
		idle := f.Lag() == 0
		err := f.fill(ctx, idle)
		if ctx.Err() != nil {
			return // a failure is the stop's, whatever the database calls it
		}
		if f.tell(err) != nil || !idle {
			next.Reset(fillAfter)
		}
		f.mu.Lock()
		wanted := f.wanted
		f.wanted = false
		f.mu.Unlock()
		if wanted {
			j.Tidy()
		}
	}
}

// Close fills the store to the end of the journal while ctx lasts, and closes it. Run has returned,
// and the journal is closed. After an error the rest is in the journal alone: the next Filler goes
// on with it.
func (f *Filler) Close(ctx context.Context) error {
	defer f.close()
	s, err := f.opened(ctx)
	if s == nil || err != nil {
		return err
	}
	for more := true; more && err == nil; {
		recent := f.next()
		more, err = s.Fill(ctx, f.dir, recent)
		more = more || len(recent) > 0
	}
	return err
}

// opened returns the open store; nil where there is nothing to keep.
func (f *Filler) opened(ctx context.Context) (Store, error) {
	f.mu.Lock()
	s := f.store
	f.mu.Unlock()
	if s != nil || !persist.HasNewLines(f.dir, nil) {
		return s, nil
	}
	s, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.store = s
	f.mu.Unlock()
	return s, nil
}

// fill takes in what is new, and removes what is too old. Words are indexed where the hub is idle, or many wait.
func (f *Filler) fill(ctx context.Context, idle bool) error {
	s, err := f.opened(ctx)
	if s == nil || err != nil {
		return err
	}
	for {
		began := time.Now()
		more, err := s.Fill(ctx, f.dir, f.next())
		if more = more || f.hasBatch(); err == nil {
			f.isWritten()
		}
		if err == nil && !more {
			var surplus int
			surplus, more, err = s.Trim(ctx, f.bounds)
			if all := f.surplus.Add(int64(surplus)); surplus > 0 {
				f.sayFull.Do(func() { f.logger.Warn(FullAdvice, "calls_so_far", all) })
			}
		}
		if err == nil && !more {
			least := int64(maxUnindexed)
			if idle && f.Lag() == 0 {
				least = 0
			}
			more, err = s.Index(ctx, least)
		}
		if err != nil {
			f.close() // the next one opens what is there by then
		}
		if !more || err != nil {
			return err
		}
		select { // calls are served and others write to the store meanwhile
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Since(began)):
		}
	}
}

func (f *Filler) close() {
	f.mu.Lock()
	s := f.store
	f.store = nil
	f.mu.Unlock()
	if s != nil {
		if err := s.Close(); err != nil {
			f.logger.Warn("close the record store", "error", err)
		}
	}
}

// isWritten notes that the store can be written, whether or not it has all of the journal.
func (f *Filler) isWritten() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problem = nil
}

// tell keeps how it went for Healthy, and returns it. The log hears of the first failure, and when
// nothing is behind any more.
func (f *Filler) tell(err error) error {
	f.mu.Lock()
	before := f.failed
	f.problem, f.failed = err, err != nil
	switch {
	case err != nil:
		f.recent, f.bytes = nil, 0 // the store reads them from the journal's files
	default:
		if f.behind = (time.Time{}); len(f.recent) > 0 {
			f.isBehind()
		}
	}
	f.mu.Unlock()
	switch {
	case err != nil && !before:
		f.logger.Error("the record store is behind: calls stand in the journal alone until it is written again",
			"error", err)
	case err == nil && before:
		f.logger.Info("the record store is up to date again")
	}
	return err
}

package store

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// fillEvery is the time between a line of the journal and the store: lines of that time are taken in together. A store that has failed is
// tried again as often.
const fillEvery = time.Second

// Filler keeps a store up to date with a journal. No call waits for it.
type Filler struct {
	open   func(context.Context) (Store, error)
	dir    string
	logger *slog.Logger

	mu      sync.Mutex
	store   Store // nil: not open
	problem error
}

// NewFiller returns a Filler for the journal in dir. It opens the store once there is something to keep, and again after a failure.
func NewFiller(open func(context.Context) (Store, error), dir string, logger *slog.Logger) *Filler {
	return &Filler{open: open, dir: dir, logger: logger}
}

// Has reports whether the store has a journal file up to that size, for certain. It does not wait.
func (f *Filler) Has(file string, size int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.store != nil && f.store.Has(file, size)
}

// Healthy returns nil, or why the store is behind the journal.
func (f *Filler) Healthy() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problem
}

// Run fills the store until ctx ends, and closes it then. j is the journal that this process writes.
func (f *Filler) Run(ctx context.Context, j *persist.Journal) {
	next := time.NewTimer(fillEvery)
	defer next.Stop()
	behind := true // the store does not have all that it should, as far as j knows
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-next.C:
			if f.tell(f.fill(ctx)) != nil {
				behind = true
			} else {
				if behind {
					behind = false
					j.Tidy()
				}
				select {
				case <-ctx.Done():
				case <-j.Wrote():
				}
			}
			next.Reset(fillEvery)
		}
	}
	f.close()
}

// fill takes in what is new.
func (f *Filler) fill(ctx context.Context) error {
	f.mu.Lock()
	s := f.store
	f.mu.Unlock()
	if s == nil {
		if !persist.HasNewLines(f.dir, nil) {
			return nil
		}
		opened, err := f.open(ctx)
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.store, s = opened, opened
		f.mu.Unlock()
	}
	err := s.Fill(ctx, f.dir)
	if err != nil {
		f.close() // the next one opens what is there by then
	}
	return err
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

// tell keeps how it went for Healthy, and returns it. The log hears of the first failure and of the recovery.
func (f *Filler) tell(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	f.mu.Lock()
	before := f.problem
	f.problem = err
	f.mu.Unlock()
	switch {
	case err != nil && before == nil:
		f.logger.Error("the record store is behind: calls stand in the journal alone until it is written again", "error", err)
	case err == nil && before != nil:
		f.logger.Info("the record store is up to date again")
	}
	return err
}

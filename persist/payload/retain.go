package payload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	sweepEvery = time.Hour

	// A payload without an entry is removed when it is that old: its writer has still to write the
	// entry.
	grace = time.Hour

	// keepEntries is how long the entry of an expired result says why it is gone.
	keepEntries = 365 * 24 * time.Hour
)

// retain removes what has expired: now, each hour, and when much was written.
func (s *Store) retain(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.logger.Warn("stored results that have expired stay where they are", "error", err)
		}
		select {
		case <-tick.C:
		case <-s.sweep:
		case <-ctx.Done():
			return
		}
	}
}

// Sweep removes what has expired at that time.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	s.written.Store(0)
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sweepEvery) // a bucket may hang
	defer cancel()
	unlock, err := s.place.lock()
	if err != nil {
		return ignoreGone(err) // nothing is stored
	}
	defer unlock()
	live, err := s.expire(ctx, now)
	if err != nil {
		return err
	}
	if err := s.place.list(ctx, gonePrefix, func(o object) error {
		if now.Sub(o.changed) > keepEntries {
			return s.place.remove(ctx, o.key)
		}
		return nil
	}); err != nil {
		return err
	}
	if err := s.forgetVersions(ctx, now); err != nil {
		return err
	}
	return s.place.list(ctx, bytesPrefix, func(o object) error {
		if live[o.key] {
			return nil
		}
		return s.removeOld(ctx, o, now)
	})
}

// expire makes known that results have expired, and returns the keys of the payloads of the others.
func (s *Store) expire(ctx context.Context, now time.Time) (live map[string]bool, err error) {
	kept := holdings{byActor: make(map[string]*holding)}
	var gone []Entry
	var problem error
	last := s.seen
	s.seen = make(map[string]seen, len(last))
	err = s.place.list(ctx, indexPrefix, func(o object) error {
		if !strings.HasSuffix(o.key, entrySuffix) {
			return s.removeOld(ctx, o, now)
		}
		e, err := s.entryOf(ctx, o, last)
		switch corrupt := (*CorruptError)(nil); {
		case errors.As(err, &corrupt):
			// nobody can read what it was about: that goes with the unnamed payloads
			problem = errors.Join(problem, err)
		case errors.Is(err, ErrUnknown): // another process has removed it
		case err != nil:
			return err
		case now.Sub(e.Created) > s.cfg.MaxAge:
			e.Reason = "results are kept for " + period(s.cfg.MaxAge)
			gone = append(gone, e)
		default:
			kept.add(e)
		}
		return nil
	})
	if err != nil {
		s.seen = last
		return nil, errors.Join(problem, err)
	}
	for kept.total > s.cfg.MaxBytes {
		e := kept.takeOldest()
		e.Reason = fmt.Sprintf("results took more than %d MiB, and its caller's took most", s.cfg.MaxBytes>>20)
		gone = append(gone, e)
	}
	for _, e := range gone {
		e.Expired = new(now.UTC())
		if err := s.bury(ctx, e); err != nil {
			return nil, errors.Join(problem, err) // the payload stays, too
		}
	}
	return kept.payloads(), problem
}

// seen is an entry as it was read once.
type seen struct {
	object object
	entry  Entry
}

// entryOf reads the entry that an object is. One of a bucket is read once while the hub runs: last
// has those of the last sweep.
func (s *Store) entryOf(ctx context.Context, o object, last map[string]seen) (e Entry, err error) {
	if was, ok := last[o.key]; ok && was.object.equal(o) {
		e = was.entry
	} else if e, err = s.readEntry(ctx, o.key); err != nil {
		return e, err
	}
	if s.far {
		s.seen[o.key] = seen{o, e}
	}
	return e, nil
}

// bury makes known that a result has expired: a reader finds the one entry or the other. Of several
// processes one tells.
func (s *Store) bury(ctx context.Context, e Entry) error {
	err := s.putEntry(ctx, goneKey(e.ID), true, e)
	first := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := s.place.remove(ctx, indexKey(e.ID)); err != nil {
		return err
	}
	if first && s.expired != nil {
		s.expired(e)
	}
	return nil
}

// period writes a duration as people say it.
func period(d time.Duration) string {
	if day := 24 * time.Hour; d > day && d%day == 0 {
		return fmt.Sprintf("%d days", d/day)
	}
	return d.String()
}

// holdings are the results that have not expired.
type holdings struct {
	byActor map[string]*holding
	total   int64 // bytes that their payloads take
}

type holding struct {
	entries []Entry // once they are sorted, the oldest last
	sorted  bool
	size    int64
}

func (h *holdings) add(e Entry) {
	of := h.byActor[e.Actor]
	if of == nil {
		of = &holding{}
		h.byActor[e.Actor] = of
	}
	of.entries, of.size = append(of.entries, e), of.size+e.Stored
	h.total += e.Stored
}

// payloads returns the keys of their payloads.
func (h *holdings) payloads() map[string]bool {
	keys := make(map[string]bool)
	for _, of := range h.byActor {
		for _, e := range of.entries {
			keys[payloadKey(e)], keys[textKey(e)] = true, true
		}
	}
	return keys
}

// takeOldest takes the oldest result of the actor that has most. There is one while the total is above 0.
func (h *holdings) takeOldest() Entry {
	var most *holding
	for _, of := range h.byActor {
		if len(of.entries) > 0 && (most == nil || of.size > most.size) {
			most = of
		}
	}
	if !most.sorted {
		slices.SortFunc(most.entries, func(a, b Entry) int { return b.Created.Compare(a.Created) })
		most.sorted = true
	}
	last := len(most.entries) - 1
	e := most.entries[last]
	most.entries, most.size, h.total = most.entries[:last], most.size-e.Stored, h.total-e.Stored
	return e
}

// removeOld removes an unfinished file, or a payload without an entry, unless its writer may still be
// at work.
func (s *Store) removeOld(ctx context.Context, o object, now time.Time) error {
	name := path.Base(o.key)
	id, _, _ := strings.Cut(name, "-")
	if !strings.HasPrefix(name, statefile.Unfinished) && !isID(tool.ResultID(id)) || now.Sub(o.changed) <= grace {
		return nil // none of ours, or too young
	}
	return s.place.remove(ctx, o.key)
}

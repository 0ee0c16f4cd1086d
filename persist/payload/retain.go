package payload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

const (
	sweepEvery = time.Hour

	// grace is how old a file without an entry is before it is removed: its writer has still to write the entry.
	grace = time.Hour

	// keepEntries is how long the entry of an expired result says why it is gone.
	keepEntries = 365 * 24 * time.Hour
)

// retain removes what has expired: now, each hour, and when much was written.
func (s *Store) retain() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(time.Now()); err != nil {
			s.logger.Warn("stored results that have expired stay on the disk", "error", err)
		}
		select {
		case <-tick.C:
		case <-s.sweep:
		case <-s.stop:
			return
		}
	}
}

// Sweep removes what has expired at that time.
func (s *Store) Sweep(now time.Time) error {
	s.written.Store(0)
	if _, err := os.Stat(s.index()); errors.Is(err, fs.ErrNotExist) {
		return nil // nothing is stored
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	live, err := s.expire(now)
	if err != nil {
		return err
	}
	return s.removeUnnamed(live, now)
}

// expire marks the entries of results that have expired, and returns the digests of the others.
func (s *Store) expire(now time.Time) (live map[string]bool, err error) {
	names, err := os.ReadDir(s.index())
	if err != nil {
		return nil, err
	}
	kept := holdings{byActor: make(map[string]*holding), uses: make(map[string]int)}
	var gone []Entry
	var problem error
	for _, n := range names {
		file := filepath.Join(s.index(), n.Name())
		if !strings.HasSuffix(n.Name(), entrySuffix) {
			removeOld(file, n, now)
			continue
		}
		e, err := readEntry(file)
		switch corrupt := (*CorruptError)(nil); {
		case errors.As(err, &corrupt):
			problem = errors.Join(problem, err) // nobody can read what it was about: that goes with the unnamed payloads
		case err != nil:
			return nil, err
		case e.Expired != nil && now.Sub(*e.Expired) > keepEntries:
			problem = errors.Join(problem, os.Remove(file))
		case e.Expired != nil:
		case now.Sub(e.Created) > s.cfg.MaxAge:
			e.Reason = "results are kept for " + period(s.cfg.MaxAge)
			gone = append(gone, e)
		default:
			kept.add(e)
		}
	}
	for kept.total > s.cfg.MaxBytes {
		e := kept.takeOldest()
		e.Reason = fmt.Sprintf("results took more than %d MiB, and its caller's took most", s.cfg.MaxBytes>>20)
		gone = append(gone, e)
	}
	for _, e := range gone {
		e.Expired = new(now.UTC())
		if err := s.putEntry(filepath.Join(s.index(), string(e.ID)+entrySuffix), e); err != nil {
			return nil, errors.Join(problem, err) // the payload stays, too
		}
		if s.expired != nil {
			s.expired(e)
		}
	}
	live = make(map[string]bool, len(kept.uses))
	for digest := range kept.uses {
		live[digest] = true
	}
	return live, problem
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
	uses    map[string]int // of payloads
	total   int64          // bytes on the disk
}

type holding struct {
	entries []Entry
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
	if h.uses[e.Digest]++; h.uses[e.Digest] == 1 {
		h.total += e.Stored
	}
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
	most.entries, most.size = most.entries[:last], most.size-e.Stored
	if h.uses[e.Digest]--; h.uses[e.Digest] == 0 {
		delete(h.uses, e.Digest)
		h.total -= e.Stored
	}
	return e
}

// removeUnnamed removes the payloads that no entry names, and files that were left unfinished.
func (s *Store) removeUnnamed(live map[string]bool, now time.Time) error {
	return filepath.WalkDir(s.bytes(), func(file string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || d.IsDir() || live[d.Name()]:
			return err
		}
		return removeOld(file, d, now)
	})
}

// removeOld removes an unfinished file or an unnamed payload, unless its writer may still be at work.
func removeOld(file string, d fs.DirEntry, now time.Time) error {
	if !strings.HasPrefix(d.Name(), statefile.Unfinished) && !isHex(d.Name()) {
		return nil // none of ours
	}
	info, err := d.Info()
	if err == nil && now.Sub(info.ModTime()) > grace {
		err = os.Remove(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

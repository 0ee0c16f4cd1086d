package payload

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"
)

// erasedDigest stands in the entry of what was erased: by its digest one could try out what it was.
var erasedDigest = strings.Repeat("0", 64)

// Erase removes the payloads of all entries that of means, at once, and returns how many these are.
// Their entries stay, and say why they are gone, but neither the digest nor the name.
func (s *Store) Erase(ctx context.Context, because string, of func(Entry) bool) (erased int, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	unlock, err := s.place.lock()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil // nothing was ever stored
		}
		return 0, err
	}
	defer unlock()
	var gone []Entry
	err = s.place.list(ctx, indexPrefix, func(o object) error {
		e, err := s.readEntry(ctx, o.key)
		switch {
		case errors.Is(err, ErrUnknown), errors.As(err, new(*CorruptError)): // removed meanwhile, or none
		case err != nil:
			return err
		case of(e):
			gone = append(gone, e)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, e := range gone {
		if err := s.eraseEntry(ctx, e, because); err != nil {
			return erased, err
		}
		erased++
	}
	return erased, s.place.list(ctx, gonePrefix, func(o object) error { // what has expired before
		e, err := s.readEntry(ctx, o.key)
		if err != nil || !of(e) || e.Digest == erasedDigest {
			return nil // none, or none of these
		}
		e.Digest, e.Name = erasedDigest, ""
		return s.putEntry(ctx, o.key, false, e)
	})
}

// eraseEntry removes the payload of e. The entry goes last: so another Erase finds what a kill has
// left.
func (s *Store) eraseEntry(ctx context.Context, e Entry, because string) error {
	left := e
	now := time.Now().UTC()
	left.Digest, left.Name, left.Expired, left.Reason = erasedDigest, "", &now, because
	if err := s.putEntry(ctx, goneKey(e.ID), false, left); err != nil {
		return err
	}
	if err := errors.Join(s.place.remove(ctx, textKey(e)), s.place.remove(ctx, payloadKey(e))); err != nil {
		return err
	}
	return s.place.remove(ctx, indexKey(e.ID))
}

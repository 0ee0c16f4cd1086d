package payload

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// probeSize is what a Probe stores, in bytes: about what a small result takes.
const probeSize = 64 << 10

// Probe stores a payload as Put does in the store that Open would open, reads it, and removes it.
// No result expires meanwhile.
func Probe(ctx context.Context, c Config) error {
	s, err := openStore(ctx, c, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer s.Close()
	raw := make([]byte, probeSize)
	_, _ = rand.Read(raw) // which compresses to no less
	e, err := s.Put(Entry{ID: tool.ResultOf(tool.NewInvocationID()), MediaType: "application/octet-stream",
		Created: time.Now()}, raw)
	if err == nil {
		err = s.Read(e, func(got []byte) error {
			if !bytes.Equal(got, raw) {
				return errors.New("what is read is not what was stored")
			}
			return nil
		})
	}
	if gone := s.discard(e); err == nil {
		err = gone
	}
	return err
}

// discard removes what Put has stored, or a part of it.
func (s *Store) discard(e Entry) error {
	ctx, cancel := s.within(0)
	defer cancel()
	return errors.Join(s.place.remove(ctx, indexKey(e.ID)), s.place.remove(ctx, payloadKey(e)))
}

package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// trimCalls is how many calls one transaction removes at most: others write in between.
const trimCalls = 500

func (s *database) Trim(ctx context.Context, bounds persist.RecordsConfig) (more bool, err error) {
	s.filling.Lock()
	defer s.filling.Unlock()
	if more, err = s.trim(ctx, bounds); err != nil {
		return false, fmt.Errorf("remove old calls from the record store %q: %w%s", s.path, err, s.advice(err))
	}
	return more, nil
}

// trim is one transaction of Trim.
func (s *database) trim(ctx context.Context, bounds persist.RecordsConfig) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, fillWithin)
	defer cancel()
	var bytes, calls, last int64
	if err := s.db.QueryRowContext(ctx, s.size).Scan(&bytes); err != nil {
		return false, err
	}
	expired := time.Now().Add(-cmp.Or(bounds.MaxAge, 365*24*time.Hour)).UnixMicro()
	if err := s.db.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(MAX(seq), 0) FROM (SELECT seq, created FROM invocations
		WHERE seq < (SELECT MAX(seq) FROM invocations) ORDER BY seq LIMIT $1) AS oldest WHERE $2 OR created < $3`,
		trimCalls, bytes > cmp.Or(bounds.MaxBytes, 4<<30), expired).Scan(&calls, &last); err != nil || calls == 0 {
		return false, err
	}
	tx, err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // does nothing after the commit
	for _, remove := range []string{
		"DELETE FROM lines WHERE seq IS NULL AND n < (SELECT MAX(n) FROM lines WHERE seq <= $1)",
		"DELETE FROM lines WHERE seq <= $1", s.forgets, "DELETE FROM invocations WHERE seq <= $1",
	} {
		if _, err := tx.ExecContext(ctx, remove, last); err != nil {
			return false, err
		}
	}
	return calls == trimCalls, tx.Commit()
}

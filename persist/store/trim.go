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

// These select at most $1 calls to remove. expiredCalls are older than $2. surplusCalls belong to
// the caller with the most calls, so a flood removes its own records.
const (
	expiredCalls = `SELECT seq FROM (SELECT seq, created FROM invocations WHERE seq < (SELECT MAX(seq) FROM invocations)
		ORDER BY seq LIMIT $1) AS oldest WHERE created < $2`
	surplusCalls = `SELECT seq FROM invocations WHERE actor = (SELECT actor FROM invocations GROUP BY actor
		ORDER BY COUNT(*) DESC LIMIT 1)
		AND seq < (SELECT MAX(seq) FROM invocations) ORDER BY worth, seq LIMIT $1`
)

func (s *database) Trim(ctx context.Context, bounds persist.RecordsConfig) (surplus int, more bool, err error) {
	s.filling.Lock()
	defer s.filling.Unlock()
	ctx, cancel := context.WithTimeout(ctx, fillWithin)
	defer cancel()
	expired := time.Now().Add(-cmp.Or(bounds.MaxAge, 365*24*time.Hour)).UnixMicro()
	removed, err := s.remove(ctx, expiredCalls, trimCalls, expired)
	if most := cmp.Or(bounds.MaxBytes, s.maxBytes); err == nil && removed == 0 && most > 0 {
		var bytes int64
		if err = s.db.QueryRowContext(ctx, s.size).Scan(&bytes); err == nil && bytes > most {
			removed, err = s.remove(ctx, surplusCalls, trimCalls)
			surplus = int(removed)
		}
	}
	if err != nil {
		return 0, false, fmt.Errorf("remove old calls from the record store %q: %w%s", s.path, err, s.advice(err))
	}
	return surplus, removed == trimCalls, nil
}

// remove is one transaction that removes the calls that query selects.
func (s *database) remove(ctx context.Context, query string, args ...any) (calls int64, err error) {
	tx, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // does nothing after the commit
	// The query asks for the table that is the last one here.
	for _, from := range []string{"DELETE FROM lines WHERE seq", s.forgets, "DELETE FROM invocations WHERE seq"} {
		done, err := tx.ExecContext(ctx, from+" IN ("+query+")", args...)
		if err != nil {
			return 0, err
		}
		if calls, err = done.RowsAffected(); err != nil {
			return 0, err
		}
	}
	if calls == 0 {
		return 0, nil
	}
	for _, then := range []string{
		"DELETE FROM lines WHERE seq IS NULL AND n < (SELECT MIN(n) FROM lines WHERE seq IS NOT NULL)",
		// SQLite gives the number of the last line again where that was removed
		"UPDATE indexed SET n = (SELECT COALESCE(MAX(n), 0) FROM lines) WHERE n > (SELECT COALESCE(MAX(n), 0) FROM lines)",
	} {
		if _, err := tx.ExecContext(ctx, then); err != nil {
			return 0, err
		}
	}
	return calls, tx.Commit()
}

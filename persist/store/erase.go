package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// eraseCalls is how many calls one transaction erases: others write in between.
const eraseCalls = 100

func (s *database) Erase(ctx context.Context, ids []tool.InvocationID) (lines int, err error) {
	s.filling.Lock()
	defer s.filling.Unlock()
	for from := 0; from < len(ids) && err == nil; from += eraseCalls {
		var n int
		n, err = s.erase(ctx, ids[from:min(len(ids), from+eraseCalls)])
		lines += n
	}
	for i := 0; i < len(s.forgotten) && err == nil; i++ {
		err = s.forget(ctx, s.forgotten[i])
	}
	if err != nil {
		return lines, fmt.Errorf("erase calls in the record store %q: %w%s", s.path, err, s.advice(err))
	}
	return lines, nil
}

// forget executes a statement that others may be in the way of for a while. SQLite says so in the
// first column of a row.
func (s *database) forget(ctx context.Context, statement string) error {
	for began := time.Now(); ; {
		busy, row := 0, s.db.QueryRowContext(ctx, statement)
		err := row.Scan(&busy, new(any), new(any))
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		if err == nil && busy == 0 || time.Since(began) > waitForOthers {
			if busy != 0 {
				err = errors.New("what was erased is still in the write-ahead log, because others read there: erase " +
					"it again later")
			}
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// erase is one transaction of Erase.
func (s *database) erase(ctx context.Context, ids []tool.InvocationID) (lines int, err error) {
	ctx, cancel := context.WithTimeout(ctx, fillWithin)
	defer cancel()
	f, err := s.write(ctx)
	if err != nil {
		return 0, err
	}
	defer f.tx.Rollback() // does nothing after the commit
	for _, id := range ids {
		lines += f.erase(ctx, id)
	}
	if f.err != nil {
		return 0, f.err
	}
	return lines, f.tx.Commit()
}

// erase erases the lines of a call, and returns how many it has changed.
func (f *filling) erase(ctx context.Context, id tool.InvocationID) (changed int) {
	seq, words := int64(0), ""
	for _, l := range f.lines(ctx, math.MaxInt, "seq = (SELECT seq FROM invocations WHERE id = $1) ORDER BY n",
		string(id)) {
		with := persist.Erase(l.text)
		if !bytes.Equal(with, l.text) {
			f.exec(ctx, "UPDATE lines SET line = $1 WHERE n = $2", string(with), l.n)
			changed++
		}
		if seq = l.seq; l.ends || isTask(l.text) {
			words += wordsIn(with)
		}
	}
	if changed > 0 && words != "" {
		f.exec(ctx, f.indexes, seq, f.document(words))
	}
	return changed
}

// storedLine is a line of a call with its place.
type storedLine struct {
	n, seq int64
	ends   bool
	text   json.RawMessage
}

// lines returns the lines of calls that the condition means, up to the one with which they have so many bytes.
func (f *filling) lines(ctx context.Context, most int, condition string, args ...any) (all []storedLine) {
	st := f.prepare(ctx, "SELECT n, seq, ends, line FROM lines WHERE "+condition)
	if st == nil {
		return nil
	}
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		f.err = err
		return nil
	}
	defer rows.Close()
	for size := 0; size < most && rows.Next(); {
		var l storedLine
		var text string
		if f.err = rows.Scan(&l.n, &l.seq, &l.ends, &text); f.err != nil {
			return nil
		}
		l.text = json.RawMessage(text)
		all = append(all, l)
		size += len(text)
	}
	f.err = rows.Err()
	return all
}

package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
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
	tx, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // does nothing after the commit
	f := filling{tx: tx, dialect: &s.dialect, prepared: make(map[string]*sql.Stmt)}
	for _, id := range ids {
		lines += f.erase(ctx, id)
	}
	if f.err != nil {
		return 0, f.err
	}
	return lines, tx.Commit()
}

// erase erases the lines of a call, and returns how many it has changed.
func (f *filling) erase(ctx context.Context, id tool.InvocationID) (changed int) {
	var seq int64
	if err := f.row(ctx, "SELECT seq FROM invocations WHERE id = $1", string(id)).Scan(&seq); err != nil {
		if f.err == nil && !errors.Is(err, sql.ErrNoRows) {
			f.err = err
		}
		return 0
	}
	all := f.lines(ctx, seq)
	words := ""
	for _, l := range all {
		with := persist.Erase(l.text)
		if !bytes.Equal(with, l.text) {
			f.exec(ctx, "UPDATE lines SET line = $1 WHERE n = $2", string(with), l.n)
			changed++
		}
		var read line
		if json.Unmarshal(with, &read) == nil && (read.ends() || read.Object == persist.ObjectTask) {
			words += read.text()
		}
	}
	if changed > 0 && words != "" {
		f.exec(ctx, f.again, seq, f.document(words))
	}
	return changed
}

// storedLine is a line with its place.
type storedLine struct {
	n    int64
	text json.RawMessage
}

func (f *filling) lines(ctx context.Context, seq int64) (all []storedLine) {
	st := f.prepare(ctx, "SELECT n, line FROM lines WHERE seq = $1 ORDER BY n")
	if st == nil {
		return nil
	}
	rows, err := st.QueryContext(ctx, seq)
	if err != nil {
		f.err = err
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var l storedLine
		var text string
		if f.err = rows.Scan(&l.n, &text); f.err != nil {
			return nil
		}
		l.text = json.RawMessage(text)
		all = append(all, l)
	}
	f.err = rows.Err()
	return all
}

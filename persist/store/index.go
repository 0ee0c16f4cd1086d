package store

import (
	"bytes"
	"context"
	"fmt"
	"math"
)

// indexLines is how many lines one transaction indexes at most: others write in between.
const indexLines = 1000

// unindexed queries how many lines full-text search does not know yet, about.
const unindexed = "SELECT (SELECT COALESCE(MAX(n), 0) FROM lines) - n FROM indexed"

func (s *database) Index(ctx context.Context, least int64) (more bool, err error) {
	s.filling.Lock()
	defer s.filling.Unlock()
	var wait int64
	err = s.db.QueryRowContext(ctx, unindexed).Scan(&wait)
	if err == nil && wait > least {
		more, err = s.index(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("index words in the record store %q: %w%s", s.path, err, s.advice(err))
	}
	return more, nil
}

// index is one transaction of Index.
func (s *database) index(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, fillWithin)
	defer cancel()
	f, err := s.write(ctx)
	if err != nil {
		return false, err
	}
	defer f.tx.Rollback() // does nothing after the commit
	lines := f.lines(ctx, batchBytes, "n > (SELECT n FROM indexed) AND seq IS NOT NULL ORDER BY n LIMIT $1", indexLines)
	last, size := int64(0), 0
	for _, l := range lines {
		switch last = l.n; {
		case l.ends:
			f.exec(ctx, f.indexes, l.seq, f.document(wordsIn(l.text)))
		case isTask(l.text):
			words := wordsIn(l.text)
			for _, before := range f.lines(ctx, math.MaxInt, "seq = $1 AND ends", l.seq) {
				words = wordsIn(before.text) + words
			}
			f.exec(ctx, f.indexes, l.seq, f.document(words))
		}
		size += len(l.text)
	}
	if more = len(lines) == indexLines || size >= batchBytes; more {
		f.exec(ctx, "UPDATE indexed SET n = $1", last)
	} else {
		f.exec(ctx, "UPDATE indexed SET n = (SELECT COALESCE(MAX(n), 0) FROM lines)")
	}
	if f.err != nil {
		return false, f.err
	}
	return more, f.tx.Commit()
}

// isTask reports whether a line has the result of a task.
func isTask(line []byte) bool {
	return bytes.HasPrefix(line, []byte(`{"object":"task_record"`))
}

package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// errMoved says that somebody has moved the file of a store away. It is opened anew.
var errMoved = errors.New("the file was moved or removed")

// batchBytes is how many bytes of lines one transaction takes in at most, but for the last line.
const batchBytes = 1 << 20

// fillWithin bounds one transaction that takes lines in. Half of it is for the lines, so that a
// slow connection does not keep it from its end.
const fillWithin = time.Minute

// database is a Store in a database. Its SQL is what SQLite and PostgreSQL have in common; the rest is in the dialect.
type database struct {
	db      *sql.DB
	path    string // or the URL without secrets
	journal string // begins the names of the files of the one journal that this store is filled from
	dialect
	moved func() bool // the open database is no longer the one of its name

	filling sync.Mutex // one Fill of this process at a time

	mu   sync.Mutex
	read map[string]int64 // of each journal file: bytes that are in the store for certain
}

// newDatabase brings the schema up to date.
func newDatabase(ctx context.Context, db *sql.DB, path, journal string, d dialect) (*database, error) {
	if err := d.migrate(ctx, db); err != nil {
		return nil, err
	}
	s := &database{db: db, path: path, journal: journal, dialect: d, moved: func() bool { return false }}
	var err error
	s.read, err = s.readSizes(ctx, db)
	return s, err
}

func (s *database) Close() error { return s.db.Close() }

func (s *database) Has(file string, size int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read[file] >= size
}

func (s *database) Fill(ctx context.Context, dir string, recent []persist.Written) (more bool, err error) {
	s.filling.Lock()
	defer s.filling.Unlock()
	s.mu.Lock()
	known := maps.Clone(s.read)
	s.mu.Unlock()
	if s.moved() {
		return false, fmt.Errorf("write the record store %q: %w", s.path, errMoved)
	}
	if len(recent) == 0 && !persist.HasNewLines(dir, known) {
		return false, nil
	}
	if more, err = s.fill(ctx, dir, recent); err != nil {
		return false, fmt.Errorf("write the record store %q: %w%s", s.path, err, s.advice(err))
	}
	return more, nil
}

// FillUp fills the store until it has all that the journal in dir had.
func FillUp(ctx context.Context, s Store, dir string) error {
	for {
		if more, err := s.Fill(ctx, dir, nil); err != nil || !more {
			return err
		}
	}
}

// fill is one transaction of Fill. more says that there may be more to take in.
func (s *database) fill(ctx context.Context, dir string, recent []persist.Written) (more bool, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, fillWithin)
	defer cancel()
	f, err := s.write(ctx)
	if err != nil {
		return false, err
	}
	defer f.tx.Rollback() // does nothing after the commit
	read, err := s.readSizes(ctx, f.tx)
	if err != nil {
		return false, err
	}
	before := maps.Clone(read)
	live := f.recent(ctx, read, recent)
	bytes := 0
	readErr := persist.NewLines(dir, live, read, func(line json.RawMessage) bool {
		f.take(ctx, summaryOf(line), line)
		bytes += len(line)
		more = bytes >= batchBytes || time.Since(began) > fillWithin/2
		return f.err == nil && !more
	})
	if f.err != nil {
		return false, f.err
	}
	for name := range before {
		if _, ok := read[name]; !ok {
			f.exec(ctx, "DELETE FROM files WHERE name = $1", s.journal+name)
		}
	}
	for name, size := range read {
		if before[name] != size {
			f.exec(ctx,
				"INSERT INTO files (name, size) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET size = excluded.size",
				s.journal+name, size)
		}
	}
	if err := errors.Join(f.err, readErr); err != nil {
		return false, err
	}
	if err := f.tx.Commit(); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.read = read
	s.mu.Unlock()
	return more, nil
}

// recent takes in what was written of late and is not read yet. It returns the file that was written last, whose
// rest comes the same way; "" where lines before these are missing, so that the files have to be read.
func (f *filling) recent(ctx context.Context, read map[string]int64, recent []persist.Written) (live string) {
	ended := make(map[tool.InvocationID]bool) // with a line that replaces those before it
	for _, w := range recent {
		for i := range w.Calls {
			if c := &w.Calls[i]; c.Whole {
				ended[c.Invocation] = true
			}
		}
	}
	for _, w := range recent {
		calls, at := w.Calls, int64(0)
		for line := range bytes.Lines(w.Text) {
			from := at
			at += int64(len(line))
			known := len(calls) > 0 && calls[0].At == from
			var s persist.Summary
			if known {
				s, calls = calls[0].Summary, calls[1:]
			}
			switch has := read[w.File]; {
			case has > w.At+from:
				continue
			case has < w.At+from || f.err != nil:
				return ""
			}
			if line = bytes.TrimSuffix(line, []byte{'\n'}); !known {
				s = summaryOf(line)
			}
			if s.Whole || s.Object != persist.ObjectCall || !ended[s.Invocation] {
				f.take(ctx, s, line)
			}
			read[w.File] = w.At + at
		}
		live = w.File
	}
	return live
}

// summaryOf is the summary of a line; one of no call where the line is of a later version.
func summaryOf(line []byte) persist.Summary {
	s, err := persist.Summarize(line)
	if err != nil {
		return persist.Summary{}
	}
	return s
}

// readSizes returns how far each journal file was read.
func (s *database) readSizes(ctx context.Context, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}) (map[string]int64, error) {
	rows, err := db.QueryContext(ctx, "SELECT name, size FROM files")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make(map[string]int64)
	for rows.Next() {
		var name string
		var size int64
		if err := rows.Scan(&name, &size); err != nil {
			return nil, err
		}
		if name, ours := strings.CutPrefix(name, s.journal); ours {
			all[name] = size
		}
	}
	return all, rows.Err()
}

// filling is one transaction that writes. After an error it does nothing more.
type filling struct {
	tx *sql.Tx
	*dialect
	prepared map[string]*sql.Stmt
	deferred map[tool.SurfaceID]int64 // what deferredBy returned
	err      error
}

// write begins a transaction that writes: one at a time, whoever does so.
func (s *database) write(ctx context.Context) (*filling, error) {
	tx, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	return &filling{tx: tx, dialect: &s.dialect, prepared: make(map[string]*sql.Stmt),
		deferred: make(map[tool.SurfaceID]int64)}, nil
}

// take takes a line in. What is no record that the store knows is kept as a line of no call. Neither
// statement of a new call returns rows: SQLite would write the pages that it changes to a temporary
// file before.
func (f *filling) take(ctx context.Context, s persist.Summary, text []byte) {
	switch {
	case s.Object == persist.ObjectStanding && s.Key != "":
		f.exec(ctx, "INSERT INTO standing (id, line) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING", s.Key, string(text))
		delete(f.deferred, tool.SurfaceID(s.Key))
		return
	case s.Invocation == "":
		f.exec(ctx, "INSERT INTO lines (seq, ends, line) VALUES (NULL, $1, $2)", false, string(text))
		return
	}
	id, columns, isCall := string(s.Invocation), columnsOf(&s), s.Object == persist.ObjectCall
	added := f.exec(ctx, `INSERT INTO invocations (ended, tool, server, actor, client, profile, status, class, approved_by,
		address, hub, worth, created, id, deferred) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (id) DO NOTHING`, append(columns, id, f.deferredBy(ctx, &s))...)
	if added == 0 && isCall {
		changed := f.exec(ctx, `UPDATE invocations SET ended = $1, tool = $2, server = $3, actor = $4, client = $5,
		profile = $6, status = $7,
			class = $8, approved_by = $9, address = $10, hub = $11, worth = $12, created = $13
			WHERE id = $14 AND ended IS NULL`, append(columns, id)...)
		if changed == 0 {
			return // a call ends once
		}
	}
	if kept := kept(text); kept > 0 {
		f.exec(ctx, "UPDATE invocations SET kept = kept + $1 WHERE id = $2", kept, id)
	}
	f.exec(ctx, "INSERT INTO lines (seq, ends, line) SELECT seq, $1, $2 FROM invocations WHERE id = $3",
		isCall && !s.Ended.IsZero(), string(text), id)
	// after the insertion: SQLite would give the number of the last line again, and nobody would
	// see that there is a new one
	if added == 0 && s.Whole {
		f.exec(ctx, `DELETE FROM lines WHERE seq = (SELECT seq FROM invocations WHERE id = $1)
			AND n < (SELECT MAX(n) FROM lines WHERE seq = (SELECT seq FROM invocations WHERE id = $1))`, id)
	}
}

// deferredBy returns how many tokens of tools the caller's list deferred, so that its model did not
// read them before it made the call. It is 0 for a call that another call made, such as a member of
// a batch.
func (f *filling) deferredBy(ctx context.Context, l *persist.Summary) int64 {
	if f.err != nil || l.Surface == "" || l.Parent != "" {
		return 0
	}
	if tokens, ok := f.deferred[l.Surface]; ok {
		return tokens
	}
	f.deferred[l.Surface] = 0
	var text string
	err := f.tx.QueryRowContext(ctx, "SELECT line FROM standing WHERE id = $1", string(l.Surface)).Scan(&text)
	if err != nil {
		if !errors.Is(err, sql.ErrNoRows) {
			f.err = err
		}
		return 0
	}
	var standing struct {
		Records []struct {
			Policy struct {
				Estimated int64 `json:"estimated_tokens"`
				Loaded    int64 `json:"loaded_tokens"`
			} `json:"selection_policy"`
		}
	}
	if err := json.Unmarshal([]byte(text), &standing); err != nil {
		return 0
	}
	var tokens int64
	for _, r := range standing.Records {
		tokens += max(0, r.Policy.Estimated-r.Policy.Loaded) // with the hub's own tools a list may be larger
	}
	f.deferred[l.Surface] = tokens
	return tokens
}

// columnsOf are the values of the columns from ended to created. worth is 2 for a call that a person
// approved, and 1 for a denied one: in a store that is too large, these go last among the calls of
// one caller.
func columnsOf(s *persist.Summary) []any {
	var ended any
	if !s.Ended.IsZero() {
		ended = s.Ended.UnixMicro()
	}
	worth := 0
	switch s.Class {
	case tool.ClassPermissionDenied, tool.ClassApprovalRejected, tool.ClassPolicyBlocked, tool.ClassHookBlocked,
		tool.ClassSandboxViolation:
		worth = 1
	default:
		if s.ApprovedBy != "" {
			worth = 2
		}
	}
	return []any{ended, string(s.Tool), s.Server, s.Actor, s.Client, s.Profile, string(s.Status), string(s.Class),
		s.ApprovedBy, s.Address, s.Hub, worth, s.Created.UnixMicro()}
}

// exec returns how many rows it has changed. Texts become such as every database takes: UTF-8
// without zero bytes.
func (f *filling) exec(ctx context.Context, query string, args ...any) (changed int64) {
	st := f.prepare(ctx, query)
	if st == nil {
		return 0
	}
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
		}
	}
	var done sql.Result
	if done, f.err = st.ExecContext(ctx, args...); f.err == nil {
		changed, f.err = done.RowsAffected()
	}
	return changed
}

// prepare returns the statement of the query; nil after an error.
func (f *filling) prepare(ctx context.Context, query string) *sql.Stmt {
	if f.err != nil {
		return nil
	}
	if st := f.prepared[query]; st != nil {
		return st
	}
	st, err := f.tx.PrepareContext(ctx, query) // the transaction closes it
	if err != nil {
		f.err = err
		return nil
	}
	f.prepared[query] = st
	return st
}

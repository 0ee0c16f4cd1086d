package store

import (
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

func (s *database) Fill(ctx context.Context, dir string) (more bool, err error) {
	s.filling.Lock()
	defer s.filling.Unlock()
	s.mu.Lock()
	known := maps.Clone(s.read)
	s.mu.Unlock()
	if s.moved() {
		return false, fmt.Errorf("write the record store %q: %w", s.path, errMoved)
	}
	if !persist.HasNewLines(dir, known) {
		return false, nil
	}
	if more, err = s.fill(ctx, dir); err != nil {
		return false, fmt.Errorf("write the record store %q: %w%s", s.path, err, s.advice(err))
	}
	return more, nil
}

// FillUp fills the store until it has all that the journal in dir had.
func FillUp(ctx context.Context, s Store, dir string) error {
	for {
		if more, err := s.Fill(ctx, dir); err != nil || !more {
			return err
		}
	}
}

// fill is one transaction of Fill. more says that there may be more to take in.
func (s *database) fill(ctx context.Context, dir string) (more bool, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, fillWithin)
	defer cancel()
	tx, err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // does nothing after the commit
	read, err := s.readSizes(ctx, tx)
	if err != nil {
		return false, err
	}
	before := maps.Clone(read)
	f := filling{tx: tx, dialect: &s.dialect, prepared: make(map[string]*sql.Stmt), deferred: make(map[string]int64)}
	bytes := 0
	readErr := persist.NewLines(dir, read, func(line json.RawMessage) bool {
		f.take(ctx, line)
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
	if err := tx.Commit(); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.read = read
	s.mu.Unlock()
	return more, nil
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

// filling is one transaction that takes lines in. After an error it does nothing more.
type filling struct {
	tx *sql.Tx
	*dialect
	prepared map[string]*sql.Stmt
	deferred map[string]int64 // what deferredBy returned, by surface
	err      error
}

// take takes a line in. What is no record that the store knows is kept as a line of no call.
func (f *filling) take(ctx context.Context, text json.RawMessage) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		l = line{} // of a later version
	}
	switch {
	case l.Object == persist.ObjectStanding && l.Key != "":
		f.exec(ctx, "INSERT INTO standing (id, line) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING", l.Key, string(text))
	case l.Invocation == "":
		f.exec(ctx, "INSERT INTO lines (seq, ends, line) VALUES (NULL, $1, $2)", false, string(text))
	default:
		f.call(ctx, &l, text)
	}
}

// call takes in a line of a call.
func (f *filling) call(ctx context.Context, l *line, text json.RawMessage) {
	c := l.call()
	var seq int64
	var ended sql.NullInt64
	whole := false // it has all that the lines before have
	err := f.row(ctx, "SELECT seq, ended FROM invocations WHERE id = $1", string(l.Invocation)).Scan(&seq, &ended)
	switch {
	case f.err != nil:
		return
	case errors.Is(err, sql.ErrNoRows):
		f.err = f.row(ctx, `INSERT INTO invocations (id, created, deferred, ended, tool, server, actor, client, profile, status, class,
			approved_by, address, hub, worth) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING seq`,
			append([]any{string(c.ID), c.Created.UnixMicro(), f.deferredBy(ctx, l)}, c.columns()...)...).Scan(&seq)
	case err != nil:
		f.err = err
	case l.isCall() && ended.Valid:
		return // a call ends once
	case l.isCall() || l.Object == tool.ObjectInvocation:
		f.exec(ctx, `UPDATE invocations SET ended = $1, tool = $2, server = $3, actor = $4, client = $5, profile = $6, status = $7,
			class = $8, approved_by = $9, address = $10, hub = $11, worth = $12, created = $13
			WHERE seq = $14`, append(c.columns(), c.Created.UnixMicro(), seq)...)
		whole = l.isCall() && l.EndedUS != nil && l.From == 0
	case c.Class != "" && l.Object != persist.ObjectTask: // the call has ended otherwise
		f.exec(ctx, "UPDATE invocations SET class = $1 WHERE seq = $2", c.Class, seq)
	}
	if kept := l.kept(text); kept > 0 {
		f.exec(ctx, "UPDATE invocations SET kept = kept + $1 WHERE seq = $2", kept, seq)
	}
	f.exec(ctx, "INSERT INTO lines (seq, ends, line) VALUES ($1, $2, $3)", seq, l.ends(), string(text))
	// after the insertion: SQLite would give the number of the last line again, and nobody would
	// see that there is a new one
	if whole {
		f.exec(ctx, "DELETE FROM lines WHERE seq = $1 AND n < (SELECT MAX(n) FROM lines WHERE seq = $1)", seq)
	}
	switch {
	case l.ends():
		f.exec(ctx, f.indexes, seq, f.document(l.text()))
	case l.Object == persist.ObjectTask:
		f.exec(ctx, f.again, seq, f.document(f.lastText(ctx, seq)+l.text()))
	}
}

// lastText is what full-text search knows of a call from its last line.
func (f *filling) lastText(ctx context.Context, seq int64) string {
	var text string
	var l line
	if err := f.row(ctx, "SELECT line FROM lines WHERE seq = $1 AND ends", seq).Scan(&text); err != nil {
		if !errors.Is(err, sql.ErrNoRows) {
			f.err = err
		}
		return ""
	}
	if json.Unmarshal([]byte(text), &l) != nil {
		return "" // of a later version
	}
	return l.text()
}

// deferredBy returns how many tokens of tools the caller's list deferred, so that its model did not
// read them before it made the call. It is 0 for a call that another call made, such as a member of
// a batch.
func (f *filling) deferredBy(ctx context.Context, l *line) int64 {
	if l.Surface == "" || l.Parent != "" {
		return 0
	}
	if tokens, ok := f.deferred[l.Surface]; ok {
		return tokens
	}
	var text string
	if err := f.row(ctx, "SELECT line FROM standing WHERE id = $1", l.Surface).Scan(&text); err != nil {
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

// columns are the values of the columns from ended to worth.
func (c *Call) columns() []any {
	var ended any
	if c.Ended != nil {
		ended = c.Ended.UnixMicro()
	}
	return []any{ended, c.Tool, c.Server, c.Actor, c.Client, c.Profile, string(c.Status), c.Class, c.ApprovedBy,
		c.Address, c.Hub,
		c.worth()}
}

// worth is 2 for a call that a person approved, and 1 for a denied one. In a store that is too large, these go last
// among the calls of one caller.
func (c *Call) worth() int {
	switch tool.ErrorClass(c.Class) {
	case tool.ClassPermissionDenied, tool.ClassApprovalRejected, tool.ClassPolicyBlocked, tool.ClassHookBlocked,
		tool.ClassSandboxViolation:
		return 1
	}
	if c.ApprovedBy != "" {
		return 2
	}
	return 0
}

func (f *filling) exec(ctx context.Context, query string, args ...any) {
	if st := f.prepare(ctx, query); st != nil {
		_, f.err = st.ExecContext(ctx, storable(args)...)
	}
}

func (f *filling) row(ctx context.Context, query string, args ...any) scanner {
	if st := f.prepare(ctx, query); st != nil {
		return st.QueryRowContext(ctx, storable(args)...)
	}
	return failedRow{f.err}
}

// storable makes texts such as every database takes: UTF-8 without zero bytes.
func storable(args []any) []any {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
		}
	}
	return args
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

type scanner interface{ Scan(into ...any) error }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

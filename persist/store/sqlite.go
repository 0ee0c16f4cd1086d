package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite" // registers the driver "sqlite", too
	sqlite3 "modernc.org/sqlite/lib"
)

// FileName is the name of the default store in the state directory.
const FileName = "records.db"

// FileNames are all that belong to it.
func FileNames() []string { return []string{FileName, FileName + "-wal", FileName + "-shm"} }

// OpenSQLite opens the store in the file at path. It creates the file if need be, for this user alone.
func OpenSQLite(ctx context.Context, path string) (Store, error) {
	s, err := openSQLite(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open the record store %q: %w%s", path, err, advice(err))
	}
	return s, nil
}

func openSQLite(ctx context.Context, path string) (*database, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	// The journal has what a loss of power takes from the store, whose transactions are whole all
	// the same: so it need not be synced with each (synchronous NORMAL).
	pragmas := url.Values{"_txlock": {"immediate"},
		"_pragma": {fmt.Sprintf("busy_timeout(%d)", waitForOthers.Milliseconds()), "journal_mode(WAL)",
			"synchronous(NORMAL)", "secure_delete(ON)",
			"cache_size(-1024)", "journal_size_limit(4194304)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file",
		Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath(), RawQuery: pragmas.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2) // each has a cache of its own
	db.SetMaxIdleConns(1)
	const (
		// which keeps the words outside
		found  = "words w CROSS JOIN invocations i ON i.seq = w.rowid AND w.words MATCH %[1]s"
		bounds = " AND w.rowid > %[2]s AND w.rowid <= %[3]s"
		newest = "w.rowid DESC"
	)
	s, err := newDatabase(ctx, db, path, "", dialect{goose: goose.DialectSQLite3, folder: "migrations/sqlite",
		found: found,
		among: way{from: "invocations i CROSS JOIN words w ON i.seq = w.rowid AND w.words MATCH %[1]s" + bounds,
			order: newest},
		ways:    []way{{from: found + bounds, order: newest}},
		indexes: "INSERT OR REPLACE INTO words (rowid, body) VALUES (?, ?)",
		forgets: "DELETE FROM words WHERE rowid", maxBytes: 4 << 30,
		// secure_delete leaves what stood in a page before its rows were moved to others: only
		// VACUUM does away with that.
		forgotten: []string{"INSERT INTO words (words) VALUES ('optimize')", "VACUUM",
			"PRAGMA wal_checkpoint(TRUNCATE)"},
		document: func(text string) string { return text }, words: matchAll,
		size: "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, " +
			"pragma_page_size",
		others: func(err error) bool { return code(err) == sqlite3.SQLITE_ERROR || code(err) == sqlite3.SQLITE_BUSY },
		advice: advice})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	opened, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.moved = func() bool {
		now, err := os.Stat(path)
		return err != nil || !os.SameFile(opened, now)
	}
	return s, nil
}

// code returns the primary result code of SQLite; 0 where err is none of its errors.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// matchAll writes the query of FTS5 that all phrases of text occur.
func matchAll(text string) string {
	var all []string
	for phrase, begins := range phrases(text) {
		if phrase = `"` + phrase + `"`; begins {
			phrase += "*"
		}
		all = append(all, phrase)
	}
	return strings.Join(all, " ")
}

// advice says what a person can do about err; "" where it says so itself.
func advice(err error) string {
	switch code(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return ": the file is damaged: move it and those beside it (-wal, -shm) away; it is made anew from the journal"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return ": another process holds it: end that, or wait until it has done"
	case sqlite3.SQLITE_FULL:
		return ": free space on the disk that holds it"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return ": give this user write permission there"
	}
	return ""
}

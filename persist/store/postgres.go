package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"golang.org/x/text/unicode/norm"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// OpenPostgres opens the store in the PostgreSQL database at the URL. Many hubs may share it:
// journal is the directory of the one that fills it here.
func OpenPostgres(ctx context.Context, address, journal string) (Store, error) {
	s, err := openPostgres(ctx, address, journal)
	if err != nil {
		return nil, fmt.Errorf("open the record store %q: %w%s", bareURL(address), err, postgresAdvice(err))
	}
	return s, nil
}

// connectWithin bounds an attempt to connect, unless the URL does.
const connectWithin = 10 * time.Second

// oneWriter is a lock that a transaction holds to its end. A process that neither works nor ends loses it.
const oneWriter = `SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '60s';
	SELECT pg_advisory_xact_lock(8317985341047215)`

// inUse is about what the calls take on the disk, indexes included: as many as there are, as large
// as the newest ones. The size of a table says nothing: it does not shrink when rows are deleted.
const inUse = `SELECT COALESCE((SELECT COUNT(*) FROM invocations) * (SELECT AVG(bytes) FROM (
	SELECT 1000 + pg_column_size(l.line) + 2 * COALESCE(pg_column_size(w.words), 0) AS bytes
	FROM lines l LEFT JOIN words w ON w.seq = l.seq AND l.ends ORDER BY l.n DESC LIMIT 200) AS newest), 0)::BIGINT`

// occurs finds the calls in whose words something occurs; the planner begins with the words, or with another index.
const occurs = "words w JOIN invocations i ON i.seq = w.seq AND w.words @@ %[1]s::tsquery"

// waysOfPostgres keep the planner from a walk back through all calls, in the hope that a limit ends
// it soon: it does not know when a word was used, and of a word that is rare it knows nothing. The
// first is a short walk, which suits frequent words; OFFSET 0 keeps it one. The others sort by what
// no index is in order of.
func waysOfPostgres() []way {
	const bounds, newest = " AND w.seq > %[2]s AND w.seq <= %[3]s AND i.seq > %[2]s AND i.seq <= %[3]s",
		"w.seq + 0 DESC"
	return []way{
		{span: 200, order: "w.seq DESC",
			from: "(SELECT seq, words FROM words WHERE seq > %[2]s AND seq <= %[3]s ORDER BY seq DESC OFFSET 0) w " +
				"JOIN invocations i ON i.seq = w.seq AND w.words @@ %[1]s::tsquery"},
		{span: 1000, order: newest, from: occurs + bounds},
		{order: newest, from: occurs + bounds},
	}
}

func openPostgres(ctx context.Context, address, journal string) (*database, error) {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errors.New("the URL is not one that PostgreSQL takes") // err may hold the password
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectWithin
	}
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement { // the URL names no other
		// Each query is planned for its values: a plan for any may look at every call.
		cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	id, err := persist.Identity(journal)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fillWithin)
	defer cancel()
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(1)
	s, err := newDatabase(ctx, db, bareURL(address), id+"/",
		dialect{goose: goose.DialectPostgres, folder: "migrations/postgres",
			lock: oneWriter, found: occurs, ways: waysOfPostgres(),
			among: way{order: "w.seq DESC", from: "invocations i CROSS JOIN LATERAL (SELECT w.seq FROM words w " +
				"WHERE w.seq = i.seq AND w.words @@ %[1]s::tsquery AND w.seq > %[2]s AND w.seq <= %[3]s OFFSET 0) w"},
			indexes: "INSERT INTO words (seq, words) VALUES ($1, $2::tsvector) ON CONFLICT (seq) DO UPDATE SET " +
				"words = excluded.words",
			forgets:   "DELETE FROM words WHERE seq",
			forgotten: []string{"VACUUM lines", "VACUUM words"}, document: vector, words: tsquery, size: inUse,
			others: func(err error) bool { return isOneOf(err, "42P07", "23505", "42710", "XX000") },
			advice: postgresAdvice})
	var encoding string
	if err == nil {
		err = db.QueryRowContext(ctx, "SHOW server_encoding").Scan(&encoding)
	}
	if err == nil && encoding != "UTF8" {
		err = fmt.Errorf("its encoding is %s: create the database with UTF8", encoding)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// bareURL is the URL without what may be secret.
func bareURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "postgres://"
	}
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.User.Username() != "" {
		bare.User = url.User(u.User.Username())
	}
	return bare.String()
}

const (
	maxVector = 512 << 10 // bytes of words of a call; PostgreSQL takes 1 MiB
	maxWord   = 512       // bytes of a word
)

// wordsOf returns the words of a text as FTS5 has them: letters and digits, without case and accents.
func wordsOf(text string) []string {
	plain := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFD.String(text))
	all := strings.FieldsFunc(plain, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	for i, w := range all {
		all[i] = strings.ToValidUTF8(w[:min(len(w), maxWord)], "")
	}
	return all
}

// vector writes a tsvector of the words, each with its place.
func vector(text string) string {
	var b []byte
	for i, w := range wordsOf(text) {
		if len(b) > maxVector {
			break
		}
		b = append(append(b, w...), ':')
		b = append(strconv.AppendInt(b, int64(i+1), 10), ' ')
	}
	return string(b)
}

// tsquery writes the query that all phrases of text occur.
func tsquery(text string) string {
	var all []string
	for phrase, begins := range phrases(text) {
		words := strings.Join(wordsOf(phrase), "<->")
		if words == "" {
			continue
		}
		if begins {
			words += ":*"
		}
		all = append(all, "("+words+")")
	}
	return strings.Join(all, "&")
}

// isOneOf reports whether err is one of these errors of PostgreSQL.
func isOneOf(err error, codes ...string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	for _, code := range codes {
		if ok && strings.HasPrefix(e.Code, code) {
			return true
		}
	}
	return false
}

// postgresAdvice says what a person can do about err; "" where it says so itself.
func postgresAdvice(err error) string {
	switch {
	case isOneOf(err, "28"):
		return ": see whether user and password are right, and pg_hba.conf lets this host in"
	case isOneOf(err, "3D000"):
		return ": create the database"
	case isOneOf(err, "42501", "3F000"):
		return ": give this user the right to create tables there, best by making it the owner of the database"
	case isOneOf(err, "55P03"):
		return ": another process holds it: end that, or wait until it has done"
	case isOneOf(err, "53100"):
		return ": free space on the disk of the database"
	case isOneOf(err, "53300"):
		return ": the database has too many connections: raise max_connections"
	case isOneOf(err, "25006"):
		return ": the database is a copy that cannot be written: name the primary"
	case errors.As(err, new(*pgconn.ConnectError)), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, os.ErrDeadlineExceeded):
		return ": see whether the database runs and can be reached from here"
	}
	return ""
}

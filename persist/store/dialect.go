package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// dialect is what differs between databases.
type dialect struct {
	goose     goose.Dialect
	folder    string                   // of the migrations
	lock      string                   // keeps other writers out of a transaction; "" where its beginning does
	found     string                   // the calls i, in FROM, in whose words %[1]s occurs
	among     way                      // to them where few calls pass the filters
	ways      []way                    // to them otherwise, one after the other: the last one finds them all
	indexes   string                   // makes a document the words of a call: seq, document
	forgets   string                   // removes the words of the calls whose seq it goes on with
	forgotten []string                 // after what was erased: so that nothing of it stays in the files
	size      string                   // queries the bytes in use
	maxBytes  int64                    // of these, where the bounds name no others; 0: any
	document  func(text string) string // writes the words of a text
	words     func(text string) string // writes the words that are looked for
	others    func(err error) bool     // a migration has failed because others may do the same at the same time
	advice    func(err error) string   // what a person can do; "" where err says so itself
}

// way is a way to the calls in whose words something occurs, the one that came last first.
type way struct {
	from  string // the calls i, in FROM, in whose words %[1]s occurs, which have a seq over %[2]s and up to %[3]s
	order string
	span  int64 // how many calls are looked at for each that is wanted; 0 for all
}

// waitForOthers bounds the wait for other processes that write.
const waitForOthers = 2 * time.Second

// migrate brings the schema up to this version.
func (d *dialect) migrate(ctx context.Context, db *sql.DB) error {
	steps, err := fs.Sub(migrations, d.folder)
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		p, err := goose.NewProvider(d.goose, db, steps)
		if err != nil {
			return err
		}
		if _, err = p.Up(ctx); err == nil {
			is, known, err := p.GetVersions(ctx)
			if err == nil && is > known {
				err = fmt.Errorf("a later version of mcp-toolhub has made its tables (%d, this one knows %d): "+
					"install that version here, too", is, known)
			}
			return err
		}
		if !d.others(err) || time.Since(began) >= waitForOthers {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// begin begins a transaction that writes: one at a time, whoever does so.
func (s *database) begin(ctx context.Context) (*sql.Tx, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil || s.lock == "" {
		return tx, err
	}
	if _, err := tx.ExecContext(ctx, s.lock); err != nil {
		_ = tx.Rollback()
		return nil, err
	}
	return tx, nil
}

// phrases are what a person looks for, all of which occurs, in any order: words, and in quotes what
// occurs as it stands there. begins says of the last word that it may go on, which has a * at its
// end.
func phrases(text string) iter.Seq2[string, bool] {
	return func(yield func(phrase string, begins bool) bool) {
		for i, part := range strings.Split(text, `"`) {
			words := []string{part}
			if i%2 == 0 {
				words = strings.Fields(part)
			}
			for _, w := range words {
				bare, begins := strings.CutSuffix(w, "*")
				if strings.TrimSpace(bare) != "" && !yield(bare, begins) {
					return
				}
			}
		}
	}
}

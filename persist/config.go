package persist

import (
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
)

// JournalConfig says where and how the journal is kept. The zero value of each optional field means its default.
type JournalConfig struct {
	Dir      string        // created with mode 0700; files are 0600
	MaxBytes int64         // a file larger than this is closed and a new one begun; default 64 MiB
	MaxFiles int           // files kept, the oldest are removed; default 10
	MaxAge   time.Duration // files older than this are removed when a new one is begun; 0: never

	// SyncWithin bounds the time from a Commit until its records are on the disk: that is what a loss of power can
	// cost. With 0, Commit returns when they are. Either way no record of a Commit that has returned is lost with the
	// process.
	SyncWithin time.Duration

	// Kept has what is in the files, too. nil: nobody has, and files are removed all the same.
	Kept Keeper

	// Secrets masks what servers say in the records that others name, such as the descriptions of
	// tools. nil: nothing is masked.
	Secrets *secret.Masker
}

// RecordsConfig bounds what the record store keeps.
type RecordsConfig struct {
	MaxAge time.Duration // older calls are removed; 0 means 365 days
	// beyond that the caller with the most calls loses some; 0 means 4 GiB, in PostgreSQL no limit
	MaxBytes int64
}

// Keeper keeps what a journal holds: only files that it has are removed. Where it cannot have them,
// and the files take MaxFiles times MaxBytes, new calls are refused. Its methods answer at once.
type Keeper interface {
	Take(w Written)                   // was written; a Keeper that does not keep it reads the file
	Has(file string, size int64) bool // it has the file up to that size
	Hurry()                           // files would be removed if it had them
	Healthy() error                   // why it cannot have more; nil: it can, or has not tried
}

// Written is what one write has added to a file of the journal.
type Written struct {
	File  string // its name
	At    int64  // where Text begins in the file
	Text  []byte // whole lines
	Calls []Line // those that are call records, in their order
}

// Line is a line of what was written.
type Line struct {
	At int64 // where it begins in Text
	Summary
}

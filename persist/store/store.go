// Package store keeps the records of calls where they can be looked up: in SQLite, one file in the state directory.
//
// The journal of package persist is the write-ahead truth. A store gets its lines once they are written, from memory,
// and from the files where it is behind:
// each line of a call stands there as it was written, beside columns that are searched. The objects
// of Agent Tool are derived when they are read, as persist.Read does. So a store that was removed
// is made anew from what the journal still has.
//
// How far each journal file was read stands in the store, too, and changes in the same transaction
// as the lines. So a line is taken in once, however often a hub is killed and however many
// processes fill the same store.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// ErrNotFound is returned for a call that the store does not have.
var ErrNotFound = errors.New("there is no such call")

// Store is a store of records. All methods may be called concurrently.
type Store interface {
	// Fill takes in what the journal in dir has beyond what the store has read of it, in one
	// transaction and so not all at once: more says that there may be more. Several processes may
	// do so at the same time. recent is what this process has written last; it is not read from
	// the files where the store has all that comes before.
	Fill(ctx context.Context, dir string, recent []persist.Written) (more bool, err error)

	// Index makes words of calls found by List, Ended and Stats, if more than least lines wait for
	// that. These do so themselves before they look for a text. It is one transaction: more says
	// that others may wait.
	Index(ctx context.Context, least int64) (more bool, err error)

	// Has reports whether the store has read a journal file up to that size. It answers from
	// memory, as of the last Fill.
	Has(file string, size int64) bool

	// List returns calls, newest first. Those that a text is looked for in come in the order in
	// which they came into the store.
	List(ctx context.Context, q Query) ([]Call, error)

	// Ended returns calls whose last line came into the store after the position, in that order,
	// and the position of the last one.
	Ended(ctx context.Context, after int64, q Query) ([]Call, int64, error)

	// Position is where Ended goes on with what comes from now on.
	Position(ctx context.Context) (int64, error)

	// Stats sums up the calls by one of their columns, the ones with most calls first.
	Stats(ctx context.Context, by Column, q Query) ([]Stat, error)

	// Lines returns the lines of a call in their order, or ErrNotFound.
	Lines(ctx context.Context, id tool.InvocationID) ([]json.RawMessage, error)

	// Standing returns the lines of the journal with the records of keys, such as surface ids and
	// names of tools. Those it does not have are missing.
	Standing(ctx context.Context, keys ...string) ([]json.RawMessage, error)

	// Erase takes the values that persist.Erasable means out of the lines of the calls, and their
	// words out of the full-text search, and returns how many lines it has changed. Nothing of them
	// stays in the files of the store, as far as the database allows.
	Erase(ctx context.Context, ids []tool.InvocationID) (lines int, err error)

	// Trim removes some of the calls that the bounds do not allow, but never the newest call.
	// surplus counts those that it removed because of MaxBytes alone. more says that there may be
	// others to remove.
	Trim(ctx context.Context, bounds persist.RecordsConfig) (surplus int, more bool, err error)

	// Close waits for what is under way. Calling it again is harmless.
	Close() error
}

// Column is what calls are looked up and summed up by.
type Column string

// The columns.
const (
	Tool    Column = "tool"
	Server  Column = "server"
	Actor   Column = "actor"
	Client  Column = "client"
	Profile Column = "profile"
	Status  Column = "status"
	Class   Column = "class"
)

// Columns are all of them.
func Columns() []Column { return []Column{Tool, Server, Actor, Client, Profile, Status, Class} }

// Query says which calls are meant. Its zero value means all.
type Query struct {
	Since, Until time.Time // of their beginning; zero: no bound
	// columns that have a value, or one that matches it where it is a pattern of package glob
	Is     map[Column]string
	Text   string // words that all occur in arguments, result or error
	Before *Call  // calls older than that one, to go on with a list
	Limit  int    // 0: no limit

	matching map[Column][]string // of the patterns in Is
}

// Call is one call as lists show it.
type Call struct {
	ID        tool.InvocationID `json:"invocation_id"`
	Created   time.Time         `json:"created_at"`
	Ended     *time.Time        `json:"ended_at,omitempty"` // nil while it runs
	LatencyMS *float64          `json:"latency_ms,omitempty"`
	Tool      string            `json:"tool_id"`
	Server    string            `json:"server,omitempty"`
	Actor     string            `json:"actor_ref,omitempty"`
	Client    string            `json:"client,omitempty"`
	Profile   string            `json:"profile,omitempty"`
	Status    tool.Status       `json:"status"`
	Class     string            `json:"error_class,omitempty"`
	tool.Origin

	seq int64
}

// Stat sums up calls that have the same value of a column. Latencies are those of calls that have ended.
// A call that brought its caller the declaration of a deferred tool has not failed.
type Stat struct {
	Value  string  `json:"value"`
	Calls  int     `json:"calls"`
	Failed int     `json:"failed"`
	P50MS  float64 `json:"latency_p50_ms"`
	P95MS  float64 `json:"latency_p95_ms"`
	MaxMS  float64 `json:"latency_max_ms"`

	// Tokens that models did not read, estimated: of results of which the caller got a part, and of
	// tools that its list deferred. Each list counts once, however many calls came after it.
	KeptTokens     int64 `json:"tokens_kept_by_previews"`
	DeferredTokens int64 `json:"tokens_kept_by_deferral"`
}

package tool

import (
	"encoding/base32"
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// Identifiers of records. Each has a prefix that names its kind, then 26 characters that sort by the time of creation.
// They tell records apart and keep nothing secret.
type (
	InvocationID string
	ResultID     string
	EventID      string
	ProgressID   string
	DecisionID   string
	MutationID   string
	HookID       string
	SurfaceID    string
)

// NewInvocationID returns a fresh id, "inv_…".
func NewInvocationID() InvocationID { return InvocationID(newID("inv_")) }

// NewDecisionID returns a fresh id, "dec_…".
func NewDecisionID() DecisionID { return DecisionID(newID("dec_")) }

// NewEventID returns a fresh id, "evt_…".
func NewEventID() EventID { return EventID(newID("evt_")) }

// idEncoding is Crockford's alphabet in lower case: its order is that of the bytes, so ids sort by time.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// newID joins 48 bits of Unix milliseconds and 80 random bits.
func newID(prefix string) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	// Ids are told apart, not kept secret: nothing is granted to whoever knows one.
	binary.BigEndian.PutUint64(b[6:], rand.Uint64())
	binary.BigEndian.PutUint16(b[14:], uint16(rand.Uint32()))
	var text [64]byte
	n := copy(text[:], prefix)
	idEncoding.Encode(text[n:], b[:])
	return string(text[:n+26])
}

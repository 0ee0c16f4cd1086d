// Package sessionid makes the ids of HTTP sessions. An id carries, sealed, the little that a hub needs to go on with a
// session: so a hub that was restarted, or another hub with the same key, takes the session up again. A record of the
// sessions that were ended for good keeps those from coming back.
//
// An id is never authentication. Whoever presents one must be the caller that it was made for, and
// has proved that first.
package sessionid

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
)

const (
	// MaxLength bounds an id, in bytes.
	MaxLength = 2048

	// Lifetime is the time after its beginning in which a session can be taken up again. One that a
	// hub still holds lives on.
	Lifetime = 30 * 24 * time.Hour

	purpose = "mcp-toolhub session id 1"

	maxPlain = MaxLength/4*3 - 12 - 16 // base64, less nonce and tag of the seal
	maxWord  = 100                     // of a client's name, and of its version, in bytes
)

// ErrUnknown is returned for an id that opens no session of the holder: forged, of somebody else, too old, or ended.
var ErrUnknown = errors.New("no such session")

// Holder is the caller that may use a session, on one view.
type Holder struct {
	Profile string // the view that the session is on
	Caller  string // the caller's name
	Secret  string // what the caller signed in with; "" where nobody has to
}

// digest stands for the holder in an id. It is as long for every holder.
func (h Holder) digest() string {
	sum := sha256.New()
	for _, part := range []string{h.Profile, h.Caller, h.Secret} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Session is the content of an id.
type Session struct {
	// random, unlike that of every other session. It opens nothing, so that it may be logged.
	Name            string          `json:"i"`
	Begun           int64           `json:"t"` // in seconds since 1970
	ProtocolVersion string          `json:"p"`
	ClientName      string          `json:"n,omitempty"`
	ClientVersion   string          `json:"v,omitempty"`
	Capabilities    json.RawMessage `json:"c,omitempty"` // of the client; none where an id has no room for them

	Holder string `json:"h"` // Holder.digest
}

// Issuer makes ids, opens them, and records which sessions were ended for good. It is safe for concurrent use, also by
// several processes on one directory.
type Issuer struct {
	box *seal.Box
	dir string

	mu    sync.Mutex
	ended int // sessions since the last look at how many are recorded
}

// Open returns the issuer of a key (see seal.New). It keeps its record in dir, which it makes when
// it is needed. Where dir is "", no session is taken up again.
func Open(key []byte, dir string) (*Issuer, error) {
	box, err := seal.New(key, purpose)
	if err != nil {
		return nil, err
	}
	b := &Issuer{box: box, dir: dir}
	b.forget()
	return b, nil
}

// New begins a session of h and returns the session's id. It fills in the name, the beginning and the holder of s.
func (b *Issuer) New(h Holder, s Session) (string, Session, error) {
	s.Name, s.Begun, s.Holder = rand.Text(), time.Now().Unix(), h.digest()
	sealed := s
	sealed.ClientName, sealed.ClientVersion = cut(s.ClientName), cut(s.ClientVersion)
	plain, err := json.Marshal(sealed)
	if len(plain) > maxPlain {
		sealed.Capabilities = nil
		plain, err = json.Marshal(sealed)
	}
	if err != nil {
		return "", s, fmt.Errorf("make session id: %w", err)
	}
	return b.box.Seal(plain), s, nil
}

// Resume returns the session that an id of h stands for, or ErrUnknown.
func (b *Issuer) Resume(id string, h Holder) (s Session, err error) {
	if b.dir == "" || len(id) > MaxLength {
		return s, ErrUnknown
	}
	plain, err := b.box.Open(id)
	if err != nil || json.Unmarshal(plain, &s) != nil || s.Holder != h.digest() || s.age() > Lifetime {
		return Session{}, ErrUnknown
	}
	over, err := b.isEnded(s, h)
	if err != nil {
		return Session{}, err
	}
	if over {
		return Session{}, ErrUnknown
	}
	return s, nil
}

func (s Session) age() time.Duration { return time.Since(time.Unix(s.Begun, 0)) }

// cut shortens a word, also one that is all control characters, to what an id has room for.
func cut(word string) string {
	if len(word) > maxWord {
		word = word[:maxWord]
	}
	return strings.ToValidUTF8(word, "")
}

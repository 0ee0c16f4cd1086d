package slice

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
)

// errCursor says that a cursor is not one of this request's.
const errCursor = InputError("The cursor belongs to another request: repeat all other arguments of the request that " +
	"it came from, or leave it out to begin anew.")

// state is where an answer ended.
type state struct {
	at   int // bytes or items that the answers so far had
	skip int // bytes of the next item that they had
}

const cursorVersion = 2

// cursor writes the state as a cursor: what is in it says nothing but places, and which request it belongs to.
func (s state) cursor(r Request, size int) string {
	b := append([]byte{cursorVersion}, digest(r, size)...)
	for _, n := range []int{s.at, s.skip} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// digest tells requests apart, and results of another size.
func digest(r Request, size int) []byte {
	r.Cursor = ""
	text, _ := json.Marshal(r) // texts and numbers
	sum := sha256.Sum256(binary.AppendUvarint(text, uint64(size)))
	return sum[:8]
}

// readCursor reads the cursor of a request for a result of size bytes.
func readCursor(r Request, size int) (state, error) {
	var s state
	if r.Cursor == "" {
		return s, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(r.Cursor)
	if err != nil || len(b) < 9 || b[0] != cursorVersion || string(b[1:9]) != string(digest(r, size)) {
		return s, errCursor
	}
	b = b[9:]
	for _, to := range []*int{&s.at, &s.skip} {
		n, width := binary.Uvarint(b)
		if width <= 0 || n > math.MaxInt32*64 {
			return s, errCursor
		}
		*to, b = int(n), b[width:]
	}
	return s, nil
}

package slice

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// errCursor says that a cursor is not one of this request's.
const errCursor = InputError("The cursor belongs to another request: repeat all other arguments of the request that " +
	"it came from, or leave it out to begin anew.")

// state is where an answer ended.
type state struct {
	at   int // bytes or items that the answers so far had
	skip int // bytes of the next item that they had
}

// cursor writes the state as a cursor: what is in it says nothing but places, and which request it belongs to.
func (s state) cursor(r Request, size int) string {
	return fmt.Sprintf("%s.%d.%d", digest(r, size), s.at, s.skip)
}

// digest tells requests apart, and results of another size.
func digest(r Request, size int) string {
	r.Cursor = ""
	text, _ := json.Marshal(r) // texts and numbers
	sum := sha256.Sum256(fmt.Append(text, size))
	return hex.EncodeToString(sum[:8])
}

// readCursor reads the cursor of a request for a result of size bytes.
func readCursor(r Request, size int) (s state, err error) {
	if r.Cursor == "" {
		return s, nil
	}
	parts := strings.Split(r.Cursor, ".")
	if len(parts) != 3 || parts[0] != digest(r, size) {
		return s, errCursor
	}
	for i, to := range []*int{&s.at, &s.skip} {
		n, err := strconv.ParseUint(parts[i+1], 10, 40)
		if err != nil {
			return s, errCursor
		}
		*to = int(n)
	}
	return s, nil
}

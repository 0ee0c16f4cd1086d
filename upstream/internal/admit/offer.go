package admit

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
)

// Offer holds what a server said that it offers. The hub keeps it for the next start.
type Offer struct {
	Title        string
	Instructions string
	Abilities    tool.Abilities
	Lists        [lists.Count][]json.RawMessage

	// Sound names the elements of the lists that were admitted as they stand, with nothing to be said
	// of them, and the rules and limits by which they were. It is nil before the first admission.
	Sound map[soundKey]bool

	digests [lists.Count][][sha256.Size]byte // of the elements; nil before the first Digest
}

// soundKey names an element of Offer.Sound: its list and its digest. The rules and limits are a
// list of their own.
type soundKey string

func soundKeyOf(l lists.List, digest [sha256.Size]byte) soundKey {
	return soundKey(append([]byte{byte(l)}, digest[:]...))
}

// Digest returns a digest of all that the server said.
func (o *Offer) Digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s%d %s\n", len(o.Title), o.Title, len(o.Instructions), o.Instructions)
	fmt.Fprintf(h, "%+v\n", o.Abilities)
	for l, all := range o.Lists {
		fmt.Fprintf(h, "%d %d\n", l, len(all))
		if o.digests[l] == nil {
			o.digests[l] = digests(all)
		}
		for _, one := range o.digests[l] {
			h.Write(one[:])
		}
	}
	h.Sum(sum[:0])
	return sum
}

func digests(elements []json.RawMessage) [][sha256.Size]byte {
	all := make([][sha256.Size]byte, len(elements))
	for i, one := range elements {
		all[i] = sha256.Sum256(one)
	}
	return all
}

// Encode returns the offer as DecodeOffer reads it. What was listed stands in it byte for byte.
func (o Offer) Encode() []byte {
	var out bytes.Buffer
	_ = gob.NewEncoder(&out).Encode(o) // texts, bytes and booleans always encode
	return out.Bytes()
}

// DecodeOffer reads what Encode wrote; ok is false where data is something else. The elements of the
// lists are not checked: those that Sound does not name are, when they are admitted.
func DecodeOffer(data []byte) (o Offer, ok bool) {
	rest := bytes.NewReader(data)
	err := gob.NewDecoder(rest).Decode(&o)
	return o, err == nil && rest.Len() == 0
}

package admit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
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
type soundKey [1 + sha256.Size]byte

func soundKeyOf(l lists.List, digest [sha256.Size]byte) (key soundKey) {
	key[0] = byte(l)
	copy(key[1:], digest[:])
	return key
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

// Members of an encoded offer. The lists have the names of the protocol.
const (
	keptTitle        = "title"
	keptInstructions = "instructions"
	keptAbilities    = "abilities"
	keptSound        = "sound"
)

// Encode returns the offer as JSON. What was listed stands in it byte for byte.
func (o Offer) Encode() []byte {
	size := 1<<10 + len(o.Title) + len(o.Instructions) + 80*len(o.Sound)
	for _, one := range slices.Concat(o.Lists[:]...) {
		size += len(one) + 1
	}
	out := append(append(make([]byte, 0, size), `{"`+keptTitle+`":`...), rawjson.Quote(o.Title)...)
	out = append(append(out, `,"`+keptInstructions+`":`...), rawjson.Quote(o.Instructions)...)
	abilities, _ := json.Marshal(o.Abilities) // booleans and texts always encode
	out = append(append(out, `,"`+keptAbilities+`":`...), abilities...)
	for l := range lists.Count {
		out = append(append(append(out, `,"`...), l.Member()...), `":[`...)
		for i, one := range o.Lists[l] {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, one...)
		}
		out = append(out, ']')
	}
	out = append(out, `,"`+keptSound+`":[`...)
	sorted := slices.SortedFunc(maps.Keys(o.Sound), func(a, b soundKey) int { return bytes.Compare(a[:], b[:]) })
	for i, key := range sorted {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(hex.AppendEncode(append(out, '"'), key[:]), '"')
	}
	return append(out, "]}"...)
}

// DecodeOffer reads what Encode wrote, now or in an earlier version that knew tools alone. ok is
// false where it finds no lists. The elements are not checked: those that Sound does not name are,
// when they are admitted.
func DecodeOffer(data []byte) (o Offer, ok bool) {
	kept, _ := rawjson.ReadObject(data)
	text := func(name string) string {
		value, _ := kept.Get(name)
		s, _ := rawjson.String(value)
		return s
	}
	if _, ok := kept.Get(lists.Tools.Member()); !ok || !bytes.HasSuffix(data, []byte("]}")) {
		return Offer{}, false
	}
	o.Title, o.Instructions = text(keptTitle), text(keptInstructions)
	if abilities, ok := kept.Get(keptAbilities); ok && json.Unmarshal(abilities, &o.Abilities) != nil {
		return Offer{}, false
	}
	each := func(member string, take func([]byte)) (ok bool) {
		array, found := kept.Get(member)
		return !found || rawjson.Elements(array, func(one []byte) bool { take(one); return true }) == nil
	}
	for l := range lists.Count {
		if !each(l.Member(), func(one []byte) { o.Lists[l] = append(o.Lists[l], one) }) {
			return Offer{}, false
		}
	}
	o.Sound = make(map[soundKey]bool)
	ok = each(keptSound, func(one []byte) {
		var key soundKey
		if len(one) == 2+hex.EncodedLen(len(key)) {
			if _, err := hex.Decode(key[:], one[1:len(one)-1]); err == nil {
				o.Sound[key] = true
			}
		}
	})
	return o, ok
}

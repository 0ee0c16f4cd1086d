package upstream

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// offer is what a server said that it offers, as it is kept for the next start.
type offer struct {
	Title        string
	Instructions string
	Abilities    tool.Abilities
	Lists        [lists][]json.RawMessage

	sound map[string]bool // digests of the schemas of tools that passed admission
}

func (o offer) digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s%d %s\n", len(o.Title), o.Title, len(o.Instructions), o.Instructions)
	fmt.Fprintf(h, "%+v\n", o.Abilities)
	for l, all := range o.Lists {
		fmt.Fprintf(h, "%d %d\n", l, len(all))
		for _, one := range all {
			fmt.Fprintf(h, "%d ", len(one))
			h.Write(one)
		}
	}
	h.Sum(sum[:0])
	return sum
}

// Names of the members of a kept offer besides the lists, which are called as in the protocol.
const (
	keptTitle        = "title"
	keptInstructions = "instructions"
	keptAbilities    = "abilities"
	keptSound        = "sound"
)

// encode writes the offer down. What was listed stands as it was listed, byte for byte.
func (o offer) encode() []byte {
	out := append([]byte(`{"`+keptTitle+`":`), rawjson.Quote(o.Title)...)
	out = append(append(out, `,"`+keptInstructions+`":`...), rawjson.Quote(o.Instructions)...)
	abilities, _ := json.Marshal(o.Abilities) // booleans and texts always encode
	out = append(append(out, `,"`+keptAbilities+`":`...), abilities...)
	for l := range lists {
		out = append(append(append(out, `,"`...), l.member()...), `":[`...)
		for i, one := range o.Lists[l] {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, one...)
		}
		out = append(out, ']')
	}
	out = append(out, `,"`+keptSound+`":[`...)
	for i, digest := range slices.Sorted(maps.Keys(o.sound)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, rawjson.Quote(digest)...)
	}
	return append(out, "]}"...)
}

// decodeOffer reads what encode wrote, or an earlier version of it that knew tools alone. ok is false for anything else.
func decodeOffer(data []byte) (o offer, ok bool) {
	if !validButDeep(data) {
		return offer{}, false
	}
	if _, ok := rawjson.Get(data, toolList.member()); !ok {
		return offer{}, false
	}
	o.Title, o.Instructions = text(data, keptTitle), text(data, keptInstructions)
	if abilities, ok := rawjson.Get(data, keptAbilities); ok && json.Unmarshal(abilities, &o.Abilities) != nil {
		return offer{}, false
	}
	each := func(member string, take func([]byte)) (ok bool) {
		array, found := rawjson.Get(data, member)
		return !found || rawjson.Elements(array, func(one []byte) bool { take(one); return true }) == nil
	}
	for l := range lists {
		if !each(l.member(), func(one []byte) { o.Lists[l] = append(o.Lists[l], one) }) {
			return offer{}, false
		}
	}
	if _, known := rawjson.Get(data, keptSound); known {
		o.sound = make(map[string]bool)
	}
	ok = each(keptSound, func(one []byte) {
		digest, _ := rawjson.String(one)
		o.sound[digest] = true
	})
	return o, ok
}

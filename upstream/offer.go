package upstream

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/redact"
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

// admit makes a listing of an offer.
func (s *server) admit(o offer) *listing {
	a := newAdmission(s.cfg, o.sound)
	tools, excluded := a.admit(o.Lists[toolList])
	o.sound = a.sound
	var offers [lists][]tool.Offer
	for l := promptList; l < lists; l++ {
		var dropped []tool.Exclusion
		offers[l], dropped = a.admitOffers(l, o.Lists[l])
		excluded = append(excluded, dropped...)
	}
	for i, e := range excluded {
		excluded[i].Tool, excluded[i].Reason = s.redact.Text(e.Tool), s.redact.Beginning(e.Reason, redact.MaxMessage)
	}
	instructions := a.checkInstructions(o.Instructions)
	for i, f := range a.findings {
		a.findings[i].About = s.redact.Text(f.About)
	}
	l := &listing{
		limited: a.limited, findings: a.findings,
		offer: o, digest: o.digest(), bindings: make(map[string][]paramheader.Binding),
		catalog: tool.Catalog{Server: s.cfg.ID, Source: tool.SourceMCP, Tools: tools, Excluded: excluded, Tags: s.cfg.Tags,
			Title: o.Title, Instructions: instructions, Abilities: o.Abilities,
			Prompts: offers[promptList], Resources: offers[resourceList], Templates: offers[templateList]},
	}
	for _, t := range tools {
		if len(t.Repairs) > 0 {
			l.repaired++
		}
		if b := paramheader.Of(t.InputSchema); b != nil {
			l.bindings[t.Native] = b
		}
	}
	return l
}

// recall lists what was offered before, until the server itself says what it offers: by the server that this one
// replaces, or at an earlier start.
func (s *server) recall(before *server) {
	if s.cfg.Disabled {
		return
	}
	var old *listing
	if before != nil {
		s.lifecycle.inherit(before.lifecycle)
		before.mu.Lock()
		old, s.foreign = before.listing, before.foreign
		before.mu.Unlock()
	}
	if old == nil || before.identity() != s.identity() {
		if o, ok := s.loadOffer(); ok {
			s.listing = s.admit(o)
			if s.foreign = false; o.sound != nil {
				s.kept = s.listing.digest
			}
		} else if old != nil {
			s.listing, s.foreign = s.admit(old.offer), true
		}
	} else {
		s.listing = s.admit(old.offer)
	}
	if s.listing != nil {
		s.listing.catalog.Pending = true
		if !s.foreign {
			s.seen.first = looks(s.listing.catalog)
		}
	}
}

// loadOffer returns what the server offered at an earlier start.
func (s *server) loadOffer() (offer, bool) {
	if s.catalogs == nil {
		return offer{}, false
	}
	data, found := s.catalogs.Load(s.identity())
	if !found {
		return offer{}, false
	}
	return decodeOffer(data)
}

// remember keeps the offer for the next start, unless it is kept already. s.publishing is held.
func (s *server) remember(l *listing) {
	if s.catalogs == nil || s.kept == l.digest {
		return
	}
	if err := s.catalogs.Save(s.identity(), l.offer.encode()); err != nil {
		s.log.Warn("the server's tools will not be listed before it is ready at the next start", "error", err)
		return
	}
	s.kept = l.digest
}

// isKnown reports whether it is known what the server offers, be it from an earlier start.
func (s *server) isKnown() bool {
	if s.use == useSession {
		return true // it is not asked to tell
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listing != nil && !s.foreign
}

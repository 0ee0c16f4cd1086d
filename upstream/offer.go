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
)

// offer is what a server said that it offers, as it is kept for the next start.
type offer struct {
	Title        string            `json:"title"`
	Instructions string            `json:"instructions"`
	Tools        []json.RawMessage `json:"tools"`

	sound map[string]bool // digests of the schemas in Tools that passed admission
}

func (o offer) digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s%d %s\n", len(o.Title), o.Title, len(o.Instructions), o.Instructions)
	for _, one := range o.Tools {
		fmt.Fprintf(h, "%d ", len(one))
		h.Write(one)
	}
	h.Sum(sum[:0])
	return sum
}

// encode writes the offer down. The tools stand as they were listed, byte for byte.
func (o offer) encode() []byte {
	out := append([]byte(`{"title":`), rawjson.Quote(o.Title)...)
	out = append(append(out, `,"instructions":`...), rawjson.Quote(o.Instructions)...)
	out = append(out, `,"tools":[`...)
	for i, one := range o.Tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, one...)
	}
	out = append(out, `],"sound":[`...)
	for i, digest := range slices.Sorted(maps.Keys(o.sound)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, rawjson.Quote(digest)...)
	}
	return append(out, "]}"...)
}

// decodeOffer reads what encode wrote. ok is false for anything else.
func decodeOffer(data []byte) (o offer, ok bool) {
	if !validButDeepTools(data) {
		return offer{}, false
	}
	array, ok := rawjson.Get(data, "tools")
	if !ok {
		return offer{}, false
	}
	title, _ := rawjson.Get(data, "title")
	instructions, _ := rawjson.Get(data, "instructions")
	o.Title, _ = rawjson.String(title)
	o.Instructions, _ = rawjson.String(instructions)
	err := rawjson.Elements(array, func(one []byte) bool {
		o.Tools = append(o.Tools, one)
		return true
	})
	if sound, ok := rawjson.Get(data, "sound"); ok && err == nil {
		o.sound = make(map[string]bool)
		err = rawjson.Elements(sound, func(one []byte) bool {
			digest, _ := rawjson.String(one)
			o.sound[digest] = true
			return true
		})
	}
	return o, err == nil
}

// admit makes a listing of an offer.
func (s *server) admit(o offer) *listing {
	a := newAdmission(s.cfg, o.sound)
	tools, excluded := a.admit(o.Tools)
	o.sound = a.sound
	l := &listing{
		limited: a.limited,
		offer:   o, digest: o.digest(), bindings: make(map[string][]paramheader.Binding),
		catalog: tool.Catalog{Server: s.cfg.ID, Source: tool.SourceMCP, Tools: tools, Excluded: excluded, Tags: s.cfg.Tags,
			Title: o.Title, Instructions: o.Instructions},
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

// identity is the key under which the server's offer is kept: a digest of all that decides which server it is. It holds
// secrets only as a digest does.
func (s *server) identity() string {
	c := s.cfg
	text, err := json.Marshal([]any{1, c.Transport, c.Command, c.Args, c.Env, c.Dir, c.URL, c.Headers})
	if err != nil {
		return "" // strings always encode
	}
	return tool.Digest(text)
}

// recall lists what was offered before, until the server itself says what it offers: by the server that this one
// replaces, or at an earlier start.
func (s *server) recall(before *server) {
	if s.cfg.Disabled {
		return
	}
	var old *listing
	if before != nil {
		before.mu.Lock()
		old, s.foreign, s.up = before.listing, before.foreign, before.up
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
	if s.of != nil {
		return true // it is not asked to tell
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listing != nil && !s.foreign
}

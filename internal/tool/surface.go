package tool

import "encoding/json"

// Listed is a tool as one surface shows it.
type Listed struct {
	Name        string          // the name shown, in the surface's style
	Tool        *Tool           // never nil
	Declaration json.RawMessage // Tool.Declaration with the shown name and the profile's overrides; all else byte for byte

	// Page is the URI of the tool's user interface as Declaration names it, where that is not the server's own because another
	// server claims that, too; "" otherwise.
	Page string
}

// Surface is the set of tools that one kind of caller sees, at one moment. It is immutable and safe for concurrent use.
type Surface struct {
	ID       SurfaceID // changes whenever Digest does
	Profile  string
	Style    string
	Digest   string // of all that tools/list shows
	Listed   []Listed
	Excluded []Exclusion
	Features *Features // what it offers besides tools; nil: nothing

	names map[string]*Listed
}

// NewSurface returns the surface of listed, which it keeps. names maps every name that resolves (shown, canonical and
// those of the other styles) to an index in listed; a name that stands for two tools is left out of it.
func NewSurface(id SurfaceID, profile, style, digest string, listed []Listed, excluded []Exclusion, names map[string]int) *Surface {
	s := &Surface{ID: id, Profile: profile, Style: style, Digest: digest, Listed: listed, Excluded: excluded,
		names: make(map[string]*Listed, len(names))}
	for name, i := range names {
		s.names[name] = &listed[i]
	}
	return s
}

// Resolve returns the tool that name stands for on this surface, by any of its names.
func (s *Surface) Resolve(name string) (*Listed, bool) {
	l, ok := s.names[name]
	return l, ok
}

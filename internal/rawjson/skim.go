package rawjson

// maxSkimmed bounds each key and value that a Skim keeps, and maxSkimmedMembers how many.
const (
	maxSkimmed        = 256
	maxSkimmedMembers = 16
)

// Skim picks the short members of an object out of a text that comes in pieces and is too large to
// be kept: whose message it was that could not be taken in. It looks at the outermost object only,
// keeps members of up to 256 bytes, and assumes a well-formed text: of another one it may know
// nothing, or nonsense. The zero value is ready.
type Skim struct {
	depth    int
	inString bool
	escaped  bool
	inValue  bool // between the colon and the comma of a member of the outermost object
	over     bool // the key or value at hand is too long to be kept
	ended    bool // the outermost object has been closed

	key, value []byte
	members    []Member
}

// Add takes in the next piece. It keeps none of it.
func (s *Skim) Add(piece []byte) {
	for _, c := range piece {
		if s.ended {
			return
		}
		s.add(c)
	}
}

// Get returns the value of a member that came in whole and is short, as written.
func (s *Skim) Get(name string) (value []byte, ok bool) {
	for _, m := range s.members {
		if m.Is(name) {
			value, ok = m.Value, true
		}
	}
	return value, ok
}

func (s *Skim) add(c byte) {
	switch {
	case s.inString:
		s.keep(c)
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.inString = false
		}
		return
	case c == ' ', c == '\t', c == '\r', c == '\n':
		return
	case c == '"':
		s.inString = true
	case c == '{', c == '[':
		s.depth++
		if s.depth == 1 {
			s.ended = c == '[' // a batch: nobody's in particular
			return
		}
	case c == '}', c == ']':
		s.depth--
		if s.depth == 0 {
			s.finish()
			s.ended = true
			return
		}
	case s.depth == 1 && c == ':':
		s.inValue = true
		return
	case s.depth == 1 && c == ',':
		s.finish()
		return
	}
	s.keep(c)
}

// keep adds c to the key or value at hand.
func (s *Skim) keep(c byte) {
	part := &s.key
	if s.inValue {
		part = &s.value
	}
	if s.over || len(*part) >= maxSkimmed {
		s.over = true
		return
	}
	*part = append(*part, c)
}

// finish ends a member.
func (s *Skim) finish() {
	if n := len(s.key); !s.over && n >= 2 && s.key[0] == '"' && s.key[n-1] == '"' &&
		len(s.members) < maxSkimmedMembers {
		s.members = append(s.members, Member{Key: s.key[1 : n-1], Value: s.value})
		s.key, s.value = nil, nil
	}
	s.key, s.value, s.over, s.inValue = s.key[:0], s.value[:0], false, false
}

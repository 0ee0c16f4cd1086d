package command

import (
	"bytes"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// masked is what it reads from, with a secret replaced, in little memory.
type masked struct {
	from   io.Reader
	secret []byte
	cut    bool // from ends in the middle of something: a part of the secret that stands there is left out

	held  []byte // read, and perhaps the beginning of the secret
	out   []byte
	ready []byte // the part of out that is still to be read
	err   error
}

func (m *masked) Read(p []byte) (int, error) {
	for len(m.ready) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		m.fill()
	}
	n := copy(p, m.ready)
	m.ready = m.ready[n:]
	return n, nil
}

// fill reads on.
func (m *masked) fill() {
	const part = 32 << 10
	m.held = slices.Grow(m.held, part)
	n, err := m.from.Read(m.held[len(m.held) : len(m.held)+part])
	held := m.held[:len(m.held)+n]
	m.out, m.err = m.out[:0], err
	for {
		before, after, found := bytes.Cut(held, m.secret)
		if !found {
			break
		}
		m.out, held = append(append(m.out, before...), redacted...), after
	}
	begun := 0 // how much of the secret stands at the end
	if err == nil || m.cut {
		for begun = min(len(m.secret)-1, len(held)); !bytes.HasSuffix(held, m.secret[:begun]); begun-- {
		}
	}
	m.out = append(m.out, held[:len(held)-begun]...)
	m.ready, m.held = m.out, append(m.held[:0], held[len(held)-begun:]...)
}

// isText is tool.IsText of all that from has.
func isText(from io.Reader) bool {
	part := make([]byte, 32<<10)
	for held := 0; ; {
		n, err := io.ReadFull(from, part[held:])
		end := held + n
		for i := end - 1; err == nil && i >= end-3; i-- {
			if utf8.RuneStart(part[i]) {
				if !utf8.FullRune(part[i:]) {
					end = i
				}
				break
			}
		}
		if !tool.IsText(part[:end]) {
			return false
		}
		if err != nil {
			return true // Whole is read again, and the error comes again
		}
		held = copy(part, part[end:])
	}
}

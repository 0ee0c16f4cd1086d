package payload

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
)

// newSeal returns what seals payloads with a key that is derived from secret; nil for "".
func newSeal(secret string) (cipher.AEAD, error) {
	if secret == "" {
		return nil, nil
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "mcp-toolhub: stored results", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// chunk is how much is sealed at once. A sealed file is a row of chunks: four bytes of length, and
// the sealed bytes. Each is bound to its payload, its place and to whether it is the last one.
const chunk = 64 << 10

// sealer seals what is written to it.
type sealer struct {
	aead   cipher.AEAD
	digest string
	to     io.Writer
	held   []byte
	number uint64
}

func (s *sealer) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if len(s.held) == chunk { // more follows, so it is not the last one
			if err := s.put(false); err != nil {
				return n, err
			}
		}
		part := min(len(p)-n, chunk-len(s.held))
		s.held = append(s.held, p[n:n+part]...)
		n += part
	}
	return n, nil
}

// close writes the last chunk.
func (s *sealer) close() error { return s.put(true) }

func (s *sealer) put(last bool) error {
	sealed := s.aead.Seal(make([]byte, 4), nil, s.held, bound(s.digest, s.number, last))
	binary.BigEndian.PutUint32(sealed, uint32(len(sealed)-4))
	s.held, s.number = s.held[:0], s.number+1
	_, err := s.to.Write(sealed)
	return err
}

// bound is what a chunk is bound to.
func bound(digest string, number uint64, last bool) []byte {
	out := binary.BigEndian.AppendUint64([]byte(digest), number)
	if last {
		return append(out, 1)
	}
	return append(out, 0)
}

// opener reads what a sealer has written.
type opener struct {
	aead   cipher.AEAD
	digest string
	from   io.Reader
	rest   []byte
	number uint64
	last   bool
}

var errSealed = errors.New("it was sealed with another key, or changed since")

func (o *opener) Read(p []byte) (int, error) {
	for len(o.rest) == 0 {
		if o.last {
			return 0, io.EOF
		}
		if err := o.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// next opens the next chunk.
func (o *opener) next() error {
	var head [4]byte
	if _, err := io.ReadFull(o.from, head[:]); err != nil {
		return errSealed // the last one is missing
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > chunk+uint32(o.aead.Overhead()) {
		return errSealed
	}
	sealed := make([]byte, size)
	if _, err := io.ReadFull(o.from, sealed); err != nil {
		return errSealed
	}
	plain, err := o.aead.Open(nil, nil, sealed, bound(o.digest, o.number, false))
	if err != nil {
		if plain, err = o.aead.Open(nil, nil, sealed, bound(o.digest, o.number, true)); err != nil {
			return errSealed
		}
		o.last = true
	}
	o.rest, o.number = plain, o.number+1
	return nil
}

// Package evidence makes the journal's lines provable. Beside each journal file stands its chain:
// for each line a salted digest, and heads, which are signed and cover all lines before them. A
// bundle holds lines with what proves them, and Verify checks it offline. docs/evidence.md says
// what that proves and what not.
package evidence

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// digest is a SHA-256.
type digest [sha256.Size]byte

func (d digest) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, d[:]), nil
}

func (d *digest) UnmarshalText(text []byte) error {
	raw, err := base64.RawURLEncoding.AppendDecode(nil, text)
	if err == nil && len(raw) != len(d) {
		err = errors.New("a digest has 32 bytes")
	}
	copy(d[:], raw)
	return err
}

// saltSize is the size of salts, which keep values from being found by trying.
const saltSize = 16

// entry is what the chain has of a line. Who has the salt can check the line; who has the digest
// alone learns nothing of it.
type entry struct {
	Digest digest `json:"digest"`
	Salt   []byte `json:"salt,omitempty"`

	// Leaves are in the place of the salt where values of the line were erased: for each leaf
	// leafSalted and its salt, or leafErased and its digest.
	Leaves []byte `json:"leaves,omitempty"`

	// Of names the record: its object and its id. A line that does not say both has none.
	Of string `json:"of,omitempty"`
}

// link is what the chain is made of: it covers the name, too. It stands alone in the place of a
// digest where a bundle leaves the line out.
func (e *entry) link() digest {
	if e.Of == "" {
		return e.Digest
	}
	var text [256]byte
	return sha256.Sum256(append(append(text[:0], e.Digest[:]...), e.Of...))
}

const (
	leafSalted = 0
	leafErased = 1
)

// isOpen reports whether the line of the entry can be checked.
func (e *entry) isOpen() bool { return len(e.Salt) > 0 || len(e.Leaves) > 0 }

// maxLeaves bounds the leaves of a line: one with more is one leaf.
const maxLeaves = 100_000

// leavesOf finds the leaves of a line: each is committed to by itself. They take the room of into.
func leavesOf(into []persist.Leaf, line []byte) []persist.Leaf {
	leaves := into[:0]
	if rawjson.IsObject(line) && rawjson.Valid(line) {
		for l := range persist.Leaves(line) {
			if leaves = append(leaves, l); len(leaves) > maxLeaves {
				break
			}
		}
		if len(leaves) <= maxLeaves {
			return leaves
		}
	}
	return []persist.Leaf{{Kind: persist.TextLeaf, First: true, Value: line}}
}

// leafSalt is the salt of leaf i of a line with the salt.
func leafSalt(salt []byte, i int) [saltSize]byte {
	var text [2 * saltSize]byte
	binary.BigEndian.PutUint32(text[copy(text[:], salt):], uint32(i))
	sum := sha256.Sum256(text[:])
	return [saltSize]byte(sum[:])
}

func leafDigest(salt, value []byte) digest {
	return sha256.Sum256(append(append(make([]byte, 0, 512), salt...), value...)) // most need no memory of the heap
}

// nameOf names a line by its leaves: its object, and the invocation that it is of, or the key of
// standing records. It is "" where one of the two is missing, is long, or has spaces or escapes.
func nameOf(leaves []persist.Leaf) string {
	var object, id []byte
	for _, l := range leaves {
		switch {
		case l.Kind != persist.MemberLeaf:
		case string(l.Key) == "object":
			object = l.Value
		case string(l.Key) == "invocation_id", string(l.Key) == "key" && id == nil:
			id = l.Value
		}
		if object != nil && id != nil {
			break
		}
	}
	// a short string without spaces and escapes is read as it is written
	for _, value := range [...][]byte{object, id} {
		if len(value) <= 2 || len(value) > 102 || value[0] != '"' || slices.ContainsFunc(value[1:len(value)-1],
			func(c byte) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }) {
			return ""
		}
	}
	return string(object[1:len(object)-1]) + " " + string(id[1:len(id)-1])
}

// digestOf returns the digest of a line with these leaves as e proves it. ok is false where e does
// not fit the line.
func (e *entry) digestOf(leaves []persist.Leaf) (d digest, ok bool) {
	text, proofs := make([]byte, 0, 4<<10), e.Leaves
	for i, l := range leaves {
		var of digest
		switch {
		case e.Leaves == nil && len(e.Salt) != saltSize:
			return d, false
		case e.Leaves == nil:
			salt := leafSalt(e.Salt, i)
			of = leafDigest(salt[:], l.Value)
		case len(proofs) > saltSize && proofs[0] == leafSalted:
			of = leafDigest(proofs[1:1+saltSize], l.Value)
			proofs = proofs[1+saltSize:]
		case len(proofs) > sha256.Size && proofs[0] == leafErased && isTombstone(l.Value):
			copy(of[:], proofs[1:])
			proofs = proofs[1+sha256.Size:]
		default:
			return d, false
		}
		var sizes [9]byte
		if sizes[0] = byte(l.Kind); l.First {
			sizes[0] ^= ' ' // in upper case
		}
		binary.BigEndian.PutUint32(sizes[1:], uint32(len(l.Under)))
		binary.BigEndian.PutUint32(sizes[5:], uint32(len(l.Key)))
		text = append(append(append(append(text, sizes[:]...), l.Under...), l.Key...), of[:]...)
	}
	return sha256.Sum256(text), len(proofs) == 0
}

// isTombstone reports whether a value may stand where one was erased: persist.Erased, or in the
// place of a shorter value what short returns.
func isTombstone(value []byte) bool {
	return persist.IsErased(value) || string(value) == `""` || string(value) == "0"
}

// short is what stands for an erased value for which persist.Erased is too long.
func short(value []byte) string {
	switch {
	case len(value) >= len(persist.Erased):
		return persist.Erased
	case len(value) > 1:
		return `""`
	}
	return "0"
}

// erase takes the values that wanted means out of a line, and makes e their tombstone. Names stay,
// and how many values there were. under and key are as for persist.Erasable. With room, the line
// becomes no longer than it is: then short values get short tombstones where need be. It returns
// the line itself where nothing is to be erased.
func (e *entry) erase(line []byte, room bool, wanted func(under, key string, value []byte) bool) []byte {
	leaves, before := leavesOf(nil, line), e.Leaves
	gone, any, proofs := make([]bool, len(leaves)), false, []byte(nil)
	for i, l := range leaves {
		proof := []byte(nil)
		switch {
		case e.Leaves == nil:
			salt := leafSalt(e.Salt, i)
			proof = append([]byte{leafSalted}, salt[:]...)
		case len(before) > sha256.Size && before[0] == leafErased:
			proof, before = before[:1+sha256.Size], before[1+sha256.Size:]
		case len(before) > saltSize:
			proof, before = before[:1+saltSize], before[1+saltSize:]
		default:
			return line // it does not fit the line
		}
		if proof[0] == leafSalted && l.Kind != persist.TextLeaf && wanted(string(l.Under), string(l.Key), l.Value) {
			d := leafDigest(proof[1:], l.Value)
			gone[i], any, proof = true, true, append([]byte{leafErased}, d[:]...)
		}
		proofs = append(proofs, proof...)
	}
	if !any {
		return line
	}
	e.Salt, e.Leaves = nil, proofs
	with := func(stone func(value []byte) string) []byte {
		i := -1
		return persist.Replace(line, func(l persist.Leaf) string {
			if i++; gone[i] {
				return stone(l.Value)
			}
			return ""
		})
	}
	out := with(func([]byte) string { return persist.Erased })
	if room && len(out) > len(line) {
		out = with(short)
	}
	return out
}

// chainStart is the chain of a file without lines.
func chainStart(file string) digest {
	return sha256.Sum256([]byte("mcp-toolhub evidence 1\n" + file))
}

// next is the chain after a line with that digest.
func (d digest) next(line digest) digest {
	var both [2 * sha256.Size]byte
	copy(both[:], d[:])
	copy(both[sha256.Size:], line[:])
	return sha256.Sum256(both[:])
}

// head is what is signed: that the file had these lines at that time.
type head struct {
	File  string `json:"file"`
	Lines int64  `json:"lines"`
	Bytes int64  `json:"bytes"`
	Chain digest `json:"chain"`
	At    string `json:"at"`
	Key   []byte `json:"key"`
}

// headRef names a head.
type headRef struct {
	File  string `json:"file"`
	Lines int64  `json:"lines"`
	Chain digest `json:"chain"`
}

// headPrefix begins the line of a head in a chain.
const headPrefix = `{"head":`

// signed is a line of a chain that is no entry, and the statement of a bundle.
type signed struct {
	Head json.RawMessage `json:"head"`
	Sig  []byte          `json:"sig"`
}

// by reports whether the key has signed.
func (s *signed) by(key ed25519.PublicKey) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, append([]byte(signedText), s.Head...), s.Sig)
}

// signatures are made over this and what is signed.
const signedText = "mcp-toolhub evidence 1\n"

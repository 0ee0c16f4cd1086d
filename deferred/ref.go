package deferred

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"io"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// A selection_ref says, under the hub's signature, that a caller was given the declaration of a
// tool, in which version, and until when that counts. Everything but its expiry and a mark of the
// version is given again with the call, so it holds no more than these and the signature, and is
// short enough for a model to copy: 32 characters.
//
//	4 bytes   expiry, in minutes since 1970
//	8 bytes   mark: keyed digest of the schema, so that nobody can look for two schemas of one mark
//	12 bytes  signature over all of it, the tool and the caller
const (
	expirySize = 4
	markSize   = 8
	signedSize = expirySize + markSize
	sumSize    = 12
	refLength  = (signedSize + sumSize) * 4 / 3
)

// refGrain rounds expiries up. A tool that is found again within an hour has the same ref, so a
// caller's prompt stays the same.
const refGrain = time.Hour

// refPurpose keeps these signatures apart from other uses of a key.
const refPurpose = "toolhub/selectionRef/1"

// signer makes and checks selection_refs. It is immutable and safe for concurrent use.
type signer struct {
	keys [][]byte // the first signs
	ttl  time.Duration
	now  func() time.Time
}

func newSigner(keys [][]byte, ttl time.Duration, now func() time.Time) *signer {
	s := &signer{ttl: ttl, now: now}
	for _, k := range keys {
		s.keys = append(s.keys, sum(k, refPurpose)) // keys of any length serve, and other uses of them learn nothing
	}
	return s
}

// sum returns the keyed digest of parts, each with its length.
func sum(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	var size [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		_, _ = io.WriteString(h, p)
	}
	return h.Sum(nil)
}

func mark(key []byte, name tool.Name, schemaDigest string) []byte {
	return sum(key, "schema", string(name), schemaDigest)[:markSize]
}

func signature(key, signed []byte, name tool.Name, caller string) []byte {
	return sum(key, "ref", string(signed), string(name), caller)[:sumSize]
}

// mint makes the ref of t for caller.
func (s *signer) mint(t *tool.Tool, caller string) string {
	until := s.now().Add(s.ttl + refGrain).Truncate(refGrain)
	ref := binary.BigEndian.AppendUint32(make([]byte, 0, signedSize+sumSize), uint32(until.Unix()/60))
	ref = append(ref, mark(s.keys[0], t.Name, t.SchemaDigest)...)
	ref = append(ref, signature(s.keys[0], ref, t.Name, caller)...)
	return base64.RawURLEncoding.EncodeToString(ref)
}

// check returns the code of what is wrong with a ref for a call of t by caller; "" where it is good.
func (s *signer) check(ref string, t *tool.Tool, caller string) (code string) {
	if len(ref) != refLength {
		return codeForeignRef
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(ref)
	if err != nil || len(raw) != signedSize+sumSize {
		return codeForeignRef
	}
	signed, got := raw[:signedSize], raw[signedSize:]
	for _, key := range s.keys {
		if !hmac.Equal(got, signature(key, signed, t.Name, caller)) {
			continue
		}
		if s.now().Unix()/60 >= int64(binary.BigEndian.Uint32(signed)) {
			return codeExpired
		}
		if !hmac.Equal(signed[expirySize:], mark(key, t.Name, t.SchemaDigest)) {
			return codeChanged
		}
		return ""
	}
	return codeForeignRef
}

package persist

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// InlineLimit is the largest input or result, in bytes, that stands in a record itself. A larger one is represented by
// its Ref, so that one huge result does not push ten thousand other records out of the journal.
const InlineLimit = 16 << 10

// Ref identifies raw by its digest and length: "sha256:<hex>;bytes=<n>".
func Ref(raw json.RawMessage) string { return RefOf(tool.Digest(raw), len(raw)) }

// RefOf is the Ref of size bytes that have the digest, as tool.Digest has it.
func RefOf(digest string, size int) string {
	return "sha256:" + digest + ";bytes=" + strconv.Itoa(size)
}

// ParseRef returns the digest and the size in a ref that Ref has made. ok is false for any other text.
func ParseRef(ref string) (digest string, size int64, ok bool) {
	digest, bytes, ok := strings.Cut(strings.TrimPrefix(ref, "sha256:"), ";bytes=")
	if size, err := strconv.ParseInt(bytes, 10, 64); ok && err == nil && RefOf(digest, int(size)) == ref {
		return digest, size, true
	}
	return "", 0, false
}

// KeyedRef is the reference to size bytes of which a record masks something:
// "hmac-sha256:<hex>;bytes=<n>". digest is one that takes a key.
func KeyedRef(digest string, size int) string {
	return "hmac-sha256:" + digest + ";bytes=" + strconv.Itoa(size)
}

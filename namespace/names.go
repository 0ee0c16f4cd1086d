package namespace

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	// maxName is the length of the longest safe or short name. Clients put up to 18 characters of their own before a
	// name and hold the whole to 64.
	maxName = 46

	// digestLength says how many hex digits of the canonical name's SHA-256 an encoded name carries where it could not
	// be written out.
	digestLength = 10

	separator = "__"
)

// identity is a canonical name in its parts. Every name that the hub shows for a tool is a function of its identity
// alone, so names stay the same when other tools and servers come and go.
type identity struct {
	source string // "mcp" or the toolset; empty for a tool of the hub
	server string // for source "mcp" only
	tool   string
}

// parseName splits a canonical name. ok is false where a part is missing.
func parseName(name tool.Name) (id identity, ok bool) {
	source, rest, dotted := strings.Cut(string(name), ".")
	if !dotted {
		return identity{tool: source}, source != ""
	}
	id = identity{source: source, tool: rest}
	if source == tool.SourceMCP {
		if id.server, id.tool, dotted = strings.Cut(rest, "."); !dotted || id.server == "" {
			return identity{}, false
		}
	}
	return id, id.source != "" && id.tool != ""
}

// canonical is the inverse of parseName.
func (id identity) canonical() string {
	switch id.source {
	case "":
		return id.tool
	case tool.SourceMCP:
		return string(tool.MCPName(id.server, id.tool))
	default:
		return id.source + "." + id.tool
	}
}

// in returns the name in one of the four concrete styles.
func (id identity) in(style Style) string {
	switch style {
	case StyleSafe:
		return id.safe()
	case StyleShort:
		return id.short()
	case StyleNative:
		return id.tool
	default:
		return id.canonical()
	}
}

func (id identity) safe() string {
	switch id.source {
	case "":
		return encode(id.canonical(), id.tool)
	case tool.SourceMCP:
		return encode(id.canonical(), id.source, id.server, id.tool)
	default:
		return encode(id.canonical(), id.source, id.tool)
	}
}

func (id identity) short() string {
	if id.source != tool.SourceMCP || isToolset(id.server) {
		return id.safe()
	}
	return encode(id.canonical(), id.server, id.tool)
}

// isToolset reports whether word is the first word of the hub's own tools: code__read_file belongs
// to the toolset. The config refuses a server of that id; one that came another way would have the
// name mcp__code__read_file.
func isToolset(word string) bool { return word == "code" || word == "hub" }

// encode writes words as one name of [a-zA-Z0-9_-], joined by two underscores. Where that would lose information or
// be too long, the name is cut and ends in an underscore and a digest of canonical.
//
// Different canonical names never get the same name, short of a collision of the digest. A name without digest can be
// read in one way only: its words hold no double underscore and neither begin nor end in one, so the first double
// underscore is a separator. And no name without digest ends in what looks like one, so the two kinds never meet.
func encode(canonical string, words ...string) string {
	name := strings.Join(words, separator)
	if len(name) <= maxName && !endsInDigest(name) && allPlain(words) {
		return name
	}
	var head strings.Builder
	for _, word := range words {
		if word = replaceUnsafe(word); word == "" {
			continue
		}
		if head.Len() > 0 {
			head.WriteString(separator)
		}
		head.WriteString(word)
	}
	text := head.String()
	text = strings.TrimRight(text[:min(len(text), maxName-digestLength-1)], "_-")
	sum := sha256.Sum256([]byte(canonical))
	return text + "_" + hex.EncodeToString(sum[:])[:digestLength]
}

func allPlain(words []string) bool {
	for _, w := range words {
		if w == "" || w[0] == '_' || w[len(w)-1] == '_' || strings.Contains(w, separator) ||
			strings.ContainsFunc(w, isUnsafe) {
			return false
		}
	}
	return true
}

// replaceUnsafe writes word with one underscore for each run of characters that a safe name cannot hold.
func replaceUnsafe(word string) string {
	var b strings.Builder
	gap := false
	for _, r := range word {
		if r == '_' || isUnsafe(r) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(r)
		gap = false
	}
	return b.String()
}

func isUnsafe(r rune) bool { return r >= 0x80 || !isSafe(byte(r)) }

func isSafe(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// endsInDigest reports whether name ends like an encoded name that carries a digest.
func endsInDigest(name string) bool {
	at := len(name) - digestLength - 1
	return at >= 0 && name[at] == '_' && strings.Trim(name[at+1:], "0123456789abcdef") == ""
}

package config

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// kind is the type of a node, in the words of messages.
type kind string

const (
	kindNull    kind = "nothing"
	kindBool    kind = "a boolean"
	kindInteger kind = "a whole number"
	kindNumber  kind = "a number"
	kindText    kind = "a string"
	kindList    kind = "a list"
	kindMapping kind = "a mapping"
)

// node is a value of a file, the same for every format. Nodes are not changed once read; aliases share them.
type node struct {
	textfile.Position
	kind    kind
	text    string // of a scalar: the decoded string, otherwise the source text
	items   []*node
	members []member // in the order of the file, duplicates included
	weight  int      // nodes in the tree below, aliases counted in full
}

// member is one key of a mapping and its value.
type member struct {
	textfile.Position // of the key
	key               string
	value             *node
}

// member returns the value of key, or nil.
func (n *node) member(key string) *node {
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

var plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

// join appends key to a key path. A key that would be misread there is quoted, a very long one cut. A slip such as
// "TOKEN=value" or "Authorization: value" makes the value a part of the key, so a key is not shown beyond = or :.
func join(path, key string) string {
	if !plainKey.MatchString(key) || len(key) > 100 {
		if i := strings.IndexAny(key, "=:"); i >= 0 {
			key = key[:i+1] + "…"
		}
		return path + "[" + quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// quote makes a key or name of the file safe to show: one line, no control characters, not too long.
func quote(s string) string {
	if utf8.RuneCountInString(s) > 100 {
		s = string([]rune(s)[:100]) + "…"
	}
	return strconv.Quote(s)
}

// format of a configuration file.
type format int

const (
	formatYAML format = iota
	formatJSON        // comments and trailing commas allowed
)

// formatOf goes by the extension; where that says nothing, by what the file begins with.
func formatOf(path string, data []byte) format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json", ".jsonc":
		return formatJSON
	case ".yaml", ".yml":
		return formatYAML
	}
	data = bytes.TrimLeft(data, " \t\n")
	if bytes.HasPrefix(data, []byte("{")) || bytes.HasPrefix(data, []byte("//")) || bytes.HasPrefix(data, []byte("/*")) {
		return formatJSON
	}
	return formatYAML
}

// tree reads data into nodes, or reports why it cannot and returns nil. An empty file is an empty mapping.
func (r *reader) tree(data []byte) *node {
	if len(data) > maxFileBytes {
		r.faultAt(textfile.At(1, 1), "the file is larger than 4 MiB", "check the path")
		return nil
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		r.faultAt(textfile.At(1, 1), "the file is UTF-16", "save it as UTF-8")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	// Either line ending counts as one, so that positions are those that an editor shows.
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	if !r.readable(data) {
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return &node{Position: textfile.At(1, 1), kind: kindMapping}
	}
	if formatOf(r.file, data) == formatJSON {
		return r.jsonTree(data)
	}
	return r.yamlTree(data)
}

// readable refuses bytes that are no text, before a parser stumbles over them.
func (r *reader) readable(data []byte) bool {
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		switch {
		case c == utf8.RuneError && size <= 1:
			r.faultAt(positionOf(data, i), "a byte that is not UTF-8", "save the file as UTF-8")
			return false
		case c < ' ' && c != '\t' && c != '\n':
			r.faultAt(positionOf(data, i), "a control character", "remove it, or write it as an escape in a quoted string")
			return false
		}
		i += size
	}
	return true
}

// positionOf is the place of the byte at offset.
func positionOf(data []byte, offset int) textfile.Position {
	offset = min(max(offset, 0), len(data))
	start := bytes.LastIndexByte(data[:offset], '\n') + 1
	return textfile.At(1+bytes.Count(data[:offset], []byte("\n")), 1+utf8.RuneCount(data[start:offset]))
}

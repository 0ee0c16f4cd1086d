package preview

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Block is one content block of a native result. Its parts alias the result's bytes.
type Block struct {
	Raw       []byte // the block as it is written
	Type      string // text, image, audio, resource, resource_link, or a type that this program does not know
	MediaType string // as the block says, or ""
	URI       string // of an embedded resource or a resource link

	text        []byte // the JSON string that holds its text, or nil
	blob        []byte // the JSON string that holds its base64, or nil
	annotations []byte // as they are, or nil
}

// Blocks returns the content blocks of a native result in order: none where content is no array.
func Blocks(result []byte) []Block {
	blocks, _ := read(result)
	return blocks
}

// read returns the content blocks of a result and its other members.
func read(result []byte) (blocks []Block, others []rawjson.Member) {
	_ = rawjson.Members(result, func(m rawjson.Member) bool {
		if !m.Is("content") || len(m.Value) == 0 || m.Value[0] != '[' {
			others = append(others, m)
			return true
		}
		blocks = nil // of two, the last one counts
		_ = rawjson.Elements(m.Value, func(block []byte) bool {
			blocks = append(blocks, readBlock(block))
			return true
		})
		return true
	})
	return blocks, others
}

// readBlock reads one content block.
func readBlock(raw []byte) Block {
	own := membersOf(raw)
	b := Block{Raw: raw, annotations: own["annotations"]}
	b.Type, _ = rawjson.String(own["type"])
	switch b.Type {
	case "text":
		b.text = ifString(own["text"])
	case "image", "audio":
		b.blob = ifString(own["data"])
	case "resource":
		own = membersOf(own["resource"])
		b.text, b.blob = ifString(own["text"]), ifString(own["blob"])
	}
	b.MediaType, _ = rawjson.String(own["mimeType"])
	b.URI, _ = rawjson.String(own["uri"])
	return b
}

// membersOf returns the members of an object by name; nil where object is none.
func membersOf(object []byte) map[string][]byte {
	var members map[string][]byte
	_ = rawjson.Members(object, func(m rawjson.Member) bool {
		if members == nil {
			members = make(map[string][]byte)
		}
		members[m.Name()] = m.Value
		return true
	})
	return members
}

func ifString(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' {
		return nil
	}
	return value
}

// Data returns what the block holds: its text in UTF-8, the bytes that its base64 stands for, or,
// where it holds neither, the block as it is written. It fails where the base64 is malformed.
func (b Block) Data() ([]byte, error) {
	switch {
	case b.text != nil:
		return Unquote(b.text), nil
	case b.blob != nil:
		return decode(b.blob)
	}
	return b.Raw, nil
}

// Text returns what a result says, with JSON in lines; nil where it holds something else than text, such as an image.
func Text(result []byte) []byte {
	blocks := Blocks(result)
	var parts [][]byte
	for _, b := range blocks {
		if b.text == nil {
			return nil
		}
		parts = append(parts, Unquote(b.text))
	}
	if structured, ok := rawjson.Get(result, "structuredContent"); ok && !Repeats(blocks, structured) {
		parts = append(parts, structured)
	}
	for i, part := range parts {
		var lines bytes.Buffer
		if json.Indent(&lines, part, "", "") == nil { // programs that read files cut long lines
			parts[i] = lines.Bytes()
		}
	}
	return bytes.Join(parts, []byte("\n"))
}

// decode returns the bytes of a JSON string in base64, with or without padding, of either alphabet.
func decode(quoted []byte) ([]byte, error) {
	encoded := plainBase64(quoted)
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(encoded)))
	n, err := base64.RawStdEncoding.Decode(out, encoded)
	if err != nil {
		return nil, fmt.Errorf("decode base64: %w", err)
	}
	return out[:n], nil
}

// plainBase64 returns what a JSON string in base64 holds in the standard alphabet, without padding.
func plainBase64(quoted []byte) []byte {
	encoded := bytes.TrimRight(Unquote(quoted), "=\r\n ")
	if bytes.ContainsAny(encoded, "-_") {
		encoded = bytes.ReplaceAll(bytes.ReplaceAll(encoded, []byte("-"), []byte("+")), []byte("_"), []byte("/"))
	}
	return encoded
}

// Unquote decodes a JSON string of a checked text, as encoding/json has it. The result aliases
// quoted where nothing in it stands for anything else.
func Unquote(quoted []byte) []byte {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return text
	}
	decoded, _ := rawjson.String(quoted)
	return []byte(decoded)
}

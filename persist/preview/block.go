package preview

import (
	"bytes"
	"encoding/base64"
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
	content, _ := rawjson.Get(result, "content")
	return blocksOf(content)
}

func blocksOf(content []byte) []Block {
	var blocks []Block
	_ = rawjson.Elements(content, func(value []byte) bool {
		blocks = append(blocks, readBlock(value))
		return true
	})
	return blocks
}

// readBlock goes through a block once: its text may be long.
func readBlock(value []byte) Block {
	b := Block{Raw: value}
	var text, data, resource []byte
	_ = rawjson.Members(value, func(m rawjson.Member) bool {
		switch {
		case m.Is("type"):
			b.Type, _ = rawjson.String(m.Value)
		case m.Is("text"):
			text = m.Value
		case m.Is("data"):
			data = m.Value
		case m.Is("resource"):
			resource = m.Value
		case m.Is("annotations"):
			b.annotations = m.Value
		default:
			b.named(m)
		}
		return true
	})
	switch b.Type {
	case "text":
		b.text = ifString(text)
	case "image", "audio":
		b.blob = ifString(data)
	case "resource":
		b.URI, b.MediaType = "", ""
		_ = rawjson.Members(resource, func(m rawjson.Member) bool {
			switch {
			case m.Is("text"):
				b.text = ifString(m.Value)
			case m.Is("blob"):
				b.blob = ifString(m.Value)
			default:
				b.named(m)
			}
			return true
		})
	}
	return b
}

// named takes the media type or URI from a member that says it.
func (b *Block) named(m rawjson.Member) {
	switch {
	case m.Is("mimeType"):
		b.MediaType, _ = rawjson.String(m.Value)
	case m.Is("uri"):
		b.URI, _ = rawjson.String(m.Value)
	}
}

func ifString(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' {
		return nil
	}
	return value
}

// Data returns what the block holds: its text in UTF-8, the bytes that its base64 stands for, or, where it holds neither,
// the block as it is written. It fails where the base64 is malformed.
func (b Block) Data() ([]byte, error) {
	switch {
	case b.text != nil:
		return Unquote(b.text), nil
	case b.blob != nil:
		return decode(b.blob)
	}
	return b.Raw, nil
}

// IsText reports whether Data is text.
func (b Block) IsText() bool { return b.blob == nil || b.text != nil }

// decode returns the bytes of a JSON string in base64, with or without padding, of either alphabet.
func decode(quoted []byte) ([]byte, error) {
	encoded := Unquote(quoted)
	encoded = bytes.TrimRight(encoded, "=\r\n ")
	alphabet := base64.RawStdEncoding
	if bytes.ContainsAny(encoded, "-_") {
		alphabet = base64.RawURLEncoding
	}
	out := make([]byte, alphabet.DecodedLen(len(encoded)))
	n, err := alphabet.Decode(out, encoded)
	if err != nil {
		return nil, fmt.Errorf("decode base64: %w", err)
	}
	return out[:n], nil
}

// decodedSize returns how many bytes a JSON string in base64 stands for, and the first of them.
func decodedSize(quoted []byte) (size int, head []byte) {
	encoded := bytes.TrimRight(quoted[1:len(quoted)-1], "=")
	if bytes.IndexByte(encoded, '\\') >= 0 {
		encoded = bytes.TrimRight(Unquote(quoted), "=\r\n ")
	}
	const first = 1 << 19 // pixels of a JPEG stand behind its metadata
	begin := encoded[:min(len(encoded), first)]
	alphabet := base64.RawStdEncoding
	if bytes.ContainsAny(begin, "-_") {
		alphabet = base64.RawURLEncoding
	}
	head = make([]byte, alphabet.DecodedLen(len(begin)))
	n, _ := alphabet.Decode(head, begin)
	return base64.RawStdEncoding.DecodedLen(len(encoded)), head[:n]
}

// Unquote decodes a JSON string of a checked text: escapes, and U+FFFD in place of what is no UTF-8, as encoding/json has it.
// The result aliases quoted where nothing stands for anything else.
func Unquote(quoted []byte) []byte {
	if len(quoted) < 2 {
		return nil
	}
	in := quoted[1 : len(quoted)-1]
	first := bytes.IndexByte(in, '\\')
	if first < 0 {
		return replaceWrong(in)
	}
	out := make([]byte, first, len(in))
	copy(out, in)
	for i := first; i < len(in); {
		c := in[i]
		if c != '\\' {
			end := i + 1
			for end < len(in) && in[end] != '\\' {
				end++
			}
			out = append(out, in[i:end]...)
			i = end
			continue
		}
		if i+1 >= len(in) {
			break // not in a checked text
		}
		switch e := in[i+1]; e {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			var n int
			out, n = appendEscape(out, in[i:])
			i += n
			continue
		default:
			out = append(out, e)
		}
		i += 2
	}
	return replaceWrong(out)
}

// appendEscape appends the character of the escape \uXXXX at the beginning of in, or of two of them that are a
// surrogate pair, and returns how long that is.
func appendEscape(out, in []byte) ([]byte, int) {
	r := hex4(in)
	if r < 0 {
		return out, 2 // not in a checked text
	}
	if r < 0xD800 || r > 0xDFFF {
		return utf8.AppendRune(out, r), 6
	}
	if low := hex4(in[6:]); r < 0xDC00 && low >= 0xDC00 && low <= 0xDFFF {
		return utf8.AppendRune(out, (r-0xD800)<<10|(low-0xDC00)+0x10000), 12
	}
	return utf8.AppendRune(out, utf8.RuneError), 6
}

// hex4 returns the number of the escape \uXXXX at the beginning of in, or -1.
func hex4(in []byte) rune {
	if len(in) < 6 || in[0] != '\\' || in[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range in[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return r
}

// replaceWrong returns text with U+FFFD in place of each byte that is no UTF-8: text itself where there is none.
func replaceWrong(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/2)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		out = utf8.AppendRune(out, r)
		i += n
	}
	return out
}

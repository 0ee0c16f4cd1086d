package preview

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/bits"
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

// read goes through a result once, as its texts may be long, and returns its content blocks and its other members.
func read(result []byte) (blocks []Block, others []rawjson.Member) {
	walk(result, rawjson.SkipSpace(result, 0), func(key []byte, at int) int {
		if string(key) == "content" && at < len(result) && result[at] == '[' {
			blocks = nil // of two, the last one counts
			return walk(result, at, func(_ []byte, at int) int {
				b, end := readBlock(result, at)
				blocks = append(blocks, b)
				return end
			})
		}
		end := rawjson.SkipValue(result, at)
		others = append(others, rawjson.Member{Key: key, Value: result[at:end]})
		return end
	})
	return blocks, others
}

// walk goes through the members or elements of the value at i. visit gets the key of a member, and
// where its value begins, and returns where that ends. walk returns where the whole ends.
func walk(text []byte, i int, visit func(key []byte, at int) (end int)) int {
	if i >= len(text) || text[i] != '{' && text[i] != '[' {
		return rawjson.SkipValue(text, i)
	}
	object := text[i] == '{'
	i = rawjson.SkipSpace(text, i+1)
	for i < len(text) && text[i] != '}' && text[i] != ']' {
		var key []byte
		if object {
			end := rawjson.SkipString(text, i)
			if text[i] != '"' || end-i < 2 {
				return len(text) // not in a checked text
			}
			key = text[i+1 : end-1]
			i = rawjson.SkipSpace(text, rawjson.SkipSpace(text, end)+1)
		}
		end := visit(key, i)
		if end <= i {
			return len(text) // not in a checked text
		}
		if i = rawjson.SkipSpace(text, end); i < len(text) && text[i] == ',' {
			i = rawjson.SkipSpace(text, i+1)
		}
	}
	return min(len(text), i+1)
}

// readBlock reads the block at i, and returns where it ends.
func readBlock(result []byte, i int) (b Block, end int) {
	var own, inner members
	end = walk(result, i, func(key []byte, at int) int {
		if string(key) == "resource" && at < len(result) && result[at] == '{' {
			return walk(result, at, func(key []byte, at int) int {
				end := rawjson.SkipValue(result, at)
				inner.keep(key, result[at:end])
				return end
			})
		}
		end := rawjson.SkipValue(result, at)
		own.keep(key, result[at:end])
		return end
	})
	b.Raw, b.annotations = result[i:end], own.annotations
	b.Type, _ = rawjson.String(own.kind)
	switch b.Type {
	case "text":
		b.text = ifString(own.text)
	case "image", "audio":
		b.blob = ifString(own.data)
	case "resource":
		own = inner
		b.text, b.blob = ifString(own.text), ifString(own.blob)
	}
	b.MediaType, _ = rawjson.String(own.mediaType)
	b.URI, _ = rawjson.String(own.uri)
	return b, end
}

// members are those of a content block, or of its resource.
type members struct{ kind, text, data, blob, mediaType, uri, annotations []byte }

// keep puts the value of a member where members of its name go.
func (m *members) keep(key, value []byte) {
	switch string(key) {
	case "type":
		m.kind = value
	case "text":
		m.text = value
	case "data":
		m.data = value
	case "blob":
		m.blob = value
	case "mimeType":
		m.mediaType = value
	case "uri":
		m.uri = value
	case "annotations":
		m.annotations = value
	}
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

// Unquote decodes a JSON string of a checked text: escapes, and U+FFFD in place of what is no
// UTF-8, as encoding/json has it. The result aliases quoted where nothing stands for anything else.
func Unquote(quoted []byte) []byte {
	if len(quoted) < 2 {
		return nil
	}
	in := quoted[1 : len(quoted)-1]
	first := bytes.IndexByte(in, '\\')
	if first < 0 {
		return replaceWrong(in)
	}
	out := make([]byte, len(in)+8) // words are written whole
	copy(out, in[:first])
	i, n := first, first
	for i < len(in) {
		if in[i] != '\\' {
			plain := 1
			if len(in)-i >= 8 {
				word := binary.LittleEndian.Uint64(in[i:])
				binary.LittleEndian.PutUint64(out[n:], word)
				backslash := word ^ each*'\\'
				plain = bits.TrailingZeros64((backslash-each)&^backslash&high) / 8 // 8 where there is none
			} else {
				out[n] = in[i]
			}
			i, n = i+plain, n+plain
			continue
		}
		if i+1 >= len(in) {
			break // not in a checked text
		}
		switch e := in[i+1]; e {
		case 'n':
			out[n] = '\n'
		case 't':
			out[n] = '\t'
		case 'r':
			out[n] = '\r'
		case 'b':
			out[n] = '\b'
		case 'f':
			out[n] = '\f'
		case 'u':
			r, width := escaped(in[i:])
			i, n = i+width, n+utf8.EncodeRune(out[n:], r)
			continue
		default:
			out[n] = e
		}
		i, n = i+2, n+1
	}
	return replaceWrong(out[:n:n])
}

// Words of eight bytes.
const (
	each = 0x0101010101010101
	high = 0x8080808080808080
)

// escaped returns the character of the escape \uXXXX at the beginning of in, or of two of them that
// are a surrogate pair, and how long that is.
func escaped(in []byte) (rune, int) {
	r := hex4(in)
	if r < 0 {
		return 'u', 2 // not in a checked text
	}
	if r < 0xD800 || r > 0xDFFF {
		return r, 6
	}
	if low := hex4(in[6:]); r < 0xDC00 && low >= 0xDC00 && low <= 0xDFFF {
		return (r-0xD800)<<10 | (low - 0xDC00) + 0x10000, 12
	}
	return utf8.RuneError, 6
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

// Package preview makes the short text that a model reads in place of a result that is too long for
// it. It reads the bytes of a native MCP CallToolResult and has no state: the same bytes and limit
// always give the same preview.
//
// Where the result is stored, and how a model reads on, is for the callers. The lines that say what
// was left out name lines, bytes and JSON pointers as package slice takes them.
package preview

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// SmallMember is how long, in bytes, a member of a result other than content and structuredContent
// may be without becoming part of its preview: _meta, and what other programs add. Callers hand
// smaller ones on as they are.
const SmallMember = 2048

// ErrNoResult says that bytes are no JSON object.
var ErrNoResult = errors.New("make preview: the result is no JSON object")

// Of returns the content blocks of the preview of a native result, which was checked with
// rawjson.Valid. All blocks together take at most limit characters as they are written in JSON, and
// are valid UTF-8. Blocks that fit stay as they are, byte for byte; each other one becomes a text
// block that says what it is and shows as much of it as its fair share of the limit allows. A limit
// too small for anything gives no block.
//
// structuredContent and large further members become text blocks, too. Callers that pass
// structuredContent whole take it out of result before. Beside result, Of takes as much memory as
// all its texts together have bytes.
func Of(result []byte, limit int) (content []json.RawMessage, err error) {
	if !rawjson.IsObject(result) {
		return nil, ErrNoResult
	}
	parts := partsOf(result)
	parts, limit = few(parts, limit)
	wants := make([]int, len(parts))
	for i := range parts {
		wants[i] = parts[i].want(limit)
	}
	for i, share := range shares(wants, limit) {
		if block := parts[i].write(share); block != nil {
			content = append(content, block)
		}
	}
	return content, nil
}

// Describe says in at most limit characters what data is, and shows its shape: the same as the
// preview of a text, an image or another file. data is decoded text or bytes, of mediaType if that
// is known.
func Describe(data []byte, mediaType string, limit int) string {
	what, show := look(data, mediaType, "")
	return string(headed("["+what+"]\n", show, limit))
}

// headed writes a title and what show gives for the rest of the limit.
func headed(title string, show func(limit int) []byte, limit int) []byte {
	room := limit - Size([]byte(title))
	if room <= 0 || show == nil {
		out := []byte(strings.TrimSuffix(title, "\n"))
		return out[:Fit(out, limit)]
	}
	return append([]byte(title), show(room)...)
}

// part is one thing that a preview shows.
type part struct {
	whole       []byte // the content block as it is, or nil
	data        []byte // what it holds, as text or bytes; of an image or audio its first bytes
	size        int    // of all that it holds, in bytes
	mediaType   string
	name        string // what the preview calls it
	annotations []byte // of the content block, as they are
	binary      bool
	kind        string // image, audio, or ""
	at          string // the JSON pointer of a member of the result
}

// frame is what a text block takes beside its text: brackets, member names, and a comma.
const frame = len(`{"type":"text","text":""},`)

// partsOf lists what a preview of the result has to show.
func partsOf(result []byte) []part {
	blocks, others := read(result)
	parts := make([]part, 0, len(blocks)+len(others))
	for i, b := range blocks {
		p := blockPart(b)
		p.name = "content block " + strconv.Itoa(i+1) + " of " + strconv.Itoa(len(blocks)) + ": " + p.name
		parts = append(parts, p)
	}
	for _, m := range others {
		structured := m.Is("structuredContent")
		if same, ok := Repeats(blocks, m.Value); structured && ok {
			note := []byte("[structuredContent: " + same + "]")
			parts = append(parts, part{whole: textBlock(note, nil), data: note})
		} else if structured || len(m.Value) > SmallMember {
			parts = append(parts, part{data: m.Value, size: len(m.Value), name: shorten(m.Name(), 60) + ": ",
				at: string(appendToken(nil, m.Key))})
		}
	}
	return parts
}

// Repeats reports whether structuredContent says nothing but what the content blocks say, and how
// it repeats them: as servers do for clients that do not read it, or because they declare the
// content itself as their output.
func Repeats(blocks []Block, structured []byte) (how string, ok bool) {
	if len(blocks) == 0 || !rawjson.IsObject(structured) {
		return "", false
	}
	text := blocks[0].text
	if len(blocks) == 1 && blocks[0].Type == "text" && len(text) >= len(structured)/2 &&
		rawjson.Same(Unquote(text), structured) {
		return "the same JSON as content block 1", true
	}
	var only rawjson.Member
	n := 0
	_ = rawjson.Members(structured, func(m rawjson.Member) bool {
		only = m
		n++
		return n < 2
	})
	if n != 1 {
		return "", false
	}
	name := shorten(strconv.Quote(only.Name()), 60)
	if len(blocks) == 1 && blocks[0].Type == "text" && ifString(only.Value) != nil &&
		(bytes.Equal(text, only.Value) || bytes.Equal(Unquote(text), Unquote(only.Value))) {
		return "an object whose only member, " + name + ", is the text of content block 1", true
	}
	same := 0
	err := rawjson.Elements(only.Value, func(element []byte) bool {
		if same >= len(blocks) || !rawjson.Same(element, blocks[same].Raw) {
			same = -1
			return false
		}
		same++
		return true
	})
	if err != nil || same != len(blocks) {
		return "", false
	}
	return "an object whose only member, " + name + ", is the same as the content blocks", true
}

// blockPart reads one content block.
func blockPart(b Block) part {
	p := part{whole: b.Raw, mediaType: b.MediaType}
	if a := b.annotations; len(a) <= 200 && rawjson.IsObject(a) && utf8.Valid(a) {
		p.annotations = a
	}
	if b.Type == "resource" {
		p.name = "resource " + shorten(b.URI, 200) + ", "
	}
	switch {
	case b.text != nil:
		p.data = Unquote(b.text)
		p.size = len(p.data)
	case b.blob != nil:
		p.binary, p.kind = true, b.Type
		p.size, p.data = decodedSize(b.blob)
	default:
		p.data, p.size = b.Raw, len(b.Raw)
		p.name = shorten(b.Type, 60) + ", "
	}
	return p
}

func shorten(text string, most int) string {
	return string(replaceWrong([]byte(text))[:Fit(replaceWrong([]byte(text)), most)])
}

// leastShare is the smallest share of the limit that is worth having.
const leastShare = 240

// few leaves out parts in the middle where there are too many for the limit, and says so in a part of its own.
func few(parts []part, limit int) (kept []part, left int) {
	most := max(1, limit/leastShare)
	if len(parts) <= most {
		return parts, limit
	}
	total := 0
	for i := range parts {
		total += parts[i].want(limit)
		if total > limit {
			break
		}
	}
	if total <= limit {
		return parts, limit
	}
	head := max(1, most*2/3)
	tail := len(parts) - max(0, most-head-1)
	note := []byte("[... left out: " + plural(tail-head, "part") + " of " + strconv.Itoa(len(parts)) + ", after the " +
		number(head) +
		" before this line ...]")
	kept = append(kept, parts[:head]...)
	kept = append(kept, part{whole: textBlock(note, nil), data: note})
	return append(kept, parts[tail:]...), limit
}

// want is how many characters the part takes whole, or a number over limit where that is more.
func (p *part) want(limit int) int {
	if len(p.whole) > 4*limit {
		return limit + 1
	}
	if p.whole != nil && utf8.Valid(p.whole) {
		return utf8.RuneCount(p.whole) + 1
	}
	return frame + 100 + Fit(p.data, limit)
}

// shares divides the limit: who wants less than an even share gets it, and the others divide the rest evenly.
func shares(wants []int, limit int) []int {
	order := make([]int, len(wants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return wants[a] - wants[b] })
	out := make([]int, len(wants))
	for n, i := range order {
		out[i] = min(wants[i], limit/(len(order)-n))
		limit -= out[i]
	}
	return out
}

// write makes the content block of the part in at most limit characters: nil where nothing fits.
func (p *part) write(limit int) json.RawMessage {
	if p.whole != nil && len(p.whole) <= 4*limit && utf8.RuneCount(p.whole)+1 <= limit && utf8.Valid(p.whole) {
		return p.whole
	}
	limit -= frame
	if n := len(p.annotations); n > 0 && 4*n < limit {
		limit -= utf8.RuneCount(p.annotations) + len(`,"annotations":`)
	} else {
		p.annotations = nil
	}
	if limit <= 0 {
		return nil
	}
	what, show := p.look()
	return textBlock(headed("["+p.name+what+"]\n", show, limit), p.annotations)
}

func textBlock(text, annotations []byte) json.RawMessage {
	out := rawjson.AppendQuote([]byte(`{"type":"text","text":`), string(text))
	if len(annotations) > 0 {
		out = append(append(out, `,"annotations":`...), annotations...)
	}
	return append(out, '}')
}

// look says what the part is, and returns what shows it: nil where the words are all there is to say.
func (p *part) look() (what string, show func(limit int) []byte) {
	if !p.binary {
		return look(p.data, p.mediaType, p.at)
	}
	return describeFile(p.kind, p.data, p.size, p.mediaType), nil
}

// describeFile describes bytes that are no text: media type, pixels, size.
func describeFile(kind string, head []byte, size int, mediaType string) string {
	found, width, height, ok := pixels(head)
	if mediaType == "" {
		mediaType = found
	}
	what := mediaType
	if kind == "image" || kind == "audio" {
		what = kind + ", " + mediaType
	}
	if found != "" && found != mediaType {
		what += " (its bytes are " + found + ")"
	}
	if ok {
		what += ", " + strconv.Itoa(width) + " x " + strconv.Itoa(height) + " pixels"
	}
	return strings.Trim(shorten(what, 200)+", "+plural(size, "byte"), ", ")
}

// look finds out what data is. JSON pointers to it begin with at, which is set for members of a
// result alone: these are JSON.
func look(data []byte, mediaType, at string) (what string, show func(limit int) []byte) {
	_, _, _, picture := pixels(data)
	if !utf8.Valid(data) || picture && bytes.IndexByte(data, 0) >= 0 {
		return describeFile("", data, len(data), mediaType), nil
	}
	i := rawjson.SkipSpace(data, 0)
	if i < len(data) && (at != "" || (data[i] == '{' || data[i] == '[') && rawjson.Valid(data)) {
		return "JSON, " + plural(len(data), "byte"), func(limit int) []byte { return showJSON(data, at, limit) }
	}
	media := ""
	if mediaType != "" && mediaType != "text/plain" {
		media = shorten(mediaType, 100) + ", "
	}
	if t, ok := findTable(data); ok {
		return media + t.title() + ", " + plural(utf8.RuneCount(data), "character"), func(limit int) []byte {
			if out, ok := t.show(data, limit); ok {
				return out
			}
			return cut(data, limit)
		}
	}
	return media + "text, " + plural(utf8.RuneCount(data), "character") + " in " + plural(Lines(data), "line"),
		func(limit int) []byte { return cut(data, limit) }
}

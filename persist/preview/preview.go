// Package preview makes the short text that a model reads in place of a result that is too long for
// it. It reads the bytes of a native MCP CallToolResult and has no state: the same bytes and limit
// always give the same preview.
//
// Where the result is stored, and how a model reads on, is for the callers. The lines that say what
// was left out name lines, bytes and JSON pointers as package slice takes them.
package preview

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	_ "image/gif"  // pixels of GIF files
	_ "image/jpeg" // pixels of JPEG files
	_ "image/png"  // pixels of PNG files
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// SmallMember is how long, in bytes, a member of a result other than content and structuredContent
// may be without becoming part of its preview: _meta, and what other programs add. Callers hand
// smaller ones on as they are.
const SmallMember = 2048

// Of returns the content blocks of the preview of a native result, a JSON object that was checked
// with rawjson.Valid. All blocks together take at most limit characters as they are written in JSON, and
// are valid UTF-8. Blocks that fit stay as they are, byte for byte; each other one becomes a text
// block that says what it is and shows as much of it as its fair share of the limit allows. A limit
// too small for anything gives no block.
//
// structuredContent and large further members become text blocks, too. Callers that pass
// structuredContent whole take it out of result before. Beside result, Of takes as much memory as
// all its texts together have bytes.
func Of(result []byte, limit int) (content []json.RawMessage) {
	parts := few(partsOf(result), limit)
	wants := make([]int, len(parts))
	for i := range parts {
		wants[i] = parts[i].want(limit)
	}
	for i, share := range shares(wants, limit) {
		if block := parts[i].write(share); block != nil {
			content = append(content, block)
		}
	}
	return content
}

// Describe says in at most limit characters what data is, and shows its shape: the same as the
// preview of a text, an image or another file. data is decoded text or bytes, of mediaType if that
// is known.
func Describe(data []byte, mediaType string, limit int) string {
	p := textPart(data, mediaType)
	return string(p.text(limit))
}

// part is one thing that a preview shows.
type part struct {
	whole       []byte // the content block as it is; nil for another member of the result
	title       string // says what the part is
	data        []byte // text that is shown below the title; nil: the title says everything
	json        bool   // data is JSON
	at          string // the JSON pointer to data in the result; "" in a content block
	annotations []byte // of the content block, as they are
}

// frame is what a text block takes beside its text: brackets, member names, and a comma.
const frame = len(`{"type":"text","text":""},`)

// partsOf lists what a preview of the result has to show.
func partsOf(result []byte) []part {
	blocks, others := read(result)
	parts := make([]part, 0, len(blocks)+len(others))
	for i, b := range blocks {
		p := blockPart(b)
		p.title = "content block " + strconv.Itoa(i+1) + " of " + strconv.Itoa(len(blocks)) + ": " + p.title
		parts = append(parts, p)
	}
	for _, m := range others {
		structured := m.Is("structuredContent")
		if structured && Repeats(blocks, m.Value) {
			parts = append(parts, notePart("[structuredContent: the same as the content]"))
		} else if structured || len(m.Value) > SmallMember {
			parts = append(parts, part{title: shorten(m.Name(), 60) + ": JSON, " + textfile.Count(len(m.Value), "byte"),
				data: m.Value, json: true, at: Pointer("", m.Name())})
		}
	}
	return parts
}

// notePart is a part that says note and nothing else.
func notePart(note string) part { return part{whole: textBlock([]byte(note), nil), title: note} }

// Repeats reports whether structuredContent says nothing but what the content blocks say: the JSON
// of the only text, or an object whose only member is that text or the blocks. Servers send this for
// clients that do not read structuredContent.
func Repeats(blocks []Block, structured []byte) bool {
	if len(blocks) == 0 || !rawjson.IsObject(structured) {
		return false
	}
	text := blocks[0].text
	if len(blocks) > 1 {
		text = nil
	}
	if len(text) >= len(structured)/2 && rawjson.Same(Unquote(text), structured) {
		return true
	}
	var only []byte
	n := 0
	_ = rawjson.Members(structured, func(m rawjson.Member) bool {
		only = m.Value
		n++
		return n < 2
	})
	if n != 1 {
		return false
	}
	if text != nil && ifString(only) != nil {
		return bytes.Equal(Unquote(text), Unquote(only))
	}
	same := 0
	err := rawjson.Elements(only, func(element []byte) bool {
		if same >= len(blocks) || !rawjson.Same(element, blocks[same].Raw) {
			same = -1
			return false
		}
		same++
		return true
	})
	return err == nil && same == len(blocks)
}

// blockPart describes one content block.
func blockPart(b Block) part {
	var p part
	switch {
	case b.text != nil:
		p = textPart(Unquote(b.text), b.MediaType)
	case b.blob != nil:
		encoded := plainBase64(b.blob)
		head := base64.NewDecoder(base64.RawStdEncoding, bytes.NewReader(encoded))
		p.title = describeFile(head, base64.RawStdEncoding.DecodedLen(len(encoded)), b.MediaType)
	default:
		p = textPart(b.Raw, "")
	}
	switch b.Type {
	case "text":
	case "resource":
		p.title = "resource " + shorten(b.URI, 200) + ", " + p.title
	default:
		p.title = shorten(b.Type, 60) + ", " + p.title
	}
	p.whole = b.Raw
	if a := b.annotations; len(a) <= 200 && rawjson.IsObject(a) && utf8.Valid(a) {
		p.annotations = a
	}
	return p
}

// textPart finds out what data is.
func textPart(data []byte, mediaType string) part {
	i := rawjson.SkipSpace(data, 0)
	switch {
	case !utf8.Valid(data):
		return part{title: describeFile(bytes.NewReader(data), len(data), mediaType)}
	case i < len(data) && (data[i] == '{' || data[i] == '[') && rawjson.Valid(data):
		return part{title: "JSON, " + textfile.Count(len(data), "byte"), data: data, json: true}
	}
	title := "text, " + textfile.Count(utf8.RuneCount(data), "character") + " in " + textfile.Count(Lines(data), "line")
	if mediaType != "" && mediaType != "text/plain" {
		title = shorten(mediaType, 100) + ", " + title
	}
	return part{title: title, data: data}
}

// describeFile describes bytes that are no text: media type, pixels of an image, size.
func describeFile(data io.Reader, size int, mediaType string) string {
	var what []string
	picture, format, err := image.DecodeConfig(data)
	if mediaType == "" && err == nil {
		mediaType = "image/" + format
	}
	if mediaType != "" {
		what = append(what, shorten(mediaType, 100))
	}
	if err == nil {
		what = append(what, strconv.Itoa(picture.Width)+" x "+strconv.Itoa(picture.Height)+" pixels")
	}
	return strings.Join(append(what, textfile.Count(size, "byte")), ", ")
}

func shorten(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return text[:Fit([]byte(text), most)]
}

// leastShare is the smallest share of the limit that is worth having.
const leastShare = 240

// few leaves out parts in the middle where there are too many for the limit, and says so in a part of its own.
func few(parts []part, limit int) (kept []part) {
	most := max(1, limit/leastShare)
	if len(parts) <= most {
		return parts
	}
	total := 0
	for i := range parts {
		total += parts[i].want(limit)
		if total > limit {
			break
		}
	}
	if total <= limit {
		return parts
	}
	head := max(1, most*2/3)
	tail := len(parts) - max(0, most-head-1)
	kept = append(kept, parts[:head]...)
	kept = append(kept, notePart("[... left out: "+textfile.Count(tail-head, "part")+" of "+strconv.Itoa(len(parts))+
		", after the "+textfile.Grouped(head)+" before this line ...]"))
	return append(kept, parts[tail:]...)
}

// want is how many characters the part takes whole, or a number over limit where that is more.
func (p *part) want(limit int) int {
	if len(p.whole) > 4*limit {
		return limit + 1
	}
	if p.whole != nil && utf8.Valid(p.whole) {
		return utf8.RuneCount(p.whole) + 1
	}
	return frame + len(p.title) + len("[]\n") + Fit(p.data, limit)
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
	return textBlock(p.text(limit), p.annotations)
}

// text is the title, and what shows the data in the rest of the limit.
func (p *part) text(limit int) []byte {
	out := []byte("[" + p.title + "]")
	room := limit - Size(out) - Size([]byte{'\n'})
	if room <= 0 || p.data == nil {
		return out[:Fit(out, limit)]
	}
	out = append(out, '\n')
	if p.json {
		return append(out, showJSON(p.data, p.at, room)...)
	}
	return append(out, cut(p.data, room)...)
}

func textBlock(text, annotations []byte) json.RawMessage {
	out := rawjson.AppendQuote([]byte(`{"type":"text","text":`), string(text))
	if len(annotations) > 0 {
		out = append(append(out, `,"annotations":`...), annotations...)
	}
	return append(out, '}')
}

// Package slice reads parts of a stored native MCP CallToolResult for models: lines, bytes, a JSON
// value, what a JSONPath or a regular expression finds, counts, and the shape. It works on bytes
// that its caller holds, and has no state.
//
// An answer is bounded. Where more follows it has a cursor: the same request with it goes on
// exactly where the answer ended, so the data of all answers together is the whole part. Bytes,
// lines and JSON values are the bytes that were stored.
package slice

import (
	"bytes"
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/persist/preview"
)

// Answer is a page of what a request asks for.
type Answer struct {
	Data   []byte // the part, or its next piece
	Binary bool   // Data is no text: Text has it in base64
	Note   string // a sentence that says what Data is, and how to go on
	Next   string // the cursor, "" at the end
}

// Text is Data as a model reads it.
func (a Answer) Text() string {
	if a.Binary {
		return base64.StdEncoding.EncodeToString(a.Data)
	}
	return string(a.Data)
}

// noteSize bounds a note and its cursor.
const noteSize = 360

// MinLimit is the smallest limit that Read keeps: a smaller one counts as this.
const MinLimit = 600

// Read answers the request from the native result, which was checked with rawjson.Valid. Text and
// Note of the answer together take at most limit characters in a JSON string. An error is an
// InputError, or says why ctx has ended.
func Read(ctx context.Context, result []byte, r Request, limit int) (Answer, error) {
	if err := r.check(); err != nil {
		return Answer{}, err
	}
	d, err := open(result, &r)
	if err != nil {
		return Answer{}, err
	}
	return d.read(ctx, r, len(result), limit)
}

// OfBlock reports whether the request means the content block of a result that has one alone, as it is.
func (r Request) OfBlock() bool { return !r.Pointed && (r.Block == -1 || r.Block == 1) }

// ReadBlock is Read for such a request, where its caller has what the content block holds and not the result.
func ReadBlock(ctx context.Context, data []byte, mediaType string, r Request, limit int) (Answer, error) {
	if err := r.check(); err != nil {
		return Answer{}, err
	}
	return document{data: data, name: "content block 1", mediaType: mediaType}.read(ctx, r, len(data), limit)
}

// read answers the request from the document. size is that of all that is stored, which cursors are for.
func (d document) read(ctx context.Context, r Request, size, limit int) (Answer, error) {
	state, err := readCursor(&r, size)
	if err != nil {
		return Answer{}, err
	}
	p := page{doc: d, request: &r, left: max(limit, MinLimit) - noteSize, state: state}
	switch {
	case r.Describe:
		return p.describe(), nil
	case r.Path != "":
		return p.path(ctx)
	case r.Grep != "":
		return p.grep(ctx)
	case r.Count:
		return p.count(), nil
	case r.Lines != "":
		return p.lines()
	case r.Bytes != "":
		from, to, err := span(r.Bytes, "bytes", 0, len(d.data))
		if err != nil {
			return Answer{}, err
		}
		return p.stretch(from, to, "bytes")
	}
	return p.stretch(0, len(d.data), "bytes")
}

// document is what a request reads: a block's text or bytes, the whole result, or one JSON value of them.
type document struct {
	data      []byte
	name      string // as notes call it
	mediaType string
}

// open finds the document of a request.
func open(result []byte, r *Request) (document, error) {
	blocks := preview.Blocks(result)
	n := r.Block
	if n > len(blocks) {
		return document{}, faultf("The result has %s: block is a number up to that, or 0 for the whole result.",
			plural(len(blocks), "content block"))
	}
	if n < 0 && sole(result, blocks) {
		n = 1
	}
	d := document{data: result, name: "the result", mediaType: "application/json"}
	if n > 0 {
		b := blocks[n-1]
		data, err := b.Data()
		if err != nil {
			return document{},
				faultf("The base64 of content block %d is malformed: read the block as it is, by block 0 and "+
					"pointer /content/%d.",
					n, n-1)
		}
		d = document{data: data, name: "content block " + strconv.Itoa(n), mediaType: b.MediaType}
	}
	if !r.Pointed {
		return d, nil
	}
	value, err := d.at(r.Pointer)
	switch {
	case err == nil || r.Block >= 0:
	case n < 0 && !ofResult(r.Pointer):
		d, value, err = inBlock(blocks, r.Pointer, err)
	case n > 0 && ofResult(r.Pointer):
		whole := document{data: result, name: "the result"}
		if found, wholeErr := whole.at(r.Pointer); wholeErr == nil {
			d, value, err = whole, found, nil
		} else if !rawjson.Valid(d.data) {
			err = wholeErr
		}
	}
	if err != nil {
		return document{}, err
	}
	d = document{data: value, name: d.name + " at " + shorten(strconv.Quote(r.Pointer), 80),
		mediaType: "application/json"}
	if len(value) > 1 && value[0] == '"' && (r.Lines != "" || r.Bytes != "" || r.Grep != "" || r.Count || r.Describe) {
		d.data, d.mediaType = preview.Unquote(value), ""
	}
	return d, nil
}

// inBlock returns the only content block that has a value at the pointer, and that value. Where
// there is none the error is otherwise.
func inBlock(blocks []preview.Block, pointer string, otherwise error) (in document, value []byte, err error) {
	err = otherwise
	for i, b := range blocks {
		data, dataErr := b.Data()
		one := document{data: data, name: "content block " + strconv.Itoa(i+1)}
		found, foundErr := one.at(pointer)
		switch {
		case dataErr != nil || foundErr != nil:
		case value != nil:
			return in, nil, faultf("%s and %s have a value at %s: say which with block.", in.name, one.name,
				quoted(pointer))
		default:
			in, value, err = one, found, nil
		}
	}
	return in, value, err
}

// ofResult reports whether a pointer begins at a member of a result, as previews name them.
func ofResult(pointer string) bool {
	for _, name := range []string{"/_meta", "/content", "/structuredContent"} {
		if rest, ok := strings.CutPrefix(pointer, name); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// sole reports whether the only content block is all that a result says.
func sole(result []byte, blocks []preview.Block) bool {
	if len(blocks) != 1 {
		return false
	}
	structured, ok := rawjson.Get(result, "structuredContent")
	return !ok || preview.Repeats(blocks, structured)
}

// needJSON fails where the document is no JSON.
func (d document) needJSON(what string) error {
	if rawjson.Valid(d.data) {
		return nil
	}
	kind := "no JSON"
	if d.mediaType != "" {
		kind += " (" + shorten(d.mediaType, 80) + ")"
	}
	return faultf("%s needs JSON, and %s is %s: read it by lines, bytes or grep, or set block.", what, d.name, kind)
}

// page writes one answer.
type page struct {
	doc     document
	request *Request
	left    int // characters
	state   state
	out     []byte
}

// stretch answers with doc[from:to], or what of it comes next. Text stays text: a page ends between
// characters, and after a line where that costs little. What is no UTF-8 is binary.
func (p *page) stretch(from, to int, unit string) (Answer, error) {
	all := p.doc.data[from:to]
	at := from + p.state.at
	if at > to {
		return Answer{}, errCursor
	}
	rest := p.doc.data[at:to]
	a := Answer{Binary: !utf8.Valid(all)}
	var n int
	if a.Binary {
		n = min(len(rest), p.left/4*3)
	} else {
		n = preview.Fit(rest, p.left)
		if line := bytes.LastIndexByte(rest[:n], '\n') + 1; n < len(rest) && line > n/2 {
			n = line
		}
	}
	a.Data = rest[:n:n]
	what := "Bytes " + strconv.Itoa(at) + "-" + strconv.Itoa(at+n-1) + " of " + strconv.Itoa(len(p.doc.data))
	if n == 0 {
		what = "Nothing"
	}
	if unit == "lines" || !a.Binary && bytes.IndexByte(p.doc.data, '\n') >= 0 && n > 0 {
		first := bytes.Count(p.doc.data[:at], []byte{'\n'}) + 1
		last := first + preview.Lines(a.Data) - 1
		what += " (lines " + strconv.Itoa(first) + "-" + strconv.Itoa(last) + " of " +
			strconv.Itoa(preview.Lines(p.doc.data)) + ")"
	}
	if a.Binary {
		what += ", in base64,"
	}
	p.finish(&a, what, state{at: at + n - from}, at+n < to)
	return a, nil
}

// lines answers with whole lines.
func (p *page) lines() (Answer, error) {
	data := p.doc.data
	from, to, err := span(p.request.Lines, "lines", 1, preview.Lines(data))
	if err != nil {
		return Answer{}, err
	}
	begin := lineStart(data, 0, from)
	return p.stretch(begin, lineStart(data, begin, to-from), "lines")
}

// lineStart returns where the line begins that comes n lines after the one at i.
func lineStart(data []byte, i, n int) int {
	for ; n > 0; n-- {
		end := bytes.IndexByte(data[i:], '\n')
		if end < 0 {
			return len(data)
		}
		i += end + 1
	}
	return i
}

func (p *page) describe() Answer {
	a := Answer{Data: []byte(preview.Describe(p.doc.data, p.doc.mediaType, p.left))}
	p.finish(&a, "The shape", state{}, false)
	return a
}

// count answers with counts as a JSON object.
func (p *page) count() Answer {
	data := p.doc.data
	out := `{"bytes":` + strconv.Itoa(len(data))
	if utf8.Valid(data) {
		out += `,"characters":` + strconv.Itoa(utf8.RuneCount(data)) + `,"lines":` + strconv.Itoa(preview.Lines(data))
	}
	if i := rawjson.SkipSpace(data, 0); i < len(data) && (data[i] == '{' || data[i] == '[') && rawjson.Valid(data) {
		n := 0
		if data[i] == '{' {
			_ = rawjson.Members(data, func(rawjson.Member) bool { n++; return true })
			out += `,"members":` + strconv.Itoa(n)
		} else {
			_ = rawjson.Elements(data, func([]byte) bool { n++; return true })
			out += `,"elements":` + strconv.Itoa(n)
		}
	}
	a := Answer{Data: []byte(out + "}")}
	p.finish(&a, "The counts", state{}, false)
	return a
}

// take adds an item to the page, without the bytes that the answer before had. It returns false
// where the page is full: then the cursor says how much of the item is on it.
func (p *page) take(item []byte) bool {
	if p.state.skip > len(item) {
		p.state.skip = len(item) // not by a cursor of this package
	}
	rest := item[p.state.skip:]
	n := preview.Fit(rest, p.left)
	if n < len(rest) && len(p.out) > 0 && len(rest) <= p.left+len(p.out) {
		return false // it fits on a page of its own
	}
	p.out = append(p.out, rest[:n]...)
	p.left -= preview.Size(rest[:n])
	if n < len(rest) {
		p.state.skip += n
		return false
	}
	p.state.skip = 0
	return true
}

// finish writes the note, and the cursor where more follows.
func (p *page) finish(a *Answer, what string, next state, more bool) {
	a.Note = what + " of " + p.doc.name + "."
	if !more {
		return
	}
	a.Next = next.cursor(p.request, p.state.size)
	a.Note += " More follows: repeat the request with cursor " + a.Next + "."
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

// shorten returns the beginning of text, at most most characters.
func shorten(text string, most int) string {
	if n := preview.Fit([]byte(text), most); n < len(text) {
		return text[:n] + "..."
	}
	return text
}

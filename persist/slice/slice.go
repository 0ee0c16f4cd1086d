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
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
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

// ReadFile is Read of an artifact, whose bytes data is. The request's Block does not matter.
func ReadFile(ctx context.Context, data []byte, mediaType string, r Request, limit int) (Answer, error) {
	if err := r.check(); err != nil {
		return Answer{}, err
	}
	d := document{data: data, name: "the artifact", mediaType: mediaType}
	if r.Pointer != "" {
		value, err := d.at(r.Pointer)
		if err != nil {
			return Answer{}, err
		}
		d = d.part(value, &r)
	}
	return d.read(ctx, r, len(data), limit)
}

// read answers the request from the document. size is that of all that is stored, which cursors are for.
func (d document) read(ctx context.Context, r Request, size, limit int) (Answer, error) {
	state, err := readCursor(r, size)
	if err != nil {
		return Answer{}, err
	}
	p := page{doc: d, request: r, size: size, left: max(limit, MinLimit) - noteSize, first: state.at, skip: state.skip}
	switch {
	case r.Describe:
		return p.answer([]byte(preview.Describe(p.doc.data, p.doc.mediaType, p.left)), "The shape"), nil
	case r.Path != "":
		return p.path(ctx)
	case r.Grep != "":
		return p.grep(ctx)
	case r.Lines != "":
		return p.lines()
	case r.Bytes != "":
		from, to, err := span(r.Bytes, "bytes", 0, len(d.data))
		if err != nil {
			return Answer{}, err
		}
		return p.stretch(from, to)
	}
	return p.stretch(0, len(d.data))
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
			textfile.Count(len(blocks), "content block"))
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
	if r.Pointer == "" {
		return d, nil
	}
	value, err := d.at(r.Pointer)
	if err != nil && r.Block < 0 {
		for _, other := range others(result, blocks, n) {
			if found, otherErr := other.at(r.Pointer); otherErr == nil {
				d, value, err = other, found, nil
				break
			}
		}
	}
	if err != nil {
		return document{}, err
	}
	return d.part(value, r), nil
}

// others are the documents that a pointer of a preview may be in, where it is not in content block n
// or, with n below 0, in the whole result.
func others(result []byte, blocks []preview.Block, n int) (all []document) {
	if n > 0 {
		return []document{{data: result, name: "the result"}}
	}
	for i, b := range blocks {
		if data, err := b.Data(); err == nil {
			all = append(all, document{data: data, name: "content block " + strconv.Itoa(i+1)})
		}
	}
	return all
}

// part is the value of d at the pointer of a request.
func (d document) part(value []byte, r *Request) document {
	d.name += " at " + shorten(strconv.Quote(r.Pointer), 80)
	d.data, d.mediaType = value, "application/json"
	if value[0] == '"' && (r.Lines != "" || r.Bytes != "" || r.Grep != "" || r.Describe) {
		d.data, d.mediaType = preview.Unquote(value), ""
	}
	return d
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
	request Request
	size    int // of all that is stored
	left    int // characters
	first   int // bytes or items that the answers before had
	skip    int // bytes of the next item that they had
	out     []byte
	n       int  // items so far, those of answers before among them
	full    bool // the last item is not here, or not whole
}

// stretch answers with doc[from:to], or the next part of it. Text stays text: a page ends between
// characters, and after a line where that costs little. Bytes that are no UTF-8 are binary.
func (p *page) stretch(from, to int) (Answer, error) {
	all := p.doc.data[from:to]
	at := from + p.first
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
	if !a.Binary && bytes.IndexByte(p.doc.data, '\n') >= 0 && n > 0 {
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
	return p.stretch(begin, lineStart(data, begin, to-from))
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

// answer is an answer that is whole.
func (p *page) answer(data []byte, what string) Answer {
	a := Answer{Data: data}
	p.finish(&a, what, state{}, false)
	return a
}

// counted answers with counts, a JSON object.
func (p *page) counted(counts string) Answer { return p.answer([]byte(counts), "The counts") }

// item adds an item to the page, without the bytes that the answers before had. full says whether
// the page had room for it.
func (p *page) item(item []byte) {
	if p.full {
		return
	}
	if p.n++; p.n <= p.first {
		return
	}
	rest := item[min(p.skip, len(item)):]
	n := preview.Fit(rest, p.left)
	if p.full = n < len(rest); p.full && len(p.out) > 0 && len(rest) <= p.left+len(p.out) {
		return // it fits on a page of its own
	}
	p.out = append(p.out, rest[:n]...)
	p.left -= preview.Size(rest[:n])
	if p.full {
		p.skip += n
		return
	}
	p.skip = 0
}

// items answers with the items of the page.
func (p *page) items(what string) Answer {
	a := Answer{Data: p.out}
	next := state{at: p.n, skip: p.skip}
	if p.full {
		next.at--
	}
	p.finish(&a, what, next, p.full)
	return a
}

// finish writes the note, and the cursor where more follows.
func (p *page) finish(a *Answer, what string, next state, more bool) {
	a.Note = what + " of " + p.doc.name + "."
	if !more {
		return
	}
	a.Next = next.cursor(p.request, p.size)
	a.Note += " More follows: repeat the request with cursor " + a.Next + "."
}

// shorten returns the beginning of text, at most most characters.
func shorten(text string, most int) string {
	if n := preview.Fit([]byte(text), most); n < len(text) {
		return text[:n] + "..."
	}
	return text
}

package command

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/spool"
)

// Output holds the kept part of one of a command's outputs.
type Output struct {
	Bytes int64 // that it wrote

	head, tail []byte      // all of it where nothing is left out
	spool      *spool.File // its beginning, or all of it, where head and tail are not all; nil for none
}

// Close gives up what is on the disk. Twice is harmless.
func (o Output) Close() { o.spool.Close() }

// Truncated reports whether Text leaves something out.
func (o Output) Truncated() bool { return o.Bytes > int64(len(o.head)+len(o.tail)) }

// Raw is the whole output, ok false where it was cut.
func (o Output) Raw() (whole []byte, ok bool) {
	return append(o.head[:len(o.head):len(o.head)], o.tail...), !o.Truncated()
}

// Shorter is the output with no more than limit bytes kept: its beginning and its end.
func (o Output) Shorter(limit int) Output {
	if len(o.head)+len(o.tail) <= limit {
		return o
	}
	c := newCollector(limit)
	_, _ = c.Write(o.head) // never fails
	_, _ = c.Write(o.tail)
	out := c.output()
	out.Bytes = o.Bytes
	return out
}

// Kept is how many bytes Whole has.
func (o Output) Kept() int64 {
	if o.spool == nil {
		return int64(len(o.head) + len(o.tail))
	}
	return min(o.Bytes, o.spool.Size()+int64(len(o.tail)))
}

// Whole is the output byte for byte, with each of the secrets replaced. Where even the disk has not
// kept all of it, its end comes after how much is missing. open returns it from its beginning,
// until Close; mediaType says what it is.
func (o Output) Whole(secrets []string) (open func() io.Reader, mediaType string) {
	open = func() io.Reader {
		if o.spool == nil && o.Truncated() {
			return strings.NewReader(o.Text(secrets))
		}
		out, rest := io.Reader(bytes.NewReader(o.head)), o.Bytes-int64(len(o.head))
		if o.spool != nil {
			out, rest = o.spool.Reader(), o.Bytes-o.spool.Size()
		}
		end := Output{Bytes: rest, tail: o.tail[max(0, int64(len(o.tail))-rest):]}
		cut := end.Truncated()
		if !cut {
			out = io.MultiReader(out, bytes.NewReader(end.tail))
		}
		for _, s := range secrets {
			out = &masked{from: out, secret: []byte(s), cut: cut}
		}
		if cut {
			out = io.MultiReader(out, strings.NewReader(end.Text(secrets)))
		}
		return out
	}
	if isText(open()) {
		return open, "text/plain; charset=utf-8"
	}
	return open, "application/octet-stream"
}

// Text is the output for people and models: UTF-8, its beginning and its end where it was cut, and
// between them how much is missing. Each of the secrets is replaced. A part of one that stands at
// the cut is left out.
func (o Output) Text(secrets []string) string {
	if !o.Truncated() {
		whole, _ := o.Raw()
		return redact(string(whole), secrets)
	}
	head, tail := o.head, o.tail
	for i := 0; i < utf8.UTFMax && len(head) > 0 && !utf8.Valid(head[max(0, len(head)-utf8.UTFMax):]); i++ {
		head = head[:len(head)-1]
	}
	for i := 0; i < utf8.UTFMax && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	missing := o.Bytes - int64(len(head)+len(tail))
	before, after := redact(string(head), secrets), redact(string(tail), secrets)
	n, m := 0, 0 // bytes of parts of secrets
	for _, s := range secrets {
		for i := range len(s) {
			if strings.HasSuffix(before, s[:i]) {
				n = max(n, i)
			}
			if strings.HasPrefix(after, s[len(s)-i:]) {
				m = max(m, i)
			}
		}
	}
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", before[:len(before)-n], missing+int64(n+m), after[m:])
}

// redacted stands in the place of a secret.
const redacted = "[redacted]"

func redact(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, redacted)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// collector keeps the beginning and the end of a stream, and counts the rest.
type collector struct {
	mu      sync.Mutex
	headMax int // bytes of the beginning
	tailMax int // bytes of the end
	head    []byte
	tail    []byte // a ring once it is full
	next    int    // where the ring is written
	written int64

	disk    *spool.Dir  // where more than that goes; nil: nowhere any more
	diskMax int         // bytes of the beginning there
	spool   *spool.File // as Output has it
}

func newCollector(limit int) *collector {
	return &collector{headMax: limit / 2, tailMax: limit - limit/2}
}

// spill adds p to what is on the disk, which takes all of the stream once it is more than the
// memory keeps. If the disk cannot be used, the beginning and the end are what is kept.
func (c *collector) spill(p []byte) (err error) {
	if c.spool == nil {
		if c.spool, err = c.disk.Create(); err != nil {
			return err
		}
		_, err = c.spool.Write(append(c.head[:len(c.head):len(c.head)], c.tail...)) // nothing is left out yet
	}
	room := max(0, c.diskMax-int(c.spool.Size()))
	n := min(len(p), room)
	for n < len(p) && n < room+utf8.UTFMax-1 && !utf8.RuneStart(p[n]) {
		n++ // a character stays whole
	}
	if n < len(p) {
		c.disk = nil // no more
	}
	if err == nil {
		_, err = c.spool.Write(p[:n])
	}
	return err
}

func (c *collector) Write(p []byte) (written int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	written = len(p)
	if c.disk != nil && c.written+int64(written) > int64(c.headMax+c.tailMax) && c.spill(p) != nil {
		c.spool.Close()
		c.disk, c.spool = nil, nil
	}
	c.written += int64(written)
	n := min(len(p), c.headMax-len(c.head))
	c.head = append(c.head, p[:n]...)
	p = p[n:]
	n = min(len(p), c.tailMax-len(c.tail))
	c.tail = append(c.tail, p[:n]...)
	if p = p[n:]; len(p) > c.tailMax {
		p = p[len(p)-c.tailMax:]
	}
	for len(p) > 0 {
		n := copy(c.tail[c.next:], p)
		c.next = (c.next + n) % c.tailMax
		p = p[n:]
	}
	return written, nil
}

func (c *collector) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written
}

func (c *collector) output() Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := append(c.tail[c.next:len(c.tail):len(c.tail)], c.tail[:c.next]...)
	return Output{Bytes: c.written, head: c.head, tail: tail, spool: c.spool}
}

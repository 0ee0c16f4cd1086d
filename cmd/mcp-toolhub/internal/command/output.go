package command

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Output holds the kept part of one of a command's outputs.
type Output struct {
	Bytes int64 // that it wrote

	head, tail []byte // all of it where nothing is left out
}

// Truncated reports whether Text leaves something out.
func (o Output) Truncated() bool { return o.Bytes > int64(len(o.head)+len(o.tail)) }

// Raw is the whole output, ok false where it was cut.
func (o Output) Raw() (whole []byte, ok bool) {
	return append(o.head[:len(o.head):len(o.head)], o.tail...), !o.Truncated()
}

// MostKept are the bytes to keep of each output of a command if Shorten is called for its Outcome.
const MostKept = 4 << 20

// Shorten cuts each output to what an answer may have of it. It returns the whole of those that it
// has cut, for a store.
func (o *Outcome) Shorten(name string, stdout, stderr int, secrets []string) (whole []tool.Artifact) {
	shorten := func(ending string, out *Output, limit int) {
		if out.Bytes <= int64(limit) {
			return
		}
		a := tool.Artifact{Name: name + ending, About: fmt.Sprintf("all of its %d bytes", out.Bytes)}
		if out.Truncated() {
			a.About = fmt.Sprintf("%d of its %d bytes, from its beginning and its end", len(out.head)+len(out.tail), out.Bytes)
		}
		a.Bytes, a.MediaType = out.kept(secrets)
		whole = append(whole, a)
		*out = out.shorter(limit)
	}
	shorten(".stdout", &o.Stdout, stdout)
	shorten(".stderr", &o.Stderr, stderr)
	return whole
}

// shorter is the output with no more than limit bytes kept: its beginning and its end.
func (o Output) shorter(limit int) Output {
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

// kept is all that is kept of the output, with each of the secrets replaced, and what it is. Where
// the output was cut, it is Text.
func (o Output) kept(secrets []string) (kept []byte, mediaType string) {
	const text = "text/plain; charset=utf-8"
	if o.Truncated() {
		return []byte(o.Text(secrets)), text
	}
	kept, _ = o.Raw()
	for _, s := range secrets {
		kept = bytes.ReplaceAll(kept, []byte(s), []byte(redacted))
	}
	if tool.IsText(kept) {
		return kept, text
	}
	return kept, "application/octet-stream"
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
}

func newCollector(limit int) *collector {
	return &collector{headMax: limit / 2, tailMax: limit - limit/2}
}

func (c *collector) Write(p []byte) (written int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	written = len(p)
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
	return Output{Bytes: c.written, head: c.head, tail: tail}
}

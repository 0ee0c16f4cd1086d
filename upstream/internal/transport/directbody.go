package transport

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

const usualLine = "HTTP/1.1 200 OK\r\n"

// usual reads a head of the kind that nearly all answers have: success, in the newest version, with a body that is chunked or
// has a length. It returns false for any other, which ReadResponse reads, and never answers what that would not.
func (a *answer) usual(head []byte) bool {
	head, ok := bytes.CutPrefix(head, []byte(usualLine))
	if !ok {
		return false
	}
	var media []byte
	length, typed, chunked := int64(-1), false, false
	for len(head) > 0 {
		end := bytes.IndexByte(head, '\n')
		line := head[:end]
		head = head[end+1:]
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !bytes.HasSuffix(value, []byte{'\r'}) || !isToken(name) {
			return false
		}
		value = bytes.Trim(value[:len(value)-1], " \t")
		if !IsPlain(value) {
			return false
		}
		switch {
		case isNamed(name, "content-type"):
			if typed {
				return false
			}
			typed, media = true, value
		case isNamed(name, "content-length"):
			n, err := strconv.ParseUint(string(value), 10, 48)
			if err != nil || length >= 0 {
				return false
			}
			length = int64(n)
		case isNamed(name, "transfer-encoding"):
			if chunked || !isNamed(value, "chunked") {
				return false
			}
			chunked = true
		case isNamed(name, "connection"):
			if !isNamed(value, "keep-alive") {
				return false
			}
		case isNamed(name, "content-encoding"), isNamed(name, "trailer"), isNamed(name, "upgrade"):
			return false
		}
	}
	if chunked == (length >= 0) || !typed {
		return false
	}
	c := a.body.conn
	if c.header == nil || c.header["Content-Type"][0] != string(media) {
		c.header = http.Header{"Content-Type": {string(media)}}
	}
	a.StatusCode, a.Header, a.ContentLength = http.StatusOK, c.header, length
	a.body.chunked = chunked
	if !chunked {
		a.body.left = length
	}
	return true
}

func isNamed(text []byte, lower string) bool {
	return len(text) == len(lower) && strings.EqualFold(string(text), lower)
}

// isToken reports whether text can be the name of a header.
func isToken(text []byte) bool {
	for _, b := range text {
		if (b|0x20 < 'a' || b|0x20 > 'z') && (b < '0' || b > '9') && b != '-' && b != '_' {
			return false
		}
	}
	return len(text) > 0
}

// IsPlain reports whether text can be the value of a header, and is ASCII.
func IsPlain[T string | []byte](text T) bool {
	for i := range len(text) {
		if b := text[i]; b != '\t' && (b < ' ' || b > '~') {
			return false
		}
	}
	return true
}

// directBody is the body of an answer. Closing it gives the connection back.
type directBody struct {
	conn  *directConn
	other io.ReadCloser // of ReadResponse; nil for an answer of the usual kind
	last  bool          // the connection cannot be used after it

	chunked bool
	left    int64 // bytes of the body, or of the chunk
	part    bool  // there was a chunk, whose end was not read
	tail    bool  // there was the last chunk
	excess  int64 // bytes of the lines between chunks, beyond what is usual

	err    error // that reading ended with
	closed bool
}

// IsDirect reports whether body came over a Direct, so that closing it does not take the connection with it.
func IsDirect(body io.Reader) bool {
	_, ok := body.(*directBody)
	return ok
}

// Read implements io.Reader.
func (b *directBody) Read(p []byte) (int, error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.read(p)
	b.err = err
	return n, err
}

// read is Read, and can go on after errNotYet.
func (b *directBody) read(p []byte) (n int, err error) {
	if b.other != nil {
		return b.other.Read(p)
	}
	for b.chunked && b.left == 0 {
		if err := b.nextChunk(); err != nil {
			return 0, err
		}
	}
	if b.left > 0 {
		n, err = b.conn.r.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
	}
	if err == io.EOF {
		return n, io.ErrUnexpectedEOF
	}
	if err == nil && b.left == 0 && !b.chunked {
		err = io.EOF
	}
	return n, err
}

// nextChunk reads one line between two chunks.
func (b *directBody) nextChunk() error {
	line, err := b.conn.line()
	if err != nil {
		return err
	}
	text := bytes.TrimSuffix(line, []byte("\r\n"))
	if len(text) == len(line) {
		return errors.New("malformed chunked encoding: a line ends without CR LF")
	}
	b.excess += int64(len(line))
	switch {
	case b.tail && len(text) == 0:
		err = io.EOF
	case b.tail: // trailers
		b.last, err = true, io.EOF
	case b.part && len(text) > 0:
		err = errors.New("malformed chunked encoding: a chunk is longer than it says")
	case b.part:
		b.part = false
	default:
		text, _, _ = bytes.Cut(bytes.TrimRight(text, " \t\r\n"), []byte(";"))
		size, parse := strconv.ParseUint(string(text), 16, 60)
		if parse != nil {
			return errors.New("malformed chunked encoding: no size")
		}
		b.left, b.part, b.tail = int64(size), size > 0, size == 0
		if b.excess = max(0, b.excess-16-2*b.left); b.excess > 16<<10 {
			return errors.New("malformed chunked encoding: too much besides the data")
		}
	}
	_, _ = b.conn.r.Discard(len(line)) // it is in the buffer
	return err
}

// line returns the next line with its end, which stays in the buffer.
func (c *directConn) line() ([]byte, error) {
	for {
		text, _ := c.r.Peek(c.r.Buffered())
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			return text[:end+1], nil
		}
		if _, err := c.r.Peek(len(text) + 1); err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
	}
}

// Close implements io.Closer. A body that is chunked need not have been read to its end.
func (b *directBody) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	c := b.conn
	flying := c.call.Fly(nil)
	c.call = nil
	whole := b.err == io.EOF
	if !flying || b.last || !whole && (b.err != nil || !b.chunked || b.other != nil) {
		return c.Close()
	}
	if !whole {
		c.rest = b
	}
	c.pool.put(c)
	return nil
}

package code

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// sniffBytes is the length of the beginning of a file that decides whether it is text.
const sniffBytes = 8 << 10

// source counts what is read of a file and stops when check fails or the budget is used up.
type source struct {
	check  func() error // ends the reading by an error
	r      io.Reader
	budget *int64 // nil: no bound
}

var errBudget = errors.New("the budget of bytes is used up")

func (s *source) Read(p []byte) (int, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	if s.budget == nil {
		return s.r.Read(p)
	}
	if *s.budget <= 0 {
		return 0, errBudget
	}
	n, err := s.r.Read(p[:min(int64(len(p)), *s.budget)])
	*s.budget -= int64(n)
	return n, err
}

// line is one line of a file.
type line struct {
	text   []byte // its first bytes, as many as were asked for; valid until the next line is read
	size   int64  // bytes it has, without its ending
	ending string // "\n", "\r\n", or "" for a last line without one
}

func (l *line) cut() bool { return int64(len(l.text)) < l.size }

// lines reads a file line by line in bounded memory, however long its lines are.
type lines struct {
	br  *bufio.Reader
	buf []byte
}

// next returns the next line with at most keep bytes of it, and io.EOF after the last.
func (l *lines) next(keep int) (line, error) {
	var size int64
	var last byte
	l.buf = l.buf[:0]
	for {
		part, err := l.br.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		if len(part) > 0 {
			last = part[len(part)-1]
			size += int64(len(part))
			l.buf = append(l.buf, part[:min(len(part), keep-len(l.buf))]...)
		}
		switch {
		case ended && size > 0 && last == '\r':
			size--
			return line{text: l.buf[:min(int64(len(l.buf)), size)], size: size, ending: "\r\n"}, nil
		case ended:
			return line{text: l.buf, size: size, ending: "\n"}, nil
		case errors.Is(err, io.EOF) && size > 0:
			return line{text: l.buf, size: size}, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line{}, err
		}
	}
}

// runeBoundary returns the largest length up to n at which b is not cut within a character.
func runeBoundary(b []byte, n int) int {
	if n >= len(b) {
		return len(b)
	}
	for i := n; i > 0 && i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return n // not UTF-8: anywhere is as good
}

const (
	encodingUTF8    = "utf-8"
	encodingUTF8BOM = "utf-8-bom"
	encodingLossy   = "utf-8-lossy"
)

// binaryType returns the media type of a file that begins with head and is not text in UTF-8; "" for text.
func binaryType(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return "text/plain; charset=utf-16le"
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return "text/plain; charset=utf-16be"
	}
	if bytes.IndexByte(head, 0) < 0 && !mostlyInvalid(head) {
		return ""
	}
	kind := http.DetectContentType(head)
	if strings.HasPrefix(kind, "text/") { // it takes some binary data for text
		return "application/octet-stream"
	}
	return kind
}

// mostlyInvalid reports whether more than a tenth of head is not UTF-8. Text in an older 8-bit encoding stays below.
func mostlyInvalid(head []byte) bool {
	bad := 0
	for rest := head; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 && utf8.FullRune(rest) {
			bad++
		}
		rest = rest[n:]
	}
	return bad*10 > len(head)
}

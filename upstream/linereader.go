package upstream

import (
	"bytes"
	"errors"
	"io"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// lineBuffer is how much a lineReader reads at once.
const lineBuffer = 64 << 10

// lineReader reads lines of at most limit bytes.
type lineReader struct {
	r       io.Reader
	limit   int
	account *budget.Account // of large lines

	buf []byte // what was read; buf[at:end] belongs to no line yet
	at  int
	end int
	err error // that came with what was read last
}

func newLineReader(r io.Reader, limit int, account *budget.Account) *lineReader {
	return &lineReader{r: r, limit: limit, account: account, buf: make([]byte, lineBuffer)}
}

// next returns the next line that is not blank, without outer white space. It is the caller's to keep. A line over the
// limit is read to its end, dropped, and reported as an *oversize. A last line without line break counts.
func (l *lineReader) next() (received, error) {
	for {
		line, err := l.line()
		var large *oversize
		if errors.As(err, &large) {
			return received{}, err
		}
		if trimmed := bytes.TrimSpace(line.bytes); len(trimmed) > 0 {
			return line.received(trimmed), nil
		}
		if err != nil {
			return received{}, err
		}
	}
}

func (l *lineReader) line() (gathering, error) {
	line := gathering{account: l.account, most: l.limit + lineBuffer}
	var skip *rawjson.Skim // not nil once the line is too large
	for ended := false; !ended; {
		var part []byte
		if l.at == l.end && l.err != nil {
			if skip != nil {
				break
			}
			err := l.err
			return line, err
		}
		switch {
		case l.at == l.end && line.memory != nil:
			ended = l.readInto(&line)
		case l.at == l.end:
			l.at = 0
			l.end, l.err = l.r.Read(l.buf)
		default:
			part, ended = l.part()
			if skip != nil {
				skip.Add(part)
			} else {
				line.append(part)
			}
		}
		if skip == nil && (len(line.bytes) > l.limit || line.err != nil) {
			skip = &rawjson.Skim{}
			skip.Add(line.bytes)
			if line.err != nil { // then part was not added to the line
				skip.Add(part)
			}
			line.drop()
		}
	}
	if skip != nil {
		return gathering{}, newOversize(l.limit, skip, line.err)
	}
	return line, nil
}

// part takes what is left of the line at hand from the buffer, up to and including its end.
func (l *lineReader) part() (part []byte, ended bool) {
	part = l.buf[l.at:l.end]
	if i := bytes.IndexByte(part, '\n'); i >= 0 {
		part, ended = part[:i+1], true
	}
	l.at += len(part)
	return part, ended
}

// readInto reads once, right into a line that is large. What it gets of the next line goes into the buffer, which is
// empty. ended reports that the line is complete.
func (l *lineReader) readInto(line *gathering) (ended bool) {
	n := 0
	n, l.err = line.read(l.r, len(l.buf))
	read := line.bytes[len(line.bytes)-n:]
	if i := bytes.IndexByte(read, '\n'); i >= 0 {
		l.at, l.end = 0, copy(l.buf, read[i+1:])
		line.bytes = line.bytes[:len(line.bytes)-l.end]
		return true
	}
	return false
}

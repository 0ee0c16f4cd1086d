package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// lineBuffer says how much a LineReader reads at once.
const lineBuffer = 64 << 10

// LineReader reads messages of one line each.
type LineReader struct {
	r      io.Reader
	limit  func() int
	memory *budget.Share // for large lines

	buf []byte // what was read; buf[at:end] belongs to no line yet
	at  int
	end int
	err error // that came with what was read last
}

// NewLineReader returns a reader of r. limit returns the bytes that a line may have; it is asked
// when a part of a line comes. Large lines take room in memory, which may be nil.
func NewLineReader(r io.Reader, limit func() int, memory *budget.Share) *LineReader {
	return &LineReader{r: r, limit: limit, memory: memory, buf: make([]byte, lineBuffer)}
}

// Next returns the next line that is not blank, without outer white space. It is the caller's to keep. A line over the
// limit is read to its end, dropped, and reported as a *TooLarge. A last line without line break counts.
func (l *LineReader) Next() (Received, error) {
	for {
		line, err := l.line()
		if err != nil && errors.As(err, new(*TooLarge)) {
			return Received{}, err
		}
		if got := line.received(); len(bytes.TrimSpace(got.Text)) > 0 {
			got.Text = bytes.TrimSpace(got.Text)
			return got, nil
		}
		line.room.Free()
		if err != nil {
			return Received{}, err
		}
	}
}

// line returns what is left of the line at hand. With an error other than *TooLarge it is the last
// one, and has no line break.
func (l *LineReader) line() (gathering, error) {
	line := gathering{memory: l.memory, source: l.r, most: l.limit() + lineBuffer}
	var skip *rawjson.Skim // not nil once the line is too large
	limit := 0             // that it is over
	end := error(nil)      // of all lines
	for ended := false; !ended; {
		if l.at == l.end && l.err != nil {
			end = line.room.Err(l.err)
			break
		}
		if l.at == l.end {
			l.at = 0
			l.end, l.err = l.r.Read(l.buf)
			continue
		}
		part := l.buf[l.at:l.end]
		if i := bytes.IndexByte(part, '\n'); i >= 0 {
			part, ended = part[:i+1], true
		}
		l.at += len(part)
		if skip != nil {
			skip.Add(part)
			continue
		}
		line.append(part)
		if limit = l.limit(); len(line.bytes) > limit || line.err != nil {
			skip = &rawjson.Skim{}
			skip.Add(line.bytes)
			if line.err != nil { // then part was not added to the line
				skip.Add(part)
			}
			line.drop()
		}
	}
	if skip != nil {
		return gathering{}, &TooLarge{Limit: limit, About: skip, NoRoom: line.err}
	}
	return line, end
}

// Buffered returns how many bytes were read that belong to no line yet.
func (l *LineReader) Buffered() int { return l.end - l.at }

// TooLarge is the error of a message that was read to its end and dropped.
type TooLarge struct {
	Limit  int
	About  *rawjson.Skim // of the message
	NoRoom error         // why there was no memory for it; nil where it is over the limit
}

// ResponseID returns the id of a response; nil where the message was none, or that cannot be told.
func (e *TooLarge) ResponseID() json.RawMessage {
	if _, request := e.About.Get("method"); request {
		return nil
	}
	id, _ := e.About.Get("id")
	return id
}

func (e *TooLarge) Error() string {
	if e.NoRoom != nil {
		return "a message was dropped: " + e.NoRoom.Error()
	}
	return fmt.Sprintf("a message of more than %d bytes", e.Limit)
}

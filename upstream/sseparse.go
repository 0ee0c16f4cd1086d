package upstream

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// errEventTooLarge is an event over the limit. What is left of it has not been read.
var errEventTooLarge = errors.New("server-sent event over the size limit")

// A reader begins with a small buffer, since most streams are short, and lets it grow.
const (
	minSSEBuffer = 4 << 10
	maxSSEBuffer = 64 << 10
)

// sseEvent is one server-sent event.
type sseEvent struct {
	name   string  // "" means "message"
	id     string  // the stream's last event id, up to and including this event
	data   []byte  // its own
	memory *memory // that holds data; nil where data is not large, or of several lines
	retry  time.Duration
}

// received is the message that is the event's data.
func (ev sseEvent) received() received {
	return received{text: ev.data, memory: ev.memory}
}

// sseReader reads server-sent events from a stream, each of at most limit bytes. Lines end in LF, CRLF or CR.
type sseReader struct {
	r       io.Reader
	limit   int
	account *budget.Account // of large events

	buf    []byte // what was read; buf[at:end] is not consumed
	at     int
	end    int
	skipLF bool // the line before ended in CR: a LF that follows belongs to it
	begun  bool // the first line was read

	lastID string

	// Of the event that was too large:
	about *rawjson.Skim // its data as far as it was read
	mid   bool          // it was left within a line
	full  error         // there was no room for it, and why; nil where it is over the limit
	lost  []byte        // what was read of it and had no room
}

func newSSEReader(r io.Reader, limit int, account *budget.Account) *sseReader {
	return &sseReader{r: r, limit: limit, account: account, buf: make([]byte, minSSEBuffer)}
}

// next returns the next event that has data, an id or a retry time. An event that the stream's end cuts off is lost, as
// the format demands. After errEventTooLarge comes skip, or nothing more.
func (s *sseReader) next() (sseEvent, error) {
	ev := sseEvent{}
	some, size := false, 0
	joined := gathering{account: s.account, most: s.limit + maxSSEBuffer} // data of several lines
	for {
		got, err := s.line(s.limit - size)
		if errors.Is(err, errEventTooLarge) {
			s.about = &rawjson.Skim{}
			s.about.Add(ev.data)
			s.about.Add(bytes.TrimPrefix(got.text, []byte("data:")))
			s.about.Add(s.lost)
		}
		if err != nil {
			ev.memory.free()
			got.memory.free()
			return sseEvent{}, err
		}
		line := got.text
		size += len(line)
		if len(line) == 0 {
			if some {
				ev.id = s.lastID
				return ev, nil
			}
			ev, size = sseEvent{}, 0
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if ev.data == nil {
				// Ours: nothing is copied for the usual event of one line.
				ev.data, ev.memory = value, got.memory
			} else {
				if joined.bytes == nil {
					joined.append(ev.data)
					ev.memory.free()
				}
				joined.append([]byte{'\n'})
				joined.append(value)
				got.memory.free()
				ev.data, ev.memory = joined.bytes, joined.memory
				if joined.err != nil {
					s.about, s.mid, s.full = &rawjson.Skim{}, false, joined.err
					s.about.Add(ev.data)
					return sseEvent{}, errEventTooLarge
				}
			}
			some = true
		case "event":
			ev.name = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				s.lastID = string(value)
				some = true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				ev.retry = time.Duration(ms) * time.Millisecond
				some = true
			}
		}
	}
}

// skip passes over the rest of the event that was too large, and returns the *oversize that it is, or an error of reading.
// Of an event whose data takes several lines it may not know whom it was for.
func (s *sseReader) skip() error {
	size := 0 // of the line at hand
	if s.mid {
		size = 1
	}
	for {
		part, ended, err := s.chunk()
		if err != nil {
			return err
		}
		if s.mid {
			s.about.Add(part)
		}
		size += len(part)
		switch {
		case ended && size == 0:
			return newOversize(s.limit, s.about, s.full)
		case ended:
			size, s.mid = 0, false
		}
	}
}

// line returns the next line without its end, in memory of its own. The end of the stream ends no line. Of one over limit
// it returns what was read of it, and errEventTooLarge.
func (s *sseReader) line(limit int) (received, error) {
	line := gathering{account: s.account, most: s.limit + maxSSEBuffer}
	for {
		part, ended, err := s.chunk()
		if err != nil {
			return received{}, err
		}
		large := len(line.bytes)+len(part) > limit
		line.append(part)
		if line.err != nil {
			large, s.lost = true, part
		}
		switch {
		case large:
			s.mid, s.full = !ended, line.err
			return line.received(line.bytes), errEventTooLarge
		case !ended:
			continue
		}
		if !s.begun {
			s.begun = true
			line.bytes = bytes.TrimPrefix(line.bytes, []byte("\ufeff"))
		}
		return line.received(line.bytes), nil
	}
}

// chunk returns what comes next of the line at hand, and whether the line ends with it. It is overwritten by the next one.
func (s *sseReader) chunk() (part []byte, ended bool, err error) {
	for {
		if s.at == s.end {
			if s.end == len(s.buf) && len(s.buf) < maxSSEBuffer {
				s.buf = make([]byte, 2*len(s.buf)) // the last read filled it: there is much to come
			}
			n, err := s.r.Read(s.buf)
			s.at, s.end = 0, n
			if n == 0 && err != nil {
				return nil, false, err
			}
			continue
		}
		if s.skipLF {
			s.skipLF = false
			if s.buf[s.at] == '\n' {
				s.at++
				continue
			}
		}
		var stop byte
		part = s.buf[s.at:s.end]
		if i := bytes.IndexByte(part, '\n'); i >= 0 {
			part, stop = part[:i], '\n'
		}
		if i := bytes.IndexByte(part, '\r'); i >= 0 {
			part, stop = part[:i], '\r'
		}
		s.at += len(part)
		if stop == 0 {
			return part, false, nil
		}
		s.at++
		s.skipLF = stop == '\r'
		return part, true, nil
	}
}

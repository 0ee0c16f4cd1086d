package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// ErrEventTooLarge is the error of an event over the limit. What is left of it has not been read.
var ErrEventTooLarge = errors.New("server-sent event over the size limit")

// A reader begins with a small buffer, since most streams are short, and lets it grow.
const (
	minEventBuffer = 4 << 10
	maxEventBuffer = 64 << 10
)

// Event is one server-sent event.
type Event struct {
	Name   string  // "" means "message"
	ID     string  // the stream's last event id, up to and including this event
	Data   []byte  // its own
	Memory *Memory // holds Data; nil where Data is not large
	Retry  time.Duration
}

// Received returns the message that is the event's data.
func (ev Event) Received() Received {
	return Received{Text: ev.Data, Memory: ev.Memory}
}

// EventReader reads server-sent events from a stream, each of at most limit bytes. Lines end in LF, CRLF or CR.
type EventReader struct {
	r       io.Reader
	limit   int
	account *budget.Account // of large events

	buf    []byte // what was read; buf[at:end] is not consumed
	at     int
	end    int
	skipLF bool // the line before ended in CR: a LF that follows belongs to it
	begun  bool // the first line was read

	LastID string // id of the last event

	// Of the event that was too large:
	about *rawjson.Skim // its data as far as it was read
	mid   bool          // it was left within a line
	full  error         // why there was no memory for it; nil where it is over the limit
	lost  []byte        // what was read of it and had no room
}

// NewEventReader returns a reader of the event stream r. Large events take leases of account, which may be nil.
func NewEventReader(r io.Reader, limit int, account *budget.Account) *EventReader {
	return &EventReader{r: r, limit: limit, account: account, buf: make([]byte, minEventBuffer)}
}

// Reset makes the reader one of another stream, with the buffer that it has unless that is large.
func (s *EventReader) Reset(r io.Reader) {
	buf := s.buf
	if len(buf) > minEventBuffer {
		buf = make([]byte, minEventBuffer)
	}
	*s = EventReader{r: r, limit: s.limit, account: s.account, buf: buf}
}

// Next returns the next event that has data, an id or a retry time. An event that the stream's end cuts off is lost, as
// the format demands. After ErrEventTooLarge comes Skip, or nothing more.
func (s *EventReader) Next() (Event, error) {
	ev := Event{}
	some, size := false, 0
	joined := gathering{account: s.account, most: s.limit + maxEventBuffer} // data of several lines
	for {
		got, err := s.line(s.limit - size)
		if errors.Is(err, ErrEventTooLarge) {
			s.about = &rawjson.Skim{}
			s.about.Add(ev.Data)
			s.about.Add(bytes.TrimPrefix(got.Text, []byte("data:")))
			s.about.Add(s.lost)
		}
		if err != nil {
			ev.Memory.Free()
			got.Memory.Free()
			return Event{}, err
		}
		line := got.Text
		size += len(line)
		if len(line) == 0 {
			if some {
				ev.ID = s.LastID
				return ev, nil
			}
			ev, size = Event{}, 0
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if ev.Data == nil {
				// Ours: nothing is copied for the usual event of one line.
				ev.Data, ev.Memory = value, got.Memory
			} else {
				if joined.bytes == nil {
					joined.append(ev.Data)
					ev.Memory.Free()
				}
				joined.append([]byte{'\n'})
				joined.append(value)
				got.Memory.Free()
				ev.Data, ev.Memory = joined.bytes, joined.memory
				if joined.err != nil {
					s.about, s.mid, s.full = &rawjson.Skim{}, false, joined.err
					s.about.Add(ev.Data)
					return Event{}, ErrEventTooLarge
				}
			}
			some = true
		case "event":
			ev.Name = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				s.LastID = string(value)
				some = true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				ev.Retry = time.Duration(ms) * time.Millisecond
				some = true
			}
		}
	}
}

// NoRoom returns why there was no memory for the event that was too large, or nil where it is over the limit.
func (s *EventReader) NoRoom() error { return s.full }

// Skip passes over the rest of the event that was too large, and returns the *TooLarge that it is, or an error of reading.
// Of an event whose data takes several lines it may not know whom it was for.
func (s *EventReader) Skip() error {
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
			return &TooLarge{Limit: s.limit, About: s.about, NoRoom: s.full}
		case ended:
			size, s.mid = 0, false
		}
	}
}

// line returns the next line without its end, in memory of its own. The end of the stream ends no line. Of one over limit
// it returns what was read of it, and ErrEventTooLarge.
func (s *EventReader) line(limit int) (Received, error) {
	line := gathering{account: s.account, most: s.limit + maxEventBuffer}
	for {
		part, ended, err := s.chunk()
		if err != nil {
			return Received{}, err
		}
		large := len(line.bytes)+len(part) > limit
		line.append(part)
		if line.err != nil {
			large, s.lost = true, part
		}
		switch {
		case large:
			s.mid, s.full = !ended, line.err
			return line.received(line.bytes), ErrEventTooLarge
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
func (s *EventReader) chunk() (part []byte, ended bool, err error) {
	for {
		if s.at == s.end {
			if s.end == len(s.buf) && len(s.buf) < maxEventBuffer {
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

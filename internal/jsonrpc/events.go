package jsonrpc

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// errLong says that a line goes over the limit of its event, or has no room.
var errLong = errors.New("server-sent event over the size limit")

// A reader begins with a small buffer, since most streams are short, and lets it grow.
const (
	minEventBuffer = 4 << 10
	maxEventBuffer = 64 << 10
)

// Event is one server-sent event.
type Event struct {
	Name  string       // "" means "message"
	ID    string       // the stream's last event id, up to and including this event
	Data  []byte       // its own
	Room  *budget.Room // that Data takes; nil where Data is not large
	Retry time.Duration
}

// Received returns the message that is the event's data.
func (ev Event) Received() Received {
	return Received{Text: ev.Data, Room: ev.Room}
}

// IsMessage reports whether the event carries a message. Events of other names keep a stream alive, for instance.
func (ev Event) IsMessage() bool { return (ev.Name == "" || ev.Name == "message") && len(ev.Data) > 0 }

// EventReader reads server-sent events from a stream, each of at most limit bytes. Lines end in LF, CRLF or CR.
type EventReader struct {
	r      io.Reader
	limit  int
	memory *budget.Share // for large events

	buf    []byte // what was read; buf[at:end] is not consumed
	at     int
	end    int
	skipLF bool // the line before ended in CR: a LF that follows belongs to it
	begun  bool // the first line was read

	LastID string // id of the last event
	Ends   bool   // nothing is read after an event that is too large, and nothing more of it

	// Of a line that is too long:
	mid  bool   // it was left before its end
	lost []byte // what was read of it and had no room
}

// NewEventReader returns a reader of the event stream r. Large events take room in memory, which may be nil.
func NewEventReader(r io.Reader, limit int, memory *budget.Share) *EventReader {
	return &EventReader{r: r, limit: limit, memory: memory, buf: make([]byte, minEventBuffer)}
}

// Next returns the next event that has data, an id or a retry time. An event ends with a blank
// line, or once its data is a whole JSON object: some servers leave the end out. Any other event
// that the stream's end cuts off is lost, as the format demands. An event over the limit, or one
// that has no room, is read to its end, dropped, and reported as a *TooLarge.
func (s *EventReader) Next() (Event, error) {
	ev := Event{}
	some, size, seen := false, 0, looks(0)
	var data gathering // of the event; all its lines share one room
	for {
		got, err := s.line(data.room, s.limit-size)
		data.room = got.room
		if errors.Is(err, errLong) {
			return Event{}, s.tooLarge(&data, &got)
		}
		last := err != nil && bytes.HasPrefix(got.bytes, []byte("data:"))
		if err != nil && !last {
			got.drop()
			data.drop()
			return Event{}, s.endOf(data.room, err)
		}
		line := got.bytes
		size += len(line)
		if len(line) == 0 {
			if some {
				received := data.received()
				ev.ID, ev.Data, ev.Room = s.LastID, received.Text, received.Room
				return ev, nil
			}
			data.room.Free()
			ev, data, size = Event{}, gathering{}, 0
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if len(data.bytes) == 0 { // nothing is copied for the usual event of one line
				data = got
				data.bytes = value
			} else {
				data.append([]byte{'\n'})
				if data.append(value); data.err != nil {
					s.mid, s.lost = false, nil
					return Event{}, s.tooLarge(&data, &gathering{})
				}
			}
			some = true
			if last && !isObject(data.bytes) {
				data.drop()
				return Event{}, s.endOf(data.room, err)
			}
			if last || !s.atBlank() && seen.isObject(data.bytes) {
				received := data.received()
				ev.ID, ev.Data, ev.Room = s.LastID, received.Text, received.Room
				return ev, nil
			}
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

// atBlank reports whether it is known that a blank line comes next.
func (s *EventReader) atBlank() bool {
	i := s.at
	if s.skipLF && i < s.end && s.buf[i] == '\n' {
		i++
	}
	return i < s.end && (s.buf[i] == '\n' || s.buf[i] == '\r')
}

// isObject reports whether text is a whole JSON object.
func isObject(text []byte) bool { return new(looks).isObject(text) }

// looks counts the bytes that were looked at while a text grows.
type looks int

// isObject reports whether text, which grows, is a whole JSON object by now. All looks together cost no more than eight
// times what the text has: a text in small parts, each with a brace at its end, is then not known to be whole.
func (l *looks) isObject(text []byte) bool {
	text = bytes.TrimSpace(text)
	if !rawjson.IsObject(text) || text[len(text)-1] != '}' || int(*l) > 8*len(text) {
		return false
	}
	*l += looks(len(text))
	return rawjson.Valid(text)
}

// endOf returns err, with which reading has ended, or a *TooLarge where the event has lost its room to others.
func (s *EventReader) endOf(room *budget.Room, err error) error {
	if late := room.Err(nil); late != nil {
		return &TooLarge{Limit: s.limit, About: &rawjson.Skim{}, NoRoom: late}
	}
	return err
}

// tooLarge reads an event that is too large to its end, unless s.Ends. data is what was gathered of it before line, the
// line at hand. Of an event whose data takes several lines it may not be known whom it was for.
func (s *EventReader) tooLarge(data, line *gathering) *TooLarge {
	e := &TooLarge{Limit: s.limit, About: &rawjson.Skim{}, NoRoom: cmp.Or(line.err, data.err)}
	e.About.Add(data.bytes)
	e.About.Add(bytes.TrimPrefix(line.bytes, []byte("data:")))
	e.About.Add(s.lost)
	line.drop()
	data.drop()
	blank := !s.mid // so far the line at hand has nothing
	for !s.Ends {
		part, ended, err := s.chunk()
		if err != nil {
			return e // which comes again with the next event
		}
		if s.mid {
			e.About.Add(part)
		}
		blank = blank && len(part) == 0
		if ended && blank {
			return e
		}
		if ended {
			blank, s.mid = true, false
		}
	}
	return e
}

// line returns the next line without its end, in memory of its own; room is what its event has. The
// end of the stream ends no line. Of one over limit it returns what was read of it, and errLong.
func (s *EventReader) line(room *budget.Room, limit int) (gathering, error) {
	line := gathering{memory: s.memory, source: s.r, room: room, most: s.limit + maxEventBuffer}
	for ended := false; !ended; {
		var part []byte
		var err error
		if part, ended, err = s.chunk(); err != nil {
			return line, err
		}
		large := len(line.bytes)+len(part) > limit
		s.lost = nil
		if line.append(part); line.err != nil {
			large, s.lost = true, part
		}
		if large {
			s.mid = !ended
			return line, errLong
		}
	}
	if !s.begun {
		s.begun = true
		line.bytes = bytes.TrimPrefix(line.bytes, []byte("\ufeff"))
	}
	return line, nil
}

// chunk returns what comes next of the line at hand, and whether the line ends with it. It is
// overwritten by the next one.
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

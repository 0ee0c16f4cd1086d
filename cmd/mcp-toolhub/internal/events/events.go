// Package events turns a journal into a stream of the standard's tool_event objects: as they stand,
// as CloudEvents, or as messages of the Agent Client Protocol. Server serves streams over HTTP.
//
// It reads the journal's files and nothing else, so it sees the events of every hub that writes
// there, and a command reads them where no hub runs. An event comes when its line is in the
// journal: docs/records.md says when that is.
package events

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// Format is how events are written.
type Format string

const (
	AgentTool   Format = "agenttool"   // the tool_event
	CloudEvents Format = "cloudevents" // CloudEvents 1.0, JSON, structured mode
	ACP         Format = "acp"         // session/update and session/request_permission of the Agent Client Protocol
)

// Options say which events of a journal a stream has.
type Options struct {
	Dir    string       // of the journal
	Format Format       // "": AgentTool
	Filter string       // a CEL expression over event, which is a tool_event; "": all events
	Since  time.Time    // events before are left out
	After  tool.EventID // only what comes after this event; the whole journal, where it does not have that event

	// Follow says that the stream goes on with what comes. Where neither Since nor After is set, it has nothing else.
	Follow bool

	// Idle is called whenever the stream has all that there is, ten times a second. An error ends
	// the stream. It may be nil.
	Idle func() error

	// Damaged gets what of the journal cannot be read, while the stream goes on. Where it is nil,
	// Stream returns the first.
	Damaged func(error)
}

// Message is one JSON object of a stream. Several messages may have the id of the same event.
type Message struct {
	ID   tool.EventID
	Text json.RawMessage
}

const (
	// pollEvery is how often a stream looks for what is new.
	pollEvery = 100 * time.Millisecond

	// overlap is how much later an event may come into the journal than it happened: a disk that
	// hangs may take 10 s. After a resumption, events of other files that are so much older than
	// the last one are sent again.
	overlap = 15 * time.Second
)

// stream is what Stream knows.
type stream struct {
	Options
	filter *Filter // nil: all
	write  writer
	take   func(Message) error

	resume  *place // of After in the journal; nil: from Since on
	silent  bool   // what is there already is left out
	reached bool   // the event After has come

	last   tool.Event
	wanted bool // last is in the stream
}

// writer writes the message that an object of the journal makes; nil for none. ev is nil where the
// object is no event. Where it is not wanted, the writer only takes note of it.
type writer func(e persist.Entry, ev *tool.Event, wanted bool) (json.RawMessage, error)

// place says where an event is.
type place struct {
	file string
	at   time.Time
}

// Stream calls take for each message, until ctx ends or take returns an error, which it returns.
// Without Follow it returns when take has had all messages. Events of one invocation come in their
// order.
func Stream(ctx context.Context, o Options, take func(Message) error) error {
	s := &stream{Options: o, take: take, silent: o.Follow && o.Since.IsZero() && o.After == ""}
	switch o.Format {
	case AgentTool, "":
		s.write = whole
	case CloudEvents:
		s.write = cloudEvent
	case ACP:
		s.write = newACP().message
	default:
		return fmt.Errorf("the format %q is not known: use %s, %s or %s", o.Format, AgentTool, CloudEvents, ACP)
	}
	var err error
	if s.filter, err = NewFilter(o.Filter); err != nil {
		return err
	}
	since := o.Since
	if s.silent {
		since = time.Now()
	}
	if o.After != "" {
		if s.resume = find(o.Dir, o.After); s.resume != nil {
			since = s.resume.at.Add(-overlap)
		}
	}
	return s.run(ctx, persist.NewTail(o.Dir, since, ""))
}

func (s *stream) run(ctx context.Context, tail *persist.Tail) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var damage error
	for {
		var fault error
		err := tail.Next(func(e persist.Entry) bool {
			fault = s.entry(e)
			return fault == nil && ctx.Err() == nil
		})
		switch {
		case fault != nil:
			return fault
		case err != nil && s.Damaged != nil:
			s.Damaged(err)
		case err != nil && damage == nil:
			damage = err
		}
		if !s.Follow {
			return damage
		}
		s.silent = false
		if s.Idle != nil {
			if err := s.Idle(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return damage
		case <-tick.C:
		}
	}
}

// entry takes in one object of the journal.
func (s *stream) entry(e persist.Entry) error {
	var ev *tool.Event
	if objectOf(e.Object) == tool.ObjectEvent {
		s.last = tool.Event{}
		if err := json.Unmarshal(e.Object, &s.last); err != nil {
			return nil // a later version's
		}
		ev = &s.last
		s.wanted = s.wants(e)
	}
	text, err := s.write(e, ev, s.wanted)
	if err != nil {
		return err
	}
	if text == nil {
		return nil
	}
	return s.take(Message{s.last.EventID, text})
}

// objectOf is what an object is.
func objectOf(object []byte) tool.Object {
	name, _ := rawjson.GetString(object, "object")
	return tool.Object(name)
}

// wants reports whether the last event is in the stream.
func (s *stream) wants(e persist.Entry) bool {
	if s.resume != nil {
		here, before := e.File == s.resume.file, !s.reached
		if s.last.EventID == s.After {
			s.reached = true
			return false
		}
		if here && before || !here && s.last.Time.Before(s.resume.at.Add(-overlap)) {
			return false
		}
	}
	return !s.silent && !s.last.Time.Before(s.Since) && s.filter.Holds(e.Object)
}

// find returns where an event is; nil where the journal does not have it.
func find(dir string, id tool.EventID) (found *place) {
	// what cannot be read does not have it
	_ = persist.NewTail(dir, time.Time{}, subjectOf(id)).Next(func(e persist.Entry) bool {
		if given, _ := rawjson.GetString(e.Object, "event_id"); tool.EventID(given) != id ||
			objectOf(e.Object) != tool.ObjectEvent {
			return true
		}
		var ev tool.Event
		if json.Unmarshal(e.Object, &ev) == nil {
			found = &place{e.File, ev.Time}
		}
		return found == nil
	})
	return found
}

// whole is the format AgentTool.
func whole(e persist.Entry, ev *tool.Event, wanted bool) (json.RawMessage, error) {
	if ev == nil || !wanted {
		return nil, nil
	}
	return e.Object, nil
}

// envelope is a CloudEvent. https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
type envelope struct {
	SpecVersion     string            `json:"specversion"`
	ID              tool.EventID      `json:"id"`
	Source          string            `json:"source"`
	Type            tool.EventType    `json:"type"`
	Subject         string            `json:"subject,omitempty"`
	Time            time.Time         `json:"time"`
	DataContentType string            `json:"datacontenttype"`
	InvocationID    tool.InvocationID `json:"invocationid,omitempty"` // an extension attribute, as toolid is
	ToolID          tool.Name         `json:"toolid,omitempty"`
	Data            json.RawMessage   `json:"data"`
}

// cloudEvent is the format CloudEvents. The data is the tool_event.
func cloudEvent(e persist.Entry, ev *tool.Event, wanted bool) (json.RawMessage, error) {
	if ev == nil || !wanted {
		return nil, nil
	}
	return rawjson.Encode(envelope{SpecVersion: "1.0", ID: ev.EventID, Source: ev.Source, Type: ev.EventType,
		Subject: ev.Subject,
		Time:    ev.Time, DataContentType: "application/json", InvocationID: ev.InvocationID, ToolID: ev.ToolID,
		Data: e.Object})
}

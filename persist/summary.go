package persist

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Summary is what a line of the journal says of its call, as far as calls are looked up by that.
type Summary struct {
	Object     tool.Object
	Key        string            // of standing records
	Invocation tool.InvocationID // "" for a line of no call
	Parent     tool.InvocationID
	Surface    tool.SurfaceID
	Tool       tool.Name
	Server     string // whose tool was called; tool.OwnServer for the hub's own ones
	Actor      string
	Client     string
	Profile    string
	tool.Origin
	Status  tool.Status
	Class   tool.ErrorClass
	Created time.Time // of the call; for lines of other objects, their own time
	Ended   time.Time // zero where the call has not ended

	// Whole says that the line has all of the call: it takes the place of the call's lines before.
	Whole bool
}

// Summarize reads the summary of a line.
func Summarize(line json.RawMessage) (Summary, error) {
	var l struct {
		callRecord
		Key  string    `json:"key"`
		Time time.Time `json:"time"` // of events
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return Summary{}, err
	}
	s := l.summary()
	s.Key = l.Key
	if s.Created.IsZero() {
		s.Created = l.Time
	}
	return s, nil
}

// summary returns the summary of the line.
func (l *callRecord) summary() Summary {
	s := Summary{Object: l.Object, Invocation: l.Invocation, Parent: l.Parent, Surface: l.Surface, Tool: l.Tool,
		Actor: l.Actor, Profile: l.Profile, Origin: l.Origin, Status: l.Status, Created: l.Created}
	name, upstream := strings.CutPrefix(string(l.Tool), "mcp.")
	server, _, dotted := strings.Cut(name, ".")
	if s.Server = server; !upstream && !dotted && server != "" {
		s.Server = tool.OwnServer // whose names have no dot
	}
	for _, m := range l.Mappings { // the call's native ids, where it got as far as its server
		if m.ServerID != "" {
			s.Server = m.ServerID
			break
		}
	}
	if l.Client != nil {
		s.Client = l.Client.Name
	}
	if l.Error != nil {
		s.Class = l.Error.ErrorClass
	}
	if l.EndedUS != nil {
		s.Ended = l.Created.Add(time.Duration(*l.EndedUS) * time.Microsecond)
		s.Whole = l.Object == ObjectCall && l.From == 0
	}
	return s
}

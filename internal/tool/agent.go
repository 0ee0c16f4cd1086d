package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Agent is what an agent core says of itself in the _meta of a call, each member under its own key:
// toolhub/run, toolhub/agent, toolhub/parent and toolhub/role. It is a claim of the client, which
// nobody has checked, and never says who calls: see Actor.
type Agent struct {
	Run    string `json:"run,omitempty"`    // the run that the call belongs to
	Name   string `json:"agent,omitempty"`  // which agent of the run calls
	Parent string `json:"parent,omitempty"` // the run or agent that has started this one
	Role   string `json:"role,omitempty"`   // its part in the run, such as "reviewer"
}

// maxAgent bounds each member, in bytes.
const maxAgent = 200

// AgentOf reads what the _meta of a call says of the agent; nil where it says nothing. The error
// says which member is malformed.
func AgentOf(meta json.RawMessage) (*Agent, error) {
	var a Agent
	var fault error
	_ = rawjson.Members(meta, func(m rawjson.Member) bool {
		into, key := (*string)(nil), m.Decoded()
		switch string(key) {
		case "toolhub/run":
			into = &a.Run
		case "toolhub/agent":
			into = &a.Name
		case "toolhub/parent":
			into = &a.Parent
		case "toolhub/role":
			into = &a.Role
		default:
			return true
		}
		text, ok := rawjson.String(m.Value)
		if !ok || len(text) > maxAgent || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			fault = fmt.Errorf("_meta[%q] must be a text of at most %d bytes on one line: write such a text, or "+
				"leave it out", key, maxAgent)
			return false
		}
		*into = text
		return true
	})
	if a == (Agent{}) || fault != nil {
		return nil, fault
	}
	return &a, nil
}

package gate

import (
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Channel is a way in which a person can be asked.
type Channel string

const (
	ChannelClient Channel = "client" // the client behind the call, by elicitation
	ChannelQueue  Channel = "queue"  // whoever looks at the open approvals
)

// Channels are all channels, in the order in which they are tried by default.
func Channels() []Channel { return []Channel{ChannelClient, ChannelQueue} }

// Config is what the operator says of permission. The zero value is that nothing is said: then the defaults of package
// policy hold.
type Config struct {
	Mode       policy.Mode
	Sets       []policy.Set
	Tools      facts.Config
	Limits     target.Config
	Classifier *policy.ClassifierConfig // nil: none

	Channels   []Channel     // in the order in which they are tried; nil: Channels
	AskTimeout time.Duration // no answer until then denies; default 4 min 30 s

	SessionTime time.Duration // longest life of an answer for a session; see policy.GrantOptions
	AlwaysTime  time.Duration // life of an answer for good; see policy.GrantOptions
}

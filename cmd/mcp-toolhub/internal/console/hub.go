package console

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// Hub is what the page shows and does of a running hub, beside its read model. No text that it
// returns holds a secret. It is safe for concurrent use.
type Hub interface {
	control.Model

	// Places returns where each tool stands for a client of that name; "" is one that the hub does not know.
	Places(client string) ([]control.Tool, error)
	// Says returns what lists show of a tool beside that; nothing of one that the hub does not know.
	Says(name string) Said
	// Tool returns a tool by any of its names, also one that the policy hides, or ErrUnknown.
	Tool(name string) (*Tool, error)
	// Search finds tools as a model does: it is a call, which policy and records know.
	Search(ctx context.Context, session, query string) (Found, error)
	// Try makes a call, and returns when it has ended.
	Try(ctx context.Context, t Try) Tried

	// Calls returns recorded calls, newest first, and Story what is known of one, or ErrUnknown.
	Calls(ctx context.Context, q CallQuery) ([]Call, error)
	Story(ctx context.Context, id tool.InvocationID) (*Story, error)

	// Today sums up the calls since midnight, Clients counts the clients that are connected, and Log
	// returns the latest lines of the hub's log about a server, oldest first.
	Today(ctx context.Context) (Today, error)
	Clients() int
	Log(server string) []string

	// Steer does to a server what the command of that name does, or to a tool what enable and
	// disable do, and says what was done. It returns once the hub has taken up the changed config.
	Steer(ctx context.Context, name string, to Steering) (said string, err error)
	// Entry holds the keys of a server in the config. The hub's own tools have none.
	Entry(server string) Entry
	// AddServer adds a server as the command add does. If plan is set, it only says what that would be.
	AddServer(ctx context.Context, n NewServer, plan bool) (Plan, error)
	// SignIn begins to sign in to a server, and returns what the person has to open. SignOut says how it went.
	SignIn(ctx context.Context, session, server string) (Visit, error)
	SignOut(ctx context.Context, server string) (said string, err error)
	// SecretNames names the secrets that a config may refer to.
	SecretNames() ([]string, error)

	// Rules returns the rules in force, in the order in which people wrote them.
	Rules() []policy.NamedRule
	// Revoke forgets a remembered answer.
	Revoke(id string) error
	// Suggestions are rules that would have spared people answers, and says what they come to in a
	// sentence. TakeRule adds one of them to the config, by its id.
	Suggestions(ctx context.Context) (all []history.Suggestion, says string, err error)
	TakeRule(ctx context.Context, id string) error
}

// ErrUnknown is returned for what the hub does not know.
var ErrUnknown = errors.New("the hub does not know it, or not any more")

// Steering is what Steer does.
type Steering string

// The ways to steer. All but the first change the config.
const (
	Restart Steering = "restart"
	Enable  Steering = "enable"
	Disable Steering = "disable"
	Remove  Steering = "remove"
)

// Entry holds the keys of a server in the config.
type Entry struct {
	File     string // the path of the config
	Starts   string // what the server runs or reaches, without secrets
	Disabled bool
	Program  bool // it runs one
	SignsIn  bool // people can sign in to it
}

// Said is a tool as a client's list shows it.
type Said struct {
	Does     string
	Tokens   int  // that its declaration costs a model, about
	Switches bool // it is a server's, so that the config can hide it
	Hidden   bool // the config does
}

// Row is a fact, by its name.
type Row struct{ Name, Value string }

// Tool is a tool as people look at it.
type Tool struct {
	Name, Server, Description string
	// where it stands for a client that the hub does not know, as in control.Tool; "" where it does
	// not
	State, Why               string
	Facts                    []Row
	Declaration, InputSchema json.RawMessage
	Secret                   []string                              // arguments that hold secrets, as JSON pointers
	Mask                     func(json.RawMessage) json.RawMessage // arguments without secrets
}

// Found is the answer to a search.
type Found struct {
	Matches []Match
	Notes   []string // what may be missing, and why
}

// Match is a tool that was found.
type Match struct {
	Name, Summary string
	Score         float64
	Why           []string
}

// Try is a call that a person makes on the page.
type Try struct {
	Invocation tool.InvocationID
	Session    string // the id of the person's
	Tool       string
	Arguments  json.RawMessage
	Shown      json.RawMessage // the arguments without secrets
}

// Tried is how it ended.
type Tried struct {
	Status tool.Status
	Failed bool
	Text   string // for people, without secrets
}

// Today sums up calls.
type Today struct {
	Calls, Failed  int
	Kept, Deferred int64 // tokens that models did not read: of large results, and of deferred tools
	Clients        []string
	Servers        map[string]ServerToday // by id
	Hour           [60]Minute             // the last one is now
}

// Minute counts the calls of a minute.
type Minute struct{ Calls, Failed int }

// Tokens are all those that models did not read.
func (t Today) Tokens() int64 { return t.Kept + t.Deferred }

// ServerToday sums up the calls of a server.
type ServerToday struct {
	store.Stat
	Clients []string
}

// Call is a recorded call with its arguments, without secrets.
type Call struct {
	store.Call
	Arguments string
}

// CallQuery says which calls are meant. Since and Until are times as people write them.
type CallQuery struct {
	Since, Until, Text string
	Is                 map[store.Column]string
	Before             *store.Call
	Limit              int
}

// Story is what is known of one call.
type Story struct {
	ID      tool.InvocationID
	Tool    string
	Status  tool.Status
	Class   string // of its error
	Rows    []Row  // who, when and with what
	Changed string // how the input was changed, as a diff
	Steps   []Step
	Result  []Row

	Decisions []Decision // the last one counts
}

// Decision is a decision about a call, with its reason.
type Decision struct{ Then, By, Why string }

// Step is one thing that happened to a call.
type Step struct {
	After      time.Duration // the call's beginning
	What, Said string
}

// Visit is the page of the hub on which a person goes on to sign in to a server, and the code to enter there.
type Visit struct{ Server, Address, Code string }

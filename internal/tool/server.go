package tool

import (
	"fmt"
	"strings"
	"time"
)

// ServerState is the state of an upstream server.
type ServerState string

const (
	ServerStarting  ServerState = "starting"   // connecting, initialising or listing for the first time
	ServerReady     ServerState = "ready"      // answers calls
	ServerBackoff   ServerState = "backoff"    // failed; tried again at NextTry
	ServerNeedsAuth ServerState = "needs_auth" // refused the credentials; not tried again until something changes
	// its entry refers to what is missing, such as a variable; not started until that is there
	ServerNeedsSetup ServerState = "needs_setup"
	ServerStopped    ServerState = "stopped" // disabled, or the hub is stopping
)

// ServerStates returns all states of servers.
func ServerStates() []ServerState {
	return []ServerState{ServerStarting, ServerReady, ServerBackoff, ServerNeedsAuth, ServerNeedsSetup, ServerStopped}
}

// ServerStatus shows a person one upstream server or one toolset of the hub. It is a copy: safe to keep.
type ServerStatus struct {
	Server          string      `json:"server"`
	Transport       string      `json:"transport"` // "stdio", "http", "sse" or "builtin"
	State           ServerState `json:"state"`
	Since           time.Time   `json:"since"`
	LastError       string      `json:"last_error,omitempty"` // holds no secret
	Hint            string      `json:"hint,omitempty"`       // what to do about LastError
	NextTry         *time.Time  `json:"next_try,omitempty"`
	ProtocolVersion string      `json:"protocol_version,omitempty"`
	ServerName      string      `json:"server_name,omitempty"`
	ServerVersion   string      `json:"server_version,omitempty"`
	PID             int         `json:"pid,omitempty"`
	Restarts        int         `json:"restarts"`
	Tools           int         `json:"tools"` // admitted
	Prompts         int         `json:"prompts"`
	Resources       int         `json:"resources"`
	Templates       int         `json:"templates"`
	Cached          bool        `json:"cached,omitempty"` // the tools are those of an earlier start
	Known           bool        `json:"-"`                // the server has listed, now or at an earlier start
	Repaired        int         `json:"repaired"`
	Excluded        []Exclusion `json:"excluded,omitempty"`
	Findings        []Finding   `json:"findings,omitempty"`
	// the server's own names of tools described otherwise than at the last start
	Changed []string `json:"changed_tools,omitempty"`
	SignIn  *SignIn  `json:"sign_in,omitempty"` // nil where nobody is signed in
	// where each caller signs in: all of them; SignIn is that of Local
	SignIns []*SignIn `json:"sign_ins,omitempty"`
	Traffic
}

// SignIn says how the hub is signed in to a server.
type SignIn struct {
	Person  string     `json:"person,omitempty"` // whose it is; "" where all share it
	Issuer  string     `json:"issuer"`
	Since   time.Time  `json:"since"`
	Expires *time.Time `json:"expires,omitempty"` // of the access token; nil where that is not known
	Renews  bool       `json:"renews"`            // without a person
	Scopes  []string   `json:"scopes,omitempty"`
	Wanted  []string   `json:"wanted,omitempty"` // scopes that the server has asked for since
	Login   string     `json:"login,omitempty"`  // the command that asks for them
}

// String says to a person how the hub is signed in, in local time.
func (s *SignIn) String() string {
	who := ""
	if s.Person != "" {
		who = s.Person + " is "
	}
	text := fmt.Sprintf("%ssigned in at %s since %s", who, s.Issuer, s.Since.Local().Format(time.DateTime))
	if s.Expires != nil {
		text += ", until " + s.Expires.Local().Format(time.DateTime)
	}
	if s.Renews {
		text += ", renewed by itself"
	}
	if len(s.Scopes) > 0 {
		text += ", scopes: " + strings.Join(s.Scopes, " ")
	}
	return text
}

// Traffic counts the calls, connections and lost messages of one server since the hub started. What is known of calls
// comes from the pipeline.
type Traffic struct {
	Calls  int64 `json:"calls"`
	Errors int64 `json:"errors"`
	// messages of the server that were malformed, too large, or too many to pass on
	Dropped  int64 `json:"dropped,omitempty"`
	InFlight int   `json:"in_flight"`
	// "session" or "caller": each of these has a connection of its own
	Isolation string `json:"isolation,omitempty"`
	Sessions  int    `json:"sessions"` // such connections, open or opening
	Queued    int    `json:"queued"`   // calls that wait for a place at the server
}

// Finding is something in what a server offers that a person should look at. None of its texts
// holds a secret or a hidden character.
type Finding struct {
	About  string `json:"about"` // the server's own name of a tool, a prompt's, a resource's URI, or "instructions"
	Code   string `json:"code"`  // "hidden_text"
	Reason string `json:"reason"`
}

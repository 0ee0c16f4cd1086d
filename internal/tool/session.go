package tool

import "context"

// Session identifies the client session that a call belongs to. A server that keeps state for its
// client can have a connection for each. On 2026-07-28, which has no sessions, it identifies the
// caller. The zero value is the one session of all callers of whom nothing is known.
type Session struct {
	Key  string // unlike that of every other session. It may hold a session id: it stays within the hub.
	Name string // for logs: who, through which door. Holds no secret.

	// Person is who uses servers that each caller signs in to: the name of a token, or Local. "" may use none of them.
	Person string

	// Ended is closed when the client's session ends. Where it is nil, a session ends when nobody uses it for a while.
	Ended <-chan struct{}

	// Client asks the client outside of its requests, on revisions before 2026-07-28; nil where that cannot be.
	Client interface {
		Ask(ctx context.Context, server string, questions []Question) ([]Answer, error)
	}
}

// IsOver reports whether the client has ended the session.
func (s Session) IsOver() bool {
	select {
	case <-s.Ended:
		return true
	default:
		return false
	}
}

// Local is the person of this machine: whoever uses the hub over stdio, on the command line, or
// where there are no tokens.
const Local = "local"

// PersonKey is the key, in place of a session's, of what all sessions of one person share.
func (s Session) PersonKey() string { return "person/" + s.Person }

// Hears reports whether what comes on a connection is for the session. key is that of the session,
// or of the person, whose own connection it is; "" stands for a connection that all share.
func (s Session) Hears(key string) bool {
	return key == "" || key == s.Key || s.Person != "" && key == s.PersonKey()
}

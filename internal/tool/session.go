package tool

// Session identifies the client session that a call belongs to. A server that keeps state for its client can have a connection
// for each. On 2026-07-28, which has no sessions, it identifies the caller. The zero value is the one session of all callers
// of whom nothing is known.
type Session struct {
	Key  string // unlike that of every other session. It may hold a session id: it stays within the hub.
	Name string // for logs: who, through which door. Holds no secret.

	// Ended is closed when the client's session ends. Where it is nil, a session ends when nobody uses it for a while.
	Ended <-chan struct{}
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

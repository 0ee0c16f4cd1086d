package tool

// Session is the conversation of a client with the hub that a call belongs to. A server that keeps state for its client is
// given a connection for each of them where its entry says so. On revisions with sessions it is the client's session; on
// 2026-07-28, which has none, it is whoever the caller is known to be. The zero value is the one session of all callers
// that nothing is known of.
type Session struct {
	Key  string // unlike that of every other session. It may hold a session id: it stays within the hub.
	Name string // for logs: who, through which door. Holds no secret.

	// Ended is closed when the client's session has ended. Nil means that nobody will tell: then being unused for a while
	// is its end.
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

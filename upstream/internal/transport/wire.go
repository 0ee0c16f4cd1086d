// Package transport moves whole messages to and from one server, over a child's pipes or HTTP. It
// does not read what they say.
package transport

import (
	"errors"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
)

// Wire moves whole messages to and from one server.
type Wire interface {
	// Next returns the next message, which the caller may keep or free. It is called from one
	// goroutine. A message that the wire had to skip is a *jsonrpc.TooLarge; any other error ends the
	// connection.
	Next() (jsonrpc.Received, error)

	// Post hands m over for sending and never blocks. An error means that m will not be sent.
	Post(m Outgoing) error

	// Close ends the sending, which tells the server to finish. It does not wait for that. Twice is harmless.
	Close()

	// Release unblocks Next, which then ends, and waits for what the wire started. It comes after Close.
	Release()
}

// ErrClosed ends a connection that the hub closed itself.
var ErrClosed = errors.New("connection closed")

// Outgoing is one message on its way to the server.
type Outgoing struct {
	Data []byte      // no line break inside
	Call PendingCall // nil for notifications and answers
	Done chan error  // nil, or has room for one: told when the message was written or could not be
}

// PendingCall is the request that a message carries.
type PendingCall interface {
	Begin() bool    // marks the request as sent; false if nobody waits for it any more
	TakeBack()      // not a byte of it has left after all
	Fail(err error) // it could not be sent
}

// Finish reports how the sending went.
func (m Outgoing) Finish(err error) {
	if m.Done != nil {
		m.Done <- err
	}
	if err != nil && m.Call != nil {
		m.Call.Fail(err)
	}
}

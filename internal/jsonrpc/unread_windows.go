package jsonrpc

import (
	"io"
	"time"
)

// IsUnread is false here: that nobody reads is noticed by the next write.
func IsUnread(io.Writer, time.Duration) bool { return false }

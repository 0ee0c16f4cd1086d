package jsonrpc

import "io"

// IsUnread is false here: that nobody reads is noticed by the next write.
func IsUnread(io.Writer) bool { return false }

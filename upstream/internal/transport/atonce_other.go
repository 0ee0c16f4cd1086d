//go:build !unix

package transport

import (
	"io"
	"net"
)

// writeAtOnce returns nil: there is no portable way to write without waiting.
func writeAtOnce(io.Writer) func([]byte) (int, error) { return nil }

// canReadAtOnce says that there is no portable way to read without waiting.
const canReadAtOnce = false

// readAtOnce is never called.
func readAtOnce(net.Conn) func([]byte) (int, error) { return nil }

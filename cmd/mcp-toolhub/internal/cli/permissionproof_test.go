package cli

import (
	"strings"
)

// waits sends a call that is to wait for permission and returns once its client has heard of that. rest waits for the
// response and returns all messages.
func (w *wire) waits(r rawRequest) (rest func() string) {
	w.t.Helper()
	next, end := w.begin(r)
	all := next()
	return func() string {
		defer end()
		for {
			m := next()
			all += "\n" + m
			if strings.HasPrefix(m, `{"jsonrpc":"2.0","id":`+r.id+`,`) {
				return all
			}
		}
	}
}

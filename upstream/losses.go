package upstream

import "sync/atomic"

// losses counts what a server sent and the hub dropped: what is malformed, what is over a limit, and what came faster than
// it could be passed on. None of it is fatal. A nil *losses counts nothing.
type losses struct{ n atomic.Int64 }

func (l *losses) add() {
	if l != nil {
		l.n.Add(1)
	}
}

func (l *losses) count() int64 {
	if l == nil {
		return 0
	}
	return l.n.Load()
}

package invoke

import (
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// overdueAfter is how long a call may run before the journal hears of it where it does not wait and cannot have an effect.
const overdueAfter = time.Second

// overdue gives the journal the records of calls that run for long, so that those of a killed hub are found. One timer looks
// after all of them. It runs while there are calls.
type overdue struct {
	journal *persist.Journal
	now     func() time.Time

	mu    sync.Mutex
	calls map[*invocation]time.Time // since when
	timer *time.Timer
	runs  bool
}

func newOverdue(journal *persist.Journal, now func() time.Time) *overdue {
	o := &overdue{journal: journal, now: now, calls: make(map[*invocation]time.Time)}
	o.timer = time.AfterFunc(time.Hour, o.look)
	o.timer.Stop()
	return o
}

// enter notes that an invocation runs now.
func (o *overdue) enter(inv *invocation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls[inv] = o.now()
	if !o.runs {
		o.runs = true
		o.timer.Reset(overdueAfter)
	}
}

// leave notes that it runs no more.
func (o *overdue) leave(inv *invocation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.calls, inv)
}

// look notes the calls that have run for long.
func (o *overdue) look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for inv, since := range o.calls {
		if o.now().Sub(since) >= overdueAfter && o.journal.TryNote(&inv.record) {
			delete(o.calls, inv)
		}
	}
	if o.runs = len(o.calls) > 0; o.runs {
		o.timer.Reset(overdueAfter)
	}
}

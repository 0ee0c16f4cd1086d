package invoke

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// claim is what a call needs for itself while it runs. Two calls of one connection conflict where
// one of them is not safe and
//
//   - one of them has the server alone, or
//   - both have known targets, and one writes where the other one works: /repo conflicts with
//     /repo/a, also for two callers, or
//   - the targets of one are not known, and both are calls of one caller.
//
// Of two calls that conflict, the later one waits for the earlier one.
type claim struct {
	mode    string          // of facts.Facts.Concurrency
	targets []target.Target // empty where they are not known
}

// claimOf returns the claim of a call with these targets. A target that has no one spelling, or
// that may be anything, leaves all of them unknown.
func claimOf(mode string, targets []target.Target) claim {
	unknown := slices.ContainsFunc(targets, func(t target.Target) bool {
		return t.Fault != "" ||
			t.Kind == target.Command
	})
	if mode == facts.ConcurrencyExclusive || unknown {
		targets = nil
	}
	return claim{mode, targets}
}

// conflicts reports whether two calls must not run at the same time.
func (p *place) conflicts(with *place) bool {
	a, b := &p.claim, &with.claim
	switch {
	case a.mode == facts.ConcurrencySafe && b.mode == facts.ConcurrencySafe:
		return false
	case a.mode == facts.ConcurrencyExclusive || b.mode == facts.ConcurrencyExclusive:
		return true
	case len(a.targets) == 0 || len(b.targets) == 0:
		return p.by == with.by
	}
	for i := range a.targets {
		for j := range b.targets {
			x, y := &a.targets[i], &b.targets[j]
			writes := x.Write && a.mode != facts.ConcurrencySafe || y.Write && b.mode != facts.ConcurrencySafe
			if writes && x.Kind == y.Kind && (x.Resolved == y.Resolved || target.Under(x.Resolved, y.Resolved) ||
				target.Under(y.Resolved, x.Resolved) || shareHost(x, y)) {
				return true
			}
		}
	}
	return false
}

// shareHost reports whether one of two addresses is a whole host, and the other one is on it.
func shareHost(a, b *target.Target) bool {
	return a.Kind == target.URL && a.Host != "" && a.Host == b.Host &&
		!(strings.Contains(a.Resolved, "://") && strings.Contains(b.Resolved, "://"))
}

// lane holds the calls of one connection to a server. The mutex of its queue guards it.
type lane struct {
	running []*place
	turn    []*callerQueue // of callers with waiting calls, in the order of their turns: see next
	back    []*place       // running calls that want their locks again, first come first served
}

// callerQueue holds the waiting calls of one caller, in the order in which they came.
type callerQueue struct {
	caller  caller
	waiting []*place
}

// join puts a call at the end of its caller's line.
func (l *lane) join(p *place) {
	p.admitted = make(chan struct{})
	i := l.find(p.by)
	if i < 0 {
		i = len(l.turn)
		l.turn = append(l.turn, &callerQueue{caller: p.by})
	}
	l.turn[i].waiting = append(l.turn[i].waiting, p)
}

// giveUp takes a waiting call out of its line.
func (l *lane) giveUp(p *place) {
	i := l.find(p.by)
	q := l.turn[i]
	q.waiting = slices.DeleteFunc(q.waiting, func(w *place) bool { return w == p })
	if len(q.waiting) == 0 {
		l.turn = slices.Delete(l.turn, i, i+1)
	}
}

// find returns the index of a caller in turn; -1 where none of its calls waits.
func (l *lane) find(by caller) int {
	return slices.IndexFunc(l.turn, func(q *callerQueue) bool { return q.caller == by })
}

// isFree reports whether a call that has come conflicts with none that runs, and none that came before it.
func (l *lane) isFree(p *place) bool {
	if !l.isUnlocked(p) || slices.ContainsFunc(l.back, p.conflicts) {
		return false
	}
	for _, q := range l.turn {
		for _, w := range q.waiting {
			if w.came >= p.came {
				break
			}
			if w.conflicts(p) {
				return false
			}
		}
	}
	return true
}

// isUnlocked reports whether a call conflicts with no other one that runs.
func (l *lane) isUnlocked(p *place) bool {
	return !slices.ContainsFunc(l.running, func(r *place) bool { return r != p && !r.unlocked && r.conflicts(p) })
}

// admit gives calls that have waited for input their locks again: they come before those that have
// not begun. Then it lets waiting calls in as long as there is room.
func (l *lane) admit(limits Limits) {
	for i := 0; i < len(l.back); {
		p := l.back[i]
		if !l.isUnlocked(p) || slices.ContainsFunc(l.back[:i], p.conflicts) {
			i++
			continue
		}
		p.unlocked = false
		l.stopRelocking(p)
	}
	for len(l.running) < cmp.Or(limits.MaxParallel, defaultParallel) {
		p := l.next()
		if p == nil {
			return
		}
		l.running = append(l.running, p)
		close(p.admitted)
	}
}

// next takes the call out of its line that may run now: of the first caller that has one. It
// returns nil where there is none. Then all sessions of that person go behind those of others, and
// this session behind them.
func (l *lane) next() *place {
	for i, q := range l.turn {
		j := slices.IndexFunc(q.waiting, l.isFree)
		if j < 0 {
			continue
		}
		p := q.waiting[j]
		q.waiting = slices.Delete(q.waiting, j, j+1)
		l.turn = slices.Delete(l.turn, i, i+1)
		if len(q.waiting) > 0 {
			l.turn = append(l.turn, q)
		}
		others, own := l.turn[:0:0], l.turn[:0:0]
		for _, other := range l.turn {
			if other.caller.anySession() == q.caller.anySession() {
				own = append(own, other)
			} else {
				others = append(others, other)
			}
		}
		l.turn = append(others, own...)
		return p
	}
	return nil
}

// stopRelocking ends a call's wait for its locks.
func (l *lane) stopRelocking(p *place) {
	if p.relocks == nil {
		return
	}
	close(p.relocks)
	p.relocks = nil
	l.back = slices.DeleteFunc(l.back, func(b *place) bool { return b == p })
}

package downstream

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Change says which lists of a profile's surface have become different.
type Change struct {
	Profile                   string
	Tools, Prompts, Resources bool // templates count as resources

	// Sees narrows the change down to the callers for whom it is true: others see what they saw.
	// Nil is all of them. It is called a moment later, concurrently with everything else, and must
	// be quick.
	Sees func(tool.Actor) bool
}

// listener is a standing stream that gets notifications of changes: of a session, or of a subscriptions/listen.
type listener struct {
	profile string
	actor   tool.Actor
	caller  *caller // nil for a subscriptions/listen, which carries no log messages
	wants   Change
	out     *outbox
	gone    chan struct{} // closed when nothing more will come
}

// listeners gathers changes of lists, and tells every listener of those that it wants.
type listeners struct {
	mu    sync.Mutex
	all   map[*listener]struct{}
	over  bool                // the hub is stopping
	since map[string][]Change // by profile: one that is everybody's, and one for each Sees
	timer *time.Timer         // runs while since holds something
}

func (t *listeners) add(l *listener) {
	l.gone = make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		close(l.gone)
		return
	}
	t.tellLocked() // what has changed before is no news to l
	set(&t.all, l, struct{}{})
}

func (t *listeners) remove(l *listener) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, l)
}

// closeWhere ends the listeners that match.
func (t *listeners) closeWhere(match func(*listener) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l := range t.all {
		if match(l) {
			delete(t.all, l)
			close(l.gone)
		}
	}
}

// stop ends all listeners, and those to come.
func (t *listeners) stop() {
	t.mu.Lock()
	t.over = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.closeWhere(func(*listener) bool { return true })
}

// each calls f for the sessions.
func (t *listeners) each(f func(*listener)) {
	t.mu.Lock()
	var sessions []*listener
	for l := range t.all {
		if l.caller != nil {
			sessions = append(sessions, l)
		}
	}
	t.mu.Unlock()
	for _, l := range sessions {
		f(l)
	}
}

// gatherFor is the time for which changes are gathered, so that several of them become one notification.
const gatherFor = 10 * time.Millisecond

// changed gathers changes, and tells them to listeners a moment later.
func (t *listeners) changed(changes ...Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || len(changes) == 0 {
		return
	}
	if len(t.since) == 0 {
		t.since = make(map[string][]Change)
		t.timer = time.AfterFunc(gatherFor, t.tell)
	}
	for _, c := range changes {
		all := t.since[c.Profile]
		at := slices.IndexFunc(all, func(before Change) bool { return before.Sees == nil && c.Sees == nil })
		if at < 0 {
			t.since[c.Profile] = append(all, c)
			continue
		}
		before := &all[at]
		before.Tools, before.Prompts, before.Resources = c.Tools || before.Tools, c.Prompts ||
			before.Prompts, c.Resources || before.Resources
	}
}

// tell puts the gathered changes into the outboxes of the listeners that want them.
func (t *listeners) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellLocked()
}

func (t *listeners) tellLocked() {
	since := t.since
	if len(since) == 0 {
		return
	}
	t.since = nil
	for l := range t.all {
		var c Change
		for _, some := range since[l.profile] {
			wanted := some.Tools && l.wants.Tools || some.Prompts && l.wants.Prompts || some.Resources &&
				l.wants.Resources
			if wanted && (some.Sees == nil || some.Sees(l.actor)) {
				c.Tools, c.Prompts, c.Resources = c.Tools || some.Tools, c.Prompts || some.Prompts, c.Resources ||
					some.Resources
			}
		}
		for _, k := range []struct {
			changed, wanted bool
			method          string
		}{{c.Tools, l.wants.Tools, tool.NoteToolsChanged}, {c.Prompts, l.wants.Prompts, tool.NotePromptsChanged},
			{c.Resources, l.wants.Resources, tool.NoteResourcesChanged}} {
			if k.changed && k.wanted {
				l.out.put(note{key: k.method, method: k.method, params: json.RawMessage("{}")})
			}
		}
	}
}

package downstream

import (
	"encoding/json"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Change says which lists of a profile's surface have become different.
type Change struct {
	Profile                   string
	Tools, Prompts, Resources bool // templates count as resources

	// Sees narrows the change down to the callers for whom it is true: others see what they saw.
	// Nil is all of them. It must be quick.
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

// listeners tells every listener of the changes of lists that it wants.
type listeners struct {
	mu   sync.Mutex
	all  map[*listener]struct{}
	over bool // the hub is stopping
}

func (t *listeners) add(l *listener) {
	l.gone = make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		close(l.gone)
		return
	}
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

// changed puts the changes into the outboxes of the listeners that want them: one notification for each list.
func (t *listeners) changed(changes ...Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l := range t.all {
		var news Change
		for _, c := range changes {
			tools, prompts, resources := c.Tools && l.wants.Tools, c.Prompts && l.wants.Prompts,
				c.Resources && l.wants.Resources
			if c.Profile == l.profile && (tools || prompts || resources) && (c.Sees == nil || c.Sees(l.actor)) {
				news.Tools, news.Prompts = news.Tools || tools, news.Prompts || prompts
				news.Resources = news.Resources || resources
			}
		}
		for _, k := range []struct {
			changed bool
			method  string
		}{{news.Tools, tool.NoteToolsChanged}, {news.Prompts, tool.NotePromptsChanged},
			{news.Resources, tool.NoteResourcesChanged}} {
			if k.changed {
				l.out.put(listChanged(k.method))
			}
		}
	}
}

// listChanged is the notification of a list's change.
func listChanged(method string) note {
	return note{key: method, method: method, params: json.RawMessage("{}")}
}

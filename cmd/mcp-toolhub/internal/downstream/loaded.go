package downstream

import (
	"encoding/json"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// loaded are the deferred tools that a session has the declarations of. It is guarded by the caller's mu.
type loaded struct {
	digests map[tool.Name]string
	order   []tool.Name        // the latest last
	left    map[tool.Name]bool // those that the last list had no room for

	// What the surface itself listed, by the last list: so much may come that it is deferred, and there are clients that never
	// list again.
	listed  map[tool.Name]string
	surface tool.SurfaceID
}

const (
	maxLoaded = 500  // the oldest are forgotten
	maxListed = 5000 // of longer lists nothing is kept: who gets those has nothing deferred
)

// Digest implements tool.Loaded.
func (c *caller) Digest(name tool.Name) (digest string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if digest, ok = c.loaded.digests[name]; !ok {
		digest, ok = c.loaded.listed[name]
	}
	return digest, ok
}

// give notes that the session is given what the surface lists.
func (c *caller) give(surface *tool.Surface) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.loaded
	if l.surface == surface.ID {
		return
	}
	l.surface, l.listed = surface.ID, nil
	if len(surface.Listed) > maxListed {
		return
	}
	l.listed = make(map[tool.Name]string, len(surface.Listed))
	for i := range surface.Listed {
		t := surface.Listed[i].Tool
		l.listed[t.Name] = t.SchemaDigest
		if _, known := l.digests[t.Name]; known {
			l.digests[t.Name] = t.SchemaDigest
		}
	}
}

// Load implements tool.Loaded. A client that reads its list again finds there what is new.
func (c *caller) Load(tools ...*tool.Tool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, news := &c.loaded, false
	if l.digests == nil {
		l.digests = make(map[tool.Name]string)
	}
	for _, t := range tools {
		digest, known := l.digests[t.Name]
		if l.left[t.Name] { // wanted again, so it is the latest
			delete(l.left, t.Name)
			l.order = slices.DeleteFunc(l.order, func(n tool.Name) bool { return n == t.Name })
			known = false
		}
		news = news || !known || digest != t.SchemaDigest
		l.digests[t.Name] = t.SchemaDigest
		if !known {
			l.order = append(l.order, t.Name)
		}
	}
	for len(l.order) > maxLoaded {
		delete(l.digests, l.order[0])
		l.order = slices.Delete(l.order, 0, 1)
	}
	if news && c.out != nil {
		c.out.put(note{key: noteToolListChanged, method: noteToolListChanged, params: json.RawMessage("{}")})
	}
}

// listedBesides are the tools that the session has loaded and the surface does not list, in the order in which they were
// loaded: so a list grows at its end. Where the client takes no more tools, they are the latest, and what is loaded again
// that was left out is one of them. Whoever gets the list has their present declarations.
func (c *caller) listedBesides(surface *tool.Surface) []tool.Listed {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []tool.Listed
	for _, name := range c.loaded.order {
		if l, ok := surface.HeldBack(name); ok {
			out = append(out, *l)
		}
	}
	c.loaded.left = nil
	if room := max(surface.MaxTools-len(surface.Listed), 0); surface.MaxTools > 0 && len(out) > room {
		c.loaded.left = make(map[tool.Name]bool)
		for _, l := range out[:len(out)-room] {
			c.loaded.left[l.Tool.Name] = room > 0 // otherwise there will be none for it then, either
		}
		out = out[len(out)-room:]
	}
	for _, l := range out {
		c.loaded.digests[l.Tool.Name] = l.Tool.SchemaDigest
	}
	return out
}

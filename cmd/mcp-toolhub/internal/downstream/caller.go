package downstream

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// loadedTools are the deferred tools whose declarations a session has. The caller's mu guards it.
type loadedTools struct {
	digests map[tool.Name]string
	order   []tool.Name        // the latest last
	left    map[tool.Name]bool // those that the last list had no room for

	// The tools of the last list. They may be deferred later, and some clients never list again.
	listed  map[tool.Name]string
	surface tool.SurfaceID
}

const (
	maxLoaded = 500  // the oldest are forgotten
	maxListed = 5000 // longer lists are not kept: they defer nothing
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

// give notes the tools that a list gave the session.
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

// Load implements tool.Loaded. Where lists show what was found, the client is told to read its list again.
func (c *caller) Load(s *tool.Surface, tools ...*tool.Tool) {
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
	if news && s.ListsFound {
		c.put(listChanged(tool.NoteToolsChanged))
	}
}

// listedBesides returns the tools that the session has loaded and the surface does not list, the
// oldest first: so a list grows at its end. It returns none where lists do not show what was found.
// Where the client takes only so many tools, the oldest are left out; loading one of those again
// makes it the latest. The session has the present declarations of all tools that are returned.
func (c *caller) listedBesides(surface *tool.Surface) []tool.Listed {
	if !surface.ListsFound {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []tool.Listed
	for _, name := range c.loaded.order {
		if l, ok := surface.HeldBack(name); ok {
			out = append(out, *l)
		}
	}
	c.loaded.left = nil
	if room := max(surface.Habits.MaxTools-len(surface.Listed), 0); surface.Habits.MaxTools > 0 && len(out) > room {
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

// caller is the state that the hub keeps for one client session, or on revisions without sessions for one caller.
type caller struct {
	session tool.Session
	view    string  // the profile of a session; "" on revisions without
	out     *outbox // what waits for the session's standing stream; nil where it has none

	// The ids of requests that are open between a session and its client, in both directions.
	inflight  inflight
	questions questions

	mu            sync.Mutex
	level         string // of logging/setLevel; "" before it
	links         links
	loaded        loadedTools
	subscriptions map[string]*subscription // by URI as the client wrote it; nil until the first
	over          bool                     // the session has ended: it takes no more subscriptions
}

// links are the resources that results have named to a caller, which servers need not list anywhere.
type links struct {
	servers map[string][]string // by URI
	order   []string            // of their first appearance
}

// maxLinks bounds the links that are kept for a caller; the oldest are forgotten. maxLinkLength bounds each.
const (
	maxLinks      = 1000
	maxLinkLength = 4 << 10
)

func (c *caller) linked(uri string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.links.servers[uri])
}

// remember notes the resources that a result of server names.
func (c *caller) remember(server string, result json.RawMessage) {
	if !bytes.Contains(result, []byte("uri")) {
		return
	}
	found := linksIn(result)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, uri := range found {
		c.links.add(uri, server)
	}
}

func (l *links) add(uri, server string) {
	known, ok := l.servers[uri]
	if slices.Contains(known, server) {
		return
	}
	set(&l.servers, uri, append(known, server))
	if ok {
		return
	}
	l.order = append(l.order, uri)
	if len(l.order) > maxLinks {
		delete(l.servers, l.order[0])
		l.order = slices.Delete(l.order, 0, 1)
	}
}

// linksIn returns the URIs of the resources that a result of tools/call, prompts/get or resources/read names, as far as
// they may be remembered.
func linksIn(result json.RawMessage) []string {
	var found []string
	add := func(object []byte) {
		if uri, ok := rawjson.GetString(object, "uri"); ok && uri != "" && len(uri) <= maxLinkLength &&
			len(found) < maxLinks {
			found = append(found, uri)
		}
	}
	block := func(b []byte) bool {
		switch name, _ := rawjson.GetString(b, "type"); name {
		case "resource_link":
			add(b)
		case "resource":
			resource, _ := rawjson.Get(b, "resource")
			add(resource)
		}
		return true
	}
	content := func(of []byte) {
		c, _ := rawjson.Get(of, "content")
		if rawjson.IsObject(c) {
			block(c)
			return
		}
		_ = rawjson.Elements(c, block)
	}
	content(result)
	messages, _ := rawjson.Get(result, "messages")
	_ = rawjson.Elements(messages, func(m []byte) bool { content(m); return true })
	contents, _ := rawjson.Get(result, "contents")
	_ = rawjson.Elements(contents, func(c []byte) bool { add(c); return true })
	return found
}

// put leaves a note for the session's standing stream, where it has one.
func (c *caller) put(n note) {
	if c.out != nil {
		c.out.put(n)
	}
}

// leastLevel returns the level that the session has asked for.
func (c *caller) leastLevel() (level int, set bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Index(logLevels(), c.level), c.level != ""
}

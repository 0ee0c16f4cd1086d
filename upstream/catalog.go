package upstream

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/admit"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
)

// catalog holds what one server offers: it admits and publishes what was listed, compares it with
// the last start, and caches it for the next. All connections to the server share it.
type catalog struct {
	*entry

	publishing sync.Mutex        // one listing at a time
	cached     [sha256.Size]byte // digest of the offer in cache; zero where there is none
	unsaved    *time.Timer       // runs save; nil where the cache is up to the listing

	mu       sync.Mutex
	unlisted [lists.Count]*fault.Fault    // why a list that the server offers was not read when it was last asked for
	listing  *admit.Listing               // nil until first listed
	foreign  bool                         // the listing is that of a server of the same id and another identity
	first    map[string][sha256.Size]byte // admit.Listing.Descriptions when first listed, or at the last start
	changed  []string                     // the tools that are described otherwise now
	fresh    freshness                    // of the listing
	shrunk   time.Time                    // when a list became shorter; zero where it has changed since
	again    time.Time                    // when isShort was last true
	habits   habits
}

// habits is what the hub has learned of a server besides what it offers. It is kept for the next start.
type habits struct {
	Terms terms     // with less than all, that the server has agreed to
	Since time.Time // of Terms
	Rest  time.Time // before this the server wants no request (Retry-After)

	CancelDeaths int  // how often the server has died of notifications/cancelled; after two it is sent none
	NoProgress   bool // it refuses requests with a progress token
	Asks         bool // it asks clients: see isolation
	AsksFirst    bool // before the first call
}

// maxRest bounds habits.Rest: a longer one would outlive its reason.
const maxRest = time.Hour

// rest keeps for how long the server wants no request, and returns what is left of that.
func (c *catalog) rest(wanted time.Duration) (left time.Duration) {
	c.change(func(h *habits) {
		if wanted > 0 {
			h.Rest = time.Now().Add(min(wanted, maxRest))
		}
		left = time.Until(h.Rest)
	})
	return left
}

// keepTerms is how long terms hold before the server is asked once more for better ones.
const keepTerms = 7 * 24 * time.Hour

// habitsKey is the key of the habits among the catalogs.
func (c *catalog) habitsKey() string { return tool.Digest([]byte("habits " + c.identity())) }

// agreedTerms returns the terms on which the server was reached last.
func (c *catalog) agreedTerms() terms {
	h := c.known()
	if time.Since(h.Since) > keepTerms {
		return terms{}
	}
	return h.Terms
}

// agree keeps the terms on which the server is to be reached.
func (c *catalog) agree(t terms) {
	c.change(func(h *habits) {
		if t != h.Terms || t != (terms{}) && time.Since(h.Since) > keepTerms {
			h.Terms, h.Since = t, time.Now()
		}
	})
}

// asks notes that the server asks clients. first: before it was called.
func (c *catalog) asks(first bool) {
	c.change(func(h *habits) {
		if !h.Asks {
			c.log.Info("server asks its clients: each session has a connection of its own")
		}
		h.Asks, h.AsksFirst = true, h.AsksFirst || first
	})
}

// known returns the habits.
func (c *catalog) known() habits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.habits
}

// change changes the habits, and keeps them where they are others then.
func (c *catalog) change(by func(*habits)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.habits
	by(&c.habits)
	if c.habits == before || c.group.catalogs == nil {
		return
	}
	text, err := json.Marshal(c.habits)
	if err == nil {
		err = c.group.catalogs.Save(c.habitsKey(), text)
	}
	if err != nil {
		c.log.Warn("how the server wants to be asked is found out anew at the next start", "error", err)
	}
}

// saveAfter passes between a listing and its caching: while many servers start, the file would hold
// up the list that clients wait for.
const saveAfter = time.Second

// freshness holds ttlMs and cacheScope of the latest lists.
type freshness struct {
	of    *session // that listed last; nil before the first
	lists [lists.Count]tool.Freshness
	held  bool // the listing has just changed, and nobody has been told
}

// recall lists what was offered before, until the server itself says what it offers: by the server
// that this one replaces (old, or nil), or at an earlier start.
func (c *catalog) recall(old *server) {
	if c.cfg.Disabled {
		return
	}
	if c.group.catalogs != nil {
		if text, ok := c.group.catalogs.Load(c.habitsKey()); ok && json.Unmarshal(text, &c.habits) != nil {
			c.habits = habits{}
		}
	}
	var before *admit.Listing
	var same bool // before is of the same server
	if old != nil {
		before, same = old.catalog.current()
		same = same && old.identity() == c.identity()
	}
	var kept admit.Offer
	var found bool
	if !same {
		kept, found = c.load()
	}
	switch {
	case found:
		c.listing = kept.Admit(c.cfg, c.redact)
		if maps.Equal(kept.Sound, c.listing.Offer.Sound) {
			c.cached = c.listing.Digest
		}
	case before != nil:
		c.listing, c.foreign = before.Offer.Admit(c.cfg, c.redact), !same
	}
	if c.listing != nil {
		c.listing.Catalog.Pending = true
	}
}

// load returns what the server offered at an earlier start.
func (c *catalog) load() (admit.Offer, bool) {
	if c.group.catalogs == nil {
		return admit.Offer{}, false
	}
	data, found := c.group.catalogs.Load(c.identity())
	if !found {
		return admit.Offer{}, false
	}
	return admit.DecodeOffer(data)
}

// save caches the offer for the next start, unless it is cached already.
func (c *catalog) save() {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	if c.unsaved == nil {
		return
	}
	c.unsaved.Stop()
	c.unsaved = nil
	l, _ := c.current()
	if err := c.group.catalogs.Save(c.identity(), l.Offer.Encode()); err != nil {
		c.log.Warn("the server's tools will not be listed before it is ready at the next start", "error", err)
		return
	}
	c.cached = l.Digest
}

// publish admits what the server of sess has listed and makes it the catalog, unless it is already.
// Lists that were not read stay as they were.
func (c *catalog) publish(sess *session, got listed) {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	c.mu.Lock()
	old, foreign := c.listing, c.foreign
	c.mu.Unlock()
	offer := sess.offer()
	if old != nil {
		offer.Sound = old.Offer.Sound
	}
	shorter := false
	for l := range lists.Count {
		switch {
		case got[l] != nil:
			offer.Lists[l] = got[l].raw
			shorter = shorter || old != nil && len(got[l].raw) < len(old.Offer.Lists[l])
		case old != nil && !foreign && sess.offers(l.Kind()):
			offer.Lists[l] = old.Offer.Lists[l]
		}
	}
	digest := offer.Digest()
	if old != nil && old.Digest == digest && !old.Catalog.Pending {
		c.freshen(sess, got)
		return
	}
	var l *admit.Listing
	if old != nil && old.Digest == digest {
		confirmed := *old
		confirmed.Catalog.Pending = false
		l = &confirmed
	} else {
		l = offer.Admit(c.cfg, c.redact)
	}
	c.mu.Lock()
	if c.first == nil && old != nil && !foreign {
		c.first = old.Descriptions()
	}
	c.listing, c.foreign, c.fresh.held = l, false, true
	if c.shrunk = (time.Time{}); shorter {
		c.shrunk = time.Now()
	}
	news := c.compare(l)
	c.group.changed() // before anybody sees the listing: else the surfaces would seem to show it already
	c.mu.Unlock()
	c.logListing(l, news)
	c.freshen(sess, got)
	if c.group.catalogs != nil && c.cached != digest && c.unsaved == nil {
		c.unsaved = time.AfterFunc(saveAfter, c.save)
	}
}

// isShort reports that a list became shorter within the last hour, at most once a minute: some servers leave out what
// they have, such as while they start.
func (c *catalog) isShort() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := time.Since(c.shrunk) < time.Hour && time.Since(c.again) >= time.Minute
	if is {
		c.again = time.Now()
	}
	return is
}

// logListing logs what a person should know of a new listing. news are the tools that are described
// otherwise than before.
func (c *catalog) logListing(l *admit.Listing, news []string) {
	all := l.Catalog
	c.log.Info("catalog of the server is known", "tools", len(all.Tools), "repaired", l.Repaired,
		"excluded", len(all.Excluded),
		"prompts", len(all.Prompts), "resources", len(all.Resources), "templates", len(all.Templates))
	if n := len(l.Limited); n > 0 {
		c.log.Warn("the server lists more than its limits allow", "times", n, "first", c.redact.Text(l.Limited[0]))
	}
	if n := len(news); n > 0 {
		c.log.Warn("tools are described otherwise than at the last start: look at them before a model uses them",
			"times", n,
			"tools", strings.Join(news, ", "))
	}
	if n := len(l.Findings); n > 0 {
		c.log.Warn("the server's descriptions hold hidden characters", "times", n,
			"first", l.Findings[0].About+": "+l.Findings[0].Reason)
	}
}

// compare notes which tools are described otherwise than at first, and returns those that were not
// before. c.mu is held.
func (c *catalog) compare(l *admit.Listing) (news []string) {
	now := l.Descriptions()
	if c.first == nil {
		c.first = now
	}
	var changed []string
	for name, description := range now {
		if first, known := c.first[name]; known && first != description {
			changed = append(changed, c.redact.Text(name))
		}
	}
	slices.Sort(changed)
	for _, name := range changed {
		if !slices.Contains(c.changed, name) {
			news = append(news, name)
		}
	}
	c.changed = changed
	return news
}

// noteUnlisted notes why a list was not read, for the server's status.
func (c *catalog) noteUnlisted(l lists.List, f *fault.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unlisted[l] = f
}

// freshen notes what the server of sess said of what it has just listed. What an earlier session
// said does not count any more.
func (c *catalog) freshen(sess *session, got listed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fresh.of != sess {
		c.fresh = freshness{of: sess}
	}
	c.fresh.held = false
	for l := range lists.Count {
		if got[l] != nil || !sess.offers(l.Kind()) {
			c.unlisted[l] = nil
		}
		if got[l] != nil {
			c.fresh.lists[l] = got[l].fresh
		}
	}
}

// expire notes that what was said of some lists does not hold any more.
func (c *catalog) expire(all ...lists.List) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range all {
		c.fresh.lists[l] = tool.Freshness{}
	}
}

// freshness returns what can be said of a list; ok is false where the server has no such list. connected says that the
// server is connected or asleep: otherwise it lists anew when it is back.
func (c *catalog) freshness(l lists.List, connected bool) (f tool.Freshness, ok bool) {
	if c.cfg.Disabled {
		return f, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sess := c.fresh.of
	switch {
	case sess == nil || c.fresh.held || !connected:
		return f, true
	case !sess.offers(l.Kind()):
		return f, false
	case len(sess.changed[l.Kind()]) > 0:
		return f, true // it has told of a change that has not been looked at
	}
	return c.fresh.lists[l], true
}

// current returns the listing, nil before the first, and whether the server itself has listed it,
// be it at an earlier start.
func (c *catalog) current() (l *admit.Listing, own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listing, c.listing != nil && !c.foreign
}

// isKnown reports whether it is known what the server offers, be it from an earlier start.
func (c *catalog) isKnown() bool {
	_, own := c.current()
	return own
}

// snapshot returns the latest known catalog. needs comes from lifecycle.outlook.
func (c *catalog) snapshot(needs string) tool.Catalog {
	l, _ := c.current()
	if l == nil {
		return tool.Catalog{Server: c.cfg.ID, Source: tool.SourceMCP, Tags: c.cfg.Tags, Pending: !c.cfg.Disabled,
			Needs: needs}
	}
	all := l.Catalog
	all.Needs = needs
	return all
}

// report fills in what a person can see of the catalog.
func (c *catalog) report(st *tool.ServerStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.unlisted {
		if f != nil && st.State == tool.ServerReady && st.LastError == "" {
			st.LastError, st.Hint = c.redact.Beginning(f.What, secret.MaxMessage)+": that list stays as it was", f.Hint
		}
	}
	if l := c.listing; l != nil {
		st.Tools, st.Repaired, st.Excluded = len(l.Catalog.Tools), l.Repaired, l.Catalog.Excluded
		st.Prompts, st.Resources, st.Templates = len(l.Catalog.Prompts), len(l.Catalog.Resources),
			len(l.Catalog.Templates)
		st.Cached, st.Known = l.Catalog.Pending, !c.foreign
		st.Findings, st.Changed = l.Findings, slices.Clone(c.changed)
	}
}

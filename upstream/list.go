package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

const (
	// minListInterval is the shortest time between two listings, however often a server says that its tools changed.
	minListInterval = 250 * time.Millisecond
)

// listing is a published catalog with what the hub needs to call its tools.
type listing struct {
	catalog  tool.Catalog
	offer    offer // what it was made from
	digest   [sha256.Size]byte
	bindings map[string][]paramheader.Binding // by the tool's own name
	repaired int
	limited  []string // which limits were hit, and what came of it
	findings []tool.Finding
}

// listed is what a server has just listed.
type listed struct {
	raw   [lists][]json.RawMessage
	fresh [lists]tool.Freshness
	known [lists]bool // false for a list that was not read
}

// read is one list that was read.
type read struct {
	raw   []json.RawMessage
	fresh tool.Freshness
}

func (got *listed) set(l list, r read) { got.raw[l], got.fresh[l], got.known[l] = r.raw, r.fresh, true }

// listAll reads all that the server offers. What cannot be read besides tools costs nothing but itself: it stays as it
// was known, and where the server is only slow, that is read later.
func (s *server) listAll(ctx context.Context, sess *session) (listed, *fault.Fault) {
	var got listed
	patient, cancel := context.WithTimeout(ctx, s.probeTime())
	defer cancel()
	var others sync.WaitGroup
	for l := promptList; l < lists; l++ {
		if !sess.offers(l.kind()) {
			s.noteListed(l, nil)
			continue
		}
		others.Go(func() {
			read, f := s.list(patient, sess, l)
			switch {
			case f == nil:
				got.set(l, read)
				s.noteListed(l, nil)
			case patient.Err() != nil:
				sess.listChanged(l.kind())
			case !sess.isOver():
				s.log.Warn("the server offers what it does not list", "list", l.method(), "error", f.What)
				s.noteListed(l, f)
			}
		})
	}
	tools, f := s.list(ctx, sess, toolList)
	if f != nil {
		cancel()
	}
	others.Wait()
	if f == nil {
		got.set(toolList, tools)
		s.noteListed(toolList, nil)
	}
	return got, f
}

// noteListed notes why a list was not read, for the server's status; nil where it was.
func (s *server) noteListed(l list, f *fault.Fault) {
	if s.use == useSession {
		s = s.isolation.server // its status shows what it offers
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlisted[l] = f
}

// list reads all pages of one list within the list timeout. It is empty where the server does not have it.
func (s *server) list(ctx context.Context, sess *session, l list) (all read, f *fault.Fault) {
	if !sess.offers(l.kind()) {
		return all, nil
	}
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.List)
	defer cancel()
	seen := map[string]bool{}
	size, cursor, limits := 0, "", s.cfg.Limits
	for page := 1; ; page++ {
		c := newLaneCall(s.nextID(), l.method(), listParams(cursor, sess.hop))
		asked := time.Now()
		sess.lane.send(limited, c)
		a := await(limited, sess.lane, c)
		if rpc := (*tool.RPCError)(nil); l != toolList && errors.As(a.err, &rpc) && rpc.Code == tool.CodeMethodNotFound {
			return read{}, nil // many servers of resources know no templates
		}
		if a.err != nil {
			return read{}, s.listFault(ctx, sess, l, page, a)
		}
		size += len(a.result)
		part, next, err := readPage(a.result, l)
		if err != nil {
			return read{}, &fault.Fault{What: l.method() + ": " + err.Error(), Hint: "report this to whoever maintains the server"}
		}
		all.raw = append(all.raw, part...)
		if fresh := freshnessOf(sess, a.result, asked); page == 1 {
			all.fresh = fresh
		} else {
			all.fresh = all.fresh.And(fresh)
		}
		switch {
		case size > limits.Catalog:
			return read{}, &fault.Fault{
				What: fmt.Sprintf("%s is larger than %s (%s)", l.method(), settings.SizeText(limits.Catalog), settings.LimitCatalog),
				Hint: fmt.Sprintf("list fewer or shorter %ss on the server, or %s", l.noun(), settings.Raise(settings.LimitCatalog)),
			}
		case next == "":
			return all, nil
		case seen[next]:
			s.log.Warn("the server repeats a page of a list: what it listed up to there counts", "list", l.method(), "pages", page)
			return all, nil
		case page >= limits.Pages:
			return read{}, &fault.Fault{
				What: fmt.Sprintf("%s did not end within %s (%s)", l.method(), count(limits.Pages, "page"), settings.LimitPages),
				Hint: "report this to whoever maintains the server; if it is right, " + settings.Raise(settings.LimitPages),
			}
		}
		seen[next] = true
		cursor = next
	}
}

func (s *server) listFault(ctx context.Context, sess *session, l list, page int, a answer) *fault.Fault {
	var rpc *tool.RPCError
	var f *tool.Failure
	var large *oversize
	switch {
	case errors.As(a.err, &large):
		return large.fault(l.method())
	case errors.Is(a.err, context.DeadlineExceeded) && ctx.Err() == nil:
		return &fault.Fault{What: fmt.Sprintf("%s did not end within %s (page %d)", l.method(), s.cfg.Timeouts.List, page),
			Hint: "if the server is only slow, raise timeouts.list", Cause: a.err}
	case errors.As(a.err, &rpc):
		return &fault.Fault{What: fmt.Sprintf("%s was refused: %s (JSON-RPC error %d)", l.method(), s.redact.Text(rpc.Message), rpc.Code),
			Hint: "see the server's own log", Cause: a.err}
	case errors.As(a.err, &f) && f.Code == codeConnectionLost:
		if over := s.overFor(ctx, sess, f); over != nil {
			return over
		}
		return &fault.Fault{What: "the connection was lost before " + l.method() + " was answered", Hint: "see the server's own log", Cause: a.err}
	case errors.As(a.err, &f):
		return &fault.Fault{What: l.method() + ": " + s.redact.Text(f.Message), Hint: "see the server's own log",
			Auth: f.Class == tool.ClassCredentialMissing, Lost: a.lost, Pause: f.RetryAfter, Cause: a.err}
	}
	return &fault.Fault{What: l.method() + " was interrupted", Cause: a.err}
}

// readPage takes a page of a list apart. The elements alias result.
func readPage(result json.RawMessage, l list) (all []json.RawMessage, next string, err error) {
	array, ok := rawjson.Get(result, l.member())
	if !ok {
		return nil, "", fmt.Errorf("the result has no %s", l.member())
	}
	err = rawjson.Elements(array, func(one []byte) bool {
		all = append(all, one)
		return true
	})
	if err != nil {
		return nil, "", fmt.Errorf("%s is no array", l.member())
	}
	raw, _ := rawjson.Get(result, "nextCursor")
	next, _ = rawjson.String(raw)
	return all, next, nil
}

// keepListed lists what changes of kind k for as long as ctx lasts. However often the server says so, it is asked now and
// then only, and a list that hangs holds up none of another kind.
func (s *server) keepListed(ctx context.Context, sess *session, k kind) {
	gate := time.NewTimer(minListInterval) // the session was listed a moment ago
	defer gate.Stop()
	for {
		select {
		case <-gate.C:
		case <-ctx.Done():
			return
		}
		select {
		case <-sess.changed[k]:
		case <-ctx.Done():
			return
		}
		s.spoil(k.lists()...)
		var got listed
		for _, l := range k.lists() {
			read, f := s.list(ctx, sess, l)
			if f == nil {
				got.set(l, read)
				s.noteListed(l, nil)
			} else if ctx.Err() == nil && !sess.isOver() {
				s.log.Warn(l.noun()+"s could not be listed again: the catalog stays as it was", "error", f.What)
				s.noteListed(l, f)
			}
		}
		if ctx.Err() == nil {
			s.publish(sess, got)
			s.onRestate(k)
		}
		gate.Reset(minListInterval)
	}
}

// keepTold passes on that a session's server tells of changes of kind k, for as long as ctx lasts.
func (s *server) keepTold(ctx context.Context, sess *session, k kind) {
	for {
		select {
		case <-sess.changed[k]:
			s.onRestate(k)
		case <-ctx.Done():
			return
		}
	}
}

// publish admits what the server listed and makes it the server's catalog, unless it is the one that stands. What was not
// listed now stays as it was.
func (s *server) publish(sess *session, got listed) {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.mu.Lock()
	old, foreign := s.listing, s.foreign
	s.mu.Unlock()
	offer := sess.offer()
	offer.Title, offer.Instructions = s.redact.Secrets(offer.Title), s.redact.Secrets(offer.Instructions)
	if old != nil {
		offer.sound = old.offer.sound
	}
	for l := range lists {
		switch {
		case got.known[l]:
			offer.Lists[l] = got.raw[l]
		case old != nil && !foreign && sess.offers(l.kind()):
			offer.Lists[l] = old.offer.Lists[l]
		}
	}
	digest := offer.digest()
	if old != nil && old.digest == digest && !old.catalog.Pending {
		s.freshen(sess, got)
		return
	}
	var l *listing
	if old != nil && old.digest == digest {
		confirmed := *old
		confirmed.catalog.Pending = false
		l = &confirmed
	} else {
		l = s.admit(offer)
	}
	s.mu.Lock()
	s.listing, s.foreign, s.fresh.held = l, false, true
	news := s.compare(l.catalog)
	s.mu.Unlock()
	c := l.catalog
	s.log.Info("catalog of the server is known", "tools", len(c.Tools), "repaired", l.repaired, "excluded", len(c.Excluded),
		"prompts", len(c.Prompts), "resources", len(c.Resources), "templates", len(c.Templates))
	if n := len(l.limited); n > 0 {
		s.log.Warn("the server lists more than its limits allow", "times", n, "first", s.redact.Text(l.limited[0]))
	}
	s.tellOfCatalog(l, news)
	s.onChange()
	s.freshen(sess, got)
	s.remember(l)
}

func orText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

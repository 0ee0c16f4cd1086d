package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// minListInterval is the shortest time between two listings, however often a server says that its tools changed. It
// doubles up to maxListInterval while the server has always said so again by then: some do with each listing.
const (
	minListInterval = 250 * time.Millisecond
	maxListInterval = 30 * time.Second
)

// read is one list that was read.
type read struct {
	raw   []json.RawMessage
	fresh tool.Freshness
}

func (got *listed) set(l lists.List, r read) {
	got.raw[l], got.fresh[l], got.known[l] = r.raw, r.fresh, true
}

// listAll reads all that the server offers. What cannot be read besides tools costs nothing but itself: it stays as it
// was known, and where the server is only slow, that is read later.
func (s *server) listAll(ctx context.Context, sess *session) (listed, *fault.Fault) {
	var got listed
	patient, cancel := context.WithTimeout(ctx, s.probeTime())
	defer cancel()
	var others sync.WaitGroup
	for l := lists.Prompts; l < lists.Count; l++ {
		if !sess.offers(l.Kind()) {
			s.catalog.noteUnlisted(l, nil)
			continue
		}
		others.Go(func() {
			read, f := s.list(patient, sess, l)
			switch {
			case f == nil:
				got.set(l, read)
				s.catalog.noteUnlisted(l, nil)
			case patient.Err() != nil:
				sess.listChanged(l.Kind())
			case !wait.IsClosed(sess.ended):
				s.log.Warn("the server offers what it does not list", "list", l.Method(), "error", f.What)
				s.catalog.noteUnlisted(l, f)
			}
		})
	}
	tools, f := s.list(ctx, sess, lists.Tools)
	if f != nil {
		cancel()
	}
	others.Wait()
	if f == nil {
		got.set(lists.Tools, tools)
		s.catalog.noteUnlisted(lists.Tools, nil)
	}
	return got, f
}

// list reads all pages of one list within the list timeout. It is empty where the server does not have it.
func (s *server) list(ctx context.Context, sess *session, l lists.List) (all read, f *fault.Fault) {
	if !sess.offers(l.Kind()) || l == lists.Resources && s.cfg.OAuth.PerCaller { // see Group.Personal
		return all, nil
	}
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.List)
	defer cancel()
	seen := map[string]bool{}
	var cursor *string
	size, limits := 0, s.cfg.Limits
	for page := 1; ; page++ {
		c := newLaneCall(s.ids.Add(1), &tool.Request{Method: l.Method()}, sess.hop.ListParams(cursor))
		asked := time.Now()
		a := sess.await(limited, c)
		if rpc := (*tool.RPCError)(nil); l != lists.Tools && errors.As(a.err, &rpc) &&
			rpc.Code == tool.CodeMethodNotFound {
			return read{}, nil // many servers of resources know no templates
		}
		if a.err != nil {
			return read{}, s.listFault(ctx, sess, l, page, a)
		}
		size += len(a.result)
		part, next, err := l.ReadPage(a.result)
		if err != nil {
			return read{}, &fault.Fault{What: l.Method() + ": " + err.Error(),
				Hint: "report this to whoever maintains the server"}
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
				What: fmt.Sprintf("%s is larger than %s", l.Method(), settings.SizeText(limits.Catalog)),
				Hint: fmt.Sprintf("list fewer or shorter %ss on the server", l.Noun()),
			}
		case next == nil, *next == "" && sess.hop == nil: // on 2026-07-28 "an empty string is a valid cursor"
			return all, nil
		case seen[*next]:
			s.log.Warn("the server repeats a page of a list: what it listed up to there counts", "list", l.Method(),
				"pages", page)
			return all, nil
		case page >= limits.Pages:
			return read{}, &fault.Fault{
				What: fmt.Sprintf("%s did not end within %s", l.Method(), count(limits.Pages, "page")),
				Hint: "report this to whoever maintains the server",
			}
		}
		seen[*next] = true
		cursor = next
	}
}

func (s *server) listFault(ctx context.Context, sess *session, l lists.List, page int, a response) *fault.Fault {
	var rpc *tool.RPCError
	var f *tool.Failure
	var large *jsonrpc.TooLarge
	switch {
	case errors.As(a.err, &large):
		return transport.OversizeFault(large, l.Method())
	case errors.Is(a.err, context.DeadlineExceeded) && ctx.Err() == nil:
		return &fault.Fault{What: fmt.Sprintf("%s did not end within %s (page %d)", l.Method(), s.cfg.Timeouts.List,
			page),
			Hint: "if the server is only slow, raise timeout of its entry", Cause: a.err}
	case errors.As(a.err, &rpc):
		return &fault.Fault{What: fmt.Sprintf("%s was refused: %s (JSON-RPC error %d)", l.Method(),
			s.redact.Text(rpc.Message), rpc.Code),
			Hint: "see the server's own log", Cause: a.err}
	case errors.As(a.err, &f) && f.Code == codeConnectionLost:
		if over := s.overFor(ctx, sess, f); over != nil {
			return over
		}
		return &fault.Fault{What: "the connection was lost before " + l.Method() + " was answered",
			Hint: "see the server's own log", Cause: a.err}
	case errors.As(a.err, &f) && f.Code == codeNeedsSignIn:
		what, _, _ := strings.Cut(f.Message, mendIt)
		return fault.NeedsSignIn(s.cfg, l.Method()+": "+s.redact.Text(what), a.err)
	case errors.As(a.err, &f):
		return &fault.Fault{What: l.Method() + ": " + s.redact.Text(f.Message), Hint: "see the server's own log",
			Auth: f.Class == tool.ClassCredentialMissing, Lost: a.lost, Pause: f.RetryAfter, Cause: a.err}
	}
	return &fault.Fault{What: l.Method() + " was interrupted", Cause: a.err}
}

// keepListed lists what changes of kind k, and passes on that it changes, for as long as ctx lasts.
// However often the server says so, that is now and then only, and a list that hangs holds up none of
// another kind. What one session's server adds for it is no change of what all are offered.
func (s *server) keepListed(ctx context.Context, sess *session, k lists.Kind) {
	person := ""
	if s.cfg.OAuth.PerCaller {
		person = s.client.Person
	}
	interval := minListInterval
	gate := time.NewTimer(interval) // the session was listed a moment ago
	defer gate.Stop()
	for {
		select {
		case <-gate.C:
		case <-ctx.Done():
			return
		}
		if interval = min(2*interval, maxListInterval); len(sess.changed[k]) == 0 {
			interval = minListInterval
		}
		select {
		case <-sess.changed[k]:
		case <-ctx.Done():
			return
		}
		if s.use != useSession {
			s.listAgain(ctx, sess, k)
		}
		if ctx.Err() == nil {
			s.group.restate(s.cfg.ID, person, k)
		}
		gate.Reset(interval)
	}
}

// listAgain reads the lists that change with k.
func (s *server) listAgain(ctx context.Context, sess *session, k lists.Kind) {
	s.catalog.expire(k.Lists()...)
	var got listed
	for _, l := range k.Lists() {
		read, f := s.list(ctx, sess, l)
		if f == nil {
			got.set(l, read)
			s.catalog.noteUnlisted(l, nil)
		} else if ctx.Err() == nil && !wait.IsClosed(sess.ended) {
			s.log.Warn(l.Noun()+"s could not be listed again: the catalog stays as it was", "error", f.What)
			s.catalog.noteUnlisted(l, f)
		}
	}
	if ctx.Err() == nil {
		s.catalog.publish(sess, got)
	}
}

// maxTTL is the longest ttlMs that a duration holds. Servers that say more are taken to say that.
const maxTTL = math.MaxInt64 / int64(time.Millisecond)

// freshnessOf reads what a page of a list, which was asked for at that time, says of itself. Before
// 2026-07-28 the members mean nothing. "ttlMs" counts from when the result is received, which is no
// earlier.
func freshnessOf(sess *session, result json.RawMessage, asked time.Time) (f tool.Freshness) {
	if sess.hop == nil {
		return f
	}
	raw, _ := rawjson.Get(result, "ttlMs")
	if ms, err := strconv.ParseInt(string(raw), 10, 64); err == nil && ms > 0 {
		f.Until = asked.Add(time.Duration(min(ms, maxTTL)) * time.Millisecond)
	}
	f.Public = rawjson.Text(result, "cacheScope") == "public"
	return f
}

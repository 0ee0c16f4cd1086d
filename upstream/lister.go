package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

const (
	// minListInterval is the shortest time between two listings, however often a server says that its tools changed.
	minListInterval = 250 * time.Millisecond
)

// lister reads the lists of the server of one connection, at first and again when they change.
type lister struct {
	*entry
	catalog   *catalog
	onRestate func(kind) // the server has told of a change, which may be none
}

// read is one list that was read.
type read struct {
	raw   []json.RawMessage
	fresh tool.Freshness
}

func (got *listed) set(l list, r read) { got.raw[l], got.fresh[l], got.known[l] = r.raw, r.fresh, true }

// listAll reads all that the server offers. What cannot be read besides tools costs nothing but itself: it stays as it
// was known, and where the server is only slow, that is read later.
func (r *lister) listAll(ctx context.Context, sess *session) (listed, *fault.Fault) {
	var got listed
	patient, cancel := context.WithTimeout(ctx, r.probeTime())
	defer cancel()
	var others sync.WaitGroup
	for l := promptList; l < lists; l++ {
		if !sess.offers(l.kind()) {
			r.catalog.noteUnlisted(l, nil)
			continue
		}
		others.Go(func() {
			read, f := r.list(patient, sess, l)
			switch {
			case f == nil:
				got.set(l, read)
				r.catalog.noteUnlisted(l, nil)
			case patient.Err() != nil:
				sess.listChanged(l.kind())
			case !sess.isOver():
				r.log.Warn("the server offers what it does not list", "list", l.method(), "error", f.What)
				r.catalog.noteUnlisted(l, f)
			}
		})
	}
	tools, f := r.list(ctx, sess, toolList)
	if f != nil {
		cancel()
	}
	others.Wait()
	if f == nil {
		got.set(toolList, tools)
		r.catalog.noteUnlisted(toolList, nil)
	}
	return got, f
}

// list reads all pages of one list within the list timeout. It is empty where the server does not have it.
func (r *lister) list(ctx context.Context, sess *session, l list) (all read, f *fault.Fault) {
	if !sess.offers(l.kind()) {
		return all, nil
	}
	limited, cancel := context.WithTimeout(ctx, r.cfg.Timeouts.List)
	defer cancel()
	seen := map[string]bool{}
	size, cursor, limits := 0, "", r.cfg.Limits
	for page := 1; ; page++ {
		c := newLaneCall(r.nextID(), l.method(), listParams(cursor, sess.hop))
		asked := time.Now()
		sess.lane.send(limited, c)
		a := await(limited, sess.lane, c)
		if rpc := (*tool.RPCError)(nil); l != toolList && errors.As(a.err, &rpc) && rpc.Code == tool.CodeMethodNotFound {
			return read{}, nil // many servers of resources know no templates
		}
		if a.err != nil {
			return read{}, r.listFault(ctx, sess, l, page, a)
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
			r.log.Warn("the server repeats a page of a list: what it listed up to there counts", "list", l.method(), "pages", page)
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

func (r *lister) listFault(ctx context.Context, sess *session, l list, page int, a answer) *fault.Fault {
	var rpc *tool.RPCError
	var f *tool.Failure
	var large *oversize
	switch {
	case errors.As(a.err, &large):
		return large.fault(l.method())
	case errors.Is(a.err, context.DeadlineExceeded) && ctx.Err() == nil:
		return &fault.Fault{What: fmt.Sprintf("%s did not end within %s (page %d)", l.method(), r.cfg.Timeouts.List, page),
			Hint: "if the server is only slow, raise timeouts.list", Cause: a.err}
	case errors.As(a.err, &rpc):
		return &fault.Fault{What: fmt.Sprintf("%s was refused: %s (JSON-RPC error %d)", l.method(), r.redact.Text(rpc.Message), rpc.Code),
			Hint: "see the server's own log", Cause: a.err}
	case errors.As(a.err, &f) && f.Code == codeConnectionLost:
		if over := r.overFor(ctx, sess, f); over != nil {
			return over
		}
		return &fault.Fault{What: "the connection was lost before " + l.method() + " was answered", Hint: "see the server's own log", Cause: a.err}
	case errors.As(a.err, &f):
		return &fault.Fault{What: l.method() + ": " + r.redact.Text(f.Message), Hint: "see the server's own log",
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
func (r *lister) keepListed(ctx context.Context, sess *session, k kind) {
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
		r.catalog.expire(k.lists()...)
		var got listed
		for _, l := range k.lists() {
			read, f := r.list(ctx, sess, l)
			if f == nil {
				got.set(l, read)
				r.catalog.noteUnlisted(l, nil)
			} else if ctx.Err() == nil && !sess.isOver() {
				r.log.Warn(l.noun()+"s could not be listed again: the catalog stays as it was", "error", f.What)
				r.catalog.noteUnlisted(l, f)
			}
		}
		if ctx.Err() == nil {
			r.catalog.publish(sess, got)
			r.onRestate(k)
		}
		gate.Reset(minListInterval)
	}
}

// keepTold passes on that a session's server tells of changes of kind k, for as long as ctx lasts.
func (r *lister) keepTold(ctx context.Context, sess *session, k kind) {
	for {
		select {
		case <-sess.changed[k]:
			r.onRestate(k)
		case <-ctx.Done():
			return
		}
	}
}

// maxTTL is the longest ttlMs that a duration holds. Servers that say more are taken to say that.
const maxTTL = math.MaxInt64 / int64(time.Millisecond)

// freshnessOf reads what a page of a list, which was asked for at that time, says of itself. Before 2026-07-28 the members
// mean nothing. "ttlMs" counts from when the result is received, which is no earlier.
func freshnessOf(sess *session, result json.RawMessage, asked time.Time) (f tool.Freshness) {
	if sess.hop == nil {
		return f
	}
	raw, _ := rawjson.Get(result, "ttlMs")
	if ms, err := strconv.ParseInt(string(raw), 10, 64); err == nil && ms > 0 {
		f.Until = asked.Add(time.Duration(min(ms, maxTTL)) * time.Millisecond)
	}
	f.Public = text(result, "cacheScope") == "public"
	return f
}

func orText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// list is one of the lists that a server offers. All are read, kept and admitted in the same way.
type list int

const (
	toolList list = iota
	promptList
	resourceList
	templateList
	lists // how many there are
)

// kind is what a server announces changes of: templates change with resources.
type kind int

const (
	toolKind kind = iota
	promptKind
	resourceKind
	kinds // how many there are
)

// method is the request that returns a page of the list.
func (l list) method() string {
	return [...]string{methodListTools, "prompts/list", "resources/list", "resources/templates/list"}[l]
}

// member is the member of a page's result that holds the elements.
func (l list) member() string {
	return [...]string{"tools", "prompts", "resources", "resourceTemplates"}[l]
}

// key is the member of an element by which it is told from the others.
func (l list) key() string { return [...]string{"name", "name", "uri", "uriTemplate"}[l] }

// noun is what an element is called in messages.
func (l list) noun() string {
	return [...]string{"tool", "prompt", "resource", "resource template"}[l]
}

func (l list) kind() kind {
	return [...]kind{toolKind, promptKind, resourceKind, resourceKind}[l]
}

// lists are the lists that change with k.
func (k kind) lists() []list {
	return [...][]list{{toolList}, {promptList}, {resourceList, templateList}}[k]
}

// changed is the notification that tells of a change.
func (k kind) changed() string {
	return [...]string{noteToolsChanged, "notifications/prompts/list_changed", "notifications/resources/list_changed"}[k]
}

// filter is the member of a subscriptions/listen that asks for that notification.
func (k kind) filter() string {
	return [...]string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"}[k]
}

// listOf returns the list that method reads.
func listOf(method string) (list, bool) {
	for l := range lists {
		if l.method() == method {
			return l, true
		}
	}
	return 0, false
}

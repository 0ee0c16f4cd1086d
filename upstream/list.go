package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
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
}

// list reads all pages of the server's tools within the list timeout. The error is a *fault.
func (s *server) list(ctx context.Context, sess *session) ([]json.RawMessage, *fault) {
	if !sess.offersTools {
		return nil, nil
	}
	limited, cancel := context.WithTimeout(ctx, s.timeouts.List)
	defer cancel()
	var tools []json.RawMessage
	seen := map[string]bool{}
	size, cursor, limits := 0, "", s.limits()
	for page := 1; ; page++ {
		c := newLaneCall(s.nextID(), methodListTools, listParams(cursor, sess.hop))
		sess.lane.send(limited, c)
		a := await(limited, sess.lane, c)
		if a.err != nil {
			return nil, s.listFault(ctx, page, a)
		}
		size += len(a.result)
		part, next, err := readPage(a.result)
		if err != nil {
			return nil, &fault{what: "tools/list: " + err.Error(), hint: "report this to whoever maintains the server"}
		}
		tools = append(tools, part...)
		switch {
		case size > limits.Catalog:
			return nil, &fault{
				what: fmt.Sprintf("tools/list is larger than %s (%s)", sizeText(limits.Catalog), limitCatalog),
				hint: "list fewer or shorter tools on the server, or " + raise(limitCatalog),
			}
		case next == "":
			return tools, nil
		case seen[next]:
			s.log.Warn("the server repeats a page of tools/list: what it listed up to there counts", "pages", page)
			return tools, nil
		case page >= limits.Pages:
			return nil, &fault{
				what: fmt.Sprintf("tools/list did not end within %s (%s)", count(limits.Pages, "page"), limitPages),
				hint: "report this to whoever maintains the server; if it is right, " + raise(limitPages),
			}
		}
		seen[next] = true
		cursor = next
	}
}

func (s *server) listFault(ctx context.Context, page int, a answer) *fault {
	var rpc *tool.RPCError
	var f *tool.Failure
	var large *oversize
	switch {
	case errors.As(a.err, &large):
		return large.fault("tools/list")
	case errors.Is(a.err, context.DeadlineExceeded) && ctx.Err() == nil:
		return &fault{what: fmt.Sprintf("tools/list did not end within %s (page %d)", s.timeouts.List, page),
			hint: "if the server is only slow, raise timeouts.list", cause: a.err}
	case errors.As(a.err, &rpc):
		return &fault{what: fmt.Sprintf("tools/list was refused: %s (JSON-RPC error %d)", s.redact.text(rpc.Message), rpc.Code),
			hint: "see the server's own log", cause: a.err}
	case errors.As(a.err, &f):
		return &fault{what: "tools/list: " + s.redact.text(f.Message), hint: "see the server's own log", auth: f.Class == tool.ClassCredentialMissing,
			lost: a.lost, pause: f.RetryAfter, cause: a.err}
	}
	return &fault{what: "tools/list was interrupted", cause: a.err}
}

// readPage takes a page of tools/list apart. The tools alias result.
func readPage(result json.RawMessage) (tools []json.RawMessage, next string, err error) {
	array, ok := rawjson.Get(result, "tools")
	if !ok {
		return nil, "", errors.New("the result has no tools")
	}
	err = rawjson.Elements(array, func(one []byte) bool {
		tools = append(tools, one)
		return true
	})
	if err != nil {
		return nil, "", errors.New("tools is no array")
	}
	raw, _ := rawjson.Get(result, "nextCursor")
	next, _ = rawjson.String(raw)
	return tools, next, nil
}

// publish admits what the server listed and makes it the server's catalog, unless it is the one that stands.
func (s *server) publish(sess *session, raw []json.RawMessage) {
	offer := offer{Instructions: sess.info.Instructions, Tools: raw}
	if info := sess.info.ServerInfo; info != nil {
		offer.Title = orText(info.Title, info.Name)
	}
	digest := offer.digest()
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.mu.Lock()
	old := s.listing
	s.mu.Unlock()
	if old != nil && old.digest == digest && !old.catalog.Pending {
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
	s.listing, s.foreign = l, false
	s.mu.Unlock()
	s.log.Info("catalog of the server is known", "tools", len(l.catalog.Tools), "repaired", l.repaired,
		"excluded", len(l.catalog.Excluded))
	if n := len(l.limited); n > 0 {
		s.log.Warn("the server lists more than its limits allow", "times", n, "first", s.redact.text(l.limited[0]))
	}
	s.onChange()
	s.remember(l)
}

func orText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

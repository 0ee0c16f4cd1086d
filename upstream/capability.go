//lint:file-ignore SA1019 What 2026-07-28 deprecates is what servers of older revisions are told of.

package upstream

import (
	"context"
	"encoding/json"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// isQuestion reports whether a request of this method asks the client behind a call for something.
func isQuestion(method string) bool {
	return method == tool.MethodElicit || method == tool.MethodSample || method == tool.MethodRoots
}

// offersAll reports whether a server that asks for anything would be told that it may.
func offersAll(c *mcp.ClientCapabilities) bool {
	return c.Sampling != nil && c.Elicitation != nil && c.RootsV2 != nil
}

// offersAny reports whether the server may ask for anything.
func offersAny(c *mcp.ClientCapabilities) bool {
	return c.Sampling != nil || c.Elicitation != nil || c.RootsV2 != nil
}

// clientOffer is what a client says of itself as far as the hub can honour it for a server of up to 2025-11-25. What is
// experimental may need messages that the hub passes on to clients of one server alone.
func clientOffer(says tool.Hop) *mcp.ClientCapabilities {
	c, raw := &mcp.ClientCapabilities{}, says.ClientCapabilities
	if !rawjson.IsObject(raw) || !rawjson.Valid(raw) {
		return c
	}
	if of, ok := ability(raw, "sampling"); ok {
		c.Sampling = &mcp.SamplingCapabilities{}
		if _, ok := ability(of, "tools"); ok {
			c.Sampling.Tools = &mcp.SamplingToolsCapabilities{}
		}
		if _, ok := ability(of, "context"); ok {
			c.Sampling.Context = &mcp.SamplingContextCapabilities{}
		}
	}
	if of, ok := ability(raw, "elicitation"); ok {
		c.Elicitation = &mcp.ElicitationCapabilities{}
		if _, ok := ability(of, "form"); ok {
			c.Elicitation.Form = &mcp.FormElicitationCapabilities{}
		}
		if _, ok := ability(of, "url"); ok {
			c.Elicitation.URL = &mcp.URLElicitationCapabilities{}
		}
	}
	if of, ok := ability(raw, "roots"); ok {
		changes, _ := rawjson.Get(of, "listChanged")
		c.RootsV2 = &mcp.RootCapabilities{ListChanged: string(changes) == "true"}
	}
	c.Extensions = named(raw, "extensions")
	delete(c.Extensions, tool.TaskExtension) // of 2026-07-28: these servers have tasks of another kind
	if says.Direct {
		c.Experimental = named(raw, "experimental")
	}
	return c
}

// named are the members of the capability of that name which are objects; nil where there is none.
func named(capabilities json.RawMessage, name string) map[string]any {
	var all map[string]any
	object, _ := rawjson.Get(capabilities, name)
	_ = rawjson.Members(object, func(m rawjson.Member) bool {
		if rawjson.IsObject(m.Value) {
			if all == nil {
				all = make(map[string]any)
			}
			all[m.Name()] = json.RawMessage(m.Value)
		}
		return true
	})
	return all
}

// ability returns the object by which a client says that it can do something.
func ability(object []byte, name string) ([]byte, bool) {
	value, ok := rawjson.Get(object, name)
	return value, ok && rawjson.IsObject(value)
}

// carried is what a client's hop said of itself as far as the hub can honour it in a request to a server of 2026-07-28:
// there each request says what its client can do. asks says that the client can be asked at all. The rest stays as the
// client wrote it.
func carried(h tool.Hop, asks bool) tool.Hop {
	raw := h.ClientCapabilities
	h.ClientCapabilities = nil
	if !rawjson.IsObject(raw) || !rawjson.Valid(raw) {
		return h
	}
	if h.Revision < modernVersion {
		raw = withoutTasks(raw)
	}
	kept, _, err := rawjson.DeleteFunc(raw, func(m rawjson.Member) bool {
		switch m.Name() {
		case "tasks": // of 2025-11-25: the client's own tasks, which the hub does not offer
			return true
		case "sampling", "elicitation", "roots":
			return !asks
		}
		return false
	})
	if err != nil {
		return h
	}
	if roots, ok := ability(kept, "roots"); ok {
		if still, changes, err := rawjson.Delete(roots, "listChanged"); err == nil && changes {
			if kept, err = rawjson.Set(kept, "roots", still); err != nil {
				return h
			}
		}
	}
	h.ClientCapabilities = kept
	return h
}

// withoutTasks is the capabilities of a client whose revision has no tasks as servers of 2026-07-28 make them.
func withoutTasks(capabilities json.RawMessage) json.RawMessage {
	extensions, ok := ability(capabilities, "extensions")
	if !ok {
		return capabilities
	}
	kept, some, err := rawjson.Delete(extensions, tool.TaskExtension)
	if err != nil || !some {
		return capabilities
	}
	out, err := rawjson.Set(capabilities, "extensions", kept)
	if err != nil {
		return capabilities
	}
	return out
}

// openDesk makes l the session's lane, and lets the server ask through it what the hub has offered to answer. From
// 2026-07-28 on servers send no requests.
func (c *connector) openDesk(sess *session, l lane) {
	sess.lane = l
	if sess.hop != nil {
		l.questions().follow(deskClosed)
		return
	}
	l.questions().follow(c.requestRule())
}

// refuseQuestions keeps the SDK's client from answering for the client behind a call: it would say that there are no
// roots, and let no question on the streams of initialize pass.
func refuseQuestions(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if isQuestion(method) {
			return nil, &sdkrpc.Error{Code: tool.CodeMethodNotFound, Message: errNotOffered.Message}
		}
		return next(ctx, method, req)
	}
}

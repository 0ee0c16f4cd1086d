package downstream

import (
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// elicits notes an elicitation by URL that goes to the client of p, so that it is told when server says that it has ended.
// That is of protocol 2025-11-25: before, there was no such elicitation, and after, nobody is told.
func (s *Server) elicits(p peer, server string, params []byte) {
	if p.modern || p.actor.Client.ProtocolVersion < tasksSince {
		return
	}
	mode, _ := rawjson.Get(params, "mode")
	raw, _ := rawjson.Get(params, "elicitationId")
	id, ok := rawjson.String(raw)
	if kind, _ := rawjson.String(mode); kind != "url" || !ok || id == "" || len(id) > maxLinkLength {
		return
	}
	for _, connection := range []string{"", p.session.Key} { // whichever of the two the server has
		s.belongings.add(&belonging{thing: thing{server: server, connection: connection, kind: anElicitation, id: id}, caller: p.caller,
			session: p.session.Key, answered: true})
	}
}

// maxElicitations bounds those of one error whose end its client is told.
const maxElicitations = 100

// elicitsFirst is elicits for those that an error wants before the call is repeated.
func (s *Server) elicitsFirst(p peer, server string, err *tool.RPCError) {
	if err.Code != tool.CodeURLElicitationRequired {
		return
	}
	list, _ := rawjson.Get(err.Data, "elicitations")
	n := 0
	_ = rawjson.Elements(list, func(e []byte) bool {
		s.elicits(p, server, e)
		n++
		return n < maxElicitations
	})
}

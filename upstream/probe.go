package upstream

import (
	"sync"
	"time"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// probe watches the SDK's first question to a server, server/discover. A server of an older revision may ignore it, as
// it may ignore everything before initialize. After patience the SDK is told that the method is unknown, so that it
// goes on to initialize on the same connection.
type probe struct {
	patience time.Duration

	mu      sync.Mutex
	id      sdkrpc.ID
	timer   *time.Timer
	sent    bool // discover was sent
	settled bool // answered, by the server or by the probe
	expired bool // answered by the probe
}

// start begins to watch the request id; deliver receives the answer in the server's stead.
func (p *probe) start(id sdkrpc.ID, deliver func(sdkrpc.Message)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.id, p.sent, p.settled, p.expired = id, true, false, false
	p.timer = time.AfterFunc(p.patience, func() {
		p.mu.Lock()
		late := p.settled || p.id != id
		if !late {
			p.settled, p.expired = true, true
		}
		p.mu.Unlock()
		if !late {
			deliver(&sdkrpc.Response{ID: id, Error: &sdkrpc.Error{
				Code: sdkrpc.CodeMethodNotFound, Message: "server/discover was not answered",
			}})
		}
	})
}

// answered notes a response, and reports whether it is the answer to a probe that has expired.
func (p *probe) answered(id sdkrpc.ID) (late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.sent || p.id != id {
		return false
	}
	if p.expired {
		return true
	}
	p.settled = true
	p.timer.Stop()
	return false
}

// asked reports whether server/discover was sent.
func (p *probe) asked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// isUnanswered reports whether server/discover was answered in the server's stead.
func (p *probe) isUnanswered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.expired
}

func (p *probe) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

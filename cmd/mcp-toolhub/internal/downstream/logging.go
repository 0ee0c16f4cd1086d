package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// logLevels returns the protocol's levels, the most talkative first.
func logLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

const (
	levelInfo = 1       // of logLevels: for a session that has set none
	noLogs    = 1 << 10 // a level that no message reaches
)

// levelOf returns the rank of a level in logLevels; -1 for what is none.
func levelOf(raw json.RawMessage) int {
	name, ok := rawjson.String(raw)
	if !ok {
		return -1
	}
	return slices.Index(logLevels(), name)
}

// leastLevel returns the level of the log messages that the peer wants of its own calls. On
// 2026-07-28, "if absent, the server MUST NOT send any"; before, a client that has set none leaves
// it to the server.
func (p *peer) leastLevel() int {
	if p.modern {
		if n := levelOf(p.hop.LogLevel); n >= 0 {
			return n
		}
		return noLogs
	}
	if n, set := p.caller.leastLevel(); set {
		return n
	}
	return levelInfo
}

// setLevel serves logging/setLevel.
func (l *wantedLevels) set(_ context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	raw, _ := rawjson.Get(m.Params, "level")
	n := levelOf(raw)
	if n < 0 {
		return invalidParams(fmt.Sprintf("level must be one of %q", logLevels()))
	}
	p.caller.mu.Lock()
	p.caller.level = logLevels()[n]
	p.caller.mu.Unlock()
	l.want(p.session.Key, n, 0)
	if p.session.IsOver() { // whoever drops what the session wanted may have done so before
		l.drop(p.session.Key)
	}
	r.answer(whole([]byte("{}")))
	return nil
}

// ask makes a request tell servers which log messages its sender wants. Servers that know a level
// for the whole connection only keep it low enough.
func (l *wantedLevels) ask(p *peer) {
	if p.modern {
		if n := levelOf(p.hop.LogLevel); n >= 0 {
			l.want("request/"+p.session.Key, n, levelFor)
		}
		return
	}
	p.caller.mu.Lock()
	defer p.caller.mu.Unlock()
	if p.caller.level != "" {
		p.hop.LogLevel = rawjson.Quote(p.caller.level)
	}
}

// levelFor is the time for which a level counts that a single request has asked for.
const levelFor = 10 * time.Minute

// wantedLevels holds the levels of log messages that clients want, and tells servers the most talkative one.
type wantedLevels struct {
	servers interface{ SetLogLevel(level string) } // nil: nobody is told

	mu     sync.Mutex
	wanted map[string]int
	until  map[string]*time.Timer
	told   string
}

// want notes the level that who wants: for a while, or where that is 0 until drop.
func (l *wantedLevels) want(who string, level int, while time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	set(&l.wanted, who, level)
	if while > 0 {
		if t := l.until[who]; t != nil {
			t.Reset(while)
		} else {
			set(&l.until, who, time.AfterFunc(while, func() { l.drop(who) }))
		}
	}
	l.update()
}

// drop forgets the level that who wants.
func (l *wantedLevels) drop(who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.until[who]; t != nil {
		t.Stop()
		delete(l.until, who)
	}
	if _, ok := l.wanted[who]; ok {
		delete(l.wanted, who)
		l.update()
	}
}

// stop stops the timers. Servers are told nothing more.
func (l *wantedLevels) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers = nil
	for _, t := range l.until {
		t.Stop()
	}
}

// update tells the most talkative level. l.mu is held, so that the last one told is the one that counts.
func (l *wantedLevels) update() {
	least, level := noLogs, ""
	for _, n := range l.wanted {
		least = min(least, n)
	}
	if least < noLogs {
		level = logLevels()[least]
	}
	if level != l.told && l.servers != nil {
		l.servers.SetLogLevel(level)
	}
	l.told = level
}

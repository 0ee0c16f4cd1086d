package invoke

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// schedule waits until it is this call's turn at the tool's server, and no other call there conflicts with it.
func (p *Pipeline) schedule(ctx context.Context, inv *invocation) error {
	h := inv.listed.Tool.Hub
	if h != nil && h.Batches || inv.call.Request != nil {
		// a batch's calls take places, and it must not keep them from one; it leaves the line when
		// they have joined
		return p.queue(inv)
	}
	defer inv.call.Arrival.Leave()
	if h == nil {
		inv.call.Arrival.Wait(ctx)
	}
	if err := p.queue(inv); err != nil {
		return err
	}
	member := inv.call.Member
	if member != nil {
		if err := member.turn(ctx); err != nil {
			return becauseOf(ctx, err)
		}
	}
	waits, err := p.scheduler.enter(&inv.place)
	inv.waited = waits || member != nil
	if !waits {
		return err
	}
	inv.call.Arrival.Leave()
	return becauseOf(ctx, p.scheduler.await(ctx, &inv.place, func(n int) {
		p.opts.reportWait(ctx, inv, n, float64(10_000+n)/1e6,
			fmt.Sprintf("queued: waits for its turn at server %q", inv.listed.Tool.Server))
	}))
}

// queue says what the call claims, and has it recorded.
func (p *Pipeline) queue(inv *invocation) error {
	if rates := p.opts.Settings.Gate().Rates; len(rates) > 0 && !inv.resumed {
		if err := p.rates.take(rates, inv, time.Now()); err != nil {
			return err
		}
	}
	t, actor := inv.listed.Tool, &inv.call.Actor
	how := &persist.Scheduling{Concurrency: facts.ConcurrencySafe, Because: "hub_tool"}
	if t.Hub == nil { // a tool of the hub that calls others waits for those, and each of them has its own turn
		c := &inv.facts.Concurrency
		if how.Concurrency, how.Because = c.Value, string(c.Origin); c.Origin == facts.Configured {
			how.Because = "policy.tools"
		}
	}
	claimed := claimOf(how.Concurrency, inv.permitted.Targets)
	by := caller{actor.Door, actor.Name, actor.Session}
	// 2026-07-28 has no sessions: a client is one caller, or each run that it names
	if by.door == "http" && by.session == "" {
		by.session = actor.Client.Name
		if agent := inv.record.Agent; agent != nil && agent.Run != "" {
			by.session = agent.Run
		}
	}
	how.Locks = locksOf(claimed)
	inv.status = tool.StatusQueued
	inv.record.Queue(how, time.Now())
	inv.place = place{server: t.Server, session: inv.call.Session.Key, by: by, claim: claimed}
	return nil
}

// maxLocks bounds the locks that a record names.
const maxLocks = 8

// locksOf returns the locks of a claim, as a record has them.
func locksOf(c claim) (locks []persist.Lock) {
	const exclusive, shared = "exclusive", "shared"
	switch {
	case c.mode == facts.ConcurrencySafe:
		return nil
	case c.mode == facts.ConcurrencyExclusive:
		return []persist.Lock{{Resource: "server", Mode: exclusive}}
	case len(c.targets) == 0:
		return []persist.Lock{{Resource: "caller", Mode: exclusive}}
	}
	for i := range c.targets[:min(len(c.targets), maxLocks)] {
		t, mode := c.targets[i].Shown(), shared
		if t.Write {
			mode = exclusive
		}
		locks = append(locks, persist.Lock{Resource: string(t.Kind) + ":" + t.Resolved, Mode: mode})
	}
	return locks
}

// reportWait tells the client that the call waits, for the nth time, and the journal at the first one.
// Progress must increase: that of waits is small, so that what the tool reports is more.
func (o *Options) reportWait(ctx context.Context, inv *invocation, n int, progress float64, message string) {
	if n == 1 {
		inv.record.Progress(message, nil, time.Now())
		o.note(ctx, inv, "a wait is not in the journal")
	}
	if inv.call.Progress != nil {
		inv.call.Progress(tool.Progress{Params: fmt.Appendf(nil, `{"progress":%v,"message":%s}`, progress,
			rawjson.Quote(forCaller(inv, message)))})
	}
}

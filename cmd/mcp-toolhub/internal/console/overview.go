package console

import (
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// latestCalls is the number of calls on the first page.
const latestCalls = 10

// overview shows what people look for first: what needs them, and what happens.
func (v *visit) overview() (*page, error) {
	p, err := v.person()
	if err != nil {
		return nil, err
	}
	waiting, today := v.Hub.Approvals(), v.today()
	var unwell []serverShown
	count := make(map[tool.ServerState]int)
	for _, s := range v.serversShown(today) {
		if s.Transport == builtin {
			continue
		}
		if count[s.State]++; s.State != tool.ServerReady && s.State != tool.ServerStopped {
			unwell = append(unwell, s)
		}
	}
	q := CallQuery{Limit: latestCalls, Is: make(map[store.Column]string)}
	latest, err := v.Hub.Calls(v.r.Context(), q)
	if err == nil {
		latest, err = v.runningFirst(latest, q)
	}
	if err != nil {
		return nil, err
	}
	chart, hour := bars(today.Hour)
	ready, off := count[tool.ServerReady], count[tool.ServerStopped]
	return &page{Name: "overview", Title: "Overview", Live: true, Data: map[string]any{
		"Ready": ready, "Off": off, "Total": ready + off + len(unwell), "Unwell": unwell[:min(len(unwell), serversPerPage)],
		"Clients": v.Hub.Clients(), "Today": today, "Waiting": v.session.questions(waiting[:min(len(waiting), latestCalls)],
			p),
		"Bars": chart, "Hour": hour, "Latest": latest[:min(len(latest), latestCalls)], "Problems": v.Hub.Problems(),
		"Warnings": v.Hub.Warnings()}}, nil
}

// bar is a minute of the last hour, or what failed of it, in a picture that is barHeight high.
type bar struct {
	X, Y, Height int
	Failed       bool
}

const barHeight = 40

// bars are the calls of an hour, and their sum.
func bars(hour [60]Minute) (all []bar, sum Minute) {
	most := 0
	for _, m := range hour {
		most, sum.Calls, sum.Failed = max(most, m.Calls), sum.Calls+m.Calls, sum.Failed+m.Failed
	}
	for i, m := range hour {
		for _, b := range []bar{{Height: m.Calls}, {Height: m.Failed, Failed: true}} {
			if b.Height > 0 {
				b.X, b.Height = 10*i, max(2, barHeight*b.Height/most)
				b.Y = barHeight - b.Height
				all = append(all, b)
			}
		}
	}
	return all, sum
}

// today sums up the calls of today, as far as the records can be read.
func (v *visit) today() Today {
	today, err := v.Hub.Today(v.r.Context())
	if err != nil {
		v.Logger.Debug("the calls of today are missing on the page", "error", err)
	}
	return today
}

// toolGroup is a part of a server's tools, with sums of all of them.
type toolGroup struct {
	Server        string
	Count, Tokens int
	List          []toolShown
}

// toolShown is a tool in a list.
type toolShown struct {
	control.Tool
	Said
}

// grouped puts n tools of a list, from at on, under their servers. The list is sorted by server.
func grouped(hub Hub, all []control.Tool, at, n int) (groups []toolGroup) {
	for i, t := range all {
		if n == 0 || t.Server < all[at].Server || t.Server > all[at+n-1].Server {
			continue
		}
		if len(groups) == 0 || groups[len(groups)-1].Server != t.Server {
			groups = append(groups, toolGroup{Server: t.Server})
		}
		said := hub.Says(t.ID)
		g := &groups[len(groups)-1]
		if g.Count, g.Tokens = g.Count+1, g.Tokens+said.Tokens; i >= at && i < at+n {
			g.List = append(g.List, toolShown{t, said})
		}
	}
	return groups
}

package console

import (
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// latestCalls is how many calls the first page shows.
const latestCalls = 10

// overview holds the data of the first page.
type overview struct {
	Ready, Off, Total  int // servers of the config
	Unwell             []serverShown
	Clients            int
	Today              Today
	Waiting            []question
	Latest             []Call
	Problems, Warnings []string
	Unread             string // why calls cannot be shown
}

// overview shows what people look for first: what needs them, and what happens.
func (v *visit) overview() (*page, error) {
	o := overview{Clients: v.Hub.Clients(), Problems: v.Hub.Problems(), Warnings: v.Hub.Warnings()}
	var err error
	if o.Today, err = v.Hub.Today(v.r.Context()); err == nil {
		o.Latest, err = v.callsWithRunning(CallQuery{Limit: latestCalls})
	}
	if err != nil {
		o.Unread = sentence(err.Error()) // the servers and what waits are shown all the same
	}
	for _, s := range v.serversShown(o.Today) {
		if s.Transport == builtin {
			continue
		}
		o.Total++
		switch s.State {
		case tool.ServerReady:
			o.Ready++
		case tool.ServerStopped:
			o.Off++
		default:
			o.Unwell = append(o.Unwell, s)
		}
	}
	o.Unwell = o.Unwell[:min(len(o.Unwell), serversPerPage)]
	p, err := v.person()
	if err != nil {
		return nil, err
	}
	for _, a := range v.Hub.Approvals() {
		if len(o.Waiting) < latestCalls {
			o.Waiting = append(o.Waiting, v.question(a, p))
		}
	}
	return &page{Name: "overview", Title: "Overview", Live: true, Data: o}, nil
}

// builtin is the transport of the hub's own tools.
const builtin = "builtin"

// toolGroup is a part of a server's tools, with sums of all of them.
type toolGroup struct {
	Server        string
	Count, Tokens int
	List          []toolShown
}

// toolShown is a tool in a list.
type toolShown struct {
	control.Tool
	Says   string
	Tokens int
}

// grouped puts the tools of a page, which come sorted by server, under their servers.
func (v *visit) grouped(all, shown []control.Tool) (groups []toolGroup) {
	for _, t := range shown {
		if len(groups) == 0 || groups[len(groups)-1].Server != t.Server {
			g := toolGroup{Server: t.Server}
			for _, of := range all {
				if of.Server == t.Server {
					_, tokens := v.Hub.Says(of.ID)
					g.Count, g.Tokens = g.Count+1, g.Tokens+tokens
				}
			}
			groups = append(groups, g)
		}
		g := &groups[len(groups)-1]
		says, tokens := v.Hub.Says(t.ID)
		g.List = append(g.List, toolShown{t, says, tokens})
	}
	return groups
}

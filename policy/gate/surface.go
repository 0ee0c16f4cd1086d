package gate

import (
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// surfaces caches the surfaces without their hidden tools.
type surfaces struct {
	mu   sync.Mutex
	seen map[viewer]seen
}

// viewer is all that hiding depends on besides the surface. Rules look at callers by name, and modes at doors.
type viewer struct{ profile, style, door, name string }

type seen struct{ full, out *tool.Surface }

// maxSurfaces bounds what is kept: one for each kind of caller.
const maxSurfaces = 1000

// Surface returns full without the tools that nothing could ever allow the actor to call. They
// cannot be told from tools that do not exist. The same surface is returned as long as nothing
// changes.
func (g *Gate) Surface(full *tool.Surface, actor tool.Actor) *tool.Surface {
	key := viewer{full.Profile, full.Style, actor.Door, actor.Name}
	g.surfaces.mu.Lock()
	before, ok := g.surfaces.seen[key]
	g.surfaces.mu.Unlock()
	if ok && before.full == full {
		return before.out
	}
	hidden := make(map[tool.Name]string)
	if g.retires || g.Engine.MayHide(actor.Door) { // otherwise facts need not be known yet
		for i := range full.Listed {
			t := full.Listed[i].Tool
			if by, hide := g.Engine.Hides(t, g.Facts(t), full.Profile, actor); hide {
				hidden[t.Name] = by
			}
		}
		g.hideOwn(hidden, full.Profile, actor)
	}
	out := full
	if len(hidden) > 0 {
		out = full.Without(hidden, g.options.HubTools...)
	}
	g.surfaces.mu.Lock()
	defer g.surfaces.mu.Unlock()
	if now, ok := g.surfaces.seen[key]; ok && now.full == full {
		return now.out // somebody was quicker
	}
	if g.surfaces.seen == nil || len(g.surfaces.seen) >= maxSurfaces {
		g.surfaces.seen = make(map[viewer]seen)
	}
	g.surfaces.seen[key] = seen{full, out}
	return out
}

// hideOwn adds the hub's own tools that are hidden. A call of a tool that forwards is judged as one
// of the tool that it names: the forwarding tool itself is hidden by rules that name it, and not
// because of what other tools do.
func (g *Gate) hideOwn(hidden map[tool.Name]string, profile string, actor tool.Actor) {
	for _, t := range g.own {
		f := *g.Facts(t)
		if t.Hub.Forwards || t.Hub.Batches {
			f.Tags = nil
		}
		if by, hide := g.Engine.Hides(t, &f, profile, actor); hide {
			hidden[t.Name] = by
		}
	}
}

// ownTools returns the hub's own tools, as far as permission looks at them.
func ownTools(table []*tool.HubTool) []*tool.Tool {
	own := make([]*tool.Tool, 0, len(table))
	for _, t := range table {
		annotations := t.Annotations
		if t.Forwards || t.Batches {
			annotations = `{"readOnlyHint":true,"openWorldHint":false}`
		}
		own = append(own, &tool.Tool{Name: t.Name, Server: tool.OwnServer, Native: string(t.Name), Hub: t,
			Declaration: []byte(`{"annotations":` + annotations + `}`)})
	}
	return own
}

// Package gate puts the parts of permission together for one version of the settings. It collects
// the facts, targets and findings of a call for the engine, takes tools off surfaces that no rule
// would ever allow, and writes the question for a person.
//
// It asks nobody and keeps no question: that is left to the pipeline and to package approval. A
// Gate does not change; new settings need a new one.
package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Channel is a way in which a person can be asked.
type Channel string

const (
	ChannelClient Channel = "client" // the client behind the call, by elicitation
	ChannelQueue  Channel = "queue"  // people who list the open approvals

	ChannelWebhook Channel = "webhook" // the queue, of which people elsewhere are told
)

// Config holds the operator's settings of permission. With the zero value the defaults of package policy hold.
type Config struct {
	Mode   policy.Mode
	Sets   []policy.Set
	Tools  facts.Config
	Limits target.Config

	Rates []policy.Rate // how often tools may be called

	Channels      []Channel     // in the order in which they are tried; nil: client, queue
	Webhook       string        // address that is told of questions in the queue, where Channels name it
	Page          string        // what it takes to answer on the page for people, in the words of that
	NotSelf       bool          // who calls does not answer for the call
	NotSelfBeyond bool          // likewise over HTTP, where the call is dangerous or aimed beyond the limits
	AskTimeout    time.Duration // no answer until then denies; default 4 min 30 s
}

// ToolSource describes a server or toolset to permission.
type ToolSource struct {
	Trust  bool   // the operator vouches for what the server says of its tools
	Dir    string // absolute: where paths of calls start; "" for the hub's own working directory
	Remote bool   // paths are those of another machine

	// WriteRoots are the directories that calls may write to in the place of Dir, absolute; nil: Dir.
	WriteRoots []string

	// Inside is the tool that is asked about where it would read outside of Dir; "" for none.
	Inside tool.Name

	// Dirs are absolute directories in the place of Dir, for single tools.
	Dirs map[tool.Name]string

	// Env are the names of the variables that commands of single tools get.
	Env map[tool.Name][]string

	// Commands finds what commands of these tools run, for tools that run them on this machine; nil for all others.
	Commands Commands
}

// Options hold what the settings do not.
type Options struct {
	Grants  *policy.Grants        // nil: no answer is remembered
	Sources map[string]ToolSource // by server id or toolset
	Dir     string                // the hub's working directory, absolute
	Home    string                // what "~" stands for; "" where that is not known
	// the hub's own directory: calls that are aimed at it are denied, whatever rules allow
	State    string
	HubTools []*tool.HubTool // the table of the hub's own tools

	Execution func(*tool.Tool) facts.Execution // nil: nothing is known
	// config and rule files, absolute: calls that may write there are asked about
	Own []string
}

// Gate is one version of permission. It is safe for concurrent use.
type Gate struct {
	Engine *policy.Engine // decides
	Rates  []policy.Rate  // bound how often tools are called

	config  Config
	options Options
	limits  *target.Limits
	roots   map[string]target.Root
	usual   target.Root
	own     []*tool.Tool // of Options.HubTools
	retires bool         // the config takes some tools out of use

	known    sync.Map // *tool.Tool -> *toolEntry
	surfaces surfaces
}

// toolEntry keeps what is derived of one tool.
type toolEntry struct {
	facts *facts.Facts
	plan  *target.Plan
}

// New returns the gate of c, or every problem of it.
func New(c Config, o Options) (*Gate, error) {
	g := &Gate{Rates: c.Rates, config: c, options: o, roots: make(map[string]target.Root), own: ownTools(o.HubTools)}
	settings := policy.Settings{Mode: c.Mode, Sets: c.Sets, Grants: o.Grants, Home: o.Home}
	var err error
	if g.Engine, err = policy.Compile(settings); err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	hub := target.HubPaths{Own: o.Own}
	if o.State != "" {
		hub.Secrets = []string{o.State}
	}
	if g.limits, err = target.NewLimits(c.Limits, hub); err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	g.retires = slices.ContainsFunc(c.Tools.Tools, func(o facts.Override) bool { return o.Disabled })
	if err := c.Tools.Validate(); err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	g.usual = target.NewRoot(o.Dir, o.Home)
	for server, source := range o.Sources {
		switch {
		case source.Remote:
			g.roots[server] = target.Root{Remote: true}
		case source.Dir != "" || source.WriteRoots != nil:
			root := target.NewRoot(cmp.Or(source.Dir, o.Dir), o.Home)
			if source.WriteRoots != nil {
				root = root.Writing(source.WriteRoots...)
			}
			g.roots[server] = root
		}
	}
	return g, nil
}

// Version is a digest of all that decisions about calls to the server come from, besides remembered
// answers: an approval holds for one version.
func (g *Gate) Version(server string) string {
	from := g.options.Sources[server]
	from.Commands = nil // no data, and found by what is
	text, err := json.Marshal([]any{g.config.Limits, g.config.Tools, g.options.Own, from})
	if err != nil {
		// cannot be: nothing in it but strings and numbers
		text = fmt.Append(nil, g.config.Limits, g.config.Tools, g.options.Own, from)
	}
	return g.Engine.Version() + "+" + tool.Digest(text)
}

// Channels are the ways in which people are asked, in order.
func (g *Gate) Channels() []Channel {
	all := g.config.Channels
	if all == nil {
		all = []Channel{ChannelClient, ChannelQueue}
	}
	if g.config.NotSelf {
		return slices.DeleteFunc(slices.Clone(all), func(c Channel) bool { return c == ChannelClient })
	}
	return all
}

// Queues reports whether people may answer in the queue.
func (c *Config) Queues() bool {
	return c.Channels == nil || slices.Contains(c.Channels, ChannelQueue) || slices.Contains(c.Channels, ChannelWebhook)
}

// Queues reports whether people may answer in the queue.
func (g *Gate) Queues() bool { return g.config.Queues() }

// Webhook is the address that is told of questions in the queue; "" for none.
func (g *Gate) Webhook() string {
	if !slices.Contains(g.config.Channels, ChannelWebhook) {
		return ""
	}
	return g.config.Webhook
}

// NotSelf reports whether the caller's own client does not count as the person who answers.
func (g *Gate) NotSelf(r *policy.Request) bool {
	beyond := len(r.Findings) > 0 || r.Facts != nil && r.Facts.Has("dangerous")
	return g.config.NotSelf || g.config.NotSelfBeyond && beyond && r.Actor.Door == "http"
}

// AskTimeout is the time that a question waits for its answer. The default is below the 300 s that
// Codex waits for a tool.
func (g *Gate) AskTimeout() time.Duration {
	return cmp.Or(g.config.AskTimeout, 4*time.Minute+30*time.Second)
}

// Facts returns the facts of t. They are derived once for each tool.
func (g *Gate) Facts(t *tool.Tool) *facts.Facts { return g.of(t).facts }

func (g *Gate) of(t *tool.Tool) *toolEntry {
	if k, ok := g.known.Load(t); ok {
		return k.(*toolEntry)
	}
	judged := t
	if t.Hub != nil && t.Hub.Batches { // what it does is what its calls do, and each of those is judged
		judged = ownTools([]*tool.HubTool{t.Hub})[0]
	}
	o := facts.Options{Trust: t.Method || g.options.Sources[t.Server].Trust, Overrides: g.config.Tools.Tools}
	if g.options.Execution != nil {
		o.Execution = g.options.Execution(t)
	}
	f := facts.Of(judged, o)
	if t.Method { // a request has one of its own, which no catalog holds
		return &toolEntry{f, target.Find(f)}
	}
	k, _ := g.known.LoadOrStore(t, &toolEntry{f, target.Find(f)})
	return k.(*toolEntry)
}

// Retain forgets what is kept of tools that no catalog offers any more.
func (g *Gate) Retain(catalogs []tool.Catalog) {
	var offered map[*tool.Tool]bool
	g.known.Range(func(t, _ any) bool {
		if offered == nil {
			offered = make(map[*tool.Tool]bool)
			for _, c := range catalogs {
				for _, t := range c.Tools {
					offered[t] = true
				}
			}
		}
		if !offered[t.(*tool.Tool)] {
			g.known.Delete(t)
		}
		return true
	})
}

// Request completes r, which says who calls which tool with what input, for the Engine. It looks at
// the file system where the call names paths. An error means that ctx is done or the input is no
// object.
func (g *Gate) Request(ctx context.Context, r policy.Request) (policy.Request, error) {
	k, from := g.of(r.Tool), g.options.Sources[r.Tool.Server]
	root, ok := g.roots[r.Tool.Server]
	if !ok {
		root = g.usual
	}
	root.Inside = from.Inside == r.Tool.Name
	if dir, ok := from.Dirs[r.Tool.Name]; ok {
		root = target.NewRoot(dir, g.options.Home)
	}
	r.Facts, r.CWD, r.Env = k.facts, root.Dir, from.Env[r.Tool.Name]
	if r.Tool.Hub != nil && r.Tool.Hub.Batches {
		return r, nil
	}
	var err error
	if r.Tool.Method {
		err = g.aimMethod(ctx, &r, k.plan, root)
	} else {
		r.Targets, err = k.plan.Resolve(ctx, r.Input, root)
	}
	if err != nil {
		return r, err
	}
	if from.Commands != nil {
		g.findCommands(&r, from.Commands)
	}
	r.Findings = g.limits.Judge(r.Targets, root)
	return r, nil
}

package config

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/internal/connuser"
	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist/limit"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// firstListWithin is how long after the start of a server that has never listed its tools a client's list waits for it.
const firstListWithin = 5 * time.Second

// build makes the settings and checks what takes more than one value to see. What it returns counts only where r has
// no fault.
func build(r *reader, root *textfile.Node, f *file, state string) *Settings {
	s := &Settings{StateDir: state}
	s.Upstream.Memory = f.hub.memory
	s.Upstream.FirstListWithin = firstListWithin
	s.Upstream.Servers = r.servers(slices.Concat(f.mcpServers, f.servers), &f.hub)
	s.Credentials = r.credentials
	s.Code = r.code(f.hub.code)
	s.Declarative = r.declarative(&f.hub.declarative, s.Code.Root)
	s.KeyringSignIns = f.hub.signInKey == "keyring"
	permission := policyReader{r, f.policy}
	s.Policy, s.RuleFiles = permission.config()
	s.Policy.NotSelfBeyond = len(f.hub.tokens) > 1 && f.policy.Value.ask.notSelf == nil
	s.Policy.Tools.Tools = append(r.outOfUse, s.Policy.Tools.Tools...) // the first that says something counts
	s.Downstream, s.Policy.Page = r.door(&f.hub, s.Upstream.Servers), f.hub.page
	s.Log = Log{cmp.Or(f.hub.log.Level, "info"), cmp.Or(f.hub.log.Format, "auto")}
	s.Telemetry, s.Journal = f.hub.telemetry, f.journal.JournalConfig
	s.Journal.Dir = cmp.Or(r.vars.path(f.journal.Dir), filepath.Join(state, "journal"))
	s.Journal.SyncWithin = f.journal.sync.Or(20 * time.Millisecond)
	s.Store, s.Records = f.store.Or(StoreSQLite), f.records
	r.origins = append(s.Upstream.IDs(), toolsets()...)
	s.Stored = r.stored(&f.stored, filepath.Join(state, "results"))
	s.Results = limit.Config{Default: r.results(&f.results), Profiles: make(map[string]limit.Settings)}
	s.Results.Profiles[namespace.DefaultProfile] = s.Results.Default
	s.Profiles = []namespace.Profile{{Name: namespace.DefaultProfile, Style: namespace.StyleAuto}}
	s.Deferred = deferred.Config{Default: f.deferred.Settings, Profiles: make(map[string]deferred.Settings),
		Hints: f.deferred.hints, Learn: f.deferred.learn.Or(len(f.hub.tokens) < 2)}
	if s.Embeddings = f.deferred.embeddings.Value; f.deferred.embeddings.Present {
		s.Embeddings.Dir = filepath.Join(state, "embeddings")
	}
	s.Deferred.Profiles[namespace.DefaultProfile] = s.Deferred.Default
	for _, e := range f.profiles {
		p := r.profile(e)
		s.Deferred.Profiles[p.Name] = deferralOver(e.Value.deferred, s.Deferred.Default)
		s.Deferred.Hints = foundByOverrides(s.Deferred.Hints, p.Tools)
		s.Results.Profiles[p.Name] = resultsOver(e.Value.results, s.Results.Default)
		if p.Name == namespace.DefaultProfile {
			s.Profiles[0] = p
		} else {
			s.Profiles = append(s.Profiles, p)
		}
	}
	if s.Hooks.All = r.hooks(f.hooks); len(s.Hooks.All) > 0 {
		s.Hooks.Dir = r.vars.workspace
	}
	for _, g := range r.Noted {
		r.canonical(g)
	}
	permission.strayRules(s)
	s.Uses = usesOf(f, s)
	if len(f.mcpServers)+len(f.servers) == 0 && !s.Code.Enabled && !declares(s) {
		r.Warn(root.Position, "no server and no toolset: the hub has nothing to offer", "add a server to mcpServers")
	}
	return s
}

// toolsets are the built-in ones: their names are the first words of canonical names.
func toolsets() []string { return []string{"code", "declarative", "hub"} }

func (r *reader) code(t shape.Located[codeToolset]) code.Config {
	if !t.Present {
		return code.Config{}
	}
	c := t.Value.Config
	c.Enabled, c.Home, c.Root = true, r.vars.env.home(), r.vars.path(c.Root)
	r.vars.paths(c.AllowedWriteRoots)
	if run := t.Value.run; run.Present {
		c.Run = code.RunConfig{Enabled: true, Bounds: run.Value}
		r.vars.paths(c.Run.Bounds.Roots)
	}
	return c
}

// EveryUserMayCall is the warning of an address without tokens where the system does not tell whose a connection is.
const EveryUserMayCall = "every user of this machine can call this hub: there are no tokens"

func (r *reader) door(h *hub, servers []upstream.ServerConfig) downstream.Config {
	c := downstream.Config{Name: h.name, Instructions: h.instructions, HTTP: h.http.HTTPConfig}
	c.HTTP.Listen = h.http.listen.Value
	c.HTTP.PublicURL = strings.TrimRight(h.http.PublicURL, "/")
	c.HTTP.NoDirectViews = !h.http.directViews.Or(true)
	c.MaxMessageBytes, c.HTTP.MaxBodyBytes = h.clientMessage, h.clientMessage
	once := func(seen map[string]shape.Located[string], v shape.Located[string], message, hint string) {
		if first, twice := seen[v.Value]; v.OK && twice {
			shape.FaultOf(r.Reader, v, message+r.Place(first.Position), hint)
		} else if v.OK {
			seen[v.Value] = v
		}
	}
	names, secrets := map[string]shape.Located[string]{}, map[string]shape.Located[string]{}
	for _, t := range h.tokens {
		name, secret, expires := t.Value.name, t.Value.secret, time.Time{}
		if at := t.Value.expires; at.OK {
			expires, _ = instant(at.Value)
			if time.Now().After(expires) {
				shape.WarnOf(r.Reader, at, "the token has expired", "take it out")
			}
		} else {
			once(names, name, "two tokens of the same name, the first at ",
				"give each token its own name, or expires to the one that goes")
		}
		if name.Value == tool.Local && slices.ContainsFunc(servers,
			func(s upstream.ServerConfig) bool { return s.OAuth.PerCaller }) {
			shape.FaultOf(r.Reader, name,
				"with oauth: {identity: caller} that is the name of the person of this machine",
				"give the token another name")
		}
		once(secrets, secret, "the same token as at ", "give each name a token of its own")
		token := downstream.Token{Name: name.Value, Secret: secret.Value, Expires: expires,
			Events: t.Value.events == "read", Results: t.Value.results == "read",
			Profiles: shape.Values(t.Value.profiles.Value)}
		if name.OK && slices.ContainsFunc(c.Auth.Tokens, func(one downstream.Token) bool {
			return one.Name == token.Name && (one.Events != token.Events || one.Results != token.Results ||
				!slices.Equal(one.Profiles, token.Profiles))
		}) {
			shape.FaultOf(r.Reader, name, "two tokens of this name let different things be done",
				"give both the same events, results and profiles")
		}
		c.Auth.Tokens = append(c.Auth.Tokens, token)
		if p := t.Value.profiles; p.Present && len(p.Value) == 0 {
			shape.FaultOf(r.Reader, p, "the token would open nothing",
				"name profiles, or leave the key out to open all")
		}
	}
	if l := h.http.listen; l.OK && !loopback(l.Value) && len(h.tokens) == 0 {
		shape.FaultOf(r.Reader, l, "other machines can reach this address, and there are no tokens",
			"add hub.auth.tokens, or listen on 127.0.0.1")
	} else if l.OK && len(h.tokens) == 0 && !connuser.Known() {
		shape.WarnOf(r.Reader, l, EveryUserMayCall, "add hub.auth.tokens")
	}
	return c
}

func (r *reader) profile(e shape.Entry[profile]) namespace.Profile {
	v, origins := e.Value, r.origins
	p := namespace.Profile{Name: e.Name, Style: cmp.Or(v.style, namespace.StyleAuto)}
	for _, s := range v.servers {
		if s.OK && !glob.HasWildcard(s.Value) && !slices.Contains(origins, s.Value) {
			known := "the ids are: " + strings.Join(origins, ", ")
			shape.FaultOf(r.Reader, s, "no server or toolset has this id", textfile.DidYouMean(s.Value, origins, known))
		}
		p.Servers = append(p.Servers, s.Value)
	}
	p.Include, p.Exclude, p.Tools = v.include, v.exclude, shape.Values(v.tools)
	for _, o := range v.tools {
		r.override(o)
	}
	return p
}

// canonical notes a pattern over canonical names.
func (r *reader) canonical(g shape.Located[string]) {
	if g.OK {
		defer r.At(g.Path)()
		r.pattern(g.Position, "matches no tool", Pattern{r.Place(g.Position), g.Path, g.Value})
	}
}

// pattern warns of a pattern that cannot match a canonical name, the usual slip being a missing
// "mcp.", and notes any other.
func (r *reader) pattern(p textfile.Position, warning string, one Pattern) {
	first, _, dotted := strings.Cut(one.Text, ".")
	if glob.HasWildcard(first) || first == "mcp" && dotted || slices.Contains(toolsets(), first) ||
		slices.Contains(r.hubTools, one.Text) {
		r.patterns = append(r.patterns, one)
		return
	}
	hint := `canonical names are mcp.<server>.<tool> and code.<tool>`
	if slices.Contains(r.origins, first) {
		hint = `did you mean "mcp.` + one.Text + `"?`
	}
	r.stray(p, warning, hint)
}

func (r *reader) override(o shape.Located[namespace.Override]) {
	v := o.Value
	if v.Name != "" && glob.HasWildcard(v.Match) {
		shape.FaultWithin(r.Reader, o, "name", "one name for a match with wildcards",
			"let match be the canonical name of one tool")
	}
	if o.OK && v.Name == "" && v.Title == "" && v.Description == "" {
		shape.WarnOf(r.Reader, o, "changes nothing", "add name, title or description")
	}
}

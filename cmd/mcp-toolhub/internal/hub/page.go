package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// pageHub is the hub as its page sees it. It implements console.Hub.
type pageHub struct {
	Model
	secrets *secret.Masker

	mu      sync.Mutex
	closed  bool
	records store.Store // nil until somebody looks at calls

	counting   sync.Mutex
	today      console.Today
	countAgain time.Time
}

// newPage makes the page for people.
func (h *Hub) newPage(key []byte) {
	h.pageHub = &pageHub{Model: Model{Hub: h}, secrets: h.known.Masker(key)}
	h.page = console.New(console.Options{Hub: h.pageHub, Approvals: h.Permission.approvals, Person: LocalActor().Name,
		Logger: h.Logger,
		At:     h.pageAt, Passkeys: filepath.Join(h.Settings().StateDir, "passkeys.json"),
		Mode: func() string { return h.Settings().Policy.Page }})
}

// pageAt is where the page is, without its path. There are no passkeys for IP addresses, so then it
// is at localhost in place of these.
func (h *Hub) pageAt() string {
	at := cmp.Or(h.base(), h.Permission.at())
	if u, err := url.Parse(at); err == nil && h.Settings().Policy.Page == console.ApproveByPasskey {
		if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsLoopback() {
			u.Host = "localhost:" + u.Port()
			return u.String()
		}
	}
	return at
}

// close ends the look at the records.
func (p *pageHub) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.records != nil {
		_ = p.records.Close()
	}
}

func (p *pageHub) Places(client string) ([]control.Tool, error) {
	caller := Stranger()
	caller.Client.Name = client
	return p.Surface(namespace.DefaultProfile, caller)
}

func (p *pageHub) Tool(name string) (*console.Tool, error) {
	own := OwnTools{Hub: p.Hub, Profile: namespace.DefaultProfile}
	l, ok := own.Find(name)
	if !ok {
		return nil, console.ErrUnknown
	}
	f, err := own.factsOf(l.Tool)
	if err != nil {
		return nil, err
	}
	shown := &console.Tool{Name: l.Name, Server: l.Tool.Server, Description: Described(*l),
		Facts:       shownRows(l, f, own.withoutOutputSchema(l.Tool)...),
		Declaration: l.Declaration(), InputSchema: l.Tool.InputSchema, Secret: f.Sensitive,
		Mask: func(arguments json.RawMessage) json.RawMessage {
			arguments, _ = p.secrets.JSON(arguments, f.Sensitive...)
			return gate.Mask(arguments, f)
		}}
	places, err := p.Places("")
	for _, at := range places {
		if at.ID == string(l.Tool.Name) {
			shown.State, shown.Why = at.State, at.Why
		}
	}
	return shown, err
}

// Says implements console.Hub; line breaks are spaces.
func (p *pageHub) Says(name string) (s console.Said) {
	l, ok := OwnTools{Hub: p.Hub, Profile: namespace.DefaultProfile}.Find(name)
	if ok {
		s = console.Said{Does: strings.Join(strings.Fields(Described(*l)), " "), Tokens: deferred.Tokens(l.Declaration()),
			Switches: l.Tool.Name.Source() == tool.SourceMCP, Hidden: p.Surfaces.Now().Gate.Facts(l.Tool).IsOutOfUse()}
	}
	return s
}

// pageActor is the caller of the page: the user who runs the hub, whatever browser that is.
func pageActor() tool.Actor {
	a := LocalActor()
	a.Door = console.Door
	return a
}

// pageSession is a session of the page, by its id there.
func pageSession(id string) tool.Session {
	return tool.Session{Key: console.SessionKey(id), Name: console.Door, Person: tool.Local}
}

// invoke makes a call of the page. It waits for a person as long as a question is open.
func (p *pageHub) invoke(ctx context.Context, t console.Try) (invoke.Outcome, error) {
	surface, err := p.Surfaces.Surface(namespace.DefaultProfile, pageActor())
	if err != nil {
		return invoke.Outcome{}, err
	}
	return p.pipeline.Invoke(ctx, &invoke.Call{Surface: surface, Name: t.Tool,
		Params:    CallParams(t.Tool, t.Arguments, nil),
		Arguments: t.Arguments,
		Method:    console.Door, Actor: pageActor(), Session: pageSession(t.Session), Invocation: t.Invocation,
		Progress: func(tool.Progress) {}}), nil
}

func (p *pageHub) Try(ctx context.Context, t console.Try) console.Tried {
	o, err := p.invoke(ctx, t)
	switch {
	case err != nil:
		return console.Tried{Status: tool.StatusFailed, Failed: true, Text: err.Error()}
	case o.Err != nil:
		return console.Tried{Status: o.Status, Failed: true, Text: fmt.Sprintf("%s (JSON-RPC error %d)", o.Err.Text(),
			o.Err.Code)}
	}
	isError, _ := rawjson.Get(o.Result, "isError")
	result, _ := p.secrets.JSON(o.Result)
	tried := console.Tried{Status: o.Status, Failed: string(isError) == "true", Text: strings.Clone(ResultText(result))}
	if o.Free != nil {
		o.Free()
	}
	return tried
}

func (p *pageHub) Search(ctx context.Context, session, query string) (found console.Found, err error) {
	arguments := append(append([]byte(`{"limit":20,"query":`), rawjson.Quote(query)...), '}')
	o, err := p.invoke(ctx, console.Try{Session: session, Tool: string(deferred.SearchName), Arguments: arguments})
	if err != nil || o.Err != nil {
		return found, errors.Join(err, o.Err)
	}
	answer, err := ReadSearch(o.Result)
	if err != nil {
		return found, err
	}
	found.Matches = answer.Matches
	found.Notes = slices.Concat(answer.Unknown(), answer.Away(), answer.Notes)
	if len(answer.Matches) == 0 {
		found.Notes = append(found.Notes, answer.Next.Hint)
	}
	return found, nil
}

// store is the record store, opened when it is first needed. Where it is to be fresh, or the hub
// does not keep it up to date, it is filled for a moment.
func (p *pageHub) store(ctx context.Context, fresh bool) (store.Store, error) {
	s := p.Settings()
	opened, err := p.openStore(ctx)
	if err != nil {
		return nil, err
	}
	if fresh || p.Hub.records == nil {
		ctx, cancel := context.WithTimeout(ctx, fillWithin)
		defer cancel()
		if err := store.FillUp(ctx, opened, s.Journal.Dir); err != nil {
			p.Logger.Debug("the newest calls may be missing on the page", "error", err)
		}
	}
	return opened, nil
}

// fillWithin bounds the wait of a page for the newest calls.
const fillWithin = 2 * time.Second

func (p *pageHub) openStore(ctx context.Context) (store.Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the hub is stopping")
	}
	if p.records == nil {
		opened, err := OpenRecords(context.WithoutCancel(ctx), p.Settings())
		if err != nil {
			return nil, err
		}
		p.records = opened
	}
	return p.records, nil
}

func (p *pageHub) Calls(ctx context.Context, q console.CallQuery) ([]console.Call, error) {
	c := lookup.Search{Since: q.Since, Until: q.Until, Text: q.Text, Limit: q.Limit, Is: make(map[store.Column]*string)}
	for column, value := range q.Is {
		c.Is[column] = &value
	}
	query, err := c.Query()
	if err != nil {
		return nil, err
	}
	query.Before = q.Before
	s, err := p.store(ctx, false)
	if err != nil {
		return nil, err
	}
	found, err := s.List(ctx, query)
	list := make([]console.Call, 0, len(found))
	for i := range found {
		list = append(list, console.Call{Call: found[i], Arguments: recordedArguments(ctx, s, found[i].ID)})
	}
	return list, err
}

func (p *pageHub) Story(ctx context.Context, id tool.InvocationID) (*console.Story, error) {
	for _, fresh := range []bool{false, true} { // a call that has just been made may not be there yet
		s, err := p.store(ctx, fresh)
		if err != nil {
			return nil, err
		}
		told, err := lookup.ReadStory(ctx, s, id)
		if err == nil && (fresh || told.Result != nil) {
			return told.Shown(), nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	return nil, console.ErrUnknown
}

// steering are the servers that somebody has started. Its zero value, with a group, leaves all to the
// config. It is safe for concurrent use.
type steering struct {
	group *upstream.Group

	mu      sync.Mutex
	started []string // they do not wait for a call
}

// apply makes the group one of cfg's servers, as they are steered. It stops one of them and counts
// it as started where but is not "".
func (s *steering) apply(cfg upstream.Config, but string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if but != "" && !slices.Contains(s.started, but) {
		s.started = append(s.started, but)
	}
	cfg.Servers = slices.Clone(cfg.Servers)
	for i := range cfg.Servers {
		sc := &cfg.Servers[i]
		sc.Disabled = sc.Disabled || sc.ID == but
		sc.Lazy = sc.Lazy && !slices.Contains(s.started, sc.ID)
	}
	return s.group.Apply(cfg)
}

func (p *pageHub) Steer(ctx context.Context, name string, to console.Steering) (said string, err error) {
	if to == console.Restart {
		return "starts anew", p.restart(name)
	}
	p.Logger.Info("a person changes the config on the page", "name", name, "to", string(to))
	if said, err = p.configFile.Steer(ctx, p.Settings(), to, name); err == nil {
		p.awaitConfig(ctx)
	}
	return said, err
}

func (p *pageHub) AddServer(ctx context.Context, n console.NewServer, plan bool) (console.Plan, error) {
	added, err := p.configFile.AddServer(p.Settings(), n, plan)
	if err == nil && !plan {
		p.Logger.Info("a person adds a server on the page", "server", added.ID)
		p.awaitConfig(ctx)
	}
	return added, err
}

// appliedWithin bounds the wait until the hub has taken up a config that was changed on the page.
const appliedWithin = 5 * time.Second

// awaitConfig waits until the config file is in force as it is now, or has a fault.
func (p *pageHub) awaitConfig(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, appliedWithin)
	defer cancel()
	_ = Poll(ctx, lookEvery/10, func() (bool, error) {
		s := p.Settings()
		return sameInfo(infosOf([]string{s.Path})[s.Path], s.Read[s.Path]) || p.ConfigProblem.Load() != nil, nil
	})
}

func (p *pageHub) Entry(server string) console.Entry {
	s := p.Settings()
	for _, sc := range s.Upstream.Servers {
		if sc.ID == server {
			return console.Entry{File: s.Path, Starts: s.Starts[server], Disabled: sc.Disabled,
				Program: sc.Transport == upstream.Stdio, SignsIn: canSignIn(sc)}
		}
	}
	return console.Entry{} // a source of tools of the hub's own
}

// canSignIn reports whether a person can sign in to the server.
func canSignIn(sc upstream.ServerConfig) bool {
	return !sc.IsOff() && sc.Transport != upstream.Stdio && sc.SignsIn() && !sc.OAuth.Machine
}

// SignIn goes by the desk, as sign-ins for calls do. Whoever uses the page is the person of this machine.
func (p *pageHub) SignIn(ctx context.Context, session, server string) (console.Visit, error) {
	begun, err := p.desk.Visit(ctx, server, pageSession(session), "mcp-toolhub ui")
	return console.Visit{Server: server, Address: begun.Address, Code: begun.Code}, err
}

func (p *pageHub) SignOut(ctx context.Context, server string) (string, error) {
	for _, sc := range p.Settings().Upstream.Servers {
		if sc.ID == server && canSignIn(sc) {
			return SignOut(ctx, p.Hub.signIns, sc.WithDefaults().For(tool.Local))
		}
	}
	return "", fmt.Errorf("nobody can sign in to a server %q here", server)
}

func (p *pageHub) SecretNames() ([]string, error) {
	all, err := secrets.Read(p.Settings().StateDir)
	return slices.Sorted(maps.Keys(all)), err
}

func (p *pageHub) Rules() []policy.NamedRule { return p.Surfaces.Now().Gate.Engine.Rules() }

func (p *pageHub) Revoke(id string) error { return p.Permission.Grants.Revoke(id) }

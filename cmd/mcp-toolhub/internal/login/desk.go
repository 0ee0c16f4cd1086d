package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// Options are the parts that a Desk works with. All are needed.
type Options struct {
	Store *signin.Store

	// Server returns the entry of a server, as it is for the caller of a session.
	Server func(id string, caller tool.Session) (upstream.ServerConfig, bool)

	// Base is the address of the hub's HTTP side, without a slash at its end; "" where it serves none.
	Base func() string

	// Signed is told that somebody has signed in. It makes servers use that.
	Signed func()

	// Ready waits until the servers have started that do, and for a while at most.
	Ready func(context.Context)

	// Elicited is told that the visit with that id is over, if a client was sent there.
	Elicited func(id string)

	Logger *slog.Logger
}

// Desk signs people in to servers. It is safe for concurrent use. Nobody is sent to it before Open.
type Desk struct {
	opts    Options
	running sync.WaitGroup

	mu     sync.Mutex
	opened bool
	closed bool
	visits []*visit // the open ones, the oldest first
	doors  map[int]*door
}

// New returns a desk.
func New(o Options) *Desk {
	return &Desk{opts: o, doors: make(map[int]*door)}
}

const (
	lifetime   = 10 * time.Minute // of a visit
	maxGuesses = 5                // wrong codes, which end a visit
	maxOwn     = 5                // open visits of one session: one more ends the oldest
	maxVisits  = 200              // open visits of all
)

// visit is one sign-in, from the call that needs it to its end.
type visit struct {
	id      string // in the page's address; nobody can guess it
	code    string // that the person enters
	server  upstream.ServerConfig
	caller  tool.Session
	client  string // the name of the client that was shown the code
	mark    string // of the sign-in that was in force before
	base    string // of the page's address
	door    *door  // that serves the page; nil: the hub does
	expires time.Time
	timer   *time.Timer
	done    chan struct{} // closed at the end
	answer  chan url.Values
	asks    chan struct{} // holds one for the call whose client is asked

	// Desk.mu guards these.
	guesses  int
	elicited bool   // a client is told of the end
	accepted bool   // the person at the client has agreed to go to the page
	browser  string // cookie of the browser that has entered the code; "" before
	// at oauth.redirect, once a browser has entered the code; nil: the browser comes back to where the page is
	callback *door
	going    chan struct{} // closed when address is set, or the visit is over
	address  string        // at the authorization server
	answered bool
	over     bool
	err      error // why nobody has signed in; set before done is closed
	cancel   context.CancelFunc
}

// page is the address of the visit's page.
func (v *visit) page() string { return v.base + pagePath + v.id }

// cookie is the name of the cookie by which the page knows the browser that has entered the code.
// Browsers let no other site set one of the name that https has.
func (v *visit) cookie() string {
	name := "toolhub-sign-in-" + v.id[:8]
	if isPublic(v.base) {
		return "__Host-" + name
	}
	return name
}

// shownCode is the code as people read it.
func (v *visit) shownCode() string { return v.code[:codeLength/2] + "-" + v.code[codeLength/2:] }

// A code has 8 letters, such as BCDF-GHJK. No two letters look alike, and without vowels they spell
// no word. That is one of 20^8 codes, and a visit takes maxGuesses wrong ones.
const (
	codeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	codeLength  = 8
)

func newCode() string {
	var code [codeLength]byte
	for i := range code {
		n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(codeLetters)))) // never fails
		code[i] = codeLetters[n.Int64()]
	}
	return string(code[:])
}

// plainCode is a code as somebody has typed it, without what people put between letters.
func plainCode(typed string) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == ' ' {
			return -1
		}
		return c
	}, strings.ToUpper(strings.TrimSpace(typed)))
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Why a visit is over without a sign-in.
var (
	errExpired  = errors.New("nobody has signed in in time")
	errGuesses  = fmt.Errorf("a wrong code was entered %d times", maxGuesses)
	errReplaced = errors.New("too many sign-ins were begun")
	errDeclined = errors.New("the person at the client has declined")
	errStopped  = errors.New("the hub is stopping")
)

// Open lets people be sent to the desk from now on.
func (d *Desk) Open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = true
}

// Close ends all visits, and returns when nothing of them is left. Twice is harmless.
func (d *Desk) Close() {
	d.mu.Lock()
	d.closed = true
	for len(d.visits) > 0 {
		d.end(d.visits[0], errStopped)
	}
	d.mu.Unlock()
	d.running.Wait()
}

// visitOf returns the open visit of a caller to a server where no browser has entered its code yet, or a new one.
func (d *Desk) visitOf(ctx context.Context, server upstream.ServerConfig, caller tool.Session, client string) (*visit,
	error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.opened || d.closed {
		return nil, errStopped
	}
	own := 0
	for _, v := range d.visits {
		if v.caller.Key != caller.Key {
			continue
		}
		if own++; v.server.ID == server.ID && v.server.URL == server.URL && v.browser == "" {
			return v, nil
		}
	}
	if len(d.visits) >= maxVisits {
		d.end(d.visits[0], errReplaced)
	}
	for i := 0; own >= maxOwn; i++ {
		if v := d.visits[i]; v.caller.Key == caller.Key {
			d.end(v, errReplaced)
			break
		}
	}
	v := &visit{id: rand.Text(), code: newCode(), server: server, caller: caller, client: client,
		mark:    d.opts.Store.Mark(server),
		expires: time.Now().Add(lifetime), done: make(chan struct{}), going: make(chan struct{}),
		answer: make(chan url.Values, 1),
		asks:   make(chan struct{}, 1), cancel: func() {}}
	if err := d.place(ctx, v); err != nil {
		return nil, err
	}
	v.timer = time.AfterFunc(lifetime, func() { d.finish(v, errExpired) })
	d.visits = append(d.visits, v)
	return v, nil
}

// place finds an address for the visit. d.mu is held.
func (d *Desk) place(ctx context.Context, v *visit) (err error) {
	v.base = d.opts.Base()
	port := 0
	if v.isRedirected() {
		port = pageOnly
	} else if v.base != "" {
		return nil
	}
	if v.door, err = d.doorAt(ctx, port); err != nil {
		return err
	}
	v.base = v.door.Address
	if u, err := url.Parse(v.server.OAuth.Redirect); err == nil && port == pageOnly {
		v.base = fmt.Sprintf("http://%s:%d", u.Hostname(), signin.Port(v.base))
	}
	return nil
}

// isRedirected reports whether the browser comes back to oauth.redirect. The page is elsewhere, but at the same host,
// for its cookie: until a browser has entered the code, the port is free for others who sign in.
func (v *visit) isRedirected() bool { return v.server.OAuth.Redirect != "" && !isPublic(v.base) }

// back returns the address that the browser comes back to, which is served from then on. d.mu is held.
func (d *Desk) back(ctx context.Context, v *visit) (address string, err error) {
	switch {
	case v.isRedirected():
		v.callback, err = d.doorAt(ctx, signin.Port(v.server.OAuth.Redirect))
		return v.server.OAuth.Redirect, err
	case v.door != nil:
		return v.base + signin.CallbackPath, nil
	}
	return v.base + backPath, nil
}

// isPublic reports whether a base is https: the hub is reached there from elsewhere.
func isPublic(base string) bool { return strings.HasPrefix(base, "https://") }

// find returns the open visit of that id; nil where there is none.
func (d *Desk) find(match func(*visit) bool) *visit {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.visits {
		if match(v) {
			return v
		}
	}
	return nil
}

// finish ends a visit: with nil, somebody has signed in.
func (d *Desk) finish(v *visit, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end(v, err)
}

// end is finish where d.mu is held.
func (d *Desk) end(v *visit, err error) {
	if v.over {
		return
	}
	v.over, v.err = true, err
	v.timer.Stop()
	v.cancel()
	close(v.done)
	select {
	case <-v.going:
	default:
		close(v.going)
	}
	d.visits = slices.DeleteFunc(d.visits, func(one *visit) bool { return one == v })
	if v.elicited {
		d.running.Go(func() { d.opts.Elicited(v.id) })
	}
	for _, one := range []*door{v.door, v.callback} {
		if one != nil {
			d.leave(one)
		}
	}
}

// Look makes the servers use what there is by use, and then ends the visits to those that somebody
// had signed in to before that. A call that waits for such a visit finds its server started anew.
func (d *Desk) Look(use func()) {
	d.mu.Lock()
	var signed []*visit
	for _, v := range d.visits {
		if mark := d.opts.Store.Mark(v.server); mark != "" && mark != v.mark {
			signed = append(signed, v)
		}
	}
	d.mu.Unlock()
	use()
	for _, v := range signed {
		d.finish(v, nil)
	}
}

// signIn begins the sign-in of a visit whose code a browser has entered.
func (d *Desk) signIn(ctx context.Context, v *visit) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), v.expires)
	callback := &signin.Callback{Answer: v.answer, Fixed: v.door == nil}
	if isPublic(v.base) {
		callback.Document = v.base + documentPath
	}
	l := signin.Login{Store: d.opts.Store, Server: v.server, Callback: callback, Visit: func(address, _ string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !v.over {
			v.address = address
			close(v.going)
		}
	}}
	d.mu.Lock()
	defer d.mu.Unlock()
	if v.over {
		cancel()
		return
	}
	var err error
	if callback.Address, err = d.back(ctx, v); err != nil {
		cancel()
		d.end(v, err)
		return
	}
	v.cancel = cancel
	d.running.Go(func() {
		defer cancel()
		_, err := l.Run(ctx)
		if err == nil {
			d.opts.Logger.Info("somebody has signed in", "server", v.server.ID)
			d.opts.Signed()
		} else if ctx.Err() == nil {
			d.opts.Logger.Info("a sign-in has failed", "server", v.server.ID, "error", err)
		}
		d.finish(v, err)
	})
}

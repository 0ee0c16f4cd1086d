// Package console is the page for people, at /ui/: the servers, tools, approvals, calls, sign-ins,
// secrets and policy of one hub.
//
// The hub writes whole HTML pages, which work without the script. The script gets a page that may
// change again every few seconds. All that the page shows or does goes through Hub, which is what the
// commands go through, too: a call that is tried here is a call like any other.
//
// The page opens for whoever may read the hub's state directory: "mcp-toolhub ui" gets an address
// there that works once. A browser keeps a cookie that no script reads and no other site sends.
// Each form has a token of its session. To answer an approval takes a code from a terminal besides,
// which a program that drives the browser does not have. Nothing from elsewhere is loaded, and no
// other page may frame this one.
package console

import (
	"cmp"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// Path is where the page begins.
const Path = "/ui/"

// What it takes to answer approvals on the page.
const (
	ApproveByCode    = "code"    // of "mcp-toolhub ui code", once a session
	ApproveByPasskey = "passkey" // once a session, too
	ApproveOff       = "off"     // they are answered elsewhere
)

// Options are what a Console needs. All of it is needed.
type Options struct {
	Hub       Hub
	Approvals *approval.Approvals // takes answers
	// ApproveByCode, ApproveByPasskey or ApproveOff, as the settings in force say; "" is the first
	Mode     func() string
	Passkeys string        // the file that keeps them
	Person   string        // whose hub it is: all who open the page act as that person
	At       func() string // the origin of the page's address, for links from elsewhere
	Logger   *slog.Logger
}

// Console is the page of one hub. It implements http.Handler for the addresses below Path; whoever
// serves it checks the host. Close ends it. It is safe for concurrent use.
type Console struct {
	Options
	sessions *sessions
	pages    func() map[string]*template.Template // parsed once somebody looks
	mux      *http.ServeMux
	tries    tries
	posts    *posts
	keys     passkeys

	once sync.Once
	done chan struct{} // closed by Close
}

// New makes the page.
func New(o Options) *Console {
	c := &Console{Options: o, sessions: newSessions(), pages: sync.OnceValue(parsePages), posts: newPosts(),
		keys: passkeys{o.Passkeys, o.Person}, done: make(chan struct{})}
	c.mux = c.routes()
	return c
}

// Invite returns the path and query of an address that opens the page once, within a minute.
func (c *Console) Invite() string {
	return Path + "signin?" + url.Values{"code": {c.sessions.invite()}}.Encode()
}

// Code returns a code with which the session of that name may answer approvals. It is good once,
// for five minutes. Without a name the session is the only one.
func (c *Console) Code(session string) (string, error) { return c.sessions.code(session) }

// Close ends all sessions, tried calls and messages, and waits for the latter two. Calling
// it again is harmless.
func (c *Console) Close() {
	c.once.Do(func() {
		close(c.done)
		c.sessions.endAll()
		c.tries.close()
		c.posts.close()
	})
}

func (c *Console) mode() string { return cmp.Or(c.Mode(), ApproveByCode) }

// routes are the addresses of the page. All but the first four take a session.
func (c *Console) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path+"style.css", asset("style.css", "text/css; charset=utf-8"))
	mux.HandleFunc("GET "+Path+"script.js", asset("script.js", "text/javascript; charset=utf-8"))
	mux.HandleFunc("GET "+Path+"icon.svg", asset("icon.svg", "image/svg+xml"))
	mux.HandleFunc("GET "+Path+"signin", c.signIn)
	for pattern, do := range map[string]func(*visit) (*page, error){
		"GET " + Path + "{$}":                    (*visit).overview,
		"GET " + Path + "servers":                (*visit).servers,
		"GET " + Path + "servers/{server}":       (*visit).server,
		"POST " + Path + "servers/{server}/{do}": (*visit).steer,
		"GET " + Path + "add":                    func(v *visit) (*page, error) { return adder{v}.form() },
		"POST " + Path + "add":                   func(v *visit) (*page, error) { return adder{v}.take() },
		"GET " + Path + "tools":                  (*visit).tools,
		"POST " + Path + "tools/{do}":            (*visit).switchTool,
		"GET " + Path + "tool":                   (*visit).tool,
		"POST " + Path + "tool":                  (*visit).try,
		"GET " + Path + "tries/{id}":             (*visit).tried,
		"GET " + Path + "approvals":              (*visit).approvals,
		"GET " + Path + "approvals/{id}":         (*visit).approval,
		"POST " + Path + "approvals/{id}":        (*visit).answer,
		"POST " + Path + "unlock":                (*visit).unlock,
		"POST " + Path + "passkey/{step}":        (*visit).passkey,
		"POST " + Path + "passkeys/{name}":       (*visit).forget,
		"GET " + Path + "calls":                  (*visit).calls,
		"GET " + Path + "calls/{id}":             (*visit).call,
		"GET " + Path + "secrets":                (*visit).secrets,
		"GET " + Path + "policy":                 (*visit).policy,
		"GET " + Path + "explain":                (*visit).explain,
		"GET " + Path + "suggestions":            (*visit).suggestions,
		"POST " + Path + "suggestions/{rule}":    (*visit).takeRule,
		"POST " + Path + "grants/{id}":           (*visit).revoke,
		"POST " + Path + "signout":               (*visit).signOut,
	} {
		mux.Handle(pattern, c.signedIn(do))
	}
	mux.Handle(Path, c.signedIn(func(*visit) (*page, error) { return nil, errNothing }))
	return mux
}

// errNothing is the answer at addresses where nothing is.
var errNothing = &fault{http.StatusNotFound, "There is nothing at this address."}

// ServeHTTP serves browsers.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // without any, browsers name no origin with a form
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	c.mux.ServeHTTP(w, r)
}

// visit is a request of somebody who has signed in.
type visit struct {
	*Console
	w       http.ResponseWriter
	r       *http.Request
	session *session
}

// fault is what a person is told in the place of a page.
type fault struct {
	status int
	text   string
}

func (f *fault) Error() string { return f.text }

// wrong is the fault of a request that cannot be carried out as it is.
func wrong(err error) error { return &fault{http.StatusConflict, sentence(err.Error())} }

// sentence makes a sentence of an error.
func sentence(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimRight(text[1:], ".") + "."
}

// maxForm bounds a form, whose arguments may be as large as those of a call.
const maxForm = 2 << 20

// signedIn serves a page to whoever has a session. A form has to come from a page of the same session.
func (c *Console) signedIn(do func(*visit) (*page, error)) http.Handler {
	forms := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{c, w, r, c.sessions.of(r)}
		if v.session == nil {
			v.show(&page{Name: "entry", Title: "Sign in", Status: http.StatusUnauthorized})
			return
		}
		if r.Method == http.MethodPost {
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			if forms.Check(r) != nil || r.ParseForm() != nil || !v.session.isForm(r) {
				v.fail(&fault{http.StatusForbidden,
					"This form does not come from this page, or it is too large: nothing was done."})
				return
			}
		}
		p, err := do(v)
		switch {
		case err != nil:
			v.fail(err)
		case p != nil:
			v.show(p)
		}
	})
}

// fail tells the person what went wrong.
func (v *visit) fail(err error) {
	var f *fault
	if !errors.As(err, &f) {
		f = &fault{http.StatusInternalServerError, sentence(err.Error())}
		v.Logger.Warn("the page could not be shown", "path", v.r.URL.Path, "error", err)
	}
	v.show(&page{Name: "message", Title: "That did not work", Status: f.status, Data: f.text})
}

// signIn opens a session for the bearer of an invitation. A browser or chat program that only looks
// ahead does not use it up.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	v := &visit{Console: c, w: w, r: r}
	if r.Method == http.MethodHead || r.Header.Get("Sec-Purpose") != "" || r.Header.Get("Purpose") != "" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	secret, ok := c.sessions.enter(r.URL.Query().Get("code"), c.sessions.secret(r), c.sessions.browser(w, r))
	if !ok {
		v.show(&page{Name: "entry", Title: "Sign in", Status: http.StatusUnauthorized,
			Data: "This address was used, or is older than a minute. If you have not used it, somebody else has, " +
				"and is signed out now."})
		return
	}
	c.sessions.set(w, r, secret)
	// By the page: with a redirect, a browser that comes from elsewhere sends no cookie.
	v.show(&page{Name: "entered", Title: "Signed in", Refresh: "0; url=" + Path, Data: Path})
}

// signOut ends the session.
func (v *visit) signOut() (*page, error) {
	v.sessions.end(v.r)
	v.sessions.set(v.w, v.r, "")
	v.session = nil
	return &page{Name: "entry", Title: "Signed out", Data: "You are signed out."}, nil
}

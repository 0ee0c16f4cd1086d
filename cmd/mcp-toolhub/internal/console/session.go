package console

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"
)

// How long what people sign in with is good.
const (
	inviteTime  = time.Minute     // of an address that opens the page
	codeTime    = 5 * time.Minute // of a code that lets a session answer
	sessionTime = 12 * time.Hour
	// for which a browser is known again: a session, and a question from its end that is open for a
	// day
	browserTime = 48 * time.Hour
)

const (
	maxSessions = 50
	maxInvites  = 50
	maxWrong    = 5 // wrong codes of a session; then it answers nothing any more
)

var (
	errNoSession = errors.New("no page of this hub has that name: the form on the page shows the name")
	errCode      = errors.New("this code is not good: it is wrong, of another page, used, or older than five minutes")
	errWrong     = errors.New("this page has sent too many wrong codes: sign out, and open it anew with mcp-toolhub ui")
)

// digest is the SHA-256 of a secret. The hub keeps no secret of the page itself, and looks digests
// up: so the time that takes tells nothing.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// session is a browser that is signed in. Its fields without a comment are guarded by sessions.mu.
type session struct {
	name string // for people: it opens nothing. Not changed.
	// that it is of: it opens nothing either, and stays the same when the browser signs in anew.
	// Not changed.
	browser string
	csrf    string    // stands in each form of the session. Not changed.
	ends    time.Time // Not changed.
	said    string    // is shown on the next page, once
	codes   map[digest]time.Time
	wrong   int
	may     string                // how a person was found to be here, as the settings call it; "" for not
	step    string                // of a passkey that comes next
	since   *webauthn.SessionData // what the step before has left
	plan    *Plan                 // of the server that is shown before it is added; nil for none
}

// id names the session, and the browser that it is of, in calls.
func (o *session) id() string { return o.browser + "/" + o.name }

// sessions are the browsers that are signed in, and what opens the page to more of them. It is safe for concurrent use.
type sessions struct {
	cookie string // the name of the cookie: that of another hub at the same host differs

	mu      sync.Mutex
	open    map[digest]*session
	invites map[digest]*invite
}

// invite opens the page once. It is kept until it ends, also when it is used: whoever comes second
// ends the session of the first, because one of the two has read what was not meant for it.
type invite struct {
	ends   time.Time
	opened digest // the session, where used
	used   bool
}

func newSessions() *sessions {
	return &sessions{cookie: "toolhub_" + strings.ToLower(rand.Text()[:8]), open: make(map[digest]*session),
		invites: make(map[digest]*invite)}
}

// invite returns a secret that opens the page once.
func (s *sessions) invite() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	if len(s.invites) >= maxInvites {
		clear(s.invites)
	}
	secret := rand.Text()
	s.invites[digestOf(secret)] = &invite{ends: time.Now().Add(inviteTime)}
	return secret
}

// sweep forgets what has ended. s.mu is held.
func (s *sessions) sweep() {
	now := time.Now()
	for d, i := range s.invites {
		if now.After(i.ends) {
			delete(s.invites, d)
		}
	}
	for d, o := range s.open {
		if now.After(o.ends) {
			delete(s.open, d)
		}
	}
}

// enter opens a session with the secret of an invitation, and returns the session's own. A second
// use ends the session of the first, unless it comes from the same session, whose browser may have
// gone back.
func (s *sessions) enter(secret, has, browser string) (own string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	i := s.invites[digestOf(secret)]
	switch {
	case i == nil:
		return "", false
	case i.used && has != "" && i.opened == digestOf(has) && s.open[i.opened] != nil:
		return has, true
	case i.used:
		delete(s.open, i.opened)
		return "", false
	case has != "" && s.open[digestOf(has)] != nil: // the browser goes on, and is asked for no code again
		i.used, i.opened = true, digestOf(has)
		return has, true
	case len(s.open) >= maxSessions:
		delete(s.open, s.oldest())
	}
	own = rand.Text()
	i.used, i.opened = true, digestOf(own)
	s.open[i.opened] = &session{name: rand.Text()[:6], browser: browser, csrf: rand.Text(),
		ends: time.Now().Add(sessionTime), codes: make(map[digest]time.Time)}
	return own, true
}

// oldest returns the session that ends first. s.mu is held.
func (s *sessions) oldest() (d digest) {
	for each, o := range s.open {
		if first := s.open[d]; first == nil || o.ends.Before(first.ends) {
			d = each
		}
	}
	return d
}

// of returns the session of a request, nil where it has none.
func (s *sessions) of(r *http.Request) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.open[digestOf(s.secret(r))]
	if o == nil || time.Now().After(o.ends) {
		return nil
	}
	return o
}

// secret is that of the request's session; "" where it has none.
func (s *sessions) secret(r *http.Request) string { return cookieOf(r, s.cookie) }

func cookieOf(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// browser names the browser of a request. The name outlives its sessions: who signs out and in
// again is still who called before.
func (s *sessions) browser(w http.ResponseWriter, r *http.Request) string {
	name := s.cookie + "_browser"
	secret := cookieOf(r, name)
	if secret == "" {
		secret = rand.Text()
	}
	setCookie(w, r, &http.Cookie{Name: name, Value: secret, MaxAge: int(browserTime / time.Second),
		SameSite: http.SameSiteLaxMode}) // also a browser that comes from elsewhere is known again
	known := digestOf(secret)
	return hex.EncodeToString(known[:8])
}

// end ends the session of a request.
func (s *sessions) end(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, digestOf(s.secret(r)))
}

// endAll ends all sessions.
func (s *sessions) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.open)
}

// set gives the browser the session's secret, or takes it away where that is "".
func (s *sessions) set(w http.ResponseWriter, r *http.Request, secret string) {
	c := &http.Cookie{Name: s.cookie, Value: secret, SameSite: http.SameSiteStrictMode}
	if secret == "" {
		c.MaxAge = -1
	}
	setCookie(w, r, c)
}

// setCookie gives the browser a cookie that it sends to the page alone, and that no script reads.
func setCookie(w http.ResponseWriter, r *http.Request, c *http.Cookie) {
	c.Path, c.HttpOnly, c.Secure = Path, true, r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
	http.SetCookie(w, c)
}

// code returns a code with which the session of that name may answer approvals, once.
func (s *sessions) code(name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	var found *session
	for _, o := range s.open {
		if strings.EqualFold(o.name, name) || name == "" && len(s.open) == 1 {
			found = o
		}
	}
	if found == nil {
		return "", errNoSession
	}
	code := rand.Text()[:10] // of letters that nobody takes for another; 50 bits
	found.codes[digestOf(code)] = time.Now().Add(codeTime)
	return code[:5] + "-" + code[5:], nil
}

// unlock lets the session answer approvals, if the code is one of its own.
func (s *sessions) unlock(o *session, code string) error {
	err := s.take(o, code)
	if err == nil {
		s.allow(o, ApproveByCode)
	}
	return err
}

// take uses up a code of the session's own.
func (s *sessions) take(o *session, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.wrong >= maxWrong {
		return errWrong
	}
	d := digestOf(strings.NewReplacer("-", "", " ", "").Replace(strings.ToUpper(code)))
	ends, ok := o.codes[d]
	delete(o.codes, d)
	if !ok || time.Now().After(ends) {
		if o.wrong++; o.wrong >= maxWrong {
			clear(o.codes)
		}
		return errCode
	}
	return nil
}

// allow lets the session answer approvals, because a person was found to be here in that way.
func (s *sessions) allow(o *session, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.may = how
}

// mayAnswer reports whether the session may answer approvals, where that takes what mode says.
func (s *sessions) mayAnswer(o *session, mode string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.may == mode
}

// begin keeps what a step of a passkey leaves for the next one, and began takes it, once.
func (s *sessions) begin(o *session, next string, left *webauthn.SessionData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.step, o.since = next, left
}

func (s *sessions) began(o *session, step string) (left *webauthn.SessionData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.step == step {
		left = o.since
	}
	o.step, o.since = "", nil
	return left
}

// say keeps a sentence for the next page of the session, and told takes it.
func (s *sessions) say(o *session, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.said = text
}

func (s *sessions) told(o *session) (text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, o.said = o.said, ""
	return text
}

// plans keeps the plan of the session where that is not nil, and returns the one that it has.
func (s *sessions) plans(o *session, next *Plan) *Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.plan = cmp.Or(next, o.plan)
	return o.plan
}

// isForm reports whether a form comes from a page of the session.
func (o *session) isForm(r *http.Request) bool {
	return subtle.ConstantTimeCompare([]byte(r.PostFormValue("csrf")), []byte(o.csrf)) == 1
}

package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Paths of the hub's HTTP side.
const (
	pagePath     = "/sign-in/"
	backPath     = pagePath + "callback"
	documentPath = pagePath + "client.json"
)

const maxForm = 4 << 10 // bytes of what a page sends

// ServeHTTP serves the pages of visits, the page that browsers come back to, and the hub's Client
// ID Metadata Document. Whoever calls it has checked the host of the request.
func (d *Desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, pagePath)
	get := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case get && r.URL.Path == documentPath:
		d.document(w, r)
	case get && (r.URL.Path == backPath || r.URL.Query().Has("state")):
		d.comeBack(w, r)
	case get:
		d.show(w, r, d.find(func(v *visit) bool { return equal(v.id, id) }))
	case r.Method == http.MethodPost:
		d.enter(w, r, d.find(func(v *visit) bool { return equal(v.id, id) }))
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "this page takes GET and POST", http.StatusMethodNotAllowed)
	}
}

// document answers with the Client ID Metadata Document, where the hub has an https address: its
// own address is the id of the client.
func (d *Desk) document(w http.ResponseWriter, r *http.Request) {
	base := d.opts.Base()
	if !isPublic(base) {
		http.NotFound(w, r)
		return
	}
	text, _ := json.Marshal(map[string]any{"client_id": base + documentPath, "client_name": "mcp-toolhub",
		"client_uri":    base,
		"redirect_uris": []string{base + backPath}, "grant_types": []string{"authorization_code", "refresh_token"},
		"response_types": []string{"code"}, "token_endpoint_auth_method": "none", "application_type": "web"})
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=3600")
	_, _ = w.Write(text)
}

// show answers with the form for the code; to the browser that has entered it, with the way on.
func (d *Desk) show(w http.ResponseWriter, r *http.Request, v *visit) {
	d.mu.Lock()
	over, browser := v == nil || v.over, ""
	if v != nil {
		browser = v.browser
	}
	d.mu.Unlock()
	switch {
	case over:
		answer(w, http.StatusNotFound, &view{Title: "This sign-in is not open", Text: gone})
	case browser == "":
		answer(w, http.StatusOK, v.form(""))
	case !isFrom(r, v, browser):
		answer(w, http.StatusForbidden, &view{Title: "Another browser has entered the code", Text: elsewhere})
	default:
		d.goOn(w, r, v)
	}
}

const (
	gone = "It is done, was given up, or has expired. Call the tool again: your client then shows an address " +
		"and a code."
	elsewhere = "A code works once, in one browser. If that was not you, call the tool again: your client then " +
		"shows another code."
)

// form is the page that asks for the code. problem says what was wrong with the last one.
func (v *visit) form(problem string) *view {
	host := v.server.URL
	if u, err := url.Parse(v.server.URL); err == nil {
		host = u.Host
	}
	return &view{Title: "Sign in to " + v.server.ID, Server: v.server.ID, Host: host, Client: v.client,
		Problem: problem, Form: true}
}

// enter takes the code. The browser that brings the right one is known by a cookie from then on,
// and goes on to the authorization server.
func (d *Desk) enter(w http.ResponseWriter, r *http.Request, v *visit) {
	if v == nil {
		d.show(w, r, nil)
		return
	}
	if !isOwnForm(r, v.base) { // another site could make somebody's browser sign in for a stranger
		answer(w, http.StatusForbidden, &view{Title: "This did not come from the page itself",
			Text: "Open " + v.page() + " and enter the code there."})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		answer(w, http.StatusBadRequest, v.form("What the page sent cannot be read."))
		return
	}
	browser := rand.Text()
	switch d.judge(v, plainCode(r.PostForm.Get("code")), browser) {
	case rightCode:
	case wrongCode:
		answer(w, http.StatusForbidden,
			v.form("That is not the code. Your client shows it beside the address of this page."))
		return
	default:
		d.show(w, r, v)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: v.cookie(), Value: browser, Path: "/", Expires: v.expires, HttpOnly: true,
		// Lax: the answer comes from another site, as a link does
		Secure: isPublic(v.base), SameSite: http.SameSiteLaxMode})
	d.signIn(r.Context(), v)
	d.goOn(w, r, v)
}

// judgement is what becomes of a code.
type judgement int

const (
	tooLate judgement = iota // the visit is over, or another browser has entered the code
	wrongCode
	rightCode
)

// judge compares a code, and gives the visit to the browser that has brought the right one.
func (d *Desk) judge(v *visit, code, browser string) judgement {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case v.over || v.browser != "":
		return tooLate
	case equal(code, v.code):
		v.browser = browser
		return rightCode
	}
	if v.guesses++; v.guesses >= maxGuesses {
		d.end(v, errGuesses)
		return tooLate
	}
	return wrongCode
}

// isOwnForm reports whether a form comes from a page of the hub itself. Browsers say so with every form that they send.
func isOwnForm(r *http.Request, base string) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	u, err := url.Parse(base)
	return err == nil && r.Header.Get("Origin") == u.Scheme+"://"+u.Host
}

// isFrom reports whether a request comes from the browser that has entered the code.
func isFrom(r *http.Request, v *visit, browser string) bool {
	c, err := r.Cookie(v.cookie())
	return err == nil && browser != "" && equal(c.Value, browser)
}

// goOn sends the browser on to the authorization server, as soon as it is known where that is.
func (d *Desk) goOn(w http.ResponseWriter, r *http.Request, v *visit) {
	select {
	case <-v.going:
	case <-r.Context().Done():
		return
	}
	d.mu.Lock()
	address, over := v.address, v.over
	d.mu.Unlock()
	if over || address == "" {
		d.tellEnd(w, v)
		return
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		answer(w, http.StatusBadGateway, &view{Title: "The authorization server has no web address"})
		return
	}
	// By a redirect in answer to a form, browsers would have to be allowed to send the form there, too (form-action).
	w.Header().Set("Refresh", "0; url="+u.String())
	answer(w, http.StatusOK, &view{Title: "The code is right", Server: v.server.ID, Host: u.Host, Next: u.String()})
}

// comeBack takes the answer that the browser brings from the authorization server.
func (d *Desk) comeBack(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	v := d.find(func(v *visit) bool {
		u, err := url.Parse(v.address)
		return err == nil && v.address != "" && equal(u.Query().Get("state"), q.Get("state"))
	})
	if v == nil {
		answer(w, http.StatusNotFound, &view{Title: "This sign-in is not open", Text: gone})
		return
	}
	d.mu.Lock()
	mine := isFrom(r, v, v.browser) && r.Method == http.MethodGet
	first := mine && !v.answered && !v.over
	if first {
		v.answered = true
		v.answer <- q
	}
	d.mu.Unlock()
	if !mine {
		answer(w, http.StatusForbidden, &view{Title: "Another browser has entered the code", Text: elsewhere})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	select {
	case <-v.done:
		d.tellEnd(w, v)
	case <-ctx.Done():
		answer(w, http.StatusGatewayTimeout, &view{Title: "The authorization server is slow",
			Text: "The hub goes on by itself."})
	}
}

// answerWithin bounds the wait of a browser for the token.
const answerWithin = time.Minute

// tellEnd says how a visit ended.
func (d *Desk) tellEnd(w http.ResponseWriter, v *visit) {
	<-v.done
	if v.err == nil {
		answer(w, http.StatusOK, &view{Title: "You are signed in to " + v.server.ID,
			Text: "You can close this page. Your client goes on by itself, or call the tool again."})
		return
	}
	answer(w, http.StatusBadGateway, &view{Title: "Nobody is signed in to " + v.server.ID, Problem: v.err.Error(),
		Text: "Call the tool again to begin anew."})
}

// view is what a page says.
type view struct {
	Title, Text, Problem string
	Server, Host, Client string
	Form                 bool
	Next                 string
}

const style = "body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:3em auto;padding:0 " +
	"1em;color:#222;background:#fff}h1{font-size:1.4em}input{font:1.3em " +
	"monospace;width:11em;padding:.3em}button{font-size:1.1em;padding:.4em 1em}.bad{color:#a00}"

var pages = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Title}}</title><style>` + style + `</style></head><body><main>
<h1>{{.Title}}</h1>
{{with .Problem}}<p class="bad">{{.}}</p>{{end}}
{{with .Text}}<p>{{.}}</p>{{end}}
{{if .Form}}
<p>mcp-toolhub wants to use the server <b>{{.Server}}</b> at {{.Host}} for you{{with .Client}},
because the client <b>{{.}}</b> has called it{{end}}.
After the code you go on to the server's own sign-in.</p>
<form method="post" autocomplete="off">
<p><label>The code that your client shows: <input name="code" size="9" maxlength="20" autofocus required></label></p>
<p><button>Go on</button></p>
</form>
<p>Did somebody send you this address and the code? Then close this page: that person would use the server as you.</p>
{{end}}
{{with .Next}}<p>You go on to <b>{{$.Host}}</b>, which signs you in to {{$.Server}}.</p>
<p><a href="{{.}}" rel="noreferrer">Go on now</a></p>{{end}}
</main></body></html>
`))

// policy lets a page load nothing but its own style, run nothing, and stand in no other page.
func policy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}

func answer(w http.ResponseWriter, status int, v *view) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy())
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, a form would not say where it comes from
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = pages.Execute(w, v) // fails where the browser has gone
}

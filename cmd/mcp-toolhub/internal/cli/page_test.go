package cli

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// pageClient is a browser without a script.
type pageClient struct {
	t    *testing.T
	http *http.Client
	base string // http://127.0.0.1:port
	csrf string
}

// openPage signs in to the page of a hub.
func openPage(t *testing.T, hub *control.Client) *pageClient {
	t.Helper()
	r := &pageClient{t: t}
	r.signIn(hub)
	return r
}

// signIn signs in, in the browser that r is.
func (r *pageClient) signIn(hub *control.Client) {
	r.t.Helper()
	address, err := hub.OpenPage(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	if r.http == nil {
		*r = *newPageClient(r.t, address)
	}
	if status, text := r.get(address); status != http.StatusOK {
		r.t.Fatalf("sign in: %d %s", status, text)
	}
	_, text := r.get("/ui/servers")
	r.csrf = matched(regexp.MustCompile(`name="csrf" value="([A-Z0-9]+)"`), text)
	if r.csrf == "" {
		r.t.Fatalf("not signed in: %s", text)
	}
}

func newPageClient(t *testing.T, address string) *pageClient {
	t.Helper()
	u, err := url.Parse(address)
	jar, jarErr := cookiejar.New(nil)
	if err != nil || jarErr != nil {
		t.Fatal(err, jarErr)
	}
	return &pageClient{t: t, base: u.Scheme + "://" + u.Host, http: &http.Client{Jar: jar}}
}

// matched is what the pattern's group matches first.
func matched(pattern *regexp.Regexp, text string) string {
	if m := pattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// do sends a request for a path, or a whole address.
func (r *pageClient) do(method, path, body string, headers ...string) (*http.Response, string) {
	r.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = r.base + path
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.http.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp, string(text)
}

func (r *pageClient) get(path string) (int, string) {
	r.t.Helper()
	resp, text := r.do(http.MethodGet, path, "")
	return resp.StatusCode, text
}

// send sends a form of the session, and returns the page that it leads to.
func (r *pageClient) send(path string, values ...string) (int, string) {
	r.t.Helper()
	resp, text := r.do(http.MethodPost, path, formOf(append([]string{"csrf", r.csrf}, values...)...))
	return resp.StatusCode, html.UnescapeString(text)
}

// formOf is a form as browsers send it.
func formOf(values ...string) string {
	form := url.Values{}
	for i := 0; i < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	return form.Encode()
}

// name is that of the session.
func (r *pageClient) name() string {
	_, text := r.get("/ui/servers")
	return matched(regexp.MustCompile(`This page is <code>([A-Z0-9]+)</code>`), text)
}

// pagePaths are pages that are there in each hub.
var pagePaths = []string{"/ui/", "/ui/servers", "/ui/servers/s", "/ui/add", "/ui/tools", "/ui/tools?client=claude-code", "/ui/tools?q=echo", "/ui/tool?name=mcp.s.echo", "/ui/approvals", "/ui/calls", "/ui/secrets", "/ui/policy",
	"/ui/explain?tool=mcp.s.echo&as=local&door=http"}

// TestPageOpensOnce: the page opens for whoever may read the state directory, with an address that works once. Whoever comes second with it ends the
// session of the first. Nothing is shown to others.
func TestPageOpensOnce(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	h := p.hub()
	address, err := h.OpenPage(t.Context())
	if err != nil || !strings.HasPrefix(address, p.url+"/ui/signin?code=") {
		t.Fatalf("%q: %v", address, err)
	}
	stranger, owner, thief := newPageClient(t, address), newPageClient(t, address), newPageClient(t, address)
	for _, path := range append(pagePaths, "/ui/nothing", "/ui/signin?code=WRONG") {
		resp, text := stranger.do(http.MethodGet, path, "", "Authorization", "Bearer x")
		if resp.StatusCode != http.StatusUnauthorized || strings.Contains(text, "echo") || !strings.Contains(text, "mcp-toolhub ui") {
			t.Errorf("%s for a stranger: %d %s", path, resp.StatusCode, text)
		}
	}
	if resp, _ := owner.do(http.MethodGet, address, "", "Sec-Purpose", "prefetch;prerender"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a browser that looks ahead: %d", resp.StatusCode)
	}
	if resp, _ := owner.do(http.MethodHead, address, ""); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("HEAD: %d", resp.StatusCode)
	}
	resp, _ := owner.do(http.MethodGet, address, "")
	cookies := resp.Header.Values("Set-Cookie")
	for i, same := range []string{"Lax", "Strict"} { // of the browser, and of the session
		for _, part := range []string{"; HttpOnly", "; SameSite=" + same, "; Path=/ui/"} {
			if len(cookies) != 2 || !strings.Contains(cookies[i], part) {
				t.Errorf("cookie %d of %q is without %s", i+1, cookies, part)
			}
		}
	}
	for _, path := range pagePaths {
		resp, text := owner.do(http.MethodGet, path, "")
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
		checkHeaders(t, path, resp.Header)
	}
	if status, _ := owner.get(address); status != http.StatusOK {
		t.Errorf("the same browser goes back: %d", status)
	}
	if status, _ := thief.get(address); status != http.StatusUnauthorized {
		t.Errorf("another browser with the same address: %d", status)
	}
	if status, _ := owner.get("/ui/servers"); status != http.StatusUnauthorized {
		t.Errorf("the first browser after that: %d", status)
	}
	if resp, text := stranger.do(http.MethodGet, "/", ""); resp.Request.URL.Path != "/ui/" {
		t.Errorf("/ leads to %s: %s", resp.Request.URL, text)
	}
	if _, text := stranger.do(http.MethodGet, "/mcp", ""); !strings.Contains(text, "The page for people is at /ui/.") {
		t.Errorf("a browser at /mcp is told %q", text)
	}
}

// checkHeaders: nothing from elsewhere is loaded, nothing in the page runs, and no other page frames it.
func checkHeaders(t *testing.T, path string, h http.Header) {
	t.Helper()
	csp := h.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(csp, part) {
			t.Errorf("%s: the policy %q lacks %s", path, csp, part)
		}
	}
	for header, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Access-Control-Allow-Origin": ""} {
		if got := h.Get(header); got != want {
			t.Errorf("%s: %s is %q", path, header, got)
		}
	}
}

// TestPageTakesNoForeignForms: a form counts only with the token of its session, from a page of the hub, at a host that is the hub's.
func TestPageTakesNoForeignForms(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	r, other := openPage(t, p.hub()), openPage(t, p.hub())
	form := url.Values{"csrf": {r.csrf}}.Encode()
	for name, c := range map[string]struct {
		form    string
		headers []string
	}{
		"no token":              {"x=y", nil},
		"the token of another":  {url.Values{"csrf": {other.csrf}}.Encode(), nil},
		"another site":          {form, []string{"Sec-Fetch-Site", "cross-site"}},
		"another port":          {form, []string{"Sec-Fetch-Site", "same-site"}},
		"another origin":        {form, []string{"Origin", "https://evil.example"}},
		"an origin that is not": {form, []string{"Origin", "null"}},
		"another host":          {form, []string{"Host", "evil.example"}},
	} {
		for _, path := range []string{"/ui/servers/s/disable", "/ui/tools/disable", "/ui/add", "/ui/tool", "/ui/unlock", "/ui/grants/x", "/ui/approvals/x", "/ui/signout"} {
			resp, text := r.do(http.MethodPost, path, c.form, c.headers...)
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s to %s: %d %s", name, path, resp.StatusCode, text)
			}
		}
	}
	if resp, _ := r.do(http.MethodGet, "/ui/servers", "", "Host", "evil.example"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("another host: %d", resp.StatusCode)
	}
	if resp, _ := r.do(http.MethodPost, "/ui/servers/s/disable", form, "Origin", r.base, "Sec-Fetch-Site", "same-origin"); resp.StatusCode != http.StatusOK {
		t.Errorf("the hub's own page: %d", resp.StatusCode)
	}
	if _, text := r.get("/ui/servers"); !strings.Contains(text, `<span class="state stopped">`) {
		t.Errorf("the server was not disabled: %s", text)
	}
	if status, _ := r.send("/ui/signout"); status != http.StatusOK {
		t.Errorf("sign out: %d", status)
	}
	if status, _ := r.get("/ui/servers"); status != http.StatusUnauthorized {
		t.Errorf("signed out, and the page is still there: %d", status)
	}
}

// TestPageAnswers: answering takes a code from a terminal, of that very page and once; then the waiting call goes on, with the arguments as they
// were edited.
func TestPageAnswers(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	h := p.hub()
	r, other := openPage(t, h), openPage(t, h)
	w := p.client(rev2025).open()
	rest := w.waits(w.call("mcp.s.echo", `{"text":"<b>\u202ehi</b>","password":"hunter2"}`, `"progressToken":"p"`))
	v := p.pending(h)
	path := "/ui/approvals/" + string(v.ID)
	if _, text := r.get("/ui/approvals"); !strings.Contains(text, string(v.ID)) || strings.Contains(text, "hunter2") || !strings.Contains(text, "(1) Approvals") {
		t.Errorf("the list: %s", text)
	}
	_, text := r.get(path)
	if strings.Contains(text, "hunter2") || strings.Contains(text, "<b>") || strings.Contains(text, "\u202e") || !strings.Contains(text, "ui code "+r.name()) {
		t.Errorf("the question: %s", text)
	}
	if status, _ := r.send(path, "choice", "allow_once"); status != http.StatusForbidden {
		t.Errorf("an answer without a code: %d", status)
	}
	if _, err := h.PageCode(t.Context(), ""); err == nil {
		t.Error("there are two pages, and a code was given without a name")
	}
	code, err := h.PageCode(t.Context(), r.name())
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := other.send("/ui/unlock", "code", code); status != http.StatusConflict {
		t.Errorf("the code of another page: %d", status)
	}
	if status, _ := r.send("/ui/unlock", "code", "AAAAA-AAAAA"); status != http.StatusConflict {
		t.Errorf("a wrong code: %d", status)
	}
	if status, text := r.send("/ui/unlock", "code", strings.ToLower(code), "place", "approvals/"+string(v.ID)); status != http.StatusOK || !strings.Contains(text, "Allow once") {
		t.Errorf("the code: %d %s", status, text)
	}
	if status, _ := r.send("/ui/unlock", "code", code); status != http.StatusConflict {
		t.Errorf("the code again: %d", status)
	}
	if status, _ := other.send(path, "choice", "allow_once"); status != http.StatusForbidden {
		t.Errorf("another page may answer, too: %d", status)
	}
	if status, text := r.send(path, "choice", "allow_once", "arguments", `{"text":7}`); status != http.StatusConflict || !strings.Contains(text, "do not fit the tool") {
		t.Errorf("arguments that the tool does not take: %d %s", status, text)
	}
	if status, text := r.send(path, "choice", "allow_once", "arguments", "{\r\n\"text\": \"edited\"}", "sentence", "mind the gap"); status != http.StatusOK {
		t.Errorf("the answer: %d %s", status, text)
	}
	if got := rest(); !strings.Contains(got, "edited") || !strings.Contains(got, "mind the gap") || strings.Contains(got, "hunter2") {
		t.Errorf("the call: %s", got)
	}
	if status, text := r.send(path, "choice", "deny_once"); status != http.StatusConflict || !strings.Contains(text, "first answer counts") {
		t.Errorf("a second answer: %d %s", status, text)
	}
	if _, text := r.get(path); !strings.Contains(text, "answered.") || !strings.Contains(text, "by page/") || strings.Contains(text, "<textarea") {
		t.Errorf("the question, answered: %s", text)
	}
	for range 6 {
		_, _ = other.send("/ui/unlock", "code", "AAAAA-AAAAA")
	}
	code, err = h.PageCode(t.Context(), other.name())
	if err != nil {
		t.Fatal(err)
	}
	if status, text := other.send("/ui/unlock", "code", code); status != http.StatusConflict || !strings.Contains(text, "too many wrong codes") {
		t.Errorf("a good code after many wrong ones: %d %s", status, text)
	}
	if log := p.journal(); !strings.Contains(log, `"object":"tool_input_mutation"`) || !strings.Contains(log, "page/") {
		t.Error("the journal does not say who has changed the arguments")
	}
}

// TestPageAnswersOff: where the config says so, no code helps.
func TestPageAnswersOff(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, map[string]any{"hub": map[string]any{"ui": map[string]any{"approvals": "off"}}})
	h := p.hub()
	r := openPage(t, h)
	w := p.client(rev2025).open()
	rest := w.waits(w.call("mcp.s.echo", `{"text":"a"}`, `"progressToken":"p"`))
	v := p.pending(h)
	code, err := h.PageCode(t.Context(), r.name())
	if err != nil {
		t.Fatal(err)
	}
	for path, values := range map[string][]string{"/ui/unlock": {"code", code}, "/ui/approvals/" + string(v.ID): {"choice", "allow_once"}} {
		if status, text := r.send(path, values...); status != http.StatusForbidden || !strings.Contains(text, "hub.ui.approvals") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: policy.DenyOnce}); err != nil {
		t.Fatal(err)
	}
	rest()
}

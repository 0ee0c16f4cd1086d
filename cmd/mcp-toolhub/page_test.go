package main

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
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

// unlock lets the pageClient answer approvals.
func (r *pageClient) unlock(hub *control.Client) {
	r.t.Helper()
	code, err := hub.PageCode(r.t.Context(), r.name())
	if err != nil {
		r.t.Fatal(err)
	}
	if status, text := r.send("/ui/unlock", "code", code); status != http.StatusOK || !strings.Contains(text, "may answer approvals") {
		r.t.Fatalf("unlock: %d %s", status, text)
	}
}

// pagePaths are pages that are there in each hub.
var pagePaths = []string{"/ui/servers", "/ui/tools", "/ui/tools?q=echo", "/ui/tool?name=mcp.s.echo", "/ui/approvals", "/ui/calls", "/ui/secrets", "/ui/policy",
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
	for _, path := range append(pagePaths, "/ui/", "/ui/live?of=servers", "/ui/nothing", "/ui/signin?code=WRONG") {
		resp, text := stranger.do(http.MethodGet, path, "", "Authorization", "Bearer x")
		if resp.StatusCode != http.StatusUnauthorized || strings.Contains(text, "echo") || !strings.Contains(text, "mcp-toolhub ui") {
			t.Errorf("%s for a stranger: %d %s", path, resp.StatusCode, text)
		}
	}
	if resp, _ := owner.do(http.MethodGet, address, "", "Sec-Purpose", "prefetch;prerender"); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a browser that looks ahead: %d", resp.StatusCode)
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
		for _, path := range []string{"/ui/servers/s/stop", "/ui/tool", "/ui/unlock", "/ui/grants/x", "/ui/approvals/x", "/ui/signout"} {
			resp, text := r.do(http.MethodPost, path, c.form, c.headers...)
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s to %s: %d %s", name, path, resp.StatusCode, text)
			}
		}
	}
	if resp, _ := r.do(http.MethodGet, "/ui/servers", "", "Host", "evil.example"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("another host: %d", resp.StatusCode)
	}
	if resp, _ := r.do(http.MethodPost, "/ui/servers/s/stop", form, "Origin", r.base, "Sec-Fetch-Site", "same-origin"); resp.StatusCode != http.StatusOK {
		t.Errorf("the hub's own page: %d", resp.StatusCode)
	}
	if _, text := r.get("/ui/servers"); !strings.Contains(text, `<span class="state stopped">`) {
		t.Errorf("the server was not stopped: %s", text)
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
	if status, text := r.send("/ui/unlock", "code", strings.ToLower(code), "approval", string(v.ID)); status != http.StatusOK || !strings.Contains(text, "Allow once") {
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

// TestPageAnswerRaces: of answers on the page, on the command line and in the client at the same moment one counts, and the others are told. In
// every second round the client answers too late.
func TestPageAnswerRaces(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	h := p.hub()
	r := openPage(t, h)
	r.unlock(h)
	for round := range 10 {
		args := fmt.Sprintf(`{"text":"round %d"}`, round)
		var page, line, client string // who was let through
		var others, calling sync.WaitGroup
		start, slow := make(chan struct{}), round%2 == 1
		x := &exchange{w: p.client(rev2025).able().open(), answer: func(int, asked) string {
			if <-start; slow {
				others.Wait()
			}
			return `{"action":"accept","content":{"answer":"allow_once"}}`
		}}
		var got string
		calling.Go(func() { got = x.call("mcp.s.echo", args) })
		v := p.pending(h)
		others.Go(func() {
			<-start
			if status, text := r.send("/ui/approvals/"+string(v.ID), "choice", "allow_once"); status == http.StatusOK {
				page = "allow_once"
			} else if !strings.Contains(text, "first answer counts") {
				t.Errorf("the page is told %d %s", status, text)
			}
		})
		others.Go(func() {
			<-start
			if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: policy.DenyOnce}); err == nil {
				line = "deny_once"
			} else if !strings.Contains(err.Error(), approval.ErrAnswered.Error()) {
				t.Errorf("the command line is told %v", err)
			}
		})
		close(start)
		others.Wait()
		calling.Wait()
		settled, err := h.Approval(t.Context(), string(v.ID))
		if err != nil || settled.Answer == nil {
			t.Fatalf("round %d: %+v, %v", round, settled, err)
		}
		if strings.HasPrefix(settled.Answer.By, "elicitation/") {
			client = string(settled.Answer.Choice)
		}
		winners := 0
		for _, by := range []string{page, line, client} {
			if by != "" {
				winners++
			}
		}
		if slow && client != "" {
			t.Errorf("round %d: the late answer of the client counts", round)
		}
		runs := strings.Contains(got, `"status":"succeeded"`)
		if winners != 1 || runs != settled.Answer.Choice.Allows() {
			t.Errorf("round %d: page %q, line %q, client %q; settled %+v; the call: %s", round, page, line, client, settled.Answer, got)
		}
	}
}

// TestPageTries: a tool is tried by its form through the pipeline: the policy decides, a person is asked, and the records say who called.
func TestPageTries(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"rules": []any{map[string]any{"id": "no", "match": "mcp.s.hidden", "then": "deny"}}}, nil)
	h := p.hub()
	r := openPage(t, h)
	r.unlock(h)
	status, text := r.send("/ui/tool", "name", "mcp.s.echo", "argument.text", "a\r\n\"b\"", "argument.password", "hunter2")
	if status != http.StatusOK || !strings.Contains(text, "waits for a person") {
		t.Fatalf("the call: %d %s", status, text)
	}
	v := p.pending(h)
	if v.Binding.Actor != "actor:ui/"+localActor().Name {
		t.Errorf("the caller is %q", v.Binding.Actor)
	}
	story := "/ui/calls/" + string(v.Invocation)
	eventually(t, "the story is there, and is got again while the call runs", func() bool {
		_, text := r.get(story)
		return strings.Contains(text, "none so far") && strings.Contains(text, `data-live="/ui/live?of=calls"`) &&
			strings.Contains(text, "because no rule speaks of this tool")
	})
	if status, text := r.send("/ui/approvals/"+string(v.ID), "choice", "allow_once"); status != http.StatusOK {
		t.Fatalf("the answer: %d %s", status, text)
	}
	if _, text := r.get("/ui/tries/" + string(v.Invocation)); strings.Contains(text, "hunter2") || !strings.Contains(text, "[masked") {
		t.Errorf("a secret among the arguments: %s", text)
	}
	eventually(t, "the call has its result", func() bool {
		_, text := r.get("/ui/tries/" + string(v.Invocation))
		return strings.Contains(text, "succeeded") && strings.Contains(text, `a\n`)
	})
	eventually(t, "the call has its story", func() bool {
		_, text := r.get(story)
		return strings.Contains(text, "succeeded") && strings.Contains(text, "actor:ui/") && strings.Contains(text, "[masked:") &&
			!strings.Contains(text, "data-live")
	})
	eventually(t, "the list has the call", func() bool {
		_, text := r.get("/ui/calls?tool=mcp.s.*")
		return strings.Contains(text, story)
	})
	if status, text := r.send("/ui/tool", "name", "mcp.s.echo", "do", "json", "argument.text", "a", "argument.password", "hunter2"); status != http.StatusOK ||
		strings.Contains(text, "hunter2") || !strings.Contains(text, "{\n  \"text\": \"a\"\n}") {
		t.Errorf("the fields as JSON: %d %s", status, text)
	}
	if status, text := r.send("/ui/tool", "name", "mcp.s.echo", "json", "[1]"); status != http.StatusUnprocessableEntity || !strings.Contains(text, "no JSON object") {
		t.Errorf("arguments that are none: %d %s", status, text)
	}
	if status, text := r.send("/ui/tool", "name", "mcp.s.hidden", "json", "{}"); status != http.StatusOK || !strings.Contains(text, "unknown tool") {
		t.Errorf("a tool that the policy hides: %d %s", status, text)
	}
	if status, text := r.send("/ui/tool", "name", "mcp.s.none", "json", "{}"); status != http.StatusConflict {
		t.Errorf("a tool that is none: %d %s", status, text)
	}
}

// TestPageSteers: a server that is stopped on the page stays so when the config changes, and starts again.
func TestPageSteers(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"mode": "accept_all"}, nil)
	r := openPage(t, p.hub())
	w := p.client(rev2025).open()
	state := func(want string) {
		t.Helper()
		eventually(t, "the server is "+want, func() bool {
			_, text := r.get("/ui/servers")
			return strings.Contains(text, `<span class="state `+want+`">`)
		})
	}
	if status, text := r.send("/ui/servers/s/stop"); status != http.StatusOK || !strings.Contains(text, "is stopped") {
		t.Fatalf("stop: %d %s", status, text)
	}
	state("stopped")
	p.write(map[string]any{"mode": "accept_all"}, map[string]any{"hub": map[string]any{"instructions": "new"}})
	if err := p.waitFor(regexp.MustCompile(`"config is applied"`)); err != nil {
		t.Fatal(err)
	}
	state("stopped")
	if got := w.send(w.call("mcp.s.echo", `{"text":"a"}`, "")); !strings.Contains(got[len(got)-1], "unknown tool") {
		t.Errorf("a call of a server that is stopped: %s", got)
	}
	for _, step := range []string{"start", "restart"} {
		if status, text := r.send("/ui/servers/s/" + step); status != http.StatusOK {
			t.Fatalf("%s: %d %s", step, status, text)
		}
		state("ready")
		if got := w.result("mcp.s.echo", `{"text":"a"}`, ""); !strings.Contains(got, `"status":"succeeded"`) {
			t.Errorf("after %s: %s", step, got)
		}
	}
	for _, path := range []string{"/ui/servers/none/stop", "/ui/servers/s/start", "/ui/servers/s/signin", "/ui/servers/s/signout"} {
		if status, _ := r.send(path); status != http.StatusConflict {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// TestPageStartsWhatSleeps: a server that waits for its first call is started on the page. One that the config has disabled is not, and the page says
// how to enable it.
func TestPageStartsWhatSleeps(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	lazy := child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo")}})
	lazy["start"] = "lazy"
	p.far["lazy"], p.far["off"] = lazy, map[string]any{"command": "none", "disabled": true}
	p.write(map[string]any{}, nil)
	eventually(t, "the lazy server has listed its tools", func() bool { return strings.Contains(p.log(), `"catalog of the server is known","server":"lazy"`) })
	_ = p.stop()
	p.restart() // what it lists is known now, so it sleeps
	r := openPage(t, p.hub())
	_, text := r.get("/ui/servers")
	for _, has := range []string{"Starts when one of its tools is called.", `action="/ui/servers/lazy/start"`, "mcp-toolhub enable off"} {
		if !strings.Contains(text, has) {
			t.Errorf("%s is missing in %s", has, text)
		}
	}
	if status, _ := r.send("/ui/servers/off/start"); status != http.StatusConflict {
		t.Errorf("a server that the config has disabled: %d", status)
	}
	if status, text := r.send("/ui/servers/lazy/start"); status != http.StatusOK {
		t.Fatalf("start: %d %s", status, text)
	}
	eventually(t, "it is ready", func() bool {
		return strings.Contains(second(r.get("/ui/servers")), `action="/ui/servers/lazy/stop"`) && strings.Contains(p.log(), `"server is ready","server":"lazy"`)
	})
}

// TestPageSaysWhy: the page says in words where a tool stands, and why, also on the page of the tool. Each page stands in its place.
func TestPageSaysWhy(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"rules": []any{map[string]any{"id": "no", "match": "mcp.s.hidden", "then": "deny"}}},
		map[string]any{"deferred": map[string]any{"mode": "always", "always_load": []any{"mcp.s.pinned"}}})
	p.far["s"] = child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo"), upstreamtest.Tool("pinned"), upstreamtest.Tool("hidden")}})
	p.write(map[string]any{"rules": []any{map[string]any{"id": "no", "match": "mcp.s.hidden", "then": "deny"}}},
		map[string]any{"deferred": map[string]any{"mode": "always", "always_load": []any{"mcp.s.pinned"}}})
	r := openPage(t, p.hub())
	eventually(t, "the tools are there", func() bool { return strings.Contains(second(r.get("/ui/tools")), "mcp.s.pinned") })
	_, list := r.get("/ui/tools")
	for name, why := range map[string]string{"tool_search": "the hub&#39;s own", "mcp.s.pinned": "deferred.always_load of the config names it",
		"mcp.s.echo": "the config says deferred.mode: always", "mcp.s.hidden": "the policy never allows it (user/no)"} {
		_, card, _ := strings.Cut(list, `<a href="/ui/tool?name=`+name+`">`)
		if card, _, _ = strings.Cut(card, "</li>"); !strings.Contains(card, why) {
			t.Errorf("%s: the list says %s", name, card)
		}
		if _, text := r.get("/ui/tool?name=" + name); !strings.Contains(text, why) || !strings.Contains(text, `<a href="/ui/tools" aria-current="page">`) {
			t.Errorf("%s: its page says %s", name, text)
		}
	}
	if _, text := r.get("/ui/tool?name=tool_search"); strings.Contains(list+text, `\u000a`) || !strings.Contains(text, "\nServers:\n") {
		t.Errorf("a text of several lines: %s", text)
	}
	for code := range map[string]bool{"meta_tool": true, "mode_always": true, "policy_blocked": true} {
		if strings.Contains(list, code) {
			t.Errorf("the page has the code %s", code)
		}
	}
	for _, path := range []string{"/ui/explain?tool=mcp.s.echo&as=local&door=http", "/ui/suggestions"} {
		if _, text := r.get(path); !strings.Contains(text, `<a href="/ui/policy" aria-current="page">`) {
			t.Errorf("%s stands nowhere: %s", path, text)
		}
	}
}

// TestPageOfAHubOnStdio: a hub that serves no HTTP has a page at its own API, which nobody else can use without the token there.
func TestPageOfAHubOnStdio(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := wireHubIn(t, dir, `{"mcpServers":{"demo":{"command":"mcp-toolhub","args":["demo-server"]}}}`, rev2025)
	w.open()
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "ui", "--no-browser")
	cmd.Dir, cmd.Env = dir, scratchEnv(dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	address := strings.TrimSpace(string(out))
	r := newPageClient(t, address)
	if status, text := r.get(address); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := r.get("/ui/servers"); status != http.StatusOK || !strings.Contains(text, "demo") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := r.get("/approvals"); status != http.StatusUnauthorized {
		t.Errorf("the API without its token: %d", status)
	}
	if resp, _ := r.do(http.MethodGet, "/ui/servers", "", "Host", "localhost.evil.example"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("another host: %d", resp.StatusCode)
	}
}

// TestPageNotSelf: where who calls does not count as approver, the client behind the call is not asked, its token answers nothing, and the page
// cannot answer for what its browser tried.
func TestPageNotSelf(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-the-test-itself"
	file := filepath.Join(t.TempDir(), "token")
	replaceFile(t, file, token)
	p := startPermitted(t, map[string]any{"ask": map[string]any{"not_self": true}}, map[string]any{"hub": map[string]any{
		"auth": map[string]any{"tokens": []any{map[string]any{"name": "ann", "token": "${file:" + file + "}"}}}}})
	h := p.hub()
	r, other := openPage(t, h), openPage(t, h)
	eventually(t, "the tool is there", func() bool { return strings.Contains(second(r.get("/ui/tools")), "mcp.s.echo") })
	r.unlock(h)
	other.unlock(h)
	if status, text := r.send("/ui/tool", "name", "mcp.s.echo", "argument.text", "mine"); status != http.StatusOK {
		t.Fatalf("the call: %d %s", status, text)
	}
	v := p.pending(h)
	path := "/ui/approvals/" + string(v.ID)
	if status, text := r.send(path, "choice", "allow_once"); status != http.StatusConflict || !strings.Contains(text, "not_self") {
		t.Errorf("the page that has called answers: %d %s", status, text)
	}
	if status, text := r.send("/ui/signout"); status != http.StatusOK || !strings.Contains(text, "You are signed out") {
		t.Errorf("sign out: %d %s", status, text)
	}
	r.signIn(h)
	r.unlock(h)
	if status, text := r.send(path, "choice", "allow_once"); status != http.StatusConflict || !strings.Contains(text, "not_self") {
		t.Errorf("the browser that has called answers after it has signed in anew: %d %s", status, text)
	}
	if status, text := other.send(path, "choice", "allow_once"); status != http.StatusOK {
		t.Errorf("another page: %d %s", status, text)
	}
	eventually(t, "the call has ended", func() bool {
		return matched(regexp.MustCompile(`(succeeded)`), second(r.get("/ui/tries/"+string(v.Invocation)))) != ""
	})
	x := &exchange{w: p.client(rev2025, "Authorization", "Bearer "+token).able().open(), answer: func(int, asked) string {
		t.Error("the client behind the call is asked")
		return `{"action":"accept","content":{"answer":"allow_once"}}`
	}}
	var calling sync.WaitGroup
	var got string
	calling.Go(func() { got = x.call("mcp.s.echo", `{"text":"theirs"}`) })
	v = p.pending(h)
	caller := newPageClient(t, p.url)
	for _, path := range []string{"/ui/approvals/" + string(v.ID), "/ui/unlock", "/approvals/" + string(v.ID)} {
		resp, text := caller.do(http.MethodPost, path, "choice=allow_once&csrf="+r.csrf, "Authorization", "Bearer "+token)
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s with the token of the caller: %d %s", path, resp.StatusCode, text)
		}
	}
	if status, text := r.send("/ui/approvals/"+string(v.ID), "choice", "allow_once"); status != http.StatusOK {
		t.Errorf("the page answers for a client: %d %s", status, text)
	}
	if calling.Wait(); !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("the call of the client: %s", got)
	}
}

func second(_ int, text string) string { return text }

//go:build e2e

package cli

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	virtual "github.com/descope/virtualwebauthn"
)

// byPasskey are settings with which the page takes passkeys.
func byPasskey() map[string]any {
	return map[string]any{"hub": map[string]any{"ui": map[string]any{"approvals": "passkey"}}}
}

// authenticator is one with one passkey for a page.
type authenticator struct {
	party virtual.RelyingParty
	holds virtual.Authenticator
	key   virtual.Credential
}

// newAuthenticator has a key with coordinates of 32 bytes each, which then takes 77 bytes. The library
// leaves out zeros at their beginning. No real authenticator does that, and the hub refuses such a key.
func newAuthenticator(r *pageClient, o virtual.AuthenticatorOptions) *authenticator {
	key := virtual.NewCredential(virtual.KeyTypeEC2)
	for len(key.Key.AttestationData()) != 77 {
		key = virtual.NewCredential(virtual.KeyTypeEC2)
	}
	return &authenticator{virtual.RelyingParty{Name: "mcp-toolhub", ID: "localhost", Origin: r.base},
		virtual.NewAuthenticatorWithOptions(o), key}
}

// passkeyForm is the path of the form that removes a passkey.
var passkeyForm = regexp.MustCompile(`action="(/ui/passkeys/[^"]+)"`)

// step takes a step with a passkey as the page's script does.
func (r *pageClient) step(name string, values ...string) (int, string) {
	r.t.Helper()
	form := append([]string{"csrf", r.csrf}, values...)
	resp, text := r.do(http.MethodPost, "/ui/passkey/"+name, formOf(form...), "Origin", r.base)
	return resp.StatusCode, text
}

// add adds the authenticator's passkey with a code, and returns what the page says.
func (a *authenticator) add(r *pageClient, code string) (int, string) {
	r.t.Helper()
	status, text := r.step("add", "code", code)
	if status != http.StatusOK {
		return status, text
	}
	options, err := virtual.ParseAttestationOptions(text)
	if err != nil {
		r.t.Fatal(err)
	}
	said := virtual.CreateAttestationResponse(a.party, a.holds, a.key, *options)
	a.holds.AddCredential(a.key)
	return r.step("added", "said", said)
}

// use answers the page with the passkey, and returns what it said besides.
func (a *authenticator) use(r *pageClient) (said string, status int, text string) {
	r.t.Helper()
	status, text = r.step("use")
	if status != http.StatusOK {
		return "", status, text
	}
	options, err := virtual.ParseAssertionOptions(text)
	if err != nil {
		r.t.Fatal(err)
	}
	said = virtual.CreateAssertionResponse(a.party, a.holds, a.key, *options)
	status, text = r.step("used", "said", said)
	return said, status, text
}

// TestPagePasskey: a passkey is added with a code from a terminal, and lets one browser answer, once it has
// verified the person. What it has said counts once, and for the page that asked.
func TestPagePasskey(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"ask": map[string]any{"channels": []any{"queue"}}}, byPasskey())
	h := p.hub()
	r, other := openPage(t, h), openPage(t, h)
	if !strings.HasPrefix(r.base, "http://localhost:") {
		t.Fatalf("the page is at %s", r.base)
	}
	w := p.client(rev2025).open()
	rest := w.waits(w.call("mcp.s.echo", `{"text":"a"}`, `"progressToken":"p"`))
	path := "/ui/approvals/" + string(p.pending(h).ID)
	mine := newAuthenticator(r, virtual.AuthenticatorOptions{})
	if _, status, text := mine.use(r); status != http.StatusConflict || !strings.Contains(text, "no passkey") {
		t.Errorf("without a passkey: %d %s", status, text)
	}
	if status, text := mine.add(r, "AAAAA-AAAAA"); status != http.StatusConflict || !strings.Contains(text, "code") {
		t.Errorf("a passkey with a wrong code: %d %s", status, text)
	}
	code := func(r *pageClient) string {
		code, err := h.PageCode(t.Context(), r.name())
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	if status, _ := r.send("/ui/unlock", "code", code(r)); status != http.StatusForbidden {
		t.Errorf("a code in place of a passkey: %d", status)
	}
	if status, text := newAuthenticator(r, virtual.AuthenticatorOptions{UserNotVerified: true}).add(r, code(r)); status != http.StatusConflict {
		t.Errorf("an authenticator that does not verify the person: %d %s", status, text)
	}
	if status, text := mine.add(r, code(r)); status != http.StatusOK {
		t.Fatalf("a passkey: %d %s", status, text)
	}
	if status, _ := r.send(path, "choice", "allow_once"); status != http.StatusForbidden {
		t.Errorf("an answer without the passkey: %d", status)
	}
	elsewhere := *mine
	elsewhere.party.Origin = "http://localhost:1"
	if _, status, _ := elsewhere.use(r); status != http.StatusConflict {
		t.Errorf("the passkey at another origin: %d", status)
	}
	careless := *mine
	careless.holds.Options.UserNotVerified = true
	if _, status, _ := careless.use(r); status != http.StatusConflict {
		t.Errorf("the passkey without the person: %d", status)
	}
	said, status, text := mine.use(r)
	if status != http.StatusOK {
		t.Fatalf("the passkey: %d %s", status, text)
	}
	for _, one := range []*pageClient{r, other} {
		if status, _ := one.step("used", "said", said); status != http.StatusConflict {
			t.Errorf("the same again: %d", status)
		}
		_, _ = one.step("use")
		if status, _ := one.step("used", "said", said); status != http.StatusConflict {
			t.Errorf("the same for another challenge: %d", status)
		}
	}
	if status, _ := other.send(path, "choice", "allow_once"); status != http.StatusForbidden {
		t.Errorf("another page may answer, too: %d", status)
	}
	if status, text := r.send(path, "choice", "allow_once"); status != http.StatusOK {
		t.Errorf("the answer: %d %s", status, text)
	}
	if got := rest(); !strings.Contains(got, `"a"`) && !strings.Contains(got, "echo") {
		t.Errorf("the call: %s", got)
	}
	if text := readFile(t, filepath.Join(p.state, "passkeys.json")); strings.Count(text, `"host": "localhost"`) != 1 {
		t.Errorf("the file: %s", text)
	}
	_, text = r.get("/ui/secrets")
	remove := matched(passkeyForm, text)
	if status, text := r.send(remove); remove == "" || status != http.StatusOK || strings.Contains(text, "passkeys/") {
		t.Errorf("remove %q: %d %s", remove, status, text)
	}
	if _, status, _ := mine.use(other); status != http.StatusConflict {
		t.Errorf("a passkey that was removed: %d", status)
	}
}

// TestPasskeyInABrowser: Chromium adds a passkey, and answers with it.
func TestPasskeyInABrowser(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	p := startPermitted(t, map[string]any{"ask": map[string]any{"channels": []any{"queue"}}}, byPasskey())
	tell(b, webauthn.Enable, webauthn.EnableParams{})
	tell(b, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true,
		HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true}})
	w := p.client(rev2025).open()
	rest := w.waits(w.call("mcp.s.echo", `{"text":"a"}`, `"progressToken":"p"`))
	v := p.pending(p.hub())
	address, err := p.hub().OpenPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(address))
	b.await("Servers")
	b.do(chromedp.Navigate(b.says("location.origin") + "/ui/approvals/" + string(v.ID)))
	b.shows("#code")
	b.usable("an approval that asks for a passkey")
	code, err := p.hub().PageCode(t.Context(), b.says("document.querySelector('footer code').textContent"))
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#code"), code+"\r"))
	b.shows("form[data-passkey=use] button")
	b.usable("an approval that asks for a passkey that is there")
	b.do(chromedp.Click(chromedp.CSS("form[data-passkey=use] button")))
	b.press("button[value=allow_once]:enabled") // once the page is there again
	b.await("No call waits")
	if got := rest(); strings.Contains(got, "denied") {
		t.Errorf("the call: %s", got)
	}
	b.do(chromedp.Navigate(b.says("location.origin") + "/ui/secrets"))
	b.await("Passkeys")
	b.usable("a list of passkeys")
	b.calm("passkeys")
}

//go:build e2e

package cli

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
)

// TestPageSignsIn: a server that wants a sign-in says so on the page, which leads to the authorization server, and signs out again. No page
// has a token, or the value of a secret.
func TestPageSignsIn(t *testing.T) {
	t.Parallel()
	auth, config := guardedServer(t, nil)
	home := newSignInHome(t, config+"hub: {instructions: \"${secret:greeting}\"}\n")
	set := home.command(t, "secrets", "set", "greeting")
	set.Stdin = strings.NewReader("a-secret-of-the-test")
	if out, err := set.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_ = home.hub(t)
	hubs, err := control.Find(t.Context(), filepath.Join(home.dir, "state", "mcp-toolhub"))
	if err != nil || len(hubs) != 1 {
		t.Fatalf("%d hubs: %v", len(hubs), err)
	}
	r := openPage(t, hubs[0])
	if _, text := r.get("/ui/servers"); !strings.Contains(text, "needs sign-in") {
		t.Errorf("before: %s", text)
	}
	status, text := r.send("/ui/servers/s/signin")
	if status != http.StatusOK {
		t.Fatalf("sign in: %d %s", status, text)
	}
	i := invitationIn(t, text)
	form := url.Values{"csrf": {r.csrf}}.Encode()
	_, text = r.do(http.MethodPost, "/ui/servers/s/signin", form, "Origin", r.base, "Sec-Fetch-Site", "same-origin")
	for _, has := range []string{`action="` + r.base + `/sign-in/`, `action="` + i.address + `"`, `name="code" value="` + i.code + `"`} {
		if !strings.Contains(text, has) {
			t.Errorf("the way on lacks %s: %s", has, text)
		}
	}
	(&browser{Client: r.http, t: t}).signIn(i)
	eventually(t, "the hub is signed in", func() bool {
		_, text := r.get("/ui/servers/s")
		return strings.Contains(text, "Signed in at "+auth.Issuer) && !strings.Contains(text, "needs sign-in")
	})
	_, text = r.get("/ui/secrets")
	if !strings.Contains(text, "<code>greeting</code>") || !strings.Contains(text, "Signed in at") {
		t.Errorf("sign-ins and secrets: %s", text)
	}
	for _, path := range pagePaths {
		_, text := r.get(path)
		if strings.Contains(text, "access-") || strings.Contains(text, "refresh-") || strings.Contains(text, "a-secret-of-the-test") {
			t.Errorf("%s has a secret: %s", path, text)
		}
	}
	if status, text := r.send("/ui/servers/s/signout"); status != http.StatusOK || !strings.Contains(text, "signed out") {
		t.Errorf("sign out: %d %s", status, text)
	}
	eventually(t, "the hub is signed out", func() bool {
		_, text := r.get("/ui/servers")
		return strings.Contains(text, "needs sign-in")
	})
}

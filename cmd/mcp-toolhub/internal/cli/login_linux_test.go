//go:build e2e

package cli

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestLoginAsksForTheClient: where the hub cannot register itself, the person at the terminal does, once for all servers of the authorization
// server. The secret is not shown.
func TestLoginAsksForTheClient(t *testing.T) {
	t.Parallel()
	auth, config := guardedServer(t, func(a *upstreamtest.AuthServer) {
		a.NoRegistration, a.Clients = true, map[string]string{"by-hand": "word-of-ann"}
	})
	home := newSignInHome(t, config)
	login := func(types ...string) string {
		p := newTerminal(t)
		cmd := exec.CommandContext(t.Context(), "mcp-toolhub", "login", "s", "--config", home.file)
		cmd.Dir, cmd.Env = home.dir, scratchEnv(home.dir)
		wait := p.start(t, cmd)
		for i, prompt := range []string{"client id: ", "client secret (Enter for none): "}[:len(types)] {
			p.sees(t, prompt, 1)
			p.types(t, types[i]+"\n")
		}
		return wait() + p.shown()
	}
	if said := login(""); !strings.Contains(said, "then set oauth: {client_id: ") {
		t.Errorf("nothing was entered:\n%s", said)
	}
	said := login("by-hand", "word-of-ann")
	if !strings.Contains(said, "s: signed in at "+auth.Issuer) || strings.Contains(said, "word-of-ann") {
		t.Errorf("a client was entered:\n%s", said)
	}
	redirect := regexp.MustCompile(`http://127\.0\.0\.1:\d+/callback`).FindString(said)
	if text, code := home.run(t, "logout", "s"); code != exitOK {
		t.Errorf("logout ended with %d: %s", code, text)
	}
	if said := login(); !strings.Contains(said, "s: signed in at ") {
		t.Errorf("the client is known:\n%s", said)
	}
	for _, r := range auth.Requests("/authorize") {
		if r.Form.Get("client_id") != "by-hand" || r.Form.Get("redirect_uri") != redirect {
			t.Errorf("asked with %v", r.Form)
		}
	}
	if text, code := home.run(t, "login", "s"); code != exitOK { // nobody needs to be asked
		t.Errorf("without a terminal login ended with %d: %s", code, text)
	}
}

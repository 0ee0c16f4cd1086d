//go:build e2e

package signin_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// hang answers nothing while anybody waits.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client has gone
	<-r.Context().Done()
}

func elsewhere(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "http://127.0.0.1:1/steal", http.StatusTemporaryRedirect)
}

func large(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"issuer":"%s"}`, strings.Repeat("x", 10<<20))
}

func TestFaultsOfAuthorizationServers(t *testing.T) {
	t.Parallel()
	const wellKnown = "/.well-known/"
	for name, c := range map[string]struct {
		change func(*upstreamtest.AuthServer)
		visit  func(*testing.T) func(string)
		step   string
		says   string
	}{
		"metadata is a page":      {change: at(wellKnown, page), step: signin.StepDiscover, says: `"text/html" instead of JSON`},
		"metadata hangs":          {change: at(wellKnown, hang), step: signin.StepDiscover, says: "did not answer in time"},
		"token hangs":             {change: at("/token", hang), step: signin.StepToken, says: "did not answer in time"},
		"metadata redirects":      {change: at(wellKnown, elsewhere), step: signin.StepDiscover, says: "redirects to http://127.0.0.1:1/steal"},
		"metadata of 10 MB":       {change: at(wellKnown, large), step: signin.StepDiscover, says: "over 256 KiB"},
		"no metadata":             {change: at(wellKnown, http.NotFound), step: signin.StepDiscover, says: "headers of its entry"},
		"no issuer":               {change: metadata("issuer", nil), step: signin.StepDiscover, says: "names no issuer"},
		"another issuer":          {change: metadata("issuer", "https://evil.example"), step: signin.StepDiscover, says: `another issuer, "https://evil.example"`},
		"no PKCE":                 {change: metadata("code_challenge_methods_supported", nil), step: signin.StepDiscover, says: "pkce: assume"},
		"plain PKCE":              {change: metadata("code_challenge_methods_supported", []string{"plain"}), step: signin.StepDiscover, says: "S256"},
		"token endpoint in clear": {change: metadata("token_endpoint", "http://example.com/token"), step: signin.StepDiscover, says: "not https"},
		"endpoint is a script":    {change: metadata("authorization_endpoint", "javascript:alert(1)"), step: signin.StepDiscover, says: "authorization_endpoint"},
		"another resource": {change: func(a *upstreamtest.AuthServer) { a.Resource = "http://other.example/mcp" }, step: signin.StepDiscover,
			says: "another resource"},
		"resource of another query": {change: func(a *upstreamtest.AuthServer) { a.Resource += "?tenant=1" }, step: signin.StepDiscover,
			says: "another resource"},
		"no registration":        {change: func(a *upstreamtest.AuthServer) { a.NoRegistration = true }, step: signin.StepRegister, says: "callback_port: "},
		"registration is a page": {change: at("/register", page), step: signin.StepRegister, says: "registration"},
		"registration redirects": {change: at("/register", elsewhere), step: signin.StepRegister, says: "redirects to"},
		"registration of 10 MB":  {change: at("/register", large), step: signin.StepRegister, says: "over 256 KiB"},
		"client is not known": {change: at("/token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client"}`)
		}), step: signin.StepToken, says: "invalid_client"},
		"another iss":  {visit: answering(func(q url.Values) { q.Set("iss", "https://evil.example") }), step: signin.StepAnswer, says: "evil.example"},
		"no iss":       {visit: answering(func(q url.Values) { q.Del("iss") }), step: signin.StepAnswer, says: "no iss"},
		"no code":      {visit: answering(func(q url.Values) { q.Del("code") }), step: signin.StepAnswer, says: "no code"},
		"expired code": {visit: answering(func(q url.Values) { q.Set("code", "old") }), step: signin.StepToken, says: "invalid_grant"},
		"denied": {visit: answering(func(q url.Values) {
			q.Set("error", "access_denied")
			q.Set("error_description", "no\x1b[31m way")
		}), step: signin.StepAnswer, says: "access_denied: no way"},
		"token is a page": {change: at("/token", page), step: signin.StepToken, says: "text/html"},
		"token redirects": {change: at("/token", elsewhere), step: signin.StepToken, says: "redirects to"},
		"token of 10 MB":  {change: at("/token", large), step: signin.StepToken, says: "over 256 KiB"},
		"no token in it": {change: at("/token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{}`)
		}), step: signin.StepToken, says: "access_token"},
		"token of DPoP": {change: at("/token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token":"x","token_type":"DPoP"}`)
		}), step: signin.StepToken, says: "bound to a key"},
		"token that has ended": {change: at("/token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token":"x","token_type":"Bearer","expires_in":-5}`)
		}), step: signin.StepToken, says: "ended already"},
		"token of two lines": {change: at("/token", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token":"x\r\nHost: evil.example","token_type":"Bearer"}`)
		}), step: signin.StepToken, says: "no header can carry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.change)
			var visit func(string)
			if c.visit != nil {
				visit = c.visit(t)
			}
			_, err := w.login(t, visit)
			var at *signin.Error
			if !errors.As(err, &at) || at.Step != c.step || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v", err)
			}
			if err != nil && (len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x1b\x00")) {
				t.Errorf("error %q", err)
			}
			if _, err := os.Stat(filepath.Join(w.dir, signin.FileName)); err == nil {
				t.Error("something is kept")
			}
			if n := len(w.auth.Requests(wellKnown + "openid-configuration")); name == "metadata hangs" && n > 0 {
				t.Error("an authorization server that hangs is asked again")
			}
		})
	}
}

func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprint(w, "<html>welcome</html>")
}

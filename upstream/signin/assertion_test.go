package signin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestIdentityProviderOfACompany: the identity provider makes of the person's ID token a grant for the authorization server. That never sees the
// ID token. What goes wrong names the step.
func TestIdentityProviderOfACompany(t *testing.T) {
	t.Parallel()
	const idToken, grant = "the-id-token-of-ann", "the-grant-for-the-server"
	for name, c := range map[string]struct {
		answer map[string]any
		fault  string
	}{
		"made": {map[string]any{"access_token": grant, "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "token_type": "N_A"}, ""},
		"refused": {map[string]any{"error": "invalid_grant", "error_description": "her session has ended"},
			"exchange that token at the identity provider: the authorization server refuses it (invalid_grant: her session has ended)"},
		"other type": {map[string]any{"access_token": grant, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "N_A"},
			"exchange that token at the identity provider: the identity provider made a token of another type"},
		"not for this server": {map[string]any{"access_token": "another-grant", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
			"token_type": "N_A"}, "get a token: the authorization server refuses it (invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(a *upstreamtest.AuthServer) {
				a.Clients, a.Assertion = map[string]string{"hub": "word"}, grant
			})
			var asked url.Values
			idp := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				_ = r.ParseForm()
				said := map[string]any{"issuer": "http://" + r.Host, "token_endpoint": "http://" + r.Host + "/token"}
				status := http.StatusOK
				if r.URL.Path == "/token" {
					if asked, said = r.Form, c.answer; said["error"] != nil {
						status = http.StatusBadRequest
					}
				}
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(status)
				_ = json.NewEncoder(rw).Encode(said)
			}))
			t.Cleanup(idp.Close)
			file := filepath.Join(w.dir, "id-token")
			writeToken(t, file, idToken)
			w.server.OAuth = upstream.OAuth{Machine: true, ClientID: "hub", ClientSecret: "word", AssertionFile: file,
				Provider: upstream.IdentityProvider{Issuer: idp.URL, ClientID: "hub-at-the-idp"}}
			token, err := w.store.Source(w.server).Token(t.Context())
			if c.fault == "" && (err != nil || token == "") || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("%q, %v", token, err)
			}
			for name, want := range map[string]string{"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": idToken,
				"subject_token_type": "urn:ietf:params:oauth:token-type:id_token", "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
				"audience": w.auth.Issuer, "resource": w.auth.Resource, "client_id": "hub-at-the-idp"} {
				if asked.Get(name) != want {
					t.Errorf("the identity provider was asked with %s %q, not %q", name, asked.Get(name), want)
				}
			}
			if all := fmt.Sprint(w.auth.Requests("/token")); strings.Contains(all, idToken) || asked.Has("client_secret") {
				t.Errorf("the authorization server got %s, the identity provider %v", all, asked)
			}
		})
	}
}

func writeToken(t *testing.T, file, token string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

package signin_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestTokenAnswersOfRealServers: an answer counts if it holds a token in any form that real servers
// have; of any other the error says what came.
func TestTokenAnswersOfRealServers(t *testing.T) {
	t.Parallel()
	const plain = `{"access_token":"x","token_type":"Bearer","expires_in":3600}`
	for name, c := range map[string]struct {
		media, body string
		scopes      string
		ends        bool
		says        []string // of the error; nil: signed in
	}{
		"byte order mark":      {body: "\ufeff" + plain, ends: true},
		"JSON called text":     {media: "text/plain", body: plain, ends: true},
		"JSON called a page":   {media: "text/html", body: plain, ends: true},
		"form":                 {media: "application/x-www-form-urlencoded", body: "access_token=x&scope=a&token_type=bearer", scopes: "a"},
		"end as text":          {body: `{"access_token":"x","expires_in":"3600"}`, ends: true},
		"end with a fraction":  {body: `{"access_token":"x","expires_in":3600.5}`, ends: true},
		"end in a power":       {body: `{"access_token":"x","expires_in":3.6e3}`, ends: true},
		"end of zero":          {body: `{"access_token":"x","expires_in":0}`},
		"end in words":         {body: `{"access_token":"x","expires_in":"never"}`},
		"end of null":          {body: `{"access_token":"x","expires_in":null}`},
		"type of its own":      {body: `{"access_token":"x","token_type":"user"}`},
		"no type":              {body: `{"access_token":"x"}`},
		"scopes with commas":   {body: `{"access_token":"x","scope":"search:read,chat:write"}`, scopes: "search:read chat:write"},
		"token of the person":  {body: `{"ok":true,"access_token":"","authed_user":{"access_token":"x","scope":"a,b","token_type":"user"}}`, scopes: "a b"},
		"error as success":     {body: `{"ok":false,"error":"invalid_code"}`, says: []string{"invalid_code"}},
		"list":                 {body: "[" + plain + "]", says: []string{"200", "application/json", `"[{`}},
		"page":                 {media: "text/html", body: "<html>Maintenance</html>", says: []string{"200", "text/html", "<html>Maintenance"}},
		"nothing":              {says: []string{"200", "application/json", "empty"}},
		"text without a token": {media: "text/plain", body: "come back later", says: []string{"text/plain", "come back later"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, at("/token", func(w http.ResponseWriter, _ *http.Request) {
				media := c.media
				if media == "" {
					media = "application/json"
				}
				w.Header().Set("Content-Type", media)
				fmt.Fprint(w, c.body)
			}))
			g, err := w.login(t, nil)
			if c.says == nil {
				if err != nil || g.Access != "x" || g.Expires.IsZero() == c.ends ||
					c.scopes != "" && strings.Join(g.Scopes, " ") != c.scopes {
					t.Errorf("%+v, %v", g, err)
				}
				return
			}
			for _, part := range c.says {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v without %q", err, part)
				}
			}
		})
	}
}

// TestMetadataOfAnotherIssuer: metadata that names another issuer than the server counts once the
// entry names that one.
func TestMetadataOfAnotherIssuer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	issuer := w.auth.Issuer
	w.auth.Named = issuer + "/tenant"
	w.auth.Intercept = func(rw http.ResponseWriter, r *http.Request) bool {
		path, known := strings.CutPrefix(r.URL.Path, "/.well-known/oauth-authorization-server")
		if !known && !strings.HasPrefix(r.URL.Path, "/.well-known/openid") {
			return false
		}
		if path != "/tenant" {
			http.NotFound(rw, r)
			return true
		}
		r.URL.Path = "/.well-known/oauth-authorization-server"
		return false
	}
	if _, err := w.login(t, nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("set oauth: {issuer: %q}", issuer)) {
		t.Fatalf("error %v", err)
	}
	w.server.OAuth.Issuer = issuer
	if g, err := w.login(t, nil); err != nil || g.Issuer != issuer {
		t.Errorf("%+v, %v", g, err)
	}
}

// TestRegistrationOfListedClientsOnly: a refusal says the server's words and what works instead.
func TestRegistrationOfListedClientsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, at("/register", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Forbidden", http.StatusForbidden)
	}))
	_, err := w.login(t, nil)
	for _, part := range []string{"Forbidden", "client_id", "headers of its entry"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v without %q", err, part)
		}
	}
}

// TestRenewalThatWantsScopes: a refresh that is refused for lack of its scopes is tried once more with those that were asked for.
func TestRenewalThatWantsScopes(t *testing.T) {
	t.Parallel()
	var forms []string
	w := newWorld(t, func(a *upstreamtest.AuthServer) { a.Lifetime = time.Second })
	w.auth.Intercept = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/token" || r.PostFormValue("grant_type") != "refresh_token" {
			return false
		}
		forms = append(forms, r.PostFormValue("scope"))
		if r.PostFormValue("scope") == "" {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(rw, `{"error":"invalid_request","error_description":"the request must contain the parameter scope"}`)
			return true
		}
		return false
	}
	g, err := w.login(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	source := w.store.Source(w.server)
	defer source.Close()
	token, err := source.Token(context.Background())
	if err != nil || token == g.Access || len(forms) != 2 || forms[1] != "read" {
		t.Errorf("token %q after %q, %v; scopes %q", token, g.Access, err, forms)
	}
}

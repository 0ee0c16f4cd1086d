//go:build e2e

package signin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestDeviceCodeThatExpires: where nobody enters the code in time, the error says so, and nothing is kept.
func TestDeviceCodeThatExpires(t *testing.T) {
	t.Parallel()
	for name, pending := range map[string]string{"by the clock": "authorization_pending", "by the authorization server": "expired_token"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(a *upstreamtest.AuthServer) {
				a.Device = true
				a.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
					answer := map[string]string{"/device": `{"device_code":"d","user_code":"u","verification_uri":"` + a.Issuer + `/enter","interval":1,"expires_in":1}`,
						"/token": `{"error":"` + pending + `"}`}[r.URL.Path]
					if answer == "" {
						return false
					}
					w.Header().Set("Content-Type", "application/json")
					if r.URL.Path == "/token" {
						w.WriteHeader(http.StatusBadRequest)
					}
					fmt.Fprint(w, answer)
					return true
				}
			})
			l := &signin.Login{Store: w.store, Server: w.server, Device: true, Visit: func(string, string) {}}
			if _, err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nobody has entered the code before it expired") || w.stored(t) {
				t.Errorf("error %v", err)
			}
		})
	}
}

package downstream

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func TestApply(t *testing.T) {
	t.Parallel()
	cfg := Config{Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: "secret-of-ann-0123"}}}}
	s := newServer(t, cfg, &far{})
	base := serve(t, s)
	token := []string{"Authorization", "Bearer secret-of-ann-0123"}
	kept, lost := open(t, base+"/mcp", "2025-11-25", token...), open(t, base+"/mcp/p/other", "2025-11-25", token...)
	s.Apply(cfg, []string{"default", "third"})
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	if status, _, got := post(t, base+"/mcp", list, append(token, headerSession, kept)...); status != 200 {
		t.Errorf("in the session that was kept: status %d %v", status, got)
	}
	if status, _, _ := post(t, base+"/mcp/p/other", list, append(token, headerSession, lost)...); status != 404 {
		t.Errorf("under a profile that is gone: status %d", status)
	}
	open(t, base+"/mcp/p/third", "2025-11-25", token...)
	if n := s.sessions.count(); n != 2 {
		t.Errorf("%d sessions, want the one that was kept and the new one", n)
	}
}

// Whoever came in with a token that is gone, or has become another one, hears nothing more: what
// stands open ends with it.
func TestATokenThatIsGone(t *testing.T) {
	t.Parallel()
	token := func(name, secret string) Token { return Token{Name: name, Secret: secret + "-0123456789abcdef"} }
	for _, c := range []struct {
		name          string
		before, after []Token
		as            string // who has come in
		stays         bool
	}{
		{"removed", []Token{token("ann", "a"), token("bob", "b")}, []Token{token("ann", "a")}, "b", false},
		{"renewed", []Token{token("ann", "a"), token("bob", "b")}, []Token{token("ann", "a"), token("bob", "c")}, "b",
			false},
		{"not touched", []Token{token("ann", "a"), token("bob", "b")}, []Token{token("ann", "a")}, "a", true},
		{"needed from now on", nil, []Token{token("local", "a")}, "", false},
		{"not needed any more", []Token{token("ann", "a")}, nil, "a", false},
		{"never needed", nil, nil, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, Config{Auth: AuthConfig{Tokens: c.before}}, &far{})
			url := serve(t, s) + "/mcp"
			var as []string
			if c.as != "" {
				as = []string{"Authorization", "Bearer " + token("", c.as).Secret}
			}
			session := open(t, url, "2025-11-25", as...)
			standing := stream(t, http.MethodGet, url, "", append(as, headerSession, session, headerVersion,
				"2025-11-25")...)
			told := stream(t, http.MethodPost, url,
				`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{`+
					modernMeta+`}}}`, append(as, headerVersion, modernVersion, headerMethod, tool.MethodListen)...)
			<-told // acknowledged
			s.Apply(Config{Auth: AuthConfig{Tokens: c.after}}, []string{"default"})
			s.Changed(Change{Profile: "default", Tools: true})
			heard := func(events <-chan string) (changes int) {
				for e := range events {
					if strings.Contains(e, "list_changed") {
						changes++
						return changes // a stream that stays has no end
					}
				}
				return changes
			}
			if c.stays {
				if heard(standing) != 1 || heard(told) != 1 {
					t.Error("a stream was told of no change")
				}
				return
			}
			if heard(standing) != 0 || heard(told) != 0 {
				t.Error("a stream was told of a change afterwards")
			}
			if n := s.sessions.count(); n != 0 {
				t.Errorf("%d sessions are left", n)
			}
		})
	}
}

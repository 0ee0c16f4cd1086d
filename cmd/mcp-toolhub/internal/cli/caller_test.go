package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// ownServers is a server that each caller signs in to. It shows each person something else: behind each sign-in stands a fake of its own.
type ownServers struct {
	t      *testing.T
	auth   *upstreamtest.AuthServer
	config signInHome
	hub    *runningHub
	fakes  map[string]*upstreamtest.Handler // by person

	mu     sync.Mutex
	holder map[string]string // person by access token
}

// people are the holders of tokens of an ownServers.
var people = []string{"ann", "bob", "carl"}

func tokenOf(person string) string { return "the-token-of-" + person + "-0123456789" }

func newOwnServers(t *testing.T, modern bool) *ownServers {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the browser of the tests is xdg-open")
	}
	s := &ownServers{t: t, fakes: make(map[string]*upstreamtest.Handler), holder: make(map[string]string)}
	for _, person := range append([]string{tool.Local}, people...) {
		script := taskScript(modern)
		script.Tools = append(script.Tools, upstreamtest.Tool("update"), upstreamtest.Tool("offer"))
		script.Features = upstreamtest.Features{Subscribes: true, Completes: true, Prompts: []json.RawMessage{json.RawMessage(`{"name":"p"}`)},
			Resources: []json.RawMessage{json.RawMessage(`{"uri":"x://of/` + person + `","name":"of-` + person + `"}`)},
			Templates: []json.RawMessage{json.RawMessage(`{"uriTemplate":"x://{+any}","name":"any"}`)}}
		s.fakes[person] = upstreamtest.NewHandler(upstreamtest.Options{Script: script})
	}
	s.auth = &upstreamtest.AuthServer{Lifetime: time.Hour}
	authServer, resource := httptest.NewUnstartedServer(s.auth), httptest.NewUnstartedServer(s.auth.Guard(http.HandlerFunc(s.dispatch)))
	s.auth.Issuer = "http://" + authServer.Listener.Addr().String()
	s.auth.Resource = "http://" + resource.Listener.Addr().String() + "/mcp"
	for _, one := range []*httptest.Server{authServer, resource} {
		one.Start()
		t.Cleanup(one.Close)
	}
	for _, fake := range s.fakes {
		t.Cleanup(fake.Close)
	}
	config := "mcpServers:\n  s: {url: " + s.auth.Resource + ", oauth: {identity: caller}}\npolicy: {rules: [{match: '*', then: allow}]}\n" +
		"deferred: {mode: never}\nhub: {auth: {tokens: ["
	for _, person := range people {
		config += "{name: " + person + ", token: '${env:TOKEN_" + person + "}'}, "
	}
	s.config = newSignInHome(t, config+"]}}\n")
	for _, person := range people {
		s.config.env = append(s.config.env, "TOKEN_"+person+"="+tokenOf(person))
	}
	return s
}

// dispatch lets the fake of the person answer whose token a request carries.
func (s *ownServers) dispatch(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	person := s.holder[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	s.mu.Unlock()
	fake := s.fakes[person]
	if fake == nil { // a token that is not in the table yet: of the login's own look at the tools
		fake = s.fakes[tool.Local]
	}
	fake.ServeHTTP(w, r)
}

// login signs a person in, and notes which token is theirs.
func (s *ownServers) login(person string) {
	s.t.Helper()
	text, code := s.config.run(s.t, "login", "s", "--as", person)
	if code != exitOK || !strings.Contains(text, person+" is signed in at "+s.auth.Issuer) {
		s.t.Fatalf("login --as %s ended with %d", person, code)
	}
	store := signin.Open(filepath.Join(s.config.dir, "state", "mcp-toolhub"))
	server := upstream.ServerConfig{ID: "s", URL: s.auth.Resource, OAuth: upstream.OAuth{PerCaller: true}}
	g, ok, err := store.Grant(server.For(person))
	if err != nil || !ok {
		s.t.Fatalf("nothing is kept of %s: %v", person, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder[g.Access] = person
}

func (s *ownServers) start() {
	s.t.Helper()
	var err error
	if s.hub, err = launch(s.config.dir, append(scratchEnv(s.config.dir), s.config.env...), "--config", s.config.file); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := s.hub.stop(); err != nil || s.t.Failed() {
			s.t.Errorf("the hub ended with %v\n%s", err, s.hub.log())
		}
	})
}

// client is a client of a person on a path of the hub.
func (s *ownServers) client(t *testing.T, modern bool, path, person string) *taskClient {
	t.Helper()
	version, can, prefix := rev2025, everyCapability, ""
	if modern {
		version, can = rev2026, followsTasks
	}
	if path == "/mcp" {
		prefix = "mcp.s."
	}
	w := wireHTTP(t, s.hub.url+path, version, "Authorization", "Bearer "+tokenOf(person))
	w.can = can
	return newTaskClient(t, w.open(), prefix).stand()
}

// TestNotesOfTheirOwn checks that what a server tells one person reaches all sessions of that person, and nobody else.
func TestNotesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern %v", modern), func(t *testing.T) {
			t.Parallel()
			s := newOwnServers(t, modern)
			for _, person := range []string{tool.Local, "ann", "bob"} {
				s.login(person)
			}
			s.start()
			one, two, bob := s.client(t, false, "/mcp/s/s", "ann"), s.client(t, false, "/mcp", "ann"), s.client(t, false, "/mcp", "bob")
			for _, c := range []*taskClient{one, two, bob} {
				for _, uri := range []string{"x://first", "x://second"} {
					if got := c.do(c.request("resources/subscribe", "", `"uri":"`+uri+`"`, "")); !strings.Contains(got, `"result"`) {
						t.Fatalf("subscribe: %s", got)
					}
				}
			}
			offer := func(c *taskClient) {
				c.do(c.tool("offer", `{"list":"resources","items":[]}`, "", ""))
			}
			one.do(one.tool("update", `{"uri":"x://first"}`, "", ""))
			one.note("resources/updated", "x://first")
			two.note("resources/updated", "x://first")
			for range 3 {
				offer(one)
				one.note("resources/list_changed")
				two.note("resources/list_changed")
			}
			bob.do(bob.tool("update", `{"uri":"x://second"}`, "", ""))
			bob.note("resources/updated", "x://second")
			offer(bob)
			bob.note("resources/list_changed")
			if got := strings.Join(bob.stash, "\n"); strings.Contains(got, "x://first") || strings.Count(got, "list_changed") > 2 { // each of his two subscriptions may tell so once
				t.Errorf("bob was told %s", got)
			}
			if st := s.status(); st.Sessions != 2 || st.Isolation != "caller" || len(st.SignIns) != 3 || st.SignIns[0].Person != "ann" {
				t.Errorf("status %+v", st)
			}
		})
	}
}

func (s *ownServers) status() tool.ServerStatus {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.hub.url+"/health/ready", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+tokenOf("ann"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var health struct{ Servers []tool.ServerStatus }
	if err := json.NewDecoder(resp.Body).Decode(&health); err != nil || len(health.Servers) == 0 {
		s.t.Fatalf("no status: %v", err)
	}
	return health.Servers[0]
}

//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestCallersOfTheirOwn lets three people use a server that each of them has signed in to, at the same time and in all ways in which
// something goes to a server. At the server, which tells people by their tokens, everything that comes with the token of one is that
// person's; and no person gets what is another's.
func TestCallersOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern %v", modern), func(t *testing.T) {
			t.Parallel()
			s := newOwnServers(t, modern)
			for _, person := range append([]string{tool.Local}, people...) {
				s.login(person)
			}
			s.start()
			var all sync.WaitGroup
			for _, person := range people {
				for _, path := range []string{"/mcp", "/mcp/s/s"} {
					all.Go(func() { s.use(s.client(t, modern, path, person), modern, path, person) })
				}
			}
			all.Wait()
			s.check(modern)
		})
	}
}

// use does all that a client can do at a server. Each request holds "of-PERSON".
func (s *ownServers) use(c *taskClient, modern bool, path, person string) {
	mark, task := "of-"+person, ""
	if !modern {
		task = `"task":{}`
	}
	prompt := c.prefix + "p"
	uri := func(last string) string { return "x://" + mark + "/" + last }
	mine := func(what, answer string) {
		if !strings.Contains(answer, `"result"`) || !strings.Contains(answer, mark) {
			c.t.Errorf("%s: %s %s got %s", path, person, what, answer)
		}
		words := invocationID.ReplaceAllString(answer, "") // "ann" can be a part of an id
		for _, other := range people {
			if other != person && strings.Contains(words, other) {
				c.t.Errorf("%s: %s %s got something of %s: %s", path, person, what, other, answer)
			}
		}
	}
	list := c.do(c.request("resources/list", "", "", ""))
	mine("lists", list)
	if shown := map[bool]string{true: "toolhub://s/"}[path == "/mcp"] + "x://of/" + person; !strings.Contains(list, quoted(shown)) ||
		strings.Contains(list, "of/"+tool.Local) {
		c.t.Errorf("%s: %s lists %s", path, person, list)
	}
	for range 5 {
		mine("calls", c.do(c.tool("echo", `{"text":"`+mark+`"}`, "", "")))
		mine("prompts", c.do(c.request("prompts/get", prompt, `"name":"`+prompt+`","arguments":{"a":"`+mark+`"}`, "")))
		mine("reads", c.do(c.request("resources/read", uri("read"), `"uri":"`+uri("read")+`"`, "")))
		mine("completes", c.do(c.request("completion/complete", "", `"ref":{"type":"ref/prompt","name":"`+prompt+`"},"argument":{"name":"a","value":"`+mark+`"}`, "")))
		id := taskID(c.t, c.do(c.tool("task", `{"text":"`+mark+`"}`, task, "")))
		c.do(c.tool("finish", `{"task":`+quoted(strings.TrimPrefix(id, "s/"))+`}`, "", ""))
		if modern {
			mine("asks for the task", c.do(c.about("tasks/get", id)))
		} else {
			mine("asks for the task", c.do(c.about("tasks/result", id)))
		}
	}
}

// TestSignInsComeAndGo checks what one person is told before a sign-in, after it, and after its end, and that this is no affair of others.
func TestSignInsComeAndGo(t *testing.T) {
	t.Parallel()
	s := newOwnServers(t, false)
	s.login(tool.Local)
	s.login("bob")
	if text, code := s.config.run(t, "doctor", "s"); code != exitOK || strings.Count(text, "signed in at") != 2 { // each person once
		t.Errorf("doctor ended with %d: %s", code, text)
	}
	s.start()
	client := func(version, person string) *taskClient { // cannot be asked, so that it is told
		return newTaskClient(t, wireHTTP(t, s.hub.url+"/mcp", version, "Authorization", "Bearer "+tokenOf(person)).open(), "mcp.s.")
	}
	ann, bob := client(rev2025, "ann"), client(rev2026, "bob")
	search := func(c *taskClient) string {
		return c.do(c.request("tools/call", "", `"name":"tool_search","arguments":{"query":"xyzzy"}`, ""))
	}
	if got := search(ann); !strings.Contains(got, `"server":"s","needs":"a sign-in: \"ann\" has not signed in`) || strings.Contains(got, "in a moment") {
		t.Errorf("ann searches: %s", got)
	}
	if got := search(bob); strings.Contains(got, "needs") {
		t.Errorf("bob searches: %s", got)
	}
	echo := func(c *taskClient) string { return c.do(c.tool("echo", `{}`, "", "")) }
	good := func(what, answer string) {
		if !strings.Contains(answer, `"structuredContent"`) {
			t.Errorf("%s: %s", what, answer)
		}
	}
	refused := func(what, answer string) {
		if !strings.Contains(answer, "setup_required") || !strings.Contains(answer, "login s --config …/hub.yaml --state-dir …/") ||
			!strings.Contains(answer, "--as ann") {
			t.Errorf("%s: %s", what, answer)
		}
	}
	refused("before the sign-in", echo(ann))
	good("bob", echo(bob))
	s.login("ann")
	s.follow("ann", ann, true)
	good("after the sign-in", echo(ann))
	before := len(s.fakes["bob"].Requests())
	if text, code := s.config.run(t, "logout", "s", "--as", "ann"); code != exitOK || !strings.Contains(text, "signed out") {
		t.Errorf("logout ended with %d", code)
	}
	s.follow("ann", ann, false)
	refused("after the end", echo(ann))
	eventually(t, "ann's connection ends", func() bool { return s.status().Sessions == 1 })
	good("bob", echo(bob))
	for _, r := range s.fakes["bob"].Requests()[before:] {
		if !strings.Contains(string(r.Body), "tools/call") {
			t.Errorf("bob's connection was disturbed: %s", r.Body)
		}
	}
	for _, c := range []struct{ name, says string }{{"anna", `did you mean "ann"`}, {"nobody-at-all", "use one of"}} {
		if text, code := s.config.run(t, "login", "s", "--as", c.name); code != exitUsage || !strings.Contains(text, c.says) {
			t.Errorf("--as %s ended with %d", c.name, code)
		}
	}
}

// TestFurtherRightsOfOnePerson: a person whose call lacks a scope is told so, signs in once more for all of their scopes, and nobody else's
// sign-in is touched.
func TestFurtherRightsOfOnePerson(t *testing.T) {
	t.Parallel()
	s := newOwnServers(t, false)
	s.auth.Want("read")
	for _, person := range []string{tool.Local, "ann", "bob"} {
		s.login(person)
	}
	s.start()
	eventually(t, "the hub has the lists", func() bool { return s.status().State == tool.ServerReady })
	echo := func(person string) string {
		c := newTaskClient(t, wireHTTP(t, s.hub.url+"/mcp", rev2025, "Authorization", "Bearer "+tokenOf(person)).open(), "mcp.s.")
		return c.do(c.tool("echo", `{}`, "", ""))
	}
	lacks := func(person, what, answer string) {
		if !strings.Contains(answer, "setup_required") || !strings.Contains(answer, what) || !strings.Contains(answer, "run mcp-toolhub login s ") ||
			!strings.Contains(answer, "--as "+person) {
			t.Errorf("%s: %s", person, answer)
		}
	}
	if got := echo("ann"); !strings.Contains(got, `"structuredContent"`) {
		t.Errorf("ann: %s", got)
	}
	s.auth.Want("write")
	lacks("ann", "(write)", echo("ann"))
	lacks("bob", "HTTP 403", echo("bob")) // who has no connection yet
	s.login("ann")
	asked := s.auth.Requests("/authorize")
	if scope := asked[len(asked)-1].Form.Get("scope"); scope != "write read" {
		t.Errorf("ann was asked for %q", scope)
	}
	eventually(t, "ann's calls succeed", func() bool { return strings.Contains(echo("ann"), `"structuredContent"`) })
	lacks("bob", "HTTP 403", echo("bob"))
	wanted := make(map[string]string)
	for _, one := range s.status().SignIns {
		wanted[one.Person] = strings.Join(one.Wanted, " ")
	}
	if wanted["ann"] != "" || wanted["bob"] != "write" {
		t.Errorf("wanted are %q", wanted)
	}
}

// check holds what came at the server with each token against whose it is.
func (s *ownServers) check(modern bool) {
	s.t.Helper()
	ends := "tasks/result"
	if modern {
		ends = "tasks/get"
	}
	for person, fake := range s.fakes {
		seen := make(map[string]int)
		for _, r := range fake.Requests() {
			var m struct{ Method string }
			_ = json.Unmarshal(r.Body, &m)
			for _, other := range people {
				if other != person && strings.Contains(string(r.Body), "of-"+other) {
					s.t.Errorf("with the token of %s came %s", person, r.Body)
				}
			}
			seen[m.Method]++
		}
		for _, method := range []string{"tools/call", "prompts/get", "resources/read", "completion/complete", ends} {
			if n := seen[method]; (n == 0) != (person == tool.Local) {
				s.t.Errorf("with the token of %s %s came %d times", person, method, n)
			}
		}
	}
}

// follow waits until the hub has noticed that a person has signed in or out.
func (s *ownServers) follow(person string, c *taskClient, in bool) {
	s.t.Helper()
	eventually(s.t, "the hub notices the sign-in", func() bool {
		return strings.Contains(c.do(c.tool("echo", `{}`, "", "")), `"structuredContent"`) == in
	})
}

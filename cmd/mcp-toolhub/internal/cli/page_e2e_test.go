//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// unlock lets the pageClient answer approvals.
func (r *pageClient) unlock(hub *control.Client) {
	r.t.Helper()
	code, err := hub.PageCode(r.t.Context(), r.name())
	if err != nil {
		r.t.Fatal(err)
	}
	if status, text := r.send("/ui/unlock", "code", code); status != http.StatusOK || !strings.Contains(text, "may answer approvals") {
		r.t.Fatalf("unlock: %d %s", status, text)
	}
}

// TestPageAnswerRaces: of answers on the page, on the command line and in the client at the same moment one counts, and the others are told. In
// every second round the client answers too late.
func TestPageAnswerRaces(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	h := p.hub()
	r := openPage(t, h)
	r.unlock(h)
	for round := range 10 {
		args := fmt.Sprintf(`{"text":"round %d"}`, round)
		var page, line, client string // who was let through
		var others, calling sync.WaitGroup
		start, slow := make(chan struct{}), round%2 == 1
		x := &exchange{w: p.client(rev2025).able().open(), answer: func(int, asked) string {
			if <-start; slow {
				others.Wait()
			}
			return `{"action":"accept","content":{"answer":"allow_once"}}`
		}}
		var got string
		calling.Go(func() { got = x.call("mcp.s.echo", args) })
		v := p.pending(h)
		others.Go(func() {
			<-start
			if status, text := r.send("/ui/approvals/"+string(v.ID), "choice", "allow_once"); status == http.StatusOK {
				page = "allow_once"
			} else if !strings.Contains(text, "first answer counts") {
				t.Errorf("the page is told %d %s", status, text)
			}
		})
		others.Go(func() {
			<-start
			if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: policy.DenyOnce}); err == nil {
				line = "deny_once"
			} else if !strings.Contains(err.Error(), approval.ErrAnswered.Error()) {
				t.Errorf("the command line is told %v", err)
			}
		})
		close(start)
		others.Wait()
		calling.Wait()
		settled, err := h.Approval(t.Context(), string(v.ID))
		if err != nil || settled.Answer == nil {
			t.Fatalf("round %d: %+v, %v", round, settled, err)
		}
		if strings.HasPrefix(settled.Answer.By, "elicitation/") {
			client = string(settled.Answer.Choice)
		}
		winners := 0
		for _, by := range []string{page, line, client} {
			if by != "" {
				winners++
			}
		}
		if slow && client != "" {
			t.Errorf("round %d: the late answer of the client counts", round)
		}
		runs := strings.Contains(got, `"status":"succeeded"`)
		if winners != 1 || runs != settled.Answer.Choice.Allows() {
			t.Errorf("round %d: page %q, line %q, client %q; settled %+v; the call: %s", round, page, line, client, settled.Answer, got)
		}
	}
}

// TestPageTries: a tool is tried by its form through the pipeline: the policy decides, a person is asked, and the records say who called.
func TestPageTries(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"rules": []any{map[string]any{"id": "no", "match": "mcp.s.hidden", "then": "deny"}}}, nil)
	h := p.hub()
	r := openPage(t, h)
	r.unlock(h)
	status, text := r.send("/ui/tool", "name", "mcp.s.echo", "argument.text", "a\r\n\"b\"", "argument.password", "hunter2")
	if status != http.StatusOK || !strings.Contains(text, "waits for a person") {
		t.Fatalf("the call: %d %s", status, text)
	}
	v := p.pending(h)
	if v.Binding.Actor != "actor:ui/"+hub.LocalActor().Name {
		t.Errorf("the caller is %q", v.Binding.Actor)
	}
	story := "/ui/calls/" + string(v.Invocation)
	eventually(t, "the story is there, and is got again while the call runs", func() bool {
		_, text := r.get(story)
		return strings.Contains(text, "none so far") && strings.Contains(text, `<body data-live>`) &&
			strings.Contains(text, "because no rule speaks of this tool")
	})
	if status, text := r.send("/ui/approvals/"+string(v.ID), "choice", "allow_once"); status != http.StatusOK {
		t.Fatalf("the answer: %d %s", status, text)
	}
	if _, text := r.get("/ui/tries/" + string(v.Invocation)); strings.Contains(text, "hunter2") || !strings.Contains(text, "[masked") {
		t.Errorf("a secret among the arguments: %s", text)
	}
	eventually(t, "the call has its result", func() bool {
		_, text := r.get("/ui/tries/" + string(v.Invocation))
		return strings.Contains(text, "succeeded") && strings.Contains(text, `a\n`)
	})
	eventually(t, "the call has its story", func() bool {
		_, text := r.get(story)
		return strings.Contains(text, "succeeded") && strings.Contains(text, "actor:ui/") && strings.Contains(text, "[masked:") &&
			!strings.Contains(text, "data-live")
	})
	eventually(t, "the list has the call", func() bool {
		_, text := r.get("/ui/calls?tool=mcp.s.*")
		return strings.Contains(text, story)
	})
	if status, text := r.send("/ui/tool", "name", "mcp.s.echo", "json", "[1]", "argument.text", "kept", "argument.password", "hunter2"); status != http.StatusUnprocessableEntity ||
		!strings.Contains(text, "no JSON object") || !strings.Contains(text, "kept") || strings.Contains(text, "hunter2") {
		t.Errorf("arguments that are none: %d %s", status, text)
	}
	if status, text := r.send("/ui/tool", "name", "mcp.s.hidden", "json", "{}"); status != http.StatusOK || !strings.Contains(text, "unknown tool") {
		t.Errorf("a tool that the policy hides: %d %s", status, text)
	}
	if status, text := r.send("/ui/tool", "name", "mcp.s.none", "json", "{}"); status != http.StatusConflict {
		t.Errorf("a tool that is none: %d %s", status, text)
	}
}

// TestPageShowsWhatHappens: the first page counts the calls of today and has those that run first. A call that brought its declaration has not
// failed. The buttons of a call that waits can be seen, and work once a code was given.
func TestPageShowsWhatHappens(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"rules": []any{map[string]any{"id": "echo", "match": "mcp.s.echo", "then": "allow"}}},
		map[string]any{"deferred": map[string]any{"mode": "always", "always_load": []string{"mcp.s.hidden"}}})
	h := p.hub()
	r := openPage(t, h)
	w := p.client(rev2025).open()
	w.send(w.call("mcp.s.echo", `{"text":"first"}`, ""))
	rest := w.waits(w.call("mcp.s.hidden", `{}`, `"progressToken":"p"`))
	w.send(w.call("mcp.s.echo", `{"text":"second"}`, ""))
	has := func(path string, words ...string) {
		t.Helper()
		eventually(t, path+" has what happened", func() bool {
			text := second(r.get(path))
			for _, word := range words {
				at := strings.Index(text, word)
				if at < 0 {
					return false
				}
				text = text[at:]
			}
			return true
		})
	}
	has("/ui/", `disabled class="main">Allow once`, "shown that you are a person", "1 of 1 ready", "Clients connected</span><strong>1<", "today: wire",
		"<strong>3</strong><span>none failed", "Calls of the last hour", `<rect x="`, "awaiting approval", "second", "succeeded", "first", "declaration sent")
	has("/ui/calls", "awaiting approval", "second", "succeeded", "first", "declaration sent")
	has("/ui/servers", `<a href="/ui/servers/s"><strong>s</strong></a>`, `<span class="state ready">ready</span>`, "3<span", "wire")
	has("/ui/servers/s", `action="/ui/servers/s/restart"`, "Used today by", "wire", "server is ready")
	has("/ui/tools", `<a href="/ui/servers/s">s</a> <span class="hint">2 tools, `)
	if text := second(r.get("/ui/calls?status=failed&server=s")); !strings.Contains(text, "There are no such calls") ||
		!strings.Contains(text, `<option value="failed" selected>`) {
		t.Errorf("failed calls: %s", text)
	}
	r.unlock(h)
	has("/ui/approvals", `class="main">Allow once`)
	if text := second(r.get("/ui/approvals")); strings.Contains(text, " disabled") {
		t.Errorf("buttons that still wait: %s", text)
	}
	v := p.pending(h)
	if status, text := r.send("/ui/approvals/"+string(v.ID), "choice", "deny_once"); status != http.StatusOK {
		t.Errorf("the answer: %d %s", status, text)
	}
	rest()
	has("/ui/calls/"+string(v.Invocation), `<span class="state deny">denied</span>`, "caller", "Result", "Ids and records", "surface")
}

// TestPageSteers: a server is restarted, disabled, enabled and removed on the page. The rest of the config stays as it is, byte for byte. To enable
// a server that runs a program takes the code.
func TestPageSteers(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"mode": "accept_all"}, nil)
	h := p.hub()
	r := openPage(t, h)
	w := p.client(rev2025).open()
	before := readFile(t, p.file)
	ready := func(after string) {
		t.Helper()
		eventually(t, "the server is ready after "+after, func() bool {
			return strings.Contains(second(r.get("/ui/servers")), `<span class="state ready">`)
		})
		if got := w.result("mcp.s.echo", `{"text":"a"}`, ""); !strings.Contains(got, `"status":"succeeded"`) {
			t.Errorf("after %s: %s", after, got)
		}
	}
	ready("the start")
	_, text := r.do(http.MethodPost, "/ui/servers/s/restart", formOf("csrf", r.csrf), "Sec-Fetch-Dest", "empty") // as the script gets pages
	if _, next := r.get("/ui/"); strings.Contains(text, "starts anew") || !strings.Contains(next, "s: starts anew") {
		t.Errorf("restart: %s %s", text, next)
	}
	ready("restart")
	if status, text := r.send("/ui/servers/s/disable"); status != http.StatusOK || !strings.Contains(text, "s: disabled") ||
		!strings.Contains(text, "<button disabled>Enable") || !strings.Contains(text, "ui code "+r.name()) || !strings.Contains(text, "runs ") {
		t.Fatalf("disable: %d %s", status, text)
	}
	if got := w.send(w.call("mcp.s.echo", `{"text":"a"}`, "")); !strings.Contains(got[len(got)-1], "unknown tool") {
		t.Errorf("a call of a server that is disabled: %s", got)
	}
	disabled := readFile(t, p.file)
	for path, want := range map[string]int{"/ui/servers/none/disable": http.StatusNotFound, "/ui/servers/s/restart": http.StatusConflict,
		"/ui/servers/s/disable": http.StatusConflict, "/ui/servers/s/signin": http.StatusConflict, "/ui/servers/s/signout": http.StatusConflict,
		"/ui/servers/s/enable": http.StatusForbidden} {
		if status, text := r.send(path); status != want {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if text := readFile(t, p.file); text != disabled || text == before {
		t.Errorf("the config: %s", text)
	}
	r.unlock(h)
	if status, text := r.send("/ui/servers/s/enable"); status != http.StatusOK || !strings.Contains(text, "s: enabled") {
		t.Fatalf("enable: %d %s", status, text)
	}
	if text := readFile(t, p.file); text != before {
		t.Errorf("the config after disable and enable: %s", text)
	}
	ready("enable")
	if status, text := r.send("/ui/servers/s/remove"); status != http.StatusOK || !strings.Contains(text, "s: removed") || strings.Contains(text, "/ui/servers/s\"") {
		t.Errorf("remove: %d %s", status, text)
	}
	if text := readFile(t, p.file); strings.Contains(text, `"s"`) || !strings.Contains(text, "accept_all") {
		t.Errorf("the config without the server: %s", text)
	}
}

// TestPageHidesTools: a tool is hidden from all clients by its server's entry, and shown again. The config is as before then.
func TestPageHidesTools(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	r := openPage(t, p.hub())
	w := p.client(rev2025).open()
	eventually(t, "the tools are listed", func() bool { return w.tools()["mcp.s.echo"] != "" })
	before := readFile(t, p.file)
	status, text := r.send("/ui/tools/disable", "name", "mcp.s.echo", "at", "server=s&client=claude-code")
	for _, has := range []string{"mcp.s.echo: disabled", `<button id="switch-mcp.s.echo">Show`, `<button id="switch-mcp.s.hidden">Hide`, "This is what claude-code is offered",
		"entry in the config takes it out of use"} {
		if status != http.StatusOK || !strings.Contains(text, has) {
			t.Errorf("%s is missing: %d %s", has, status, text)
		}
	}
	if w.tools()["mcp.s.echo"] != "" || w.tools()["mcp.s.hidden"] == "" || !strings.Contains(readFile(t, p.file), "disabledTools") {
		t.Errorf("a client still has the tool: %s", readFile(t, p.file))
	}
	if status, text := r.send("/ui/tools/enable", "name", "mcp.s.echo"); status != http.StatusOK || !strings.Contains(text, `<button id="switch-mcp.s.echo">Hide`) {
		t.Errorf("show: %d %s", status, text)
	}
	if w.tools()["mcp.s.echo"] == "" || readFile(t, p.file) != before {
		t.Errorf("the tool is not back: %s", readFile(t, p.file))
	}
	for _, name := range []string{"tool_search", "mcp.s.none", "s"} {
		if status, _ := r.send("/ui/tools/disable", "name", name); status != http.StatusConflict {
			t.Errorf("%s: %d", name, status)
		}
	}
}

// TestPageAddsServers: an address is added at once. A command is shown first, and likewise an address that gets what the hub keeps: they take the code.
func TestPageAddsServers(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	h := p.hub()
	r := openPage(t, h)
	before, proof := readFile(t, p.file), filepath.Join(p.dir, "proof")
	key := regexp.MustCompile(`name="plan" value="([A-Z0-9]+)"`)
	status, text := r.send("/ui/add", "server", "touch '"+proof+"'", "name", "evil")
	first := matched(key, text)
	for _, has := range []string{"<strong>evil</strong>, which runs touch " + proof, "disabled>Add evil", "ui code " + r.name()} {
		if status != http.StatusOK || !strings.Contains(text, has) {
			t.Errorf("%s is missing: %d %s", has, status, text)
		}
	}
	if status, text := r.send("/ui/add", "plan", first); status != http.StatusForbidden {
		t.Errorf("a command without the code: %d %s", status, text)
	}
	if status, text := r.send("/ui/add", "server", "https://mcp.example.com/mcp", "more", "X-Home: ${env:HOME}"); status != http.StatusOK || !strings.Contains(text, "disabled>Add example") {
		t.Errorf("an address that gets a variable of the hub: %d %s", status, text)
	}
	for _, wrong := range []string{"", "npx 'x", "https://", "npx s s"} {
		if status, text := r.send("/ui/add", "server", wrong, "name", "s"); status != http.StatusUnprocessableEntity || !strings.Contains(text, `role="alert"`) {
			t.Errorf("%q: %d %s", wrong, status, text)
		}
	}
	r.unlock(h)
	if status, text := r.send("/ui/add", "plan", first); status != http.StatusConflict || !strings.Contains(text, "Another server") {
		t.Errorf("another plan than the one that was shown: %d %s", status, text)
	}
	if _, err := os.Stat(proof); err == nil || readFile(t, p.file) != before {
		t.Fatalf("a server was added: %s", readFile(t, p.file))
	}
	_, text = r.send("/ui/add", "server", "mcp-toolhub demo-server", "name", "demo", "more", "SOME_TOKEN=of-an-account-12345")
	status, text = r.send("/ui/add", "plan", matched(key, text))
	if config := readFile(t, p.file); status != http.StatusOK || !strings.Contains(text, "demo: added to the config") || strings.Contains(text+config, "of-an-account") ||
		!strings.Contains(config, "${secret:") {
		t.Errorf("a command: %d %s %s", status, text, config)
	}
	eventually(t, "the server is ready", func() bool {
		return strings.Contains(second(r.get("/ui/servers/demo")), `<span class="state ready">`)
	})
	auth, _ := guardedServer(t, nil)
	other := openPage(t, h) // without a code
	if status, text := other.send("/ui/add", "server", auth.Resource, "name", "far"); status != http.StatusOK || !strings.Contains(text, "far: added to the config") {
		t.Errorf("an address: %d %s", status, text)
	}
}

// TestPageKeepsItsBrowser: a browser that opens the page with another address is asked for no code again, and the page has the answers that were given.
func TestPageKeepsItsBrowser(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	h := p.hub()
	r := openPage(t, h)
	r.unlock(h)
	r.signIn(h)
	w := p.client(rev2025).open()
	rest := w.waits(w.call("mcp.s.echo", `{"text":"a"}`, `"progressToken":"p"`))
	if status, text := r.send("/ui/approvals/"+string(p.pending(h).ID), "choice", "deny_once"); status != http.StatusOK ||
		!strings.Contains(text, "Decided lately") || !strings.Contains(text, `<span class="state deny">deny once</span>`) || !strings.Contains(text, "page/") {
		t.Errorf("the answer: %d %s", status, text)
	}
	rest()
}

// TestPageShowsTheLog: the page of a hub in the background has what a server wrote to stderr.
func TestPageShowsTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state := filepath.Join(dir, "state", "mcp-toolhub")
	t.Cleanup(func() { stopShared(t, state) })
	writeFile(t, filepath.Join(dir, "hub.yaml"), `mcpServers: {chatty: {command: sh, args: [-c, "echo look at this >&2; exec mcp-toolhub demo-server"]}}`)
	cmd := exec.Command("mcp-toolhub", "start", "--config", filepath.Join(dir, "hub.yaml"))
	cmd.Dir, cmd.Env = dir, scratchEnv(dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	hubs, err := control.Find(t.Context(), state)
	if err != nil || len(hubs) != 1 {
		t.Fatalf("%d hubs, %v", len(hubs), err)
	}
	r := openPage(t, hubs[0])
	eventually(t, "the page has the log", func() bool {
		_, text := r.get("/ui/servers/chatty")
		return strings.Contains(text, "chatty: look at this") && strings.Contains(text, "chatty: server is ready")
	})
}

// TestPageStartsWhatSleeps: a server that waits for its first call is started on the page. One that the config has disabled is not, and the page says
// how to enable it.
func TestPageStartsWhatSleeps(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{}, nil)
	lazy := child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo")}})
	lazy["start"] = "lazy"
	p.far["lazy"], p.far["off"] = lazy, map[string]any{"command": "none", "disabled": true}
	p.write(map[string]any{}, nil)
	eventually(t, "the lazy server has listed its tools", func() bool { return strings.Contains(p.log(), `"catalog of the server is known","server":"lazy"`) })
	_ = p.stop()
	p.restart() // what it lists is known now, so it sleeps
	r := openPage(t, p.hub())
	_, text := r.get("/ui/servers")
	for _, has := range []string{"Starts when one of its tools is called.", `action="/ui/servers/lazy/restart"`, "The config has it disabled."} {
		if !strings.Contains(text, has) {
			t.Errorf("%s is missing in %s", has, text)
		}
	}
	if status, _ := r.send("/ui/servers/off/restart"); status != http.StatusConflict {
		t.Errorf("a server that the config has disabled: %d", status)
	}
	if status, text := r.send("/ui/servers/lazy/restart"); status != http.StatusOK {
		t.Fatalf("start: %d %s", status, text)
	}
	eventually(t, "it is ready", func() bool {
		return strings.Contains(second(r.get("/ui/servers/lazy")), `>Restart<span`) && strings.Contains(p.log(), `"server is ready","server":"lazy"`)
	})
}

// TestPageSaysWhy: the page says in words where a tool stands, and why, also on the page of the tool. Each page stands in its place.
func TestPageSaysWhy(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"rules": []any{map[string]any{"id": "no", "match": "mcp.s.hidden", "then": "deny"}}},
		map[string]any{"deferred": map[string]any{"mode": "always", "always_load": []any{"mcp.s.pinned"}}})
	p.far["s"] = child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo"), upstreamtest.Tool("pinned"), upstreamtest.Tool("hidden")}})
	p.write(map[string]any{"rules": []any{map[string]any{"id": "no", "match": "mcp.s.hidden", "then": "deny"}}},
		map[string]any{"deferred": map[string]any{"mode": "always", "always_load": []any{"mcp.s.pinned"}}})
	r := openPage(t, p.hub())
	eventually(t, "the tools are there", func() bool { return strings.Contains(second(r.get("/ui/tools")), "mcp.s.pinned") })
	_, list := r.get("/ui/tools")
	for name, why := range map[string]string{"tool_search": "the hub&#39;s own", "mcp.s.pinned": "deferred.always_load of the config names it",
		"mcp.s.echo": "the config says deferred.mode: always", "mcp.s.hidden": "the policy never allows it (user/no)"} {
		_, card, _ := strings.Cut(list, `<a href="/ui/tool?name=`+name+`" class="mono">`)
		if card, _, _ = strings.Cut(card, "</tr>"); !strings.Contains(card, why) {
			t.Errorf("%s: the list says %s", name, card)
		}
		if _, text := r.get("/ui/tool?name=" + name); !strings.Contains(text, why) || !strings.Contains(text, `<a href="/ui/tools" aria-current="page">`) {
			t.Errorf("%s: its page says %s", name, text)
		}
	}
	if _, text := r.get("/ui/tool?name=tool_search"); strings.Contains(list+text, `\u000a`) || !strings.Contains(text, "\nServers:\n") {
		t.Errorf("a text of several lines: %s", text)
	}
	for code := range map[string]bool{"meta_tool": true, "mode_always": true, "policy_blocked": true} {
		if strings.Contains(list, code) {
			t.Errorf("the page has the code %s", code)
		}
	}
	for _, path := range []string{"/ui/explain?tool=mcp.s.echo&as=local&door=http", "/ui/suggestions"} {
		if _, text := r.get(path); !strings.Contains(text, `<a href="/ui/policy" aria-current="page">`) {
			t.Errorf("%s stands nowhere: %s", path, text)
		}
	}
}

// TestPageOfAHubOnStdio: a hub that serves no HTTP has a page at its own API, which nobody else can use without the token there.
func TestPageOfAHubOnStdio(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := wireHubIn(t, dir, `{"mcpServers":{"demo":{"command":"mcp-toolhub","args":["demo-server"]}}}`, rev2025)
	w.open()
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "ui", "--no-browser")
	cmd.Dir, cmd.Env = dir, scratchEnv(dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	address := strings.TrimSpace(string(out))
	r := newPageClient(t, address)
	if status, text := r.get(address); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := r.get("/ui/servers"); status != http.StatusOK || !strings.Contains(text, "demo") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := r.get("/approvals"); status != http.StatusUnauthorized {
		t.Errorf("the API without its token: %d", status)
	}
	if resp, _ := r.do(http.MethodGet, "/ui/servers", "", "Host", "localhost.evil.example"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("another host: %d", resp.StatusCode)
	}
}

// TestPageNotSelf: where who calls does not count as approver, the client behind the call is not asked, its token answers nothing, and the page
// cannot answer for what its browser tried.
func TestPageNotSelf(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-the-test-itself"
	file := filepath.Join(t.TempDir(), "token")
	replaceFile(t, file, token)
	p := startPermitted(t, map[string]any{"ask": map[string]any{"not_self": true}}, map[string]any{"hub": map[string]any{
		"auth": map[string]any{"tokens": []any{map[string]any{"name": "ann", "token": "${file:" + file + "}"}}}}})
	h := p.hub()
	r, other := openPage(t, h), openPage(t, h)
	eventually(t, "the tool is there", func() bool { return strings.Contains(second(r.get("/ui/tools")), "mcp.s.echo") })
	r.unlock(h)
	other.unlock(h)
	if status, text := r.send("/ui/tool", "name", "mcp.s.echo", "argument.text", "mine"); status != http.StatusOK {
		t.Fatalf("the call: %d %s", status, text)
	}
	v := p.pending(h)
	path := "/ui/approvals/" + string(v.ID)
	if status, text := r.send(path, "choice", "allow_once"); status != http.StatusConflict || !strings.Contains(text, "not_self") {
		t.Errorf("the page that has called answers: %d %s", status, text)
	}
	if status, text := r.send("/ui/signout"); status != http.StatusOK || !strings.Contains(text, "You are signed out") {
		t.Errorf("sign out: %d %s", status, text)
	}
	r.signIn(h)
	r.unlock(h)
	if status, text := r.send(path, "choice", "allow_once"); status != http.StatusConflict || !strings.Contains(text, "not_self") {
		t.Errorf("the browser that has called answers after it has signed in anew: %d %s", status, text)
	}
	if status, text := other.send(path, "choice", "allow_once"); status != http.StatusOK {
		t.Errorf("another page: %d %s", status, text)
	}
	eventually(t, "the call has ended", func() bool {
		return matched(regexp.MustCompile(`(succeeded)`), second(r.get("/ui/tries/"+string(v.Invocation)))) != ""
	})
	x := &exchange{w: p.client(rev2025, "Authorization", "Bearer "+token).able().open(), answer: func(int, asked) string {
		t.Error("the client behind the call is asked")
		return `{"action":"accept","content":{"answer":"allow_once"}}`
	}}
	var calling sync.WaitGroup
	var got string
	calling.Go(func() { got = x.call("mcp.s.echo", `{"text":"theirs"}`) })
	v = p.pending(h)
	caller := newPageClient(t, p.url)
	for _, path := range []string{"/ui/approvals/" + string(v.ID), "/ui/unlock", "/approvals/" + string(v.ID)} {
		resp, text := caller.do(http.MethodPost, path, "choice=allow_once&csrf="+r.csrf, "Authorization", "Bearer "+token)
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s with the token of the caller: %d %s", path, resp.StatusCode, text)
		}
	}
	if status, text := r.send("/ui/approvals/"+string(v.ID), "choice", "allow_once"); status != http.StatusOK {
		t.Errorf("the page answers for a client: %d %s", status, text)
	}
	if calling.Wait(); !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("the call of the client: %s", got)
	}
}

func second(_ int, text string) string { return text }

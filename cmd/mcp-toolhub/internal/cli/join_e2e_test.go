//go:build e2e

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestSessionsOfOneHub: clients of one hub have roots, log levels and answers "for this session" of their own, on all revisions.
func TestSessionsOfOneHub(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	c.config = configText(t, c.servers, with(neverDeferred(), "policy", map[string]any{"mode": "default", "rules": []any{
		map[string]any{"match": "mcp.all.echo", "then": "ask"}, map[string]any{"match": "*", "then": "allow"}}}))
	type client struct {
		*exchange
		level, hears string
	}
	var all []*client
	for i, one := range []struct{ version, level, hears string }{{rev2025, "debug", "debug info error"}, {rev2025June, "error", "error"},
		{rev2026, "", ""}, {rev2026, "info", "info error"}, {rev2025, "", "info error"}} {
		w := wireHubIn(t, c.dir, c.config, one.version).able().open()
		w.ready("mcp.all.echo", "mcp.own.echo")
		x := &exchange{w: w, answer: func(_ int, q asked) string {
			if q.method == "roots/list" {
				return fmt.Sprintf(`{"roots":[{"uri":"file:///of/%d"}]}`, i)
			}
			return answerWith("allow_session", "")(0, q)
		}}
		switch {
		case w.modern() && one.level != "":
			x.meta = `"io.modelcontextprotocol/logLevel":` + quoted(one.level)
		case one.level != "":
			w.send(rawRequest{id: `"level"`, method: "logging/setLevel", params: `{"level":` + quoted(one.level) + `}`})
		}
		all = append(all, &client{x, one.level, one.hears})
	}
	if pids := sharedBy(all[0].w, all[1].w, all[2].w, all[3].w, all[4].w); len(pids) != 1 {
		t.Fatalf("the shared server runs as %v", pids)
	}
	for i, x := range all {
		got := x.call("mcp.own.ask", `{"questions":[{"id":"q","method":"roots/list"}]}`)
		if !strings.Contains(got, fmt.Sprintf("file:///of/%d", i)) || strings.Count(got, "file:///of/") != 1 {
			t.Errorf("the server of client %d has heard %s", i, got)
		}
		x.notes = nil
		note := func(level string) string {
			return quoted(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","data":1}}`)
		}
		x.call("mcp.all.say", `{"notes":[`+note("debug")+`,`+note("info")+`,`+note("error")+`]}`)
		var heard []string
		for _, m := range x.notes {
			_, level, _ := strings.Cut(m, `"level":"`)
			level, _, _ = strings.Cut(level, `"`)
			heard = append(heard, level)
		}
		if strings.Join(heard, " ") != x.hears {
			t.Errorf("client %d, at level %q, hears %q", i, x.level, x.notes)
		}
		x.asked = nil
		for range 2 {
			if got := x.call("mcp.all.echo", `{}`); !strings.Contains(got, `"structuredContent"`) {
				t.Errorf("client %d: %s", i, got)
			}
		}
		if len(x.asked) != 1 || x.asked[0].method != "elicitation/create" {
			t.Errorf("client %d was asked %v", i, x.asked)
		}
	}
}

// TestClientsOutliveTheirHub: when the process ends that is the hub, the other clients go on: one of them is the hub then. A call that the hub
// was executing ends with its answer where the hub has ended by itself, and with an error where it was killed.
func TestClientsOutliveTheirHub(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed %t", version, killed), func(t *testing.T) {
				t.Parallel()
				c := newCompany(t)
				first := c.client(t, version)
				second, third := c.client(t, version), c.client(t, version)
				before := sharedBy(first, second, third)
				if len(before) != 1 {
					t.Fatalf("the shared server runs as %v", before)
				}
				call := second.call("mcp.all.wait", `{"file":`+quoted(filepath.Join(c.dir, "go"))+`}`, "")
				second.write(call.text())
				eventually(t, "the call runs", func() bool { return strings.Contains(third.result("mcp.all.calls", `{}`, ""), `"open":1`) })
				if killed {
					if err := first.cmd.Process.Signal(syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
					_ = first.cmd.Wait()
				} else {
					_ = first.stdin.Close()
					eventually(t, "the hub ends, and has let go of a client", func() bool { return !slices.Equal(sharedBy(third), before) })
					if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				answer := second.nextWith(`"id":` + call.id + `,`)
				if wants := map[bool]string{false: `"result":{"content":[{"type":"text","text":"ok"}]`, true: "may have taken effect"}; !strings.Contains(answer, wants[killed]) {
					t.Errorf("the open call was answered %s", answer)
				}
				if pids := sharedBy(second, third); len(pids) != 1 {
					t.Errorf("the shared server runs as %v", pids)
				}
				second.hangUp()
				if got := third.result("mcp.all.echo", `{"n":1}`, ""); !strings.Contains(got, `{"n":1}`) {
					t.Errorf("the last client was answered %s", got)
				}
				third.hangUp()
				eventually(t, "no process of a server is left", func() bool { return len(marked(c.mark)) == 0 })
			})
		}
	}
}

// TestClientsThatDoNotJoin: a client has a hub of its own where it says so, and where the other hub would do something else.
func TestClientsThatDoNotJoin(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	first := c.client(t, rev2025)
	for name, start := range map[string]func() *wire{
		"--alone": func() *wire { return c.client(t, rev2025, "--alone") },
		"names":   func() *wire { return c.client(t, rev2025, "--names", "canonical") },
	} {
		if pids := sharedBy(first, start()); len(pids) != 2 {
			t.Errorf("%s: the server runs as %v", name, pids)
		}
	}
}

// TestOneHubOfOneConfig: clients of another directory, environment and program join the hub that runs, also where the config has a
// fault by now. Their logs name what differs. The hub has the environment of the login shell.
func TestOneHubOfOneConfig(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	script := upstreamtest.Script{Tools: upstreamtest.DefaultTools()}
	text := configText(t, map[string]any{"all": child(script, c.mark), "needy": child(script, c.mark, "${NEEDED}")}, neverDeferred())
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, shell, copied := filepath.Join(dir, "hub.json"), filepath.Join(dir, "shell"), filepath.Join(t.TempDir(), "mcp-toolhub")
	writeFile(t, file, text)
	writeFile(t, shell, "#!/bin/sh\necho welcome\nNEEDED=of-the-shell PATH=/opt/mine:$PATH\nexport NEEDED PATH\neval \"$4\"\n")
	writeFile(t, copied, readFile(t, program))
	for _, executable := range []string{shell, copied} {
		if err := os.Chmod(executable, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	start := func(program, dir string, more ...string) *wire {
		cmd := exec.Command(program, "serve", "--config", file)
		cmd.Dir, cmd.Env = dir, append(scratchEnv(filepath.Dir(file)), more...)
		return wireProcess(t, cmd, rev2025).open()
	}
	first := start(program, dir, "PATH=/usr/sbin:/sbin", "SHELL="+shell)
	first.ready("mcp.all.echo", "mcp.needy.echo")
	second := start(copied, t.TempDir(), "NEEDED=of-the-client")
	second.ready("mcp.all.echo", "mcp.needy.echo")
	for _, says := range []string{"the hub's values of NEEDED are in force", "all runs in " + dir} {
		if !strings.Contains(second.log.String(), says) {
			t.Errorf("%q is missing in %s", says, second.log.String())
		}
	}
	writeFile(t, file, text[1:])
	third := start(program, dir)
	third.ready("mcp.all.echo", "mcp.needy.echo")
	if pids := sharedBy(first, second, third); len(pids) != 1 {
		t.Errorf("the server runs as %v", pids)
	}
}

// TestNewerProgramTakesOver: a client that starts with a newer program lets that take the place of the hub in the background.
// The old hub finishes its calls, its clients go on, and each server runs once. An older program changes nothing.
func TestNewerProgramTakesOver(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	state := filepath.Join(c.dir, "state", "mcp-toolhub")
	t.Cleanup(func() { stopShared(t, state) })
	file := filepath.Join(c.dir, "hub.json")
	writeFile(t, file, c.config)
	bin := t.TempDir()
	command := func(version string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, version), append(args, "--config", file)...)
		cmd.Dir, cmd.Env = c.dir, scratchEnv(c.dir)
		return cmd
	}
	client := func(version string) *wire {
		w := wireProcess(t, command(version, "serve"), rev2025).open()
		w.ready("mcp.all.echo", "mcp.own.echo")
		return w
	}
	for _, version := range []string{"v1.9.0", "v1.10.0"} {
		build := exec.Command("go", "build", "-o", filepath.Join(bin, version), "-ldflags",
			"-s -w -X github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub.version="+version, "../..")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if out, err := command("v1.9.0", "start").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first, second := client("v1.9.0"), client("v1.9.0")
	before := sharedBy(first, second)
	call := first.call("mcp.all.wait", `{"file":`+quoted(filepath.Join(c.dir, "go"))+`}`, "")
	first.write(call.text())
	eventually(t, "the call runs", func() bool { return strings.Contains(second.result("mcp.all.calls", `{}`, ""), `"open":1`) })
	newer := wireProcess(t, command("v1.10.0", "serve"), rev2025)
	eventually(t, "the new hub has asked the old one to end", func() bool {
		return strings.Contains(readFile(t, filepath.Join(state, hub.LogFile)), "of version v1.9.0")
	})
	writeFile(t, filepath.Join(c.dir, "go"), "")
	if answer := first.nextWith(`"id":` + call.id + `,`); !strings.Contains(answer, `"text":"ok"`) {
		t.Errorf("the open call was answered %s", answer)
	}
	newer.open().ready("mcp.all.echo", "mcp.own.echo")
	if pids := sharedBy(first, second, newer, client("v1.9.0")); len(pids) != 1 || slices.Equal(pids, before) {
		t.Errorf("the shared server runs as %v, and ran as %v", pids, before)
	}
	hubs, err := control.Find(t.Context(), state)
	if err != nil || len(hubs) != 1 || hubs[0].Version() != "v1.10.0" {
		t.Errorf("%d hubs, %v", len(hubs), err)
	}
}

// TestUnknownProfileBesideAHub: a client that wants a profile that does not exist is told so at once, also where a hub runs.
func TestUnknownProfileBesideAHub(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	c.client(t, rev2025)
	w := wireHubIn(t, c.dir, c.config, rev2025, "--profile", "none")
	for range w.lines { // until it ends
	}
	if err := w.cmd.Wait(); err == nil || !strings.Contains(w.log.String(), `no profile "none" in the config`) {
		t.Errorf("%v\n%s", err, w.log)
	}
}

// TestQuestionsToClientsOfOneHub: each client is asked what its own call asks, also after it has moved to another hub.
func TestQuestionsToClientsOfOneHub(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	start := func() *wire {
		w := wireHubIn(t, c.dir, c.config, rev2025).able().open()
		w.ready("mcp.own.ask")
		return w
	}
	ask := func(w *wire, text string) (id string) {
		w.write(w.call("mcp.own.ask", `{"questions":[{"id":"q","method":"elicitation/create","params":{"message":"`+text+
			`","requestedSchema":{"type":"object","properties":{}}}}]}`, "").text())
		m := w.nextWith(`"method":"elicitation/create"`)
		if !strings.Contains(m, text) {
			t.Errorf("who asks %q was sent %s", text, m)
		}
		id, _ = memberOf(t, m, "id")
		return id
	}
	answer := func(w *wire, id, text string) {
		w.write(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"said":"` + text + `"}}}`)
		if m := w.nextWith(`"answers"`); !strings.Contains(m, text) {
			t.Errorf("%q was not what the server has heard: %s", text, m)
		}
	}
	first, second, third := start(), start(), start()
	two, three := ask(second, "two"), ask(third, "three")
	answer(third, three, "said by three")
	answer(second, two, "said by two")
	first.hangUp()
	stale := two
	two = ask(second, "two again")
	if two == stale {
		t.Errorf("the next hub asks by an id that was used: %s", two)
	}
	answer(second, two, "said by two again")
}

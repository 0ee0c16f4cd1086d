//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// TestOrderUnder64CallersThroughTheHub: each caller's calls of a tool without known targets come to the server one after the other, in
// their order, and no caller waits for another one. Where there are no sessions, a caller is a client, or a run of an agent.
func TestOrderUnder64CallersThroughTheHub(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			orderUnder64Callers(t, version)
		})
	}
}

func orderUnder64Callers(t *testing.T, version string) {
	t.Helper()
	const callers, calls = 64, 3
	g, hub := gatedHub(t, nil)
	var all [callers]*wire
	var answers [callers][]<-chan string
	for by := range all {
		all[by] = wireHTTP(t, hub.url+"/mcp", version).open()
	}
	came := map[string]int{} // by caller: the number of the call that came last
	take := func() (by string) {
		by, number, _ := strings.Cut(g.next(), ":")
		if n, _ := strconv.Atoi(number); n != came[by] {
			t.Errorf("caller %s: call %d came after %d others", by, n, came[by])
		}
		came[by]++
		return by
	}
	for n := range calls {
		for by, w := range all {
			meta := ""
			if by%2 == 0 {
				meta = fmt.Sprintf(`"toolhub/run":"run %d"`, by)
			}
			r := w.call("mcp.far.send_message", fmt.Sprintf(`{"content":"%d:%d"}`, by, n), meta)
			if by%2 == 1 {
				r.params = strings.Replace(r.params, `{"name":"wire"`, fmt.Sprintf(`{"name":"client %d"`, by), 1)
			}
			answers[by] = append(answers[by], sends(w, r))
		}
		for n == 0 && len(came) < callers { // the first ones run at the same time
			take()
		}
		queued(t, hub, callers*n)
	}
	for n, answer := range answers[0] { // the first caller comes to its end while nobody else's call does
		close(g.gate(fmt.Sprint("0:", n)))
		succeeds(t, answer)
		if n < calls-1 {
			if by := take(); by != "0" {
				t.Errorf("a call of caller %s came", by)
			}
		}
	}
	for by := 1; by < callers; by++ {
		for n := range calls {
			close(g.gate(fmt.Sprintf("%d:%d", by, n)))
		}
	}
	for range (callers - 1) * (calls - 1) {
		take()
	}
	for _, all := range answers[1:] {
		for _, answer := range all {
			succeeds(t, answer)
		}
	}
}

// TestNobodyStarvesThroughTheHub: a caller with one call has its turn while another one has a hundred that came before.
func TestNobodyStarvesThroughTheHub(t *testing.T) {
	t.Parallel()
	const flood = 100
	g, hub := gatedHub(t, map[string]any{"max_parallel": 1})
	many, one := wireHTTP(t, hub.url+"/mcp", rev2025).open(), wireHTTP(t, hub.url+"/mcp", rev2025).open()
	var answers []<-chan string
	for n := range flood {
		answers = append(answers, begins(many, "read_file", fmt.Sprintf(`{"path":"/tmp/a","content":"%d"}`, n)))
	}
	queued(t, hub, flood-1)
	answer := begins(one, "read_file", `{"path":"/tmp/a","content":"one"}`)
	queued(t, hub, flood)
	before := 0
	for content := g.next(); content != "one"; content = g.next() {
		before++
		close(g.gate(content))
	}
	close(g.gate("one"))
	if succeeds(t, answer); before > 2 {
		t.Errorf("%d calls ran before the only one of its caller", before)
	}
	for range flood - before {
		close(g.gate(g.next()))
	}
	for _, answer := range answers {
		succeeds(t, answer)
	}
}

// TestCallsWrittenAtOnceKeepTheirOrder: what a client writes behind each other over stdio, without waiting for answers, comes to the
// server in that order where one of two writes.
func TestCallsWrittenAtOnceKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g, config := gatedConfig(t, nil)
			w := wireHub(t, config, version).open()
			w.awaitTools("mcp.far.send_message")
			groups := [][]string{slices.Repeat([]string{`send_message {"content":%q}`}, 4),
				slices.Repeat([]string{`write_file {"path":"/tmp/a","content":%q}`, `read_file {"path":"/tmp/a","content":%q}`}, 2),
				slices.Repeat([]string{`send_message {"content":%q}`,
					`tool_batch {"calls":[{"id":"a","name":"mcp.far.send_message","arguments":{"content":%q}}]}`}, 2)}
			for group := range 61 {
				var lines, want, got []string
				calls := groups[group%len(groups)]
				if group == 60 { // more than are served at the same time
					calls = slices.Repeat(groups[0], 100)
				}
				for n, call := range calls {
					content := fmt.Sprint(group, ":", n)
					close(g.gate(content))
					name, args, _ := strings.Cut(fmt.Sprintf(call, content), " ")
					if name != "tool_batch" {
						name = "mcp.far." + name
					}
					lines, want = append(lines, w.call(name, args, "").text()), append(want, content)
				}
				w.write(lines...)
				for range lines {
					got = append(got, g.next())
					w.nextWith(`"status":"succeeded"`)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%v came, which were written as %v", got, want)
				}
			}
		})
	}
}

// TestCallsKeepTheirOrderWhileServersStart: so it is, too, where the hub does not know the tool yet when the calls come.
func TestCallsKeepTheirOrderWhileServersStart(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		g, config := gatedConfig(t, nil)
		w := wireHub(t, config, version).open()
		var lines, want, got []string
		for n := range 8 {
			content := fmt.Sprint(n)
			close(g.gate(content))
			lines, want = append(lines, w.call("mcp.far.send_message", `{"content":`+quoted(content)+`}`, "").text()), append(want, content)
		}
		w.write(lines...)
		for range lines {
			got = append(got, g.next())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v came, which were written as %v", version, got, want)
		}
	}
}

// TestLocksAreFreeWhileACallWaitsForInputThroughTheHub: another write of the file runs meanwhile, and the server gets the answer when that
// has ended.
func TestLocksAreFreeWhileACallWaitsForInputThroughTheHub(t *testing.T) {
	t.Parallel()
	g, hub := gatedHub(t, nil)
	other := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	close(g.gate("edit"))
	var answer <-chan string
	runs := make(chan string, 1)
	x := &exchange{w: wireHTTP(t, hub.url+"/mcp", rev2025).able().open(), answer: func(int, asked) string {
		answer = begins(other, "write_file", `{"path":"/tmp/a","content":"write"}`)
		runs <- <-g.came
		return `{"action":"accept","content":{}}`
	}}
	ended := make(chan string, 1)
	go func() { ended <- x.call("mcp.far.edit_file", `{"path":"/tmp/a","content":"edit"}`) }()
	if got := await(t, runs); got != "write" {
		t.Errorf("%s came", got)
	}
	close(g.gate("write"))
	succeeds(t, ended)
	succeeds(t, answer)
	if !slices.Equal(g.ended, []string{"write", "edit"}) {
		t.Errorf("calls of one file ended as %v", g.ended)
	}
}

// TestWaitingIsNotChargedThroughTheHub: a call waits in the queue for longer than it may take to run, and succeeds. It
// waits for two calls that hang and end by their timeout, one after the other.
func TestWaitingIsNotChargedThroughTheHub(t *testing.T) {
	t.Parallel()
	g, hub := gatedHub(t, map[string]any{"timeout": "2s", "timeout_max": "2s"})
	call := func(tool, content string) <-chan string {
		w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
		return begins(w, tool, fmt.Sprintf(`{"path":"/tmp/a","content":%q}`, content))
	}
	first := call("write_file", "first")
	if got := g.next(); got != "first" {
		t.Fatalf("%s came", got)
	}
	second := call("write_file", "second")
	queued(t, hub, 1)
	close(g.gate("waits")) // it ends as soon as it comes
	waits := call("read_file", "waits")
	queued(t, hub, 2)
	for _, ended := range []<-chan string{first, second} {
		if got := await(t, ended); !strings.Contains(got, `"status":"timed_out"`) || !strings.Contains(got, "within 2s") {
			t.Errorf("a call that hangs ended with %.500s", got)
		}
	}
	succeeds(t, waits)
	if got := []string{g.next(), g.next()}; !slices.Equal(got, []string{"second", "waits"}) {
		t.Errorf("after the first call %q came", got)
	}
}

// floodingClient is a client of 2026-07-28 whose calls wait: as many as its second argument says, of the tool of the third, with the
// message that is the fourth.
func floodingClient() {
	n, _ := strconv.Atoi(os.Args[2])
	for range n {
		go func() {
			r, err := http.NewRequest(http.MethodPost, os.Args[1], strings.NewReader(os.Args[4]))
			if err != nil {
				panic(err)
			}
			for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"Mcp-Method": "tools/call", "Mcp-Name": os.Args[3], "Mcp-Protocol-Version": rev2026} {
				r.Header.Set(name, value)
			}
			_, _ = http.DefaultClient.Do(r)
		}()
	}
	select {}
}

// TestAKilledClientThroughTheHub: the calls of a client that is killed leave the queue, without having run. Each has one terminal record,
// and the others go on.
func TestAKilledClientThroughTheHub(t *testing.T) {
	t.Parallel()
	const many = 20
	g, hub := gatedHub(t, nil)
	w := wireHTTP(t, hub.url+"/mcp", rev2026)
	first := begins(w, "write_file", `{"path":"/tmp/a","content":"first"}`)
	if got := g.next(); got != "first" {
		t.Fatalf("%s came", got)
	}
	message := w.call("mcp.far.write_file", `{"path":"/tmp/a","content":"killed"}`, "")
	program, err := exec.LookPath("flooding-client")
	if err != nil {
		t.Fatal(err)
	}
	client := exec.Command(program, hub.url+"/mcp", fmt.Sprint(many), message.name, message.text())
	client.Env = scratchEnv(t.TempDir())
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() { _ = client.Process.Kill(); _ = client.Wait() })
	defer kill()
	queued(t, hub, many)
	last := begins(w, "write_file", `{"path":"/tmp/a","content":"last"}`)
	queued(t, hub, many+1)
	kill()
	queued(t, hub, 1)
	close(g.gate("first"))
	close(g.gate("last"))
	succeeds(t, first)
	succeeds(t, last)
	if got := g.next(); got != "last" || len(g.came) > 0 {
		t.Errorf("%s came, and %d more", got, len(g.came))
	}
	ends := map[tool.Status]int{}
	eventually(t, "all calls have ended in the journal", func() bool {
		results := map[tool.InvocationID]int{}
		clear(ends)
		if err := persist.Read(filepath.Join(hub.cmd.Dir, "state", "mcp-toolhub", "journal"), func(line json.RawMessage) bool {
			var r tool.Result
			if mustDecode(t, string(line), &r); r.Object == tool.ObjectResult {
				ends[r.Status]++
				results[r.InvocationID]++
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		for id, n := range results {
			if n != 1 {
				t.Errorf("%s has %d terminal records", id, n)
			}
		}
		return len(results) == many+2
	})
	if ends[tool.StatusCanceled] != many || ends[tool.StatusSucceeded] != 2 {
		t.Errorf("the calls ended as %v", ends)
	}
}

// TestAKilledStdioClient: a client over stdio is killed, and with it both ends of the hub's pipes go. The hub does not die of what it writes then.
// All calls of the client are canceled at once, whether it has a hub of its own or another client's, or its process became the hub when that
// one had ended.
func TestAKilledStdioClient(t *testing.T) {
	t.Parallel()
	for _, hub := range []string{"its own", "another client's", "its own after another client's"} {
		t.Run(hub, func(t *testing.T) {
			t.Parallel()
			longer := (2 * patience).String() // what is canceled only then is too late
			g, config := gatedConfigWith(t, nil, map[string]any{"hub": map[string]any{"http": map[string]any{"drain_timeout": longer}}})
			dir := t.TempDir()
			first := wireHubIn(t, dir, config, rev2026).open()
			first.awaitTools("mcp.far.send_message")
			var args []string
			if hub == "its own" {
				args = []string{"--alone"}
			}
			killed := wireHubIn(t, dir, config, rev2026, args...).open()
			killed.awaitTools("mcp.far.send_message")
			if hub == "its own after another client's" {
				first.hangUp()
				killed.awaitTools("mcp.far.send_message")
			}
			for _, content := range []string{"first", "second", "third"} {
				killed.write(killed.call("mcp.far.send_message", `{"content":`+quoted(content)+`}`, "").text())
			}
			if got := g.next(); got != "first" {
				t.Fatalf("%s came", got)
			}
			killed.dies()
			ends := map[tool.Status]int{}
			eventually(t, "all calls have ended in the journal", func() bool {
				clear(ends)
				all := resultsIn(t, dir)
				for _, r := range all {
					ends[r.Status]++
				}
				return len(all) == 3
			})
			// The second call may get the first one's place in the moment in which both are canceled.
			if ends[tool.StatusCanceled] != 3 || len(g.came) > 1 {
				t.Errorf("the calls ended as %v, and %d more came", ends, len(g.came))
			}
		})
	}
}

// gatesOfTwo runs a hub with the tokens of two people before a server of gates that runs one call at a time.
func gatesOfTwo(t *testing.T, top map[string]any) (*gateServer, *runningHub) {
	all := map[string]any{"hub": map[string]any{"auth": map[string]any{"tokens": []any{
		map[string]any{"name": "ann", "token": "${env:TOKEN_OF_ANN}"}, map[string]any{"name": "bob", "token": "${env:TOKEN_OF_BOB}"}}}}}
	for key, value := range top {
		all[key] = value
	}
	g, config := gatedConfigWith(t, map[string]any{"max_parallel": 1}, all)
	hub := startHubIn(t, []string{"TOKEN_OF_ANN=" + annToken, "TOKEN_OF_BOB=" + bobToken}, "hub.json", config)
	eventually(t, "the tools are known", func() bool { return hub.statusOf(t, "far").Tools > 0 })
	return g, hub
}

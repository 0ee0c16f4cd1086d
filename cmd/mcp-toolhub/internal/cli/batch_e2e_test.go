//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// reads and writes are declarations of tools of the test server.
func readsOnly(name string) json.RawMessage {
	return fmt.Appendf(nil, `{"name":%q,"description":"Reads.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, name)
}

// batchScript is a server with tools that read only and one that may write.
var batchTools = []json.RawMessage{readsOnly("echo"), readsOnly("wait"), readsOnly("raw"), readsOnly("big"), readsOnly("hang"), readsOnly("arrived"),
	readsOnly("fail"), upstreamtest.Tool("note")}

// TestBatchThroughTheHub holds what a batch does with its calls: order, failures, bounds, and what each call passes on its own.
func TestBatchThroughTheHub(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ready")
	hub := startHub(t, "hub.json", configText(t, map[string]any{"s": with(child(upstreamtest.Script{Tools: batchTools}), "trust", true)}, map[string]any{
		"hub":      map[string]any{"limits": map[string]any{"client_message": 8 << 20}},
		"profiles": map[string]any{"cut": map[string]any{"results": map[string]any{"max_inline_tokens": 500}}},
		"policy": map[string]any{"mode": "accept_all", "rules": []any{
			map[string]any{"match": "mcp.s.note", "when": `arguments.text == "no"`, "then": "deny"}}},
		"hooks": []any{map[string]any{"name": "stop", "event": "pre_tool_use", "match": "mcp.s.echo",
			"require": `!has(arguments.text) || arguments.text != "blocked"`, "reason": "not that text"}}}))
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()

	ordered := fmt.Sprintf(`{"calls":[{"id":"late","name":"mcp.s.wait","arguments":{"file":%q}},{"id":"soon","name":"mcp.s.echo"}]}`, file)
	done := make(chan batched)
	go func() { done <- wireHTTP(t, hub.url+"/mcp", rev2026).batch(ordered) }()
	part, parts := regexp.MustCompile(`\["partial_result",\d+,\{"partial_result_refs":\["res_(.*?)"\]\}\]`), [][]string(nil)
	eventually(t, "the second call ends before the first, and is a part of the result", func() bool {
		parts = part.FindAllStringSubmatch(readJournal(t, hub.cmd.Dir), -1)
		return len(parts) > 0
	})
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	both := <-done
	if got := both.ends(); got != "late succeeded; soon succeeded" {
		t.Errorf("results are in the order of the calls: %s", got)
	}
	if soon := both.StructuredContent.Results[1].Invocation; soon != "inv_"+parts[0][1] {
		t.Errorf("the part is %s, and the second call %s", parts[0][1], soon)
	}

	large := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct{ arguments, want string }{
		"a denied write": {`{"sibling_failure_policy":"ignore","calls":[{"id":"w","name":"mcp.s.note","arguments":{"text":"no"}},{"id":"r","name":"mcp.s.echo"},` +
			`{"id":"v","name":"mcp.s.note","arguments":{"text":"yes"}}]}`,
			"w denied,permission_denied; r canceled,sibling_canceled,earlier_write_failed; v canceled,sibling_canceled,earlier_write_failed"},
		"a denied write, unordered": {`{"ordering_policy":"allow_unordered","calls":[{"id":"w","name":"mcp.s.note","arguments":{"text":"no"}},{"id":"r","name":"mcp.s.echo"}]}`,
			"w denied,permission_denied; r succeeded"},
		"a failed read": {`{"calls":[{"id":"f","name":"mcp.s.fail","arguments":{"error":{"code":-32000,"message":"no"}}},{"id":"w","name":"mcp.s.note","arguments":{"text":"yes"}}]}`,
			"f failed,execution_failed; w succeeded"},
		"a hook": {`{"calls":[{"id":"h","name":"mcp.s.echo","arguments":{"text":"blocked"}},{"id":"r","name":"mcp.s.echo","arguments":{"text":"fine"}}]}`,
			"h blocked,hook_blocked; r succeeded"},
		"results too large": {`{"calls":[{"id":"a","name":"mcp.s.big","arguments":{"bytes":5000000}},{"id":"b","name":"mcp.s.big","arguments":{"bytes":5000000}},{"id":"c","name":"mcp.s.echo"}]}`,
			"a succeeded; b succeeded; c succeeded"},
		"results larger than the memory for messages": {manyLarge(30), manyEnds(30)},
		"arguments too large": {`{"calls":[` + strings.Repeat(`{"id":"a","name":"mcp.s.echo","arguments":{"text":"`+large+`"}},`, 3) +
			`{"id":"b","name":"mcp.s.echo","arguments":{"text":"` + large + `"}}]}`, ""},
		"arguments that grow too large": {`{"calls":[{"id":"a","name":"mcp.s.big","arguments":{"bytes":3000000}},` +
			`{"id":"b","name":"mcp.s.raw","arguments":{"result":{"structuredContent":{"x":"` + large + `"}}}},` +
			`{"id":"c","name":"mcp.s.echo","arguments_from":{"text":{"call":"b","pointer":"/x"},"u":{"call":"b","pointer":"/x"},"v":{"call":"b","pointer":"/x"},` +
			`"w":{"call":"b","pointer":"/x"}}}]}`, "a succeeded; b succeeded; c validation_failed,invalid_arguments"},
		"too many": {`{"calls":[{"id":"a","name":"mcp.s.echo"}` + strings.Repeat(`,{"id":"a","name":"mcp.s.echo"}`, 50) + `]}`, ""},
		"a batch":  {`{"calls":[{"id":"a","name":"mcp.s.echo"},{"id":"b","name":"tool_batch","arguments":{"calls":[{"id":"c","name":"mcp.s.echo"}]}}]}`, ""},
	} {
		got := w.batch(c.arguments)
		if got.ends() != c.want || c.want == "" && !got.IsError {
			t.Errorf("%s: %s", name, got.ends())
		}
		if c.want == "" {
			want := "invalid_batch"
			if name == "too many" {
				want = "schema_validation_failed"
			}
			if got.Meta.Invocation.Code != want {
				t.Errorf("%s: %+v", name, got)
			}
			if journal := readJournal(t, hub.cmd.Dir); strings.Contains(journal, got.Meta.Invocation.ID+`","batch`) || strings.Contains(journal, `"parent_invocation_id":"`+got.Meta.Invocation.ID) {
				t.Errorf("%s: some of its calls have begun", name)
			}
		}
		if omitted := name == "results too large"; name == "results larger than the memory for messages" {
			if first, last := got.StructuredContent.Results[0], got.StructuredContent.Results[29]; first.Omitted > 0 || last.Omitted == 0 {
				t.Errorf("%s: left out are %d bytes of the first call and %d of the last", name, first.Omitted, last.Omitted)
			}
		} else if omitted != (c.want != "" && got.StructuredContent.Results[1].Omitted > 5000000) {
			t.Errorf("%s: %+v", name, got.StructuredContent.Results[1].Omitted)
		}
	}
	cut := wireHTTP(t, hub.url+"/mcp/p/cut", rev2025).open().batch(`{"calls":[{"id":"a","name":"mcp.s.raw","arguments":{"result":{"content":[],` +
		`"structuredContent":{"x":"of a large result","y":"` + large[:10000] + `"}}}},{"id":"b","name":"mcp.s.echo","arguments_from":{"text":{"call":"a","pointer":"/x"}}}]}`)
	if text := fmt.Sprint(cut.Content); cut.IsError || !strings.Contains(readJournal(t, hub.cmd.Dir), `"model_input":{"text":"of a large result"}`) {
		t.Errorf("an argument from a result that the client gets a part of: %s", text)
	}
	if got := w.result("mcp.s.note", `{"text":"yes"}`, ""); !strings.Contains(got, `{"notes":["yes","yes"]}`) {
		t.Errorf("these writes reached the server: %s", got)
	}
	checkMembers(t, hub.cmd.Dir)
}

// manyLarge is a batch of n calls with results of a MiB. Together they are larger than the memory that one server has for such messages.
func manyLarge(n int) string {
	var calls []string
	for i := range n {
		calls = append(calls, fmt.Sprintf(`{"id":"a%d","name":"mcp.s.big","arguments":{"bytes":1048500}}`, i))
	}
	return `{"calls":[` + strings.Join(calls, ",") + `]}`
}

// manyEnds is what ends returns where all of manyLarge have succeeded.
func manyEnds(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("a%d succeeded", i))
	}
	return strings.Join(all, "; ")
}

// checkMembers holds that each call of a batch has passed the phases on its own: the record of each names its parent, its decision, its
// hooks and its locks.
func checkMembers(t *testing.T, dir string) {
	t.Helper()
	members := 0
	for line := range strings.Lines(readJournal(t, dir)) {
		if !strings.Contains(line, `"parent_invocation_id":"inv_`) || !strings.Contains(line, `"ended_us"`) {
			continue
		}
		members++
		ran := strings.Contains(line, `["running"`)
		if ran && (!strings.Contains(line, `["decision"`) || !strings.Contains(line, `["queued"`)) {
			t.Errorf("a call has run without a decision or its turn: %s", line)
		}
		if ran && strings.Contains(line, "mcp.s.echo") && !strings.Contains(line, `["hook"`) {
			t.Errorf("a call has run without its hook: %s", line)
		}
		if ran && strings.Contains(line, "mcp.s.note") && !strings.Contains(line, `"locks":[{"resource":"caller","mode":"exclusive"}]`) {
			t.Errorf("a write has run without its lock: %s", line)
		}
	}
	if members < 15 {
		t.Errorf("only %d calls of batches are recorded", members)
	}
}

// TestCancelABatch cancels a whole batch while its first call runs, on both generations over both transports: the progress of the call
// has come before, its server is told, and each call has one terminal record that says who cancelled.
func TestCancelABatch(t *testing.T) {
	t.Parallel()
	config := configText(t, map[string]any{"s": with(child(upstreamtest.Script{Tools: batchTools}), "trust", true)}, nil)
	overCancelingClients(t, config, []string{"mcp.s.hang"}, func(c *canceling) {
		written, outcome := "", "not_begun"
		if c.w.modern() {
			written, outcome = `{"id":"wrote","name":"mcp.s.note","arguments":{"text":"x"}},`, "unknown"
		}
		cancel := func(calls string) (end func()) {
			r := c.w.call("tool_batch", calls, `"progressToken":"p"`)
			next, end := c.w.begin(r)
			for m := next(); !strings.Contains(m, `"message":"runs: `) || !strings.Contains(m, `"progressToken":"p"`); m = next() {
			}
			c.cancel(r, end)
			return end
		}
		end := cancel(`{"ordering_policy":"serial","calls":[` + written + `{"id":"runs","name":"mcp.s.hang","arguments":{"begin":true,"then":"finish"}},` +
			`{"id":"waits","name":"mcp.s.echo"}]}`)
		c.ended("mcp.s.hang", "ended_anyway")
		c.ended("mcp.s.echo", "not_begun")
		c.ended("tool_batch", outcome)
		c.endedWithBatch("mcp.s.hang", "mcp.s.echo")
		if !c.closes() {
			end()
		}
		end = cancel(`{"calls":[{"id":"runs","name":"mcp.s.hang","arguments":{"begin":true,"then":"finish"}},{"id":"depends","name":"mcp.s.echo",` +
			`"depends_on":["runs"]},{"id":"writes","name":"mcp.s.note","arguments":{"text":"x"}},{"id":"after","name":"mcp.s.arrived"}]}`)
		c.ended("tool_batch", "not_begun")
		for _, name := range []string{"mcp.s.echo", "mcp.s.note", "mcp.s.arrived"} {
			c.ended(name, "not_begun")
		}
		c.endedWithBatch("mcp.s.hang", "mcp.s.echo", "mcp.s.note", "mcp.s.arrived")
		if !c.closes() {
			end()
		}
		if c.hub != nil {
			eventually(t, "nothing is left of the calls", func() bool { st := c.hub.server(t, "s"); return st.InFlight+st.Queued == 0 })
		}
	})
}

// endedWithBatch checks that the records of the last calls of these tools say that they ended because their batch was canceled, and not that a
// sibling has ended them.
func (c *canceling) endedWithBatch(names ...string) {
	c.t.Helper()
	for _, name := range names {
		last, _, _ := c.records(name)
		failure, _ := last["tool_result"]["error"].(map[string]any)
		if failure["error_class"] != "canceled" || failure["abort_reason"] != "batch_canceled" {
			c.t.Errorf("%s, of a batch that was canceled, says %v", name, failure)
		}
	}
}

// TestGroupedCalls holds that a client can group calls that it makes in parallel: records name the group, and with cancel_siblings a
// failure ends the others of the group that still run, of the same session alone.
func TestGroupedCalls(t *testing.T) {
	t.Parallel()
	safe := map[string]any{"match": "mcp.s.*", "concurrency": "safe"}
	hub := startHub(t, "hub.json", configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: batchTools})},
		map[string]any{"policy": map[string]any{"mode": "accept_all", "tools": []any{safe}}}))
	for _, version := range []string{rev2025, rev2026} {
		file := filepath.Join(t.TempDir(), "ready")
		waits := fmt.Sprintf(`{"file":%q}`, file)
		group := func(policy string) string {
			return `"toolhub/batch":{"id":"turn-1-` + version + `","sibling_failure_policy":"` + policy + `"}`
		}
		w := wireHTTP(t, hub.url+"/mcp", version).open()
		arrived := func() string { // how many calls of wait have come: without the id of the result that says so
			counted, _ := memberOf(t, w.result("mcp.s.arrived", `{"tool":"wait"}`, ""), "structuredContent")
			return counted
		}
		begin := func(w *wire, name, args, meta string) <-chan string {
			started := arrived()
			r, answer := w.call(name, args, meta), make(chan string, 1)
			go func() { _, _, m := w.post(r); answer <- m[len(m)-1] }()
			eventually(t, "the call runs", func() bool { return arrived() != started })
			return answer
		}
		cut := begin(w, "mcp.s.wait", waits, group("cancel_siblings"))
		alone := begin(w, "mcp.s.wait", waits, "")
		elsewhere := begin(wireHTTP(t, hub.url+"/mcp", rev2025).open(), "mcp.s.wait", waits, group("cancel_siblings"))
		w.result("mcp.s.echo", `{}`, group("cancel_siblings"))
		w.send(w.call("mcp.s.fail", `{"error":{"code":-32000,"message":"no"}}`, group("ignore")))
		w.send(w.call("mcp.s.fail", `{"error":{"code":-32000,"message":"no"}}`, group("cancel_siblings")))
		if got := await(t, cut); !strings.Contains(got, `"error_class":"sibling_canceled"`) || !strings.Contains(got, `\"mcp.s.fail\", ended as failed`) {
			t.Errorf("%s: the sibling of a call that failed: %s", version, got)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, other := range []<-chan string{alone, elsewhere} {
			if got := await(t, other); !strings.Contains(got, `"succeeded"`) {
				t.Errorf("%s: a call of no group, or of another session: %s", version, got)
			}
		}
		if m := w.send(w.call("mcp.s.echo", `{}`, `"toolhub/batch":7`)); !strings.Contains(m[len(m)-1], `"code":-32602`) || !invocationID.MatchString(m[len(m)-1]) {
			t.Errorf("%s: a malformed group: %s", version, m)
		}
		journal := objectsBeneath(t, hub.cmd.Dir)
		if got := strings.Count(journal, `"batch_id":"turn-1-`+version); got < 5 {
			t.Errorf("%s: %d records name the group", version, got)
		}
	}
	if journal := objectsBeneath(t, hub.cmd.Dir); strings.Count(journal, `"abort_reason":"sibling_failed"`) != 2 {
		t.Error("not each call that was cut off says why")
	}
}

// ends are the ends of the calls, in order.
func (b batched) ends() string {
	var all []string
	for _, c := range b.StructuredContent.Results {
		all = append(all, join(c.ID+" "+c.Status, c.Class, c.Abort))
	}
	return strings.Join(all, "; ")
}

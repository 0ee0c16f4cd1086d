//go:build e2e

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// TestTheRightToReadResults has carl, whose token says so, read ann's result, and bob, whose token does not, find none.
func TestTheRightToReadResults(t *testing.T) {
	t.Parallel()
	config := strings.Replace(demoHub(`,"results":{"max_inline_tokens":1000}`), `{"name":"bob"`,
		`{"name":"carl","token":"${env:CARL}","results":"read"},{"name":"bob"`, 1)
	env := append([]string{"CARL=carl-has-a-token-of-his-own"}, tokensOfTwo...)
	h := startHubIn(t, env, "hub.json", config)
	carls := []string{"Authorization", "Bearer carl-has-a-token-of-his-own"}
	for _, version := range []string{rev2025, rev2026} {
		ann := wireHTTP(t, h.url+"/mcp", version, headerOf("ann")...).open()
		s := storedIn(t, last(ann.send(ann.call("mcp.demo.big", `{"bytes":100000}`, ""))))
		carl, bob := wireHTTP(t, h.url+"/mcp", version, carls...).open(), wireHTTP(t, h.url+"/mcp", version, headerOf("bob")...).open()
		read := func(w *wire) string {
			return last(w.send(w.readStored(s.uri))) + last(w.send(w.call("result_read", `{"id":"`+string(s.id)+`","lines":"2"}`, "")))
		}
		if got := resourceText(t, last(carl.send(carl.readStored(s.uri)))); len(got) != s.size {
			t.Errorf("%s: carl read %d bytes", version, len(got))
		}
		if got := read(carl); strings.Count(got, "00000064 0123456789") != 2 {
			t.Errorf("%s: carl got %.2000s", version, got)
		}
		if got := read(bob); strings.Contains(got, "00000064") || !strings.Contains(got, "unknown_result") {
			t.Errorf("%s: bob got %.2000s", version, got)
		}
	}
}

// TestExpiredResultsAreRecorded makes a stored result 40 days old: the next hub removes it. The journal says so and why, and who asks for it
// is told.
func TestExpiredResultsAreRecorded(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	start := func() *runningHub {
		return startHubIn(t, tokensOfTwo, "hub.json", demoHub(`,"results":{"max_inline_tokens":1000}`), "--state-dir", state)
	}
	h := start()
	w := wireHTTP(t, h.url+"/mcp", rev2025, headerOf("ann")...).open()
	s := storedIn(t, last(w.send(w.call("mcp.demo.big", `{"bytes":100000}`, ""))))
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(state, "results", "index", string(s.id)+".json")
	old := time.Now().Add(-40 * 24 * time.Hour).UTC().Format(time.RFC3339)
	writeFile(t, file, createdAt.ReplaceAllString(readFile(t, file), `"created_at":"`+old+`"`))
	h = start()
	if err := h.waitFor(regexp.MustCompile("a stored result has expired.*" + string(s.id))); err != nil {
		t.Fatal(err)
	}
	w = wireHTTP(t, h.url+"/mcp", rev2025, headerOf("ann")...).open()
	for _, r := range []rawRequest{w.readStored(s.uri), w.call("result_read", `{"id":"`+string(s.id)+`"}`, "")} {
		if got := last(w.send(r)); !strings.Contains(got, "result_expired") || !strings.Contains(got, "results are kept for 30 days") {
			t.Errorf("%s: %.1000s", r.method, got)
		}
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	const why = `"reason":"results are kept for 30 days"`
	said, parts := map[string]int{}, []string{`"event_type":"tool.result.expired"`, `"strategy":"drop_with_reason"`, `"object":"tool_result",`}
	err := persist.Read(filepath.Join(state, "journal"), func(object json.RawMessage) bool {
		text := string(object)
		for _, part := range parts {
			if strings.Contains(text, part) && strings.Contains(text, string(tool.InvocationOf(s.id))) &&
				strings.Contains(text, why) == (part != parts[2]) {
				said[part]++
			}
		}
		return true
	})
	if err != nil || said[parts[0]] != 1 || said[parts[1]] != 1 || said[parts[2]] != 1 {
		t.Errorf("the journal says %v: %v", said, err)
	}
}

// TestStoredInputsAreNotResults has a hook change a large input. It is stored as it was and as it ran, for the person whose files these are:
// its caller cannot read it, and when it expires no record speaks of a result.
func TestStoredInputsAreNotResults(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	start := func() (*runningHub, *wire) {
		h := startHubIn(t, tokensOfTwo, "hub.json", demoHub(`,"results":{"max_inline_tokens":1000},`+
			`"hooks":[{"event":"pre_tool_use","match":"mcp.demo.echo","rewrite":[{"op":"replace","path":"/text","value":"other"}]}]`), "--state-dir", state)
		return h, wireHTTP(t, h.url+"/mcp", rev2025, headerOf("ann")...).open()
	}
	h, w := start()
	if got := w.result("mcp.demo.echo", `{"text":"`+strings.Repeat("large ", 4000)+`"}`, ""); !strings.Contains(got, "other") {
		t.Fatalf("%.1000s", got)
	}
	index := filepath.Join(state, "results", "index")
	stored, err := filepath.Glob(filepath.Join(index, "inp_*.json"))
	if all, _ := os.ReadDir(index); err != nil || len(stored) != 1 || len(all) != 1 {
		t.Fatalf("stored are %q, %v; %v", stored, err, all)
	}
	id := strings.TrimSuffix(filepath.Base(stored[0]), ".json")
	none := "res_" + strings.Repeat("0", len(id)-len("res_"))
	ask := func(id string) string {
		w.ids = 100
		answers := last(w.send(w.readStored(tool.ResultURI(tool.ResultID(id))))) + last(w.send(w.call("result_read", `{"id":"`+id+`"}`, "")))
		return invocationIDs.ReplaceAllString(strings.ReplaceAll(answers, id, "ID"), "INV")
	}
	if theirs, never := ask(id), ask(none); theirs != never || !strings.Contains(theirs, "unknown_result") {
		t.Errorf("an input\n%s\nnothing\n%s", theirs, never)
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-40 * 24 * time.Hour).UTC().Format(time.RFC3339)
	writeFile(t, stored[0], createdAt.ReplaceAllString(readFile(t, stored[0]), `"created_at":"`+old+`"`))
	h, _ = start()
	if err := h.waitFor(regexp.MustCompile("a stored input has expired.*" + id)); err != nil {
		t.Fatal(err)
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	err = persist.Read(filepath.Join(state, "journal"), func(object json.RawMessage) bool {
		if strings.Contains(string(object), "tool.result.expired") || strings.Contains(string(object), "tool_result_persistence") {
			t.Errorf("the journal says %.500s", object)
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
}

var createdAt = regexp.MustCompile(`"created_at":"[^"]*"`)

// TestCorruptedStoredResult changes the stored bytes on the disk: what is read is an error with a class, and never other bytes.
func TestCorruptedStoredResult(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	h := startHubIn(t, tokensOfTwo, "hub.json", demoHub(`,"results":{"max_inline_tokens":1000}`), "--state-dir", state)
	w := wireHTTP(t, h.url+"/mcp", rev2025, headerOf("ann")...).open()
	s := storedIn(t, last(w.send(w.call("mcp.demo.big", `{"bytes":100000}`, ""))))
	file := filepath.Join(state, "results", "bytes", string(s.id)+"-"+s.sum[:8])
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, r := range []rawRequest{w.readStored(s.uri), w.call("result_read", `{"id":"`+string(s.id)+`"}`, "")} {
		if got := last(w.send(r)); !strings.Contains(got, "result_corrupted") || !strings.Contains(got, "execution_failed") ||
			strings.Contains(got, "0123456789") {
			t.Errorf("%s: %.1000s", r.method, got)
		}
	}
	if health, text := h.health(t, headerOf("ann")...); health.Status != "degraded" || !strings.Contains(text, "was changed since") || strings.Contains(text, s.sum) {
		t.Errorf("health is %s", text)
	}
	// The tool's next answer is stored anew.
	again := storedIn(t, last(w.send(w.call("mcp.demo.big", `{"bytes":100000}`, ""))))
	if got := resourceText(t, last(w.send(w.readStored(again.uri)))); len(got) != again.size {
		t.Errorf("%d bytes", len(got))
	}
	if health, text := h.health(t, headerOf("ann")...); health.Status != "ready" {
		t.Errorf("after a result was read, health is %s", text)
	}
}

// TestResultsThatCannotBeStored has a file stand where results are stored: the caller gets its result whole, and the record says why.
func TestResultsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "results"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := startHubIn(t, tokensOfTwo, "hub.json", demoHub(`,"results":{"max_inline_tokens":1000}`), "--state-dir", state)
	w := wireHTTP(t, h.url+"/mcp", rev2025, headerOf("ann")...).open()
	if got := last(w.send(w.call("mcp.demo.big", `{"bytes":100000}`, ""))); len(got) < 100_000 || strings.Contains(got, "toolhub://") {
		t.Errorf("got %.500s", got)
	}
	if health, text := h.health(t, headerOf("ann")...); health.Status != "degraded" || !strings.Contains(text, "it could not be stored") {
		t.Errorf("health is %s", text)
	}
}

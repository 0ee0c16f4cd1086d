package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// The revisions that the tests speak.
const (
	rev2025March = "2025-03-26"
	rev2025June  = "2025-06-18"
	rev2025      = "2025-11-25"
	rev2026      = "2026-07-28"
)

// patience is how long a test waits for what must happen. It is long: the machine may be busy.
const patience = 3 * time.Minute

// clientMeta is what a client of 2026-07-28 says of itself in each request's _meta, up to what it can be asked for.
const clientMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"wire","version":"1"},"io.modelcontextprotocol/clientCapabilities":`

// config is a config file with these servers; more holds further top-level keys. Where it has none called policy, every call
// is allowed: most tests are about something else. A nil leaves the key out.
func configText(t testing.TB, servers map[string]any, more map[string]any) string {
	t.Helper()
	all := map[string]any{"mcpServers": servers, "policy": map[string]any{"mode": "accept_all"}}
	for key, value := range more {
		all[key] = value
		if value == nil {
			delete(all, key)
		}
	}
	text, err := json.Marshal(taken(all, servers))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// child is the config entry of a scripted server over stdio. args are seen in its command line and mean nothing.
func child(s upstreamtest.Script, args ...string) map[string]any {
	command, _, variables := upstreamtest.Command(s)
	env := map[string]any{"GORACE": os.Getenv("GORACE")}
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		env[name] = strings.ReplaceAll(value, "${", "$${")
	}
	return map[string]any{"command": command, "args": args, "env": env}
}

// with is entry with one key more.
func with(entry map[string]any, key string, value any) map[string]any {
	entry[key] = value
	return entry
}

// wire is a client that writes and reads raw messages: over the stdio of a process, or over HTTP.
type wire struct {
	t       testing.TB
	version string // of the protocol
	can     string // what it can be asked for: its capabilities; "" is nothing
	ids     int

	stdin  io.WriteCloser // stdio; nil over HTTP
	stdout io.Closer      // likewise
	lines  chan string
	cmd    *exec.Cmd
	log    *syncBuffer

	url     string // HTTP
	session string
	headers []string // sent with every request, in pairs

	// refs makes the client call every tool through tool_call: by name, the selection_refs that it has found. Nil: it does not.
	refs map[string]string
}

func (w *wire) modern() bool { return w.version >= rev2026 }

func (w *wire) capabilities() string { return cmp.Or(w.can, "{}") }

// wireProcess starts cmd and speaks to it over its pipes. The process must end by itself once its stdin is closed.
func wireProcess(t testing.TB, cmd *exec.Cmd, version string) *wire {
	t.Helper()
	w := &wire{t: t, version: version, cmd: cmd, lines: make(chan string, 10000), log: &syncBuffer{}}
	var err error
	if w.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.stdout = stdout
	cmd.Stderr = w.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.lines)
		r := bufio.NewReaderSize(stdout, 64<<10)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				w.lines <- strings.TrimSuffix(line, "\n")
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			w.hangUp()
		}
		if t.Failed() {
			t.Logf("stderr:\n%s", w.log)
		}
	})
	return w
}

// wireHub runs a hub on config that serves stdio.
func wireHub(t testing.TB, config, version string, args ...string) *wire {
	t.Helper()
	return wireHubIn(t, t.TempDir(), config, version, args...)
}

// wireHubIn is wireHub in a directory where hubs may have been before.
func wireHubIn(t testing.TB, dir, config, version string, args ...string) *wire {
	t.Helper()
	file := filepath.Join(dir, "hub.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{"serve", "--config", file, "--log-format", "json"}, args...)...)
	cmd.Dir, cmd.Env = dir, scratchEnv(dir)
	return wireProcess(t, cmd, version)
}

// dies closes both pipes, as the end of a client does that is killed, and waits for the process.
func (w *wire) dies() {
	w.t.Helper()
	defer time.AfterFunc(patience, func() { _ = w.cmd.Process.Kill() }).Stop()
	_, _ = w.stdin.Close(), w.stdout.Close()
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("%s ended with %v", filepath.Base(w.cmd.Path), err)
	}
}

// hangUp ends the process over stdio, and waits for that.
func (w *wire) hangUp() {
	w.t.Helper()
	_ = w.stdin.Close()
	for range w.lines { // until it ends
	}
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("%s ended with %v", filepath.Base(w.cmd.Path), err)
	}
}

// wireHTTP speaks to the endpoint at url, with headers in pairs.
func wireHTTP(t testing.TB, url, version string, headers ...string) *wire {
	return &wire{t: t, version: version, url: url, headers: headers}
}

// write sends lines over stdio.
func (w *wire) write(lines ...string) {
	w.t.Helper()
	if _, err := io.WriteString(w.stdin, strings.Join(lines, "\n")+"\n"); err != nil {
		w.t.Fatalf("write %.200s: %v", lines[0], err)
	}
}

// next is the next message over stdio.
func (w *wire) next() string {
	w.t.Helper()
	timer := time.NewTimer(patience - 10*time.Second) // while a call that hangs does not run into the hub's own limit
	defer timer.Stop()
	select {
	case line, ok := <-w.lines:
		if !ok {
			w.t.Fatal("the server has closed its output")
		}
		return line
	case <-timer.C:
		_ = w.cmd.Process.Signal(syscall.SIGQUIT) // its log says where each of its goroutines is
		w.hangUp()
		w.t.Fatal("nothing came")
	}
	return ""
}

// params is a params object of these members, with what the revision wants in _meta. meta are the members of _meta.
func (w *wire) params(members, meta string) string {
	if w.modern() {
		meta = join(meta, clientMeta+w.capabilities())
	}
	if meta != "" {
		members = join(members, `"_meta":{`+meta+`}`)
	}
	return "{" + members + "}"
}

func join(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ",")
}

// rawRequest is one JSON-RPC message and what HTTP needs to know of it.
type rawRequest struct {
	id     string // as JSON; "" for a notification
	method string
	params string // "" for none
	name   string // of the tool, for tools/call
}

func (r rawRequest) text() string {
	id := ""
	if r.id != "" {
		id = `"id":` + r.id + `,`
	}
	if r.params == "" {
		return `{"jsonrpc":"2.0",` + id + `"method":"` + r.method + `"}`
	}
	return `{"jsonrpc":"2.0",` + id + `"method":"` + r.method + `","params":` + r.params + `}`
}

// send sends r and returns every message up to its response, which is the last one. list_changed is left out over stdio,
// where it may come at any time.
func (w *wire) send(r rawRequest) []string {
	w.t.Helper()
	if w.stdin == nil {
		_, _, messages := w.post(r)
		return messages
	}
	w.write(r.text())
	var all []string
	for {
		line := w.next()
		if strings.Contains(line, `"method":"notifications/tools/list_changed"`) {
			continue
		}
		all = append(all, line)
		if strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`+r.id+`,`) {
			return all
		}
	}
}

// newRequest is an HTTP request that carries r.
func (w *wire) newRequest(r rawRequest) *http.Request {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url, strings.NewReader(r.text()))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if w.modern() {
		req.Header.Set("Mcp-Method", r.method)
		if r.name != "" {
			req.Header.Set("Mcp-Name", r.name)
		}
	}
	w.setHeaders(req)
	return req
}

func (w *wire) setHeaders(req *http.Request) {
	if w.session != "" {
		req.Header.Set("Mcp-Session-Id", w.session)
	}
	if w.session != "" || w.modern() {
		req.Header.Set("Mcp-Protocol-Version", w.version)
	}
	for i := 0; i+1 < len(w.headers); i += 2 {
		req.Header.Set(w.headers[i], w.headers[i+1])
	}
}

// post sends r over HTTP and returns status, headers and the messages of the answer.
func (w *wire) post(r rawRequest) (int, http.Header, []string) {
	w.t.Helper()
	resp, err := http.DefaultClient.Do(w.newRequest(r))
	if err != nil {
		w.t.Fatalf("post %.200s: %v", r.text(), err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("read the answer to %.200s: %v", r.text(), err)
	}
	return resp.StatusCode, resp.Header, messagesOf(resp.Header, body)
}

// messagesOf are the messages of a response's body: of its events, or the body itself.
func messagesOf(h http.Header, body []byte) []string {
	if !strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		if len(body) == 0 {
			return nil
		}
		return []string{string(body)}
	}
	var messages []string
	for event := range strings.SplitSeq(string(body), "\n\n") {
		if text := eventData(event); text != "" {
			messages = append(messages, text)
		}
	}
	return messages
}

// eventData is the data of one server-sent event.
func eventData(event string) string {
	var data []string
	for line := range strings.SplitSeq(event, "\n") {
		if text, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, strings.TrimPrefix(text, " "))
		}
	}
	return strings.Join(data, "\n")
}

// listen opens the standing stream that list_changed comes on and returns its messages. Over stdio, and with r on
// 2026-07-28, w.write and w.next do.
func (w *wire) listen(req *http.Request) <-chan string {
	w.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("open a stream: %v, %v", resp, err)
	}
	messages := make(chan string, 100)
	read := make(chan struct{})
	w.t.Cleanup(func() {
		_ = resp.Body.Close()
		<-read
	})
	go func() {
		defer close(read)
		defer close(messages)
		r := bufio.NewReader(resp.Body)
		event := ""
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if event += line; line != "\n" {
				continue
			}
			if text := eventData(event); text != "" {
				messages <- text
			}
			event = ""
		}
	}()
	return messages
}

// await is the next message of a stream.
func await(t testing.TB, messages <-chan string) string {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case m, ok := <-messages:
		if !ok {
			t.Fatal("the stream has ended")
		}
		return m
	case <-timer.C:
		t.Fatal("nothing came")
	}
	return ""
}

// nextID is a fresh id.
func (w *wire) nextID() string {
	w.ids++
	return fmt.Sprint(w.ids)
}

// initialize is the first request of a client named client.
func (w *wire) initialize(client string) rawRequest {
	return rawRequest{id: w.nextID(), method: "initialize", params: `{"protocolVersion":"` + w.version +
		`","capabilities":` + w.capabilities() + `,"clientInfo":{"name":"` + client + `","version":"1"}}`}
}

var initialized = rawRequest{method: "notifications/initialized", params: "{}"}

// open does the handshake, where the revision has one.
func (w *wire) open() *wire {
	w.t.Helper()
	if w.modern() {
		return w
	}
	r := w.initialize("wire")
	if w.stdin != nil {
		w.write(r.text())
		if answer := w.next(); !strings.Contains(answer, `"result":`) {
			w.t.Fatalf("initialize answered %s", answer)
		}
		w.write(initialized.text())
		return w
	}
	status, h, messages := w.post(r)
	if w.session = h.Get("Mcp-Session-Id"); status != http.StatusOK || w.session == "" {
		w.t.Fatalf("initialize answered %d %v", status, messages)
	}
	if status, _, messages = w.post(initialized); status != http.StatusAccepted {
		w.t.Fatalf("initialized answered %d %v", status, messages)
	}
	return w
}

// call is the request for a tool; args is a JSON text and meta the members of _meta.
func (w *wire) call(name, args, meta string) rawRequest {
	name, args = w.through(name, args)
	members := join(`"name":`+quoted(name), `"arguments":`+args)
	return rawRequest{id: w.nextID(), method: "tools/call", params: w.params(members, meta), name: name}
}

// through is a call of a client that calls deferred tools: it searches the tool first, once.
func (w *wire) through(name, args string) (string, string) {
	if w.refs == nil {
		return name, args
	}
	w.t.Helper()
	if w.refs[name] == "" {
		members := `"name":"tool_search","arguments":{"query":` + quoted("select:"+name) + `}`
		messages := w.send(rawRequest{id: w.nextID(), method: "tools/call", params: w.params(members, ""), name: "tool_search"})
		found := foundBy(w.t, w.resultOf(messages[len(messages)-1]))
		if len(found.Matches) != 1 {
			w.t.Fatalf("%s is not found: %s", name, messages)
		}
		w.refs[name] = found.Matches[0].Ref
	}
	return "tool_call", `{"arguments":` + args + `,"selection_ref":` + quoted(w.refs[name]) + `,"name":` + quoted(name) + `}`
}

// load searches a tool by its name, with its declaration.
func (w *wire) load(name string) searched {
	w.t.Helper()
	members := `"name":"tool_search","arguments":{"query":` + quoted("select:"+name) + `}`
	messages := w.send(rawRequest{id: w.nextID(), method: "tools/call", params: w.params(members, ""), name: "tool_search"})
	return foundBy(w.t, w.resultOf(messages[len(messages)-1]))
}

// searched is what a test reads of a tool_search_result.
type searched struct {
	Matches []struct {
		Name        string
		Ref         string `json:"selection_ref"`
		Declaration json.RawMessage
	}
	Total   int                     `json:"total_deferred_tools"`
	Pending []string                `json:"pending_providers"`
	Next    struct{ Action string } `json:"next_action"`
}

// foundBy is the tool_search_result in a result of tool_search.
func foundBy(t testing.TB, result string) (s searched) {
	t.Helper()
	structured, ok := memberOf(t, result, "structuredContent")
	if !ok {
		t.Fatalf("no tool_search_result: %.2000s", result)
	}
	mustDecode(t, structured, &s)
	return s
}

// result calls a tool and returns the result, raw.
func (w *wire) result(name, args, meta string) string {
	w.t.Helper()
	messages := w.send(w.call(name, args, meta))
	return w.resultOf(messages[len(messages)-1])
}

func (w *wire) resultOf(response string) string {
	w.t.Helper()
	result, ok := memberOf(w.t, response, "result")
	if !ok {
		w.t.Fatalf("there is no result in %.2000s", response)
	}
	return result
}

// tools are the declarations of all tools by name, raw.
func (w *wire) tools() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for cursor := ""; ; {
		members := ""
		if cursor != "" {
			members = `"cursor":` + cursor
		}
		messages := w.send(rawRequest{id: w.nextID(), method: "tools/list", params: w.params(members, "")})
		result := w.resultOf(messages[len(messages)-1])
		var page struct{ Tools []json.RawMessage }
		mustDecode(w.t, result, &page)
		for _, d := range page.Tools {
			var head struct{ Name string }
			mustDecode(w.t, string(d), &head)
			all[head.Name] = string(d)
		}
		next, more := memberOf(w.t, result, "nextCursor")
		if !more {
			return all
		}
		cursor = next
	}
}

// ready waits until tools of these names are listed. It is woken by list_changed, so it must be told of changes: over
// stdio only.
func (w *wire) ready(names ...string) {
	w.t.Helper()
	if w.modern() {
		w.write(rawRequest{id: `"ready"`, method: "subscriptions/listen",
			params: w.params(`"notifications":{"toolsListChanged":true}`, "")}.text())
		if ack := w.next(); !strings.Contains(ack, "acknowledged") {
			w.t.Fatalf("listening was answered with %s", ack)
		}
	}
	for {
		w.ids++
		id := fmt.Sprintf(`"ready-%d"`, w.ids)
		w.write(rawRequest{id: id, method: "tools/list", params: w.params("", "")}.text())
		line, changed := w.next(), false
		for !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`+id+`,`) {
			changed = changed || strings.Contains(line, "notifications/tools/list_changed")
			line = w.next()
		}
		missing := false
		for _, name := range names {
			missing = missing || !strings.Contains(line, `"name":`+quoted(name))
		}
		if !missing {
			return
		}
		for !changed { // it may have been told of before this list, which lacks it, came
			changed = strings.Contains(w.next(), "notifications/tools/list_changed")
		}
	}
}

// syncBuffer is a buffer that a process writes to while a test reads it.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

//go:build e2e

package cli

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// everythingWays are the ways to server-everything, as entries of a config.
func everythingWays(t *testing.T) map[string]map[string]any {
	t.Helper()
	dir := os.Getenv(npmDir)
	if dir == "" {
		t.Skip(npmDir + " names no directory with @modelcontextprotocol/server-everything")
	}
	program, err := filepath.Abs(filepath.Join(dir, "node_modules", ".bin", "mcp-server-everything"))
	if err != nil {
		t.Fatal(err)
	}
	own := func(entry map[string]any) map[string]any { return with(entry, "isolation", "session") }
	address := everythingOver(t, program, "streamableHttp") + "/mcp"
	return map[string]map[string]any{
		"stdio":  own(map[string]any{"command": program, "args": []string{"stdio"}, "timeout": "2m"}),
		"sse":    own(map[string]any{"type": "sse", "url": everythingOver(t, program, "sse") + "/sse"}),
		"http":   own(map[string]any{"type": "http", "url": address}),
		"shared": {"type": "http", "url": address},
	}
}

// everythingOver starts server-everything on a port and returns its URL.
func everythingOver(t *testing.T, program, way string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	cmd := exec.Command(program, way)
	cmd.Env = append(scratchEnv(t.TempDir()), "PORT="+port)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	listening, read := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	go func() {
		defer close(read)
		lines, said := bufio.NewScanner(stderr), false
		for lines.Scan() {
			if !said && strings.Contains(lines.Text(), " on port ") {
				said = true
				close(listening)
			}
		}
	}()
	select {
	case <-listening:
	case <-read:
		t.Fatalf("server-everything does not serve %s", way)
	}
	return "http://127.0.0.1:" + port
}

// TestPublishedServersEverything uses every feature of server-everything, by every way to it, from clients of both
// generations.
func TestPublishedServersEverything(t *testing.T) {
	t.Parallel()
	for way, entry := range everythingWays(t) {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			hub := startHub(t, "hub.json", configText(t, map[string]any{"everything": entry}, nil))
			for _, version := range []string{rev2025, rev2026} {
				e := &everythingClient{t: t, wire: wireHTTP(t, hub.url+"/mcp", version).able().open(), shared: way == "shared"}
				e.t.Logf("%s to client %s", way, version)
				e.listen()
				e.tools()
				e.questions()
				e.research()
				e.resources()
				e.prompts()
				e.updates()
				e.logs()
			}
		})
	}
}

// everythingClient is a client of server-everything behind a hub.
type everythingClient struct {
	t        *testing.T
	wire     *wire
	shared   bool          // it is one connection for all clients
	standing <-chan string // what belongs to no call
}

// ask makes a request and returns the response.
func (e *everythingClient) ask(method, name, members string) string {
	e.t.Helper()
	messages := e.wire.send(rawRequest{id: e.wire.nextID(), method: method, name: name, params: e.wire.params(members, "")})
	return messages[len(messages)-1]
}

// call calls a tool and answers what it is asked.
func (e *everythingClient) call(tool, args string) (response string, x *exchange) {
	e.t.Helper()
	x = &exchange{w: e.wire, meta: `"progressToken":"p"`, answer: func(_ int, q asked) string {
		switch {
		case q.method == "roots/list":
			return `{"roots":[{"uri":"file:///home/ann","name":"Home of Ann"}]}`
		case q.method == "sampling/createMessage":
			return `{"role":"assistant","model":"m","content":{"type":"text","text":"sampled <é>"}}`
		case strings.Contains(q.params, `"mode":"url"`):
			return `{"action":"accept"}`
		}
		return `{"action":"accept","content":{"name":"Ann <é>","check":true}}`
	}}
	return x.call("mcp.everything."+tool, args), x
}

// wants holds that a response has all of these parts.
func (e *everythingClient) wants(what, response string, parts ...string) {
	e.t.Helper()
	for _, part := range parts {
		if !strings.Contains(response, part) {
			e.t.Errorf("%s: %s answered %.1500s\nwant %s", e.wire.version, what, response, part)
		}
	}
}

// zipped is the name of a resource that the client has the server add. No other client's is: one of the same name in
// another session takes this one's away, because server-everything keeps a single list of them.
func (e *everythingClient) zipped() string {
	return fmt.Sprintf("of-%s-%t.gz", e.wire.version, e.shared)
}

func (e *everythingClient) tools() {
	e.t.Helper()
	for _, c := range []struct {
		tool, args string
		want       []string
	}{
		{"echo", `{"message":"Grüße <😀>"}`, []string{`Grüße <😀>`}},
		{"get-sum", `{"a":2,"b":40}`, []string{`42`}},
		{"get-env", `{}`, []string{`PATH`}},
		{"get-annotated-message", `{"messageType":"error","includeImage":true}`, []string{`"priority":1`, `"audience":["user","assistant"]`, `image/png`}},
		{"get-resource-links", `{"count":2}`, []string{`"type":"resource_link"`, `demo://resource/dynamic/text/2`, `demo://resource/dynamic/blob/1`}},
		{"get-resource-reference", `{"resourceType":"Blob","resourceId":7}`, []string{`"type":"resource"`, `demo://resource/dynamic/blob/7`}},
		{"get-structured-content", `{"location":"Chicago"}`, []string{`"structuredContent":{`, `"temperature":`}},
		{"get-tiny-image", `{}`, []string{`"type":"image"`, `image/png`}},
		{"gzip-file-as-resource", `{"name":` + quoted(e.zipped()) + `,"data":"data:text/plain,hello","outputType":"resourceLink"}`,
			[]string{`"type":"resource_link"`, `demo://resource/session/` + e.zipped()}},
	} {
		response, _ := e.call(c.tool, c.args)
		e.wants(c.tool, response, c.want...)
	}
	if e.shared { // a connection of one's own is not what the hub lists
		e.awaitNote("notifications/resources/list_changed")
	}
	response, x := e.call("trigger-long-running-operation", `{"duration":0.4,"steps":4}`)
	e.wants("trigger-long-running-operation", response, `"status":"succeeded"`)
	var reports []string
	for _, n := range x.notes {
		if strings.Contains(n, "notifications/progress") {
			reports = append(reports, n)
		}
	}
	for i, n := range reports {
		e.wants("progress", n, `"progressToken":"p"`, fmt.Sprintf(`"progress":%d`, i+1), `"total":4`)
	}
	if len(reports) != 4 {
		e.t.Errorf("%d reports of 4: %q", len(reports), x.notes)
	}
}

func (e *everythingClient) questions() {
	e.t.Helper()
	for _, c := range []struct {
		tool, args, method string
		asked              []string
		want               []string
	}{
		{"trigger-elicitation-request", `{}`, "elicitation/create",
			[]string{`"[everything] Please provide inputs`, `"requestedSchema":{`}, []string{`Ann <é>`}},
		{"trigger-url-elicitation", `{"url":"https://example.com/?a=1&b=2","message":"Sign in","elicitationId":"e1"}`, "elicitation/create",
			[]string{`"mode":"url"`, `"[everything] Sign in"`, `https://example.com/?a=1&b=2`, `"e1"`}, []string{`User completed the URL elicitation`}},
		{"trigger-sampling-request", `{"prompt":"say <é>","maxTokens":7}`, "sampling/createMessage",
			[]string{`say <é>`, `"maxTokens":7`}, []string{`sampled <é>`}},
		{"get-roots-list", `{}`, "", nil, []string{`Home of Ann`}},
	} {
		if c.tool == "get-roots-list" && e.shared {
			// It asks where nobody could tell whom, and is told so.
			c.want = []string{`no roots are currently configured`}
		}
		response, x := e.call(c.tool, c.args)
		e.wants(c.tool, response, c.want...)
		found := c.method == ""
		for _, q := range x.asked {
			if q.method == c.method {
				found = true
				e.wants("the question of "+c.tool, q.params, c.asked...)
			}
		}
		if !found {
			e.t.Errorf("%s: %s asked %q", e.wire.version, c.tool, x.asked)
		}
	}
	args := `{"url":"https://example.com/` + e.wire.version + `","errorPath":true}`
	response, _ := e.call("trigger-url-elicitation", args)
	e.wants("an elicitation that is required", response, `"code":-32042`, `"[everything] Open this link`, `https://modelcontextprotocol.io`)
	response, _ = e.call("trigger-url-elicitation", args)
	e.wants("the same call again", response, `User completed the URL elicitation`)
}

func (e *everythingClient) resources() {
	e.t.Helper()
	e.wants("resources/list", e.ask("resources/list", "", ""), `demo://resource/static/document/features.md`, `text/markdown`)
	e.wants("resources/templates/list", e.ask("resources/templates/list", "", ""), `demo://resource/dynamic/text/{resourceId}`,
		`demo://resource/dynamic/blob/{resourceId}`)
	for uri, want := range map[string]string{
		"demo://resource/static/document/features.md": `"mimeType":"text/markdown"`,
		"demo://resource/dynamic/text/11":             `Resource 11: This is a plaintext resource`,
		"demo://resource/dynamic/blob/12":             `"blob":"`,
		"demo://resource/session/" + e.zipped():       `"mimeType":"application/gzip"`, // that a tool's result has named
		"demo://resource/dynamic/text/none":           `"error":`,
	} {
		e.wants(uri, e.ask("resources/read", uri, `"uri":`+quoted(uri)), want)
	}
}

func (e *everythingClient) prompts() {
	e.t.Helper()
	e.wants("prompts/list", e.ask("prompts/list", "", ""), `mcp.everything.simple-prompt`, `mcp.everything.args-prompt`,
		`mcp.everything.completable-prompt`, `mcp.everything.resource-prompt`)
	for _, c := range []struct{ name, args, want string }{
		{"simple-prompt", `{}`, `This is a simple prompt`},
		{"args-prompt", `{"city":"Köln <1>","state":"NW"}`, `What's weather in Köln <1>, NW?`},
		{"completable-prompt", `{"department":"Sales","name":"Eve"}`, `Please promote Eve to the head of the Sales team`},
		{"resource-prompt", `{"resourceType":"Text","resourceId":"3"}`, `demo://resource/dynamic/text/3`},
		{"args-prompt", `{}`, `"error":`},
	} {
		name := "mcp.everything." + c.name
		e.wants(c.name, e.ask("prompts/get", name, `"name":`+quoted(name)+`,"arguments":`+c.args), c.want)
	}
	prompt := `"ref":{"type":"ref/prompt","name":"mcp.everything.completable-prompt"}`
	for _, c := range []struct{ members, want string }{
		{prompt + `,"argument":{"name":"department","value":"S"}`, `"values":["Sales","Support"]`},
		{prompt + `,"argument":{"name":"name","value":"E"},"context":{"arguments":{"department":"Sales"}}`, `"values":["Eve"]`},
		{`"ref":{"type":"ref/resource","uri":"demo://resource/dynamic/text/{resourceId}"},"argument":{"name":"resourceId","value":"42"}`,
			`"values":["42"]`},
	} {
		e.wants("completion/complete", e.ask("completion/complete", "", c.members), c.want)
	}
}

// listen opens the stream of what belongs to no call, and subscribes.
func (e *everythingClient) listen() {
	e.t.Helper()
	if e.wire.modern() {
		e.standing = e.wire.listen(e.wire.newRequest(rawRequest{id: `"standing"`, method: "subscriptions/listen",
			params: e.wire.params(`"notifications":{"resourcesListChanged":true,"resourceSubscriptions":[`+quoted(watched)+`]}`, "")}))
		e.wants("subscriptions/listen", await(e.t, e.standing), "acknowledged", watched, `"resourcesListChanged":true`)
		return
	}
	e.standing = e.wire.standing()
	e.wants("resources/subscribe", e.ask("resources/subscribe", "", `"uri":`+quoted(watched)), `"result":{}`)
	e.wants("logging/setLevel", e.ask("logging/setLevel", "", `"level":"debug"`), `"result":{}`)
}

// updates has the server tell of a resource.
func (e *everythingClient) updates() {
	e.t.Helper()
	response, _ := e.call("toggle-subscriber-updates", `{}`)
	e.wants("toggle-subscriber-updates", response, `Started simulated resource updated`)
	e.awaitNote("notifications/resources/updated", watched)
	response, _ = e.call("toggle-subscriber-updates", `{}`)
	e.wants("toggle-subscriber-updates", response, `Stopped simulated resource updates`)
	if !e.wire.modern() {
		e.wants("resources/unsubscribe", e.ask("resources/unsubscribe", "", `"uri":`+quoted(watched)), `"result":{}`)
	}
}

// awaitNote waits for a notification that has all parts.
func (e *everythingClient) awaitNote(parts ...string) {
	e.t.Helper()
	for {
		m, missing := await(e.t, e.standing), false
		for _, part := range parts {
			missing = missing || !strings.Contains(m, part)
		}
		if !missing {
			return
		}
	}
}

// logs has the server log something. Clients of 2026-07-28 are told only what belongs to their requests, and this does not.
func (e *everythingClient) logs() {
	e.t.Helper()
	if e.wire.modern() {
		return
	}
	response, _ := e.call("toggle-simulated-logging", `{}`)
	e.wants("toggle-simulated-logging", response, `Started simulated, random-leveled logging`)
	e.awaitNote("notifications/message", `"logger":"everything"`, `level`)
	response, _ = e.call("toggle-simulated-logging", `{}`)
	e.wants("toggle-simulated-logging", response, `Stopped simulated logging`)
}

// watched is the resource that clients are told of.
const watched = "demo://resource/dynamic/text/1"

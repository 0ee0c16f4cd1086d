package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// transcriptServers are what the clients of the transcripts find: the demo server and a scripted one, a few tools of each.
func transcriptServers(t testing.TB) string {
	t.Helper()
	script := upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("raw"), upstreamtest.Tool("fail"),
		upstreamtest.Tool("progress")}}
	return configText(t, map[string]any{
		"demo": map[string]any{"command": "mcp-toolhub", "args": []string{"demo-server"},
			"env": map[string]any{"GORACE": os.Getenv("GORACE")}},
		"far": child(script),
	}, map[string]any{"profiles": map[string]any{"default": map[string]any{
		"include": []string{"mcp.demo.add", "mcp.demo.countdown", "mcp.demo.fail", "mcp.demo.grow", "mcp.demo.sprout_*", "mcp.far.*"},
	}}})
}

// TestTranscripts holds what goes over the wire, message by message, against testdata/transcripts.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025June, rev2025, rev2026} {
		t.Run("stdio "+version, func(t *testing.T) {
			t.Parallel()
			// A hub before it finds out what the servers offer, so that what the first answer says does not depend on how
			// quickly they start.
			dir := t.TempDir()
			before := wireHubIn(t, dir, transcriptServers(t), version)
			before.open().awaitTools("mcp.demo.grow", "mcp.far.fail")
			before.hangUp()
			w := wireHubIn(t, dir, transcriptServers(t), version)
			s := &scribe{t: t, wire: w}
			s.hello()
			w.awaitTools("mcp.demo.grow", "mcp.far.fail")
			s.play()
			s.compare("stdio-" + version)
		})
		t.Run("http "+version, func(t *testing.T) {
			t.Parallel()
			hub := startHub(t, "hub.json", transcriptServers(t))
			s := &scribe{t: t, wire: wireHTTP(t, hub.url+"/mcp", version)}
			s.hello()
			s.play()
			s.compare("http-" + version)
		})
	}
}

// awaitTools lists until tools of these names are there.
func (w *wire) awaitTools(names ...string) {
	w.t.Helper()
	for {
		missing, all := false, w.tools()
		for _, name := range names {
			missing = missing || all[name] == ""
		}
		if !missing {
			return
		}
	}
}

// nextWith is the next message over stdio that holds part.
func (w *wire) nextWith(part string) string {
	w.t.Helper()
	for {
		if m := w.next(); strings.Contains(m, part) {
			return m
		}
	}
}

// scribe is a client that writes down what it sends and what comes back.
type scribe struct {
	t    *testing.T
	wire *wire
	text strings.Builder
	last int // the id of the last request
	note <-chan string
}

func (s *scribe) title(what string) { fmt.Fprintf(&s.text, "\n# %s\n", what) }

func (s *scribe) down(sign, text string) { fmt.Fprintf(&s.text, "%s %s\n", sign, text) }

// request makes the next request of the transcript.
func (s *scribe) request(method, name, members, meta string) rawRequest {
	s.last++
	return rawRequest{id: fmt.Sprint(s.last), method: method, name: name, params: s.wire.params(members, meta)}
}

func (s *scribe) callTool(name, args, meta string) rawRequest {
	return s.request("tools/call", name, join(`"name":`+quoted(name), `"arguments":`+args), meta)
}

// do sends r and writes down what comes back up to the response.
func (s *scribe) do(r rawRequest) {
	s.t.Helper()
	s.down(">", r.text())
	if s.wire.stdin != nil {
		for _, m := range s.wire.send(r) {
			s.down("<", m)
		}
		return
	}
	status, h, messages := s.wire.post(r)
	s.head(status, h)
	for _, m := range messages {
		s.down("<", m)
	}
	if id := h.Get("Mcp-Session-Id"); id != "" {
		s.wire.session = id
	}
}

// head writes down what HTTP says of an answer.
func (s *scribe) head(status int, h http.Header) {
	session := ""
	if h.Get("Mcp-Session-Id") != "" {
		session = ", Mcp-Session-Id"
	}
	s.down("<", strings.TrimSpace(fmt.Sprintf("HTTP %d %s%s", status, h.Get("Content-Type"), session)))
}

// hello is the beginning of every conversation.
func (s *scribe) hello() {
	s.t.Helper()
	if s.wire.modern() {
		s.title("discover")
		s.do(s.request("server/discover", "", "", ""))
		return
	}
	s.title("initialize")
	s.last++
	r := s.wire.initialize("transcript")
	r.id = fmt.Sprint(s.last)
	s.do(r)
	s.down(">", initialized.text())
	if s.wire.stdin != nil {
		s.wire.write(initialized.text())
		return
	}
	status, h, _ := s.wire.post(initialized)
	s.head(status, h)
}

// play is the conversation once the hub is known.
func (s *scribe) play() {
	s.t.Helper()
	s.title("list")
	s.do(s.request("tools/list", "", "", ""))
	s.title("call")
	s.do(s.callTool("mcp.demo.add", `{"b":2.0,"a":1e0}`, ""))
	s.do(s.callTool("mcp.far.raw", `{"result":{"z":1e400,"content":[{"type":"hologram","text":"\u003c<"}],`+
		`"_meta":{"k":12345678901234567890},"a":null}}`, ""))
	s.title("call by another name")
	s.do(s.callTool("demo__add", `{"a":1,"b":1}`, ""))
	s.title("error: of the tool, of the arguments, of the server, of the name, of the request")
	s.do(s.callTool("mcp.demo.fail", `{"message":"no <luck>"}`, ""))
	s.do(s.callTool("mcp.demo.add", `{"a":"one","b":2}`, ""))
	s.do(s.callTool("mcp.far.fail", `{"error":{"data":{"z":1.50},"code":-32042,"message":"<no>","more":1}}`, ""))
	s.do(s.callTool("mcp.far.nothing", `{}`, ""))
	s.do(s.request("tools/call", "mcp.demo.add", `"name":"mcp.demo.add","arguments":[1]`, ""))
	s.do(s.request("tools/none", "", "", ""))
	s.title("progress")
	s.do(s.callTool("mcp.far.progress", `{"n":2}`, `"progressToken":"p\u0031"`))
	s.do(s.callTool("mcp.demo.countdown", `{"steps":2,"delay_ms":0}`, `"progressToken":1.50`))
	s.title("cancel")
	s.cancel()
	s.title("list_changed")
	s.changes()
}

// cancel begins a call, cancels it once it has reported progress, and shows that the hub is there.
func (s *scribe) cancel() {
	s.t.Helper()
	r := s.callTool("mcp.demo.countdown", `{"steps":2,"delay_ms":60000}`, `"progressToken":"c"`)
	note := rawRequest{method: "notifications/cancelled",
		params: s.wire.params(`"requestId":`+r.id+`,"reason":"changed my mind"`, "")}
	s.down(">", r.text())
	if s.wire.stdin != nil {
		s.wire.write(r.text())
		s.down("<", s.wire.nextWith("notifications/progress"))
		s.down(">", note.text())
		s.wire.write(note.text()) // a cancelled call is not answered
	} else {
		s.cancelHTTP(r, note)
	}
	s.do(s.request("tools/list", "", `"cursor":"YWZ0ZXI6bWNwLmRlbW8uZ3Jvdw"`, ""))
}

// cancelHTTP cancels by notification in a session, and by leaving where there is none.
func (s *scribe) cancelHTTP(r, note rawRequest) {
	s.t.Helper()
	ctx, leave := context.WithCancel(s.t.Context())
	defer leave()
	resp, err := http.DefaultClient.Do(s.wire.newRequest(r).WithContext(ctx))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	s.head(resp.StatusCode, resp.Header)
	body, event := bufio.NewReader(resp.Body), ""
	for !strings.HasSuffix(event, "\n\n") {
		line, err := body.ReadString('\n')
		if err != nil {
			s.t.Fatal(err)
		}
		event += line
	}
	s.down("<", eventData(event))
	if s.wire.modern() {
		s.down(">", "(closes the connection)")
		return
	}
	s.down(">", note.text())
	status, h, _ := s.wire.post(note)
	s.head(status, h)
	rest, err := io.ReadAll(body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.down("<", "(the end of the stream)"+eventData(string(rest)))
}

// changes makes the demo server grow a tool and waits until the hub tells of it.
func (s *scribe) changes() {
	s.t.Helper()
	listen := s.request("subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`, "")
	switch {
	case s.wire.stdin == nil && s.wire.modern():
		s.down(">", listen.text())
		s.note = s.wire.listen(s.wire.newRequest(listen))
		s.down("<", await(s.t, s.note))
	case s.wire.stdin == nil:
		s.down(">", "GET, Mcp-Session-Id")
		req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.wire.url, nil)
		if err != nil {
			s.t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		s.wire.setHeaders(req)
		s.note = s.wire.listen(req)
	case s.wire.modern():
		s.down(">", listen.text())
		s.wire.write(listen.text())
		s.down("<", s.wire.next())
	}
	grow := s.callTool("mcp.demo.grow", `{}`, "")
	if s.note != nil {
		s.do(grow)
		for s.down("<", await(s.t, s.note)); s.wire.tools()["mcp.demo.sprout_1"] == ""; {
			await(s.t, s.note) // what came first told of the servers' start
		}
	} else {
		s.growOverStdio(grow)
	}
	s.do(s.callTool("mcp.demo.sprout_1", `{}`, ""))
}

// growOverStdio reads the response and the notification, whichever comes first, and writes the response down first.
func (s *scribe) growOverStdio(grow rawRequest) {
	s.t.Helper()
	const changed = "notifications/tools/list_changed"
	s.down(">", grow.text())
	s.wire.write(grow.text())
	response, note := "", ""
	for response == "" || note == "" {
		if m := s.wire.next(); strings.Contains(m, changed) {
			note = m
		} else {
			response = m
		}
	}
	s.down("<", response)
	for s.down("<", note); !s.grown(); {
		s.wire.nextWith(changed)
	}
}

// grown reports whether the hub lists what the demo server has grown; the transcript does not show the question.
func (s *scribe) grown() bool {
	list := rawRequest{id: `"grown"`, method: "tools/list", params: s.wire.params("", "")}
	s.wire.write(list.text())
	return strings.Contains(s.wire.nextWith(`"id":"grown"`), "mcp.demo.sprout_1")
}

var invocationID = regexp.MustCompile(`inv_[0-9a-z]{26}`)

// compare holds the transcript against its golden file.
func (s *scribe) compare(name string) {
	s.t.Helper()
	got := strings.TrimPrefix(invocationID.ReplaceAllString(s.text.String(), "inv_ID"), "\n")
	file := filepath.Join("..", "..", "..", "..", "testdata", "transcripts", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatalf("%v: write it with go test ./cmd/mcp-toolhub/internal/cli -run TestTranscripts -update", err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := "(nothing)", "(nothing)"
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			s.t.Fatalf("%s:%d\n got %s\nwant %s", file, i+1, g, w)
		}
	}
}

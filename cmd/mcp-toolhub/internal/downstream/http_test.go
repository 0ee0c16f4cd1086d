package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func TestHTTPTranscript(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			url := serve(t, newServer(t, Config{Version: "v"}, &far{})) + "/mcp"
			id := open(t, url, version)
			in := []string{headerSession, id, headerVersion, version}
			status, _, got := post(t, url,
				`{"jsonrpc":"2.0","id":1.50,"method":"tools/call","params":{"name":"mcp.s.echo","arguments":{"b":1.0,"a":"\u0061"},`+
					`"_meta":{"mine":1,"progressToken":"p"}}}`, in...)
			wantHTTP(t, status, got, 200,
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"x":1.50}}`,
				`{"jsonrpc":"2.0","id":1.50,"result":{"z":1e400,"content":[{"type":"text","text":"\u003c<"}],`+
					`"arguments":{"b":1.0,"a":"\u0061"},"meta":{"mine":1},`+metaOK+`}}`)
			status, h, got := post(t, url, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, in...)
			wantHTTP(t, status, got, 200, `{"jsonrpc":"2.0","id":2,"result":{"tools":[`+
				`{"x-unknown":12345678901234567890,"name":"mcp.s.echo","inputSchema":{"type":"object"}},`+
				`{"x-unknown":12345678901234567890,"name":"mcp.s.slow","inputSchema":{"type":"object"}}]}}`)
			if h.Get("Content-Type") != "application/json" {
				t.Errorf("a lone result came as %q", h.Get("Content-Type"))
			}
			status, _, got = post(t, url, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nope"}}`,
				in...)
			wantHTTP(t, status, got, 200,
				`{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"unknown tool \"nope\": list the tools and use a name from there","data":{"toolhub/invocation":{"invocation_id":"INV"}}}}`)
			status, _, got = post(t, url, `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, in...)
			wantHTTP(t, status, got, 200, `{"jsonrpc":"2.0","id":1e3,"result":{}}`)
		})
	}
}

func wantHTTP(t *testing.T, status int, got []string, wantStatus int, want ...string) {
	t.Helper()
	if status != wantStatus || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("status %d\ngot  %s\nwant %s", status, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// modernCall is a POST on 2026-07-28 with the headers that belong to it.
func modernCall(t *testing.T, url, id, name, rest string, headers ...string) (int, []string) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"_meta":{%s%s}}}`, id, name,
		modernMeta, rest)
	status, _, got := post(t, url, body, append([]string{headerVersion, "2026-07-28", headerMethod, "tools/call",
		headerName, name}, headers...)...)
	return status, got
}

func TestHTTPModernTranscript(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, Config{Version: "v"}, &far{})) + "/mcp"
	status, h, got := post(t, url, `{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{`+
		modernMeta+`}}}`,
		headerVersion, "2026-07-28", headerMethod, "server/discover")
	if status != 200 || len(got) != 1 || !strings.Contains(got[0], `"supportedVersions":["2026-07-28"`) ||
		h.Get(headerSession) != "" {
		t.Fatalf("discover: %d %v %v", status, h, got)
	}
	status, got = modernCall(t, url, "12345678901234567890", "mcp.s.echo", `,"progressToken":7,"x":[1]`)
	wantHTTP(t, status, got, 200,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"x":1.50}}`,
		`{"jsonrpc":"2.0","id":12345678901234567890,"result":{"z":1e400,"content":[{"type":"text","text":"\u003c<"}],"arguments":{},"meta":{"x":[1]},`+
			`"_meta":{"toolhub/invocation":{"invocation_id":"INV","status":"succeeded"},`+serverInfoMember+
			`},"resultType":"complete"}}`)
	status, got = modernCall(t, url, "1", "nope", "")
	wantHTTP(t, status, got, 400,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool \"nope\": list the tools and use a name from there","data":{"toolhub/invocation":{"invocation_id":"INV"}}}}`)
	status, got = modernCall(t, url, "1", "mcp.s.echo", "", headerName, "=?base64?bWNwLnMuZWNobw==?=")
	if status != 200 {
		t.Errorf("an encoded name was answered with %d %v", status, got)
	}
	for name, headers := range map[string][]string{
		"no method": {headerMethod, ""}, "wrong method": {headerMethod, "tools/list"}, "no name": {headerName, ""},
		"wrong name": {headerName, "mcp.s.slow"}, "other version": {headerVersion, "2026-07-29"},
		"no version": {headerVersion, ""},
	} {
		status, got = modernCall(t, url, "1", "mcp.s.echo", "", headers...)
		if status != 400 || len(got) != 1 || !strings.Contains(got[0], `"code":-32020`) {
			t.Errorf("%s: %d %v", name, status, got)
		}
	}
}

func TestTheDoorIsGuarded(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, Config{HTTP: HTTPConfig{MaxBodyBytes: 2000,
		AllowedOrigins: []string{"https://app.example"},
		AllowedHosts:   []string{"hub.example"}}}, &far{})) + "/mcp"
	self := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
	init := fmt.Sprintf(initialize, "2025-11-25")
	for _, c := range []struct {
		name    string
		body    string
		headers []string
		status  int
	}{
		{"own", init, nil, 200},
		{"foreign origin", init, []string{"Origin", "https://evil.example"}, 403},
		{"null origin", init, []string{"Origin", "null"}, 403},
		{"loopback origin of another port", init, []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"allowed origin", init, []string{"Origin", "https://app.example"}, 200},
		{"own origin", init, []string{"Origin", "http://" + self}, 200},
		{"foreign host", init, []string{"Host", "evil.example"}, 403},
		{"host that begins like loopback", init, []string{"Host", "127.0.0.1.evil.example"}, 403},
		{"allowed host", init, []string{"Host", "hub.example"}, 200},
		{"localhost", init, []string{"Host", "localhost:8080"}, 200},
		{"not JSON", init, []string{"Content-Type", "text/plain"}, 415},
		{"no content type", init, []string{"Content-Type", ""}, 415},
		{"no stream accepted", init, []string{"Accept", "application/json"}, 200},
		{"streams alone accepted", init, []string{"Accept", "text/event-stream"}, 200},
		{"nothing of both accepted", init, []string{"Accept", "text/html"}, 400},
		{"too large", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 2000) + `"}}`,
			nil, 413},
		{"broken", `{`, nil, 400},
		{"call without session", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil, 400},
		{"unknown session", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{headerSession, "x"}, 404},
		{"unknown old version", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []string{headerVersion, "2020-01-01"}, 400},
	} {
		status, h, got := post(t, url, c.body, c.headers...)
		if status != c.status {
			t.Errorf("%s: status %d, want %d: %v", c.name, status, c.status, got)
		}
		if h.Get("Access-Control-Allow-Origin") == "*" {
			t.Errorf("%s: any origin is allowed", c.name)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, url, nil)
	if resp, err := web().Do(req); err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %v, %v", resp, err)
	}
}

// TestABrowserIsToldWhatIsHere: a person who opens an address of the hub reads a sentence, also
// without a token. Programs get what they got before.
func TestABrowserIsToldWhatIsHere(t *testing.T) {
	t.Parallel()
	cfg := Config{Version: "v", Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: "the-token-of-ann-0123456789"}}}}
	url := serve(t, newServer(t, cfg, &far{}))
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, c := range []struct {
		path, accept string
		status       int
		want         string
	}{
		{"/", browser, 200, "connect to /mcp at this address"},
		{"/", "*/*", 200, "connect to /mcp at this address"},
		{"/mcp", browser, 405, "connect to this address"},
		{"/mcp/p/none", browser, 405, "connect to this address"},
		{"/mcp", "*/*", 401, "token"},
		{"/mcp", "text/event-stream, text/html", 401, "token"},
		{"/nothing", browser, 404, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", c.accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("GET %s, Accept %s: %s %s, %v", c.path, c.accept, resp.Status, body, err)
		}
	}
}

// TestDirectViews holds that the view of one server is behind the same door as the profiles, and
// has sessions of its own.
func TestDirectViews(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{}, &far{})
	base := serve(t, s)
	init := fmt.Sprintf(initialize, "2025-11-25")
	for _, c := range []struct {
		path    string
		headers []string
		status  int
	}{
		{"/mcp/s/s", nil, 200},
		{"/mcp/s/unknown", nil, 404},
		{"/mcp/s/", nil, 404},
		{"/mcp/s/s/s", nil, 404},
		{"/mcp/p/s%2Fs", nil, 404},
		{"/mcp/s/s", []string{"Origin", "https://evil.example"}, 403},
		{"/mcp/s/s", []string{"Host", "evil.example"}, 403},
	} {
		if status, _, got := post(t, base+c.path, init, c.headers...); status != c.status {
			t.Errorf("%s %q: status %d, want %d: %v", c.path, c.headers, status, c.status, got)
		}
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.echo"}}`
	id := open(t, base+"/mcp/s/s", "2025-11-25")
	if status, _, got := post(t, base+"/mcp/s/s", call, headerSession, id); status != 200 {
		t.Errorf("a call: %d %v", status, got)
	}
	if status, _, got := post(t, base+"/mcp", call, headerSession, id); status != 404 {
		t.Errorf("its session under another profile: %d %v", status, got)
	}
	s.Apply(Config{}, []string{"default"}) // the server is gone
	if status, _, got := post(t, base+"/mcp/s/s", call, headerSession, id); status != 404 || s.sessions.count() != 0 {
		t.Errorf("a call to a view that is gone: %d %v", status, got)
	}
	s.Apply(Config{HTTP: HTTPConfig{NoDirectViews: true}}, []string{"default", DirectView("s")})
	if status, _, got := post(t, base+"/mcp/s/s", init); status != 404 ||
		!strings.Contains(got[0], "hub.http.direct_views") {
		t.Errorf("direct views that are off: %d %v", status, got)
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	actors := make(chan string, 10)
	f := &far{}
	cfg := Config{Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: "secret-of-ann-0123"},
		{Name: "bob", Secret: "secret-of-bob-0123"}}}}
	f.execute = func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		actors <- "ran"
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	base := serve(t, newServer(t, cfg, f))
	url := base + "/mcp"
	init := fmt.Sprintf(initialize, "2025-11-25")
	for _, given := range []string{"", "Bearer ", "Bearer wrong", "Basic secret-of-ann-0123", "secret-of-ann-0123"} {
		status, h, _ := post(t, url, init, "Authorization", given)
		if status != 401 || !strings.HasPrefix(h.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("Authorization %q: status %d", given, status)
		}
	}
	ann, bob := []string{"Authorization", "Bearer secret-of-ann-0123"},
		[]string{"Authorization", "bearer secret-of-bob-0123"}
	id := open(t, url, "2025-11-25", ann...)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.echo"}}`
	if status, _, got := post(t, url, call, append(bob, headerSession, id)...); status != 404 || len(actors) != 0 {
		t.Errorf("bob in ann's session: %d %v", status, got)
	}
	if status, _, got := post(t, base+"/mcp/p/other", call, append(ann, headerSession, id)...); status != 404 {
		t.Errorf("a session under another profile: %d %v", status, got)
	}
	if status, _, got := post(t, url, call, append(ann, headerSession, id)...); status != 200 || len(actors) != 1 {
		t.Errorf("ann in her session: %d %v", status, got)
	}
	for header, want := range map[string]string{"": `{"status":"degraded"}`, ann[1]: `"it is down"`} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/health/ready", nil)
		req.Header.Set("Authorization", header)
		resp, err := web().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("health for %q: %s", header, body)
		}
	}
}

func TestCheckListen(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{"127.0.0.1:0": true, "localhost:1": true, "[::1]:1": true,
		"127.9.9.9:1": true,
		"0.0.0.0:1":   false, ":1": false, "192.0.2.1:1": false, "[::]:1": false, "example.com:1": false,
		"8808": false} {
		if err := (Config{}).CheckListen(address); (err == nil) != ok {
			t.Errorf("CheckListen(%q) = %v", address, err)
		}
	}
	if err := (Config{Auth: AuthConfig{Tokens: []Token{{}}}}).CheckListen("0.0.0.0:1"); err != nil {
		t.Errorf("with tokens: %v", err)
	}
}

func TestHTTPCancel(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string, 1), make(chan error, 1)
	url := serve(t, newServer(t, Config{}, &far{execute: blocking(began, ended)})) + "/mcp"
	id := open(t, url, "2025-11-25")
	var calling sync.WaitGroup
	calling.Go(func() {
		post(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.slow"}}`, headerSession, id)
	})
	<-began
	if status, _, _ := post(t, url, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		headerSession, id); status != 202 {
		t.Errorf("cancelled: status %d", status)
	}
	<-ended
	calling.Wait()
}

// A client of the sessionless protocol cancels by closing the connection; one of an older revision does not.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string, 1), make(chan error, 1)
	url := serve(t, newServer(t, Config{}, &far{execute: blocking(began, ended)})) + "/mcp"
	ctx, cancel := context.WithCancel(t.Context())
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.slow","_meta":{` + modernMeta + `}}}`
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	for _, h := range [][2]string{{"Content-Type", "application/json"}, {"Accept", "*/*"},
		{headerVersion, "2026-07-28"},
		{headerMethod, "tools/call"}, {headerName, "mcp.s.slow"}} {
		req.Header.Set(h[0], h[1])
	}
	go func() {
		<-began
		cancel()
	}()
	if _, err := web().Do(req); err == nil {
		t.Error("the request was answered")
	}
	<-ended
}

func TestDeleteEndsTheSessionAndItsCalls(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string, 1), make(chan error, 1)
	url := serve(t, newServer(t, Config{}, &far{execute: blocking(began, ended)})) + "/mcp"
	id := open(t, url, "2025-06-18")
	var calling sync.WaitGroup
	calling.Go(func() {
		post(t, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.slow"}}`, headerSession, id)
	})
	<-began
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	req.Header.Set(headerSession, id)
	resp, err := web().Do(req)
	if err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatalf("DELETE: %v, %v", resp, err)
	}
	<-ended
	calling.Wait()
	if status, _, _ := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, headerSession, id); status != 404 {
		t.Errorf("after DELETE: status %d", status)
	}
}

func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{HTTP: HTTPConfig{SessionIdle: time.Millisecond}}, &far{})
	url := serve(t, s) + "/mcp"
	if status, _, _ := post(t, url, fmt.Sprintf(initialize, "2025-11-25")); status != 200 {
		t.Fatalf("initialize: status %d", status)
	}
	deadline := time.Now().Add(time.Minute)
	for s.sessions.count() > 0 && time.Now().Before(deadline) {
		post(t, url, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	}
	if n := s.sessions.count(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestListChangedOverHTTP(t *testing.T) {
	t.Parallel()
	f := &far{}
	s := newServer(t, Config{}, f)
	url := serve(t, s) + "/mcp"
	id := open(t, url, "2025-11-25")
	legacy := stream(t, http.MethodGet, url, "", headerSession, id, headerVersion, "2025-11-25")
	modern := stream(t, http.MethodPost, url,
		`{"jsonrpc":"2.0","id":1e1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{`+modernMeta+`}}}`,
		headerVersion, "2026-07-28", headerMethod, "subscriptions/listen")
	if ack := <-modern; !strings.Contains(ack, "acknowledged") || !strings.Contains(ack, `subscriptionId":1e1`) {
		t.Fatalf("acknowledged with %s", ack)
	}
	s.Changed(Change{Profile: "default", Tools: true})
	for name, events := range map[string]<-chan string{"legacy": legacy, "modern": modern} {
		if got := <-events; !strings.Contains(got, "notifications/tools/list_changed") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// stream opens an event stream and returns its messages.
func stream(t *testing.T, method, url, body string, headers ...string) <-chan string {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := web().Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("open stream: %v, %v", resp, err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	events := make(chan string, 10)
	go func() {
		defer close(events)
		buf, text := make([]byte, 4096), ""
		for {
			n, err := resp.Body.Read(buf)
			text += string(buf[:n])
			for {
				line, rest, ok := strings.Cut(text, "\n")
				if !ok {
					break
				}
				text = rest
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					events <- data
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return events
}

func TestDrain(t *testing.T) {
	t.Parallel()
	began, leave := make(chan struct{}), make(chan struct{})
	s := newServer(t, Config{}, &far{execute: func(context.Context, *tool.Execution) (tool.Reply, error) {
		close(began)
		<-leave
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}})
	url := serve(t, s) + "/mcp"
	var calling sync.WaitGroup
	calling.Go(func() {
		status, got := modernCall(t, url, "1", "mcp.s.slow", "")
		if status != 200 || !strings.Contains(got[0], `"content":[]`) {
			t.Errorf("the open call was answered with %d %v", status, got)
		}
	})
	<-began
	drained := make(chan struct{})
	go func() {
		s.Drain(t.Context())
		close(drained)
	}()
	for !s.isDraining() {
		modernCall(t, url, "2", "nope", "")
	}
	if _, got := modernCall(t, url, "2", "mcp.s.echo", ""); !strings.Contains(got[0], "stopping") {
		t.Errorf("a call while draining: %v", got)
	}
	close(leave)
	calling.Wait()
	<-drained
}

func TestSilentResponsesStayOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &slowWriter{header: make(http.Header)}
		r := newHTTPReply(w, &http.Request{}, json.RawMessage(`1`), true)
		time.Sleep(2*quietFor + time.Second) // virtual
		r.answer(whole([]byte(`{}`)))
		r.close()
		want := ": waiting\n\n: waiting\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
		if got := w.body.String(); got != want {
			t.Errorf("wrote %q, want %q", got, want)
		}
	})
}

// TestTheClientChoosesTheForm holds that a lone result comes in the form that the client names first, and that a stream
// says when to come back on those revisions on which a client may.
func TestTheClientChoosesTheForm(t *testing.T) {
	t.Parallel()
	const answer = `{"jsonrpc":"2.0","id":1,"result":{}}`
	const event = "event: message\ndata: " + answer + "\n\n"
	for _, c := range []struct {
		accept []string
		modern bool
		want   string
	}{
		{[]string{"application/json, text/event-stream"}, false, answer},
		{[]string{"application/json", "text/event-stream"}, true, answer},
		{[]string{"*/*"}, false, answer},
		{[]string{"text/event-stream, */*"}, false, answer},
		{[]string{"Text/Event-Stream;q=1, application/json"}, true, event},
		{[]string{"text/event-stream", "application/json"}, false, "retry: 1000\n" + event},
	} {
		w := &slowWriter{header: make(http.Header)}
		r := newHTTPReply(w, &http.Request{Header: http.Header{"Accept": c.accept}}, json.RawMessage(`1`), c.modern)
		r.answer(whole([]byte(`{}`)))
		r.close()
		if got := w.body.String(); got != c.want {
			t.Errorf("accept %q: wrote %q, want %q", c.accept, got, c.want)
		}
	}
	w := &slowWriter{header: make(http.Header)}
	r := newHTTPReply(w, &http.Request{Header: http.Header{"Accept": {"text/event-stream, application/json"}}},
		json.RawMessage(`1`), true)
	r.refuse(invalidParams("x")) // its status is 400, so it cannot be a stream
	r.close()
	if got := w.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("a refusal with a status of its own came as %s", got)
	}
}

type slowWriter struct {
	header http.Header
	body   strings.Builder
}

func (w *slowWriter) Header() http.Header         { return w.header }
func (w *slowWriter) WriteHeader(int)             {}
func (w *slowWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

func TestHTTPBatch(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, Config{Version: "v"}, &far{})) + "/mcp"
	id := open(t, url, "2025-03-26")
	batch := `[{"jsonrpc":"2.0","id":1.5,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}},` +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mcp.s.echo","_meta":{"progressToken":1}}}]`
	status, _, got := post(t, url, batch, headerSession, id)
	wantHTTP(t, status, got, 200,
		`[{"jsonrpc":"2.0","id":1.5,"result":{}},{"jsonrpc":"2.0","id":2,"result":{"z":1e400,`+
			`"content":[{"type":"text","text":"\u003c<"}],"arguments":{},"meta":null,`+metaOK+`}}]`)
	newer := open(t, url, "2025-06-18")
	if status, _, _ := post(t, url, batch, headerSession, newer, headerVersion, "2025-06-18"); status != 400 {
		t.Errorf("a batch on 2025-06-18: status %d", status)
	}
}

// TestUnreadableMessages: a request that nests too deep, or is not UTF-8, is refused by its id, so
// that nobody waits for the answer; what is no JSON has none.
func TestUnreadableMessages(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", rawjson.MaxDepth) + strings.Repeat("]", rawjson.MaxDepth)
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":"a","method":"x","params":{"a":` + deep +
			`}}`: `"id":"a","error":{"code":-32700,"message":"parse error: nested deeper`,
		`{"jsonrpc":"2.0","method":"x","params":{"a":` + deep +
			`},"id":1.5}`: `"id":1.5,"error":{"code":-32700,"message":"parse error: nested deeper`,
		`{"jsonrpc":"2.0","id":1,"result":{"a":` + deep +
			`}}`: `"id":null,"error":{"code":-32700,"message":"parse error: nested deeper`,
		`{"jsonrpc":"2.0","id":{},"method":"x","a":` + deep +
			`}`: `"id":null,"error":{"code":-32700,"message":"parse error: nested deeper`,
		`{"jsonrpc":"2.0","id":1e,"method":"x","a":` + deep +
			`}`: `"id":null,"error":{"code":-32700,"message":"parse error: nested deeper`,
		`{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"` + "\xff" +
			`"}}`: `"id":7,"error":{"code":-32700,"message":"parse error: not UTF-8 (byte 52 of the message)`,
		`{"jsonrpc":"2.0","id":"` + "\xff" + `","method":"x","params":{}}`: `"id":null,"error":{"code":-32700,"message":"parse error: not UTF-8 (byte 23 of the message)`,
		`{"jsonrpc":"2.0","id":1,"method":"x"`:                             `"id":null,"error":{"code":-32700,"message":"parse error: not a JSON text`,
	} {
		m := jsonrpc.Parse([]byte(text))
		if m.Fault == nil || !strings.Contains(string(jsonrpc.ErrorText(m.ID, m.Fault)), want) {
			t.Errorf("%.60s: %v, want %s", text, m.Fault, want)
		}
	}
}

// FuzzParseMessage: whatever a client writes is read or refused, and what is read has the parts that the text has.
func FuzzParseMessage(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"x","params":{}}`,
		`{"jsonrpc":"2.0","id":{},"method":"x"}`, `{"\u0069d":1}`, `[]`, ``,
		`{"id":1,"method":"x","a":` + strings.Repeat("[", rawjson.MaxDepth+1)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m := jsonrpc.Parse(text)
		if m.Fault != nil {
			if !json.Valid(jsonrpc.ErrorText(m.ID, m.Fault)) {
				t.Errorf("%q is refused with %q", text, jsonrpc.ErrorText(m.ID, m.Fault))
			}
			return
		}
	})
}

func TestRepeatedHeadersAreRefused(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, Config{}, &far{})) + "/mcp"
	for _, name := range []string{headerVersion, headerMethod, headerName, headerSession} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url,
			strings.NewReader(fmt.Sprintf(initialize, "2025-11-25")))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "*/*")
		req.Header[name] = []string{"a", "b"}
		resp, err := web().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "-32020") {
			t.Errorf("%s twice: %d %s", name, resp.StatusCode, body)
		}
	}
}

// What an upstream of 2026-07-28 answers is made fit for clients of older revisions, and for those alone.
func TestResultsForOlderClients(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		`{"content":[],"resultType":"complete","structuredContent":[1.0]}`:   `{"content":[]}`,
		`{"structuredContent":{"a":1e400},"resultType":"complete","x":null}`: `{"structuredContent":{"a":1e400},"x":null}`,
	} {
		o, err := rawjson.ReadObject([]byte(result))
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&toolCalls{parts: &parts{}}).resultFor(&peer{}, invoke.Outcome{Object: o, Revision: modernVersion}, nil)
		if err != nil || string(bytes.Join(got.parts, nil)) != want {
			t.Errorf("%s becomes %s: %v", result, bytes.Join(got.parts, nil), err)
		}
	}
}

// TestUsualPathIsThatOfTheMux holds that the check for the usual path sends requests where the mux sends them.
func TestUsualPathIsThatOfTheMux(t *testing.T) {
	t.Parallel()
	url := serve(t, newServer(t, Config{}, &far{}))
	for path, want := range map[string]int{
		"/mcp": http.StatusOK, "/%6dcp": http.StatusOK, "/mcp?x=1": http.StatusOK, "/mcp/p/default": http.StatusOK,
		"/mcp/": http.StatusNotFound, "/MCP": http.StatusNotFound, "/mcp/p": http.StatusNotFound,
		"/mcp%2f": http.StatusNotFound,
	} {
		if status, _, _ := post(t, url+path, fmt.Sprintf(initialize, "2025-11-25")); status != want {
			t.Errorf("initialize at %s: status %d, want %d", path, status, want)
		}
	}
}

// TestOAuthClientsLearnWhatToSend: a hub with tokens tells a client that wants to register which
// header to send. One without tokens has nothing there.
func TestOAuthClientsLearnWhatToSend(t *testing.T) {
	t.Parallel()
	const request = `{"client_name":"x","redirect_uris":["http://127.0.0.1:1/callback"]}`
	cfg := Config{Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: "secret-of-ann-0123"}}}}
	status, h, got := post(t, serve(t, newServer(t, cfg, &far{}))+"/register", request)
	if status != 400 || h.Get("Content-Type") != "application/json" || len(got) != 1 ||
		!strings.Contains(got[0], `"error":"invalid_client_metadata"`) ||
		!strings.Contains(got[0], "add the header Authorization: Bearer TOKEN") {
		t.Errorf("%d %v", status, got)
	}
	if status, _, _ := post(t, serve(t, newServer(t, Config{}, &far{}))+"/register", request); status != 404 {
		t.Errorf("without tokens: %d", status)
	}
}

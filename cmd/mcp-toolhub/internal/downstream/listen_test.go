package downstream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func updated(server, session, uri string) tool.Notification {
	return tool.Notification{Server: server, Session: session, Method: tool.NoteUpdated,
		Params: json.RawMessage(fmt.Sprintf(`{"uri":%q,"x":1.0}`,
			uri))}
}

// inbox is where a client is told what belongs to no request.
func (c *client) inbox() func() string {
	c.t.Helper()
	if c.w != nil {
		return c.w.next
	}
	events := stream(c.t, http.MethodGet, c.url, "",
		append([]string{headerSession, c.session, headerVersion, c.version}, c.headers...)...)
	return func() string {
		select {
		case e := <-events:
			return e
		case <-c.t.Context().Done():
			c.t.Fatal("nothing came")
			return ""
		}
	}
}

const promptsChanged = `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}`

func TestSubscriptionsOfSessions(t *testing.T) {
	t.Parallel()
	for _, version := range generations()[:4] {
		for _, overHTTP := range []bool{false, true} {
			t.Run(fmt.Sprint(version, overHTTP), func(t *testing.T) {
				t.Parallel()
				v := &servers{told: make(chan string, 10)}
				s := newServer(t, Config{}, behind(v))
				ann, bob := newClient(t, s, version, overHTTP), newClient(t, s, version, overHTTP)
				toAnn, toBob := ann.inbox(), bob.inbox()
				ok := `{"jsonrpc":"2.0","id":1,"result":{}}`
				ann.want("1", "resources/subscribe", `"uri":"file:///one"`, ok)
				ann.want("1", "resources/subscribe", `"uri":"file:///one"`, ok) // twice is once
				ann.want("1", "resources/subscribe", `"uri":"toolhub://b/file:///both"`, ok)
				for _, want := range []string{"+a file:///one", "+b file:///both"} {
					if got := <-v.told; got != want {
						t.Errorf("servers were told %s, want %s", got, want)
					}
				}
				told := func(next func() string, want string) {
					t.Helper()
					if got := next(); got != want {
						t.Errorf("got  %s\nwant %s", got, want)
					}
				}
				note := func(uri string) string {
					return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri +
						`","x":1.0}}`
				}
				v.tell(updated("a", "", "file:///other"))
				v.tell(updated("a", "", "file:///oneself"))
				v.tell(updated("b", "", "file:///one/b")) // not its resource
				v.tell(updated("a", "somebody else's connection", "file:///one/else"))
				v.tell(updated("a", "", "file:///one"))
				told(toAnn, note("file:///one"))
				v.tell(updated("a", "", "file:///one/part#7"))
				told(toAnn, note("file:///one/part#7"))
				v.tell(updated("b", "", "file:///both"))
				told(toAnn, note("toolhub://b/file:///both"))
				ann.want("1", "resources/unsubscribe", `"uri":"file:///one"`, ok)
				ann.want("1", "resources/unsubscribe", `"uri":"file:///never"`, ok)
				if got := <-v.told; got != "-a file:///one" {
					t.Errorf("servers were told %s", got)
				}
				v.tell(updated("a", "", "file:///one"))
				s.Changed(Change{Profile: "other", Tools: true})
				s.Changed(Change{Profile: "default", Prompts: true}) // the first that bob hears of
				told(toAnn, promptsChanged)
				told(toBob, promptsChanged)
				if overHTTP {
					req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, ann.url, nil)
					req.Header.Set(headerSession, ann.session)
					resp, err := web().Do(req)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
				} else {
					_ = ann.w.in.Close()
				}
				if got := <-v.told; got != "-b file:///both" { // with its session
					t.Errorf("servers were told %s", got)
				}
			})
		}
	}
}

func TestSubscribeIsRefusedByItsServer(t *testing.T) {
	t.Parallel()
	v := &servers{subscribe: func(context.Context, string, string) error {
		return &tool.RPCError{Code: -7,
			Message: "no"}
	}}
	c := newClient(t, newServer(t, Config{}, behind(v)), "2025-11-25", true)
	for range 2 { // it is asked again
		c.want("1", "resources/subscribe", `"uri":"file:///one"`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-7,"message":"no"}}`)
	}
	if got := c.ask("1", "resources/subscribe", `"uri":"file:///none"`); !strings.Contains(got[0], "-32002") {
		t.Errorf("an unknown resource: %v", got)
	}
}

// signIn leads who needs a sign-in to a page.
type signIn struct{}

func (signIn) SignIn(_ context.Context, n *tool.SignInNeed) error {
	f := *n.Why
	f.Private = "; or open the page of " + n.Server
	return &f
}

func TestSubscribeNeedsASignIn(t *testing.T) {
	t.Parallel()
	v := &servers{subscribe: func(context.Context, string, string) error {
		return &tool.Failure{Class: tool.ClassSetupRequired, Code: tool.CodeNeedsSignIn, Message: "sign in"}
	}}
	f := behind(v)
	f.signIn = signIn{}
	c := newClient(t, newServer(t, Config{}, f), "2025-11-25", true)
	if got := c.ask("1", "resources/subscribe", `"uri":"file:///one"`); !strings.Contains(got[0],
		"sign in; or open the page of a") {
		t.Errorf("got %v", got)
	}
}

// What changes while a session has no stream waits for it, once; a newer stream takes the place of an older one.
func TestStandingStream(t *testing.T) {
	t.Parallel()
	v := &servers{}
	s := newServer(t, Config{}, behind(v))
	c := newClient(t, s, "2025-11-25", true)
	c.ask("1", "resources/subscribe", `"uri":"file:///one"`)
	for range 3 {
		v.tell(updated("a", "", "file:///one"))
	}
	first := c.inbox()
	if got := first(); !strings.Contains(got, "resources/updated") {
		t.Fatalf("got %s", got)
	}
	second := c.inbox()
	if got := first(); got != "" { // closed
		t.Errorf("the older stream goes on with %s", got)
	}
	s.Changed(Change{Profile: "default", Tools: true, Resources: true}, Change{Profile: "default", Tools: true})
	for _, kind := range []string{"tools", "resources"} {
		if got := second(); got != `{"jsonrpc":"2.0","method":"notifications/`+kind+`/list_changed","params":{}}` {
			t.Errorf("got %s", got)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
	req.Header.Set(headerSession, c.session)
	req.Header.Set("Accept", "application/json")
	if resp, err := web().Do(req); err != nil || resp.StatusCode != http.StatusNotAcceptable {
		t.Errorf("a GET for JSON: %v, %v", resp, err)
	}
}

// listener opens a subscriptions/listen and returns what comes.
func listening(c *client, id, filter string) func() string {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":{%s},"_meta":{%s}}}`, id, filter, modernMeta)
	if c.w != nil {
		c.w.send(body)
		return c.w.next
	}
	events := stream(c.t, http.MethodPost, c.url, body, headerVersion, modernVersion, headerMethod, tool.MethodListen)
	return func() string {
		select {
		case e := <-events:
			return e
		case <-c.t.Context().Done():
			c.t.Fatal("nothing came")
			return ""
		}
	}
}

func TestListenTranscript(t *testing.T) {
	t.Parallel()
	for _, overHTTP := range []bool{false, true} {
		t.Run(fmt.Sprint(overHTTP), func(t *testing.T) {
			t.Parallel()
			v := &servers{told: make(chan string, 10)}
			v.subscribe = func(_ context.Context, server, _ string) error {
				if server == "b" {
					return errors.New("it is down")
				}
				return nil
			}
			s := newServer(t, Config{Version: "v"}, behind(v))
			c := newClient(t, s, modernVersion, overHTTP)
			const tag = `"_meta":{"io.modelcontextprotocol/subscriptionId":1.50}`
			next := listening(c, "1.50", `"toolsListChanged":false,"promptsListChanged":true,"resourceSubscriptions":`+
				`["file:///one","toolhub://b/file:///both","x://none","file:///one"],"unknown":1`)
			told := func(want string) {
				t.Helper()
				if got := next(); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			}
			told(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"promptsListChanged":true,` +
				`"resourceSubscriptions":["file:///one"]},` + tag + `}}`)
			if got := <-v.told; got != "+a file:///one" {
				t.Errorf("servers were told %s", got)
			}
			s.Changed(Change{Profile: "default", Tools: true, Resources: true}) // not asked for
			v.tell(updated("b", "", "file:///both"))                            // given up on
			v.tell(updated("a", "", "file:///one"))
			told(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///one","x":1.0,` +
				tag + `}}`)
			s.Changed(Change{Profile: "default", Prompts: true})
			told(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{` + tag + `}}`)
			var draining sync.WaitGroup
			draining.Go(func() { s.Drain(t.Context()) })
			told(`{"jsonrpc":"2.0","id":1.50,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1.50,` +
				serverInfoMember + `}}}`)
			draining.Wait()
			if got := <-v.told; got != "-a file:///one" {
				t.Errorf("servers were told %s", got)
			}
		})
	}
}

func TestListenIsRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t, newServer(t, Config{}, behind(&servers{})), modernVersion, true)
	for _, params := range []string{``, `"notifications":[]`, `"notifications":{"toolsListChanged":1}`,
		`"notifications":{"resourceSubscriptions":{}}`,
		`"notifications":{"resourceSubscriptions":[7]}`, `"notifications":{"resourceSubscriptions":["` +
			strings.Repeat(`x","`, 1000) + `"]}`} {
		if got := c.ask("1", tool.MethodListen, params); !strings.Contains(got[0], `"code":-32602`) {
			t.Errorf("{%s}: %v", params, got)
		}
	}
	// Who asks for nothing that the surface has is told so, and that this is the end of it.
	got := c.ask("1", tool.MethodListen, `"notifications":{"resourceSubscriptions":["x://none"]}`)
	if len(got) != 2 || !strings.Contains(got[0], `"params":{"notifications":{},"_meta"`) ||
		!strings.Contains(got[1], `"result"`) {
		t.Errorf("an empty subscription: %v", got)
	}
}

// The acknowledgement waits for slow servers, nobody else does, and no server is waited for without end.
func TestAcknowledgementWaits(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	v := &servers{}
	v.subscribe = func(ctx context.Context, _, uri string) error {
		if uri == "t://slow" {
			select {
			case <-leave:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	s := newServer(t, Config{}, behind(v))
	c := newClient(t, s, modernVersion, false)
	slow := listening(c, "1", `"resourceSubscriptions":["t://slow"]`)
	listening(c, "2", `"toolsListChanged":true`)
	if got := slow(); !strings.Contains(got, `"toolsListChanged":true`) {
		t.Errorf("first came %s", got)
	}
	close(leave)
	if got := slow(); !strings.Contains(got, `"resourceSubscriptions":["t://slow"]`) {
		t.Errorf("then came %s", got)
	}
	synctest.Test(t, func(t *testing.T) {
		v := &servers{subscribe: func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() }}
		s := &Server{}
		s.deps = Deps{Servers: v, Logger: newServerLogger()}
		s.wire()
		began := time.Now()
		err := s.subscriptions.make(t.Context(), &subscription{resource: resource{"a", "file:///one"},
			out: newOutbox(nil)})
		if took := time.Since(began); err == nil || took != subscribeWithin {
			t.Errorf("a server that does not answer took %v: %v", took, err)
		}
	})
}

func TestListenEnds(t *testing.T) {
	t.Parallel()
	v := &servers{told: make(chan string, 10)}
	s := newServer(t, Config{}, behind(v))
	const filter = `"resourceSubscriptions":["file:///one"]`
	end := func(how string, c *client, do func()) {
		t.Helper()
		if got := listening(c, `"e"`, filter)(); !strings.Contains(got, "acknowledged") {
			t.Fatalf("%s: %s", how, got)
		}
		do()
		for _, want := range []string{"+a file:///one", "-a file:///one"} {
			if got := <-v.told; got != want {
				t.Errorf("%s: servers were told %s, want %s", how, got, want)
			}
		}
	}
	c := newClient(t, s, modernVersion, false)
	end("cancelled", c, func() {
		c.w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"e"}}`)
	})
	end("input at its end", c, func() { _ = c.w.in.Close() })
	if got := c.w.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"e","result"`) {
		t.Errorf("the input ended: %s", got)
	}
	url := serve(t, s) + "/mcp"
	ctx, cancel := context.WithCancel(t.Context())
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{` + filter +
		`},"_meta":{` + modernMeta + `}}}`
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	for _, h := range [][2]string{{"Content-Type", "application/json"}, {"Accept", "*/*"},
		{headerVersion, modernVersion}, {headerMethod, tool.MethodListen}} {
		req.Header.Set(h[0], h[1])
	}
	resp, err := web().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	for range 2 {
		<-v.told
	}
	over := newClient(t, s, modernVersion, true)
	next := listening(over, "1", `"toolsListChanged":true`)
	next()
	s.Apply(Config{}, []string{"other"})
	if got := next(); !strings.Contains(got, `"result"`) {
		t.Errorf("its profile is gone: %s", got)
	}
}

// BenchmarkIdleListens tells what an idle subscriptions/listen costs over HTTP: with its connection, on the hub's side.
func BenchmarkIdleListens(b *testing.B) {
	const n = 1000
	s := newServer(b, Config{}, behind(&servers{}))
	srv := httptest.NewServer(s.Handler())
	defer srv.Close()
	defer s.Drain(b.Context())
	address := strings.TrimPrefix(srv.URL, "http://")
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,` +
		`"resourceSubscriptions":["file:///one"]},"_meta":{` + modernMeta + `}}}`
	request := fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: */*\r\n%s: "+
		"%s\r\n%s: %s\r\nContent-Length: %d\r\n\r\n%s",
		address, headerVersion, modernVersion, headerMethod, tool.MethodListen, len(body), body)
	held := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	for b.Loop() {
		conns := make([]net.Conn, n)
		before, goroutines := held(), runtime.NumGoroutine()
		buf := make([]byte, 4096)
		for i := range conns {
			c, err := net.Dial("tcp", address)
			if err != nil {
				b.Fatal(err)
			}
			conns[i] = c
			if _, err := c.Write([]byte(request)); err != nil {
				b.Fatal(err)
			}
			for text := ""; !strings.Contains(text, "acknowledged"); {
				got, err := c.Read(buf)
				if err != nil {
					b.Fatal(err)
				}
				text += string(buf[:got])
			}
		}
		b.ReportMetric(float64(held()-before)/n/1024, "kB/listen")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/n, "goroutines/listen")
		began := time.Now()
		s.Changed(Change{Profile: "default", Tools: true})
		for _, c := range conns {
			for text := ""; !strings.Contains(text, "list_changed"); {
				got, err := c.Read(buf)
				if err != nil {
					b.Fatal(err)
				}
				text += string(buf[:got])
			}
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/told-all")
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// What changes while a client on stdio is being answered initialize reaches it behind the answer.
func TestChangeDuringInitialize(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{}, behind(&servers{}))
	inR, inW := io.Pipe()
	outR, outW := io.Pipe() // holds nothing: the answer is under way until it is read
	ended := make(chan error, 1)
	go func() { ended <- s.ServeStdio(t.Context(), inR, outW, Stdio{Profile: "default"}) }()
	if _, err := fmt.Fprintf(inW, initialize+"\n", "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for joined := 0; joined == 0; <-again.C {
		s.listeners.mu.Lock()
		joined = len(s.listeners.all)
		s.listeners.mu.Unlock()
	}
	s.Changed(Change{Profile: "default", Prompts: true})
	r := bufio.NewScanner(outR)
	for _, want := range []string{`{"jsonrpc":"2.0","id":0,"result":`, promptsChanged} {
		if !r.Scan() || !strings.HasPrefix(r.Text(), want) {
			t.Errorf("got %s, %v, want %s", r.Text(), r.Err(), want)
		}
	}
	inW.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

//go:build unix

package upstream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// told collects notifications.
type told struct {
	mu    sync.Mutex
	notes []tool.Notification
}

func (l *told) add(n tool.Notification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = append(l.notes, n)
}

func (l *told) all() []tool.Notification {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.notes)
}

// about counts the updates of a resource.
func (l *told) about(uri string) (n int) {
	for _, one := range l.all() {
		if strings.Contains(string(one.Params), `"uri":"`+uri+`"`) {
			n++
		}
	}
	return n
}

// hear starts a group of servers and returns what it tells of them.
func hear(t testing.TB, servers ...upstream.ServerConfig) (*harness, *told) {
	t.Helper()
	h := newHarness(t, upstream.Config{Servers: servers})
	l := &told{}
	h.OnNotification(l.add)
	h.Start(t.Context())
	return h, l
}

func message(params string) string {
	return `{"jsonrpc":"2.0","method":"notifications/message","params":` + params + `}`
}

// saying are the arguments of say and shout.
func saying(times int, notes ...string) string {
	text, _ := json.Marshal(map[string]any{"notes": notes, "times": times})
	return string(text)
}

// TestNotificationsOfNoCall checks the standing stream, and that what is malformed is dropped and costs nothing.
func TestNotificationsOfNoCall(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		if modern(w) && w.http != nil {
			return // there, nothing is logged outside of a request
		}
		h, all := hear(t, w.config(t, "s"))
		h.ready(t, "s")
		good := message(`{"level":"info","data":"good"}`)
		bad := []string{message(`{"level":"info"}`), message(`{"data":1}`), message(`{"level":7,"data":1}`), message(`[]`), message(`7`),
			`{"jsonrpc":"2.0","method":"notifications/message"}`, `{"jsonrpc":"2.0","method":"notifications/unheard_of","params":[]}`,
			message(`{"level":"info","data":"` + strings.Repeat("x", 1<<20) + `"}`),
			`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://b"}}`} // nobody asked
		eventually(t, "the listeners are told", func() bool {
			h.mustCall(t, "s", "shout", saying(1, append(bad, good)...))
			return len(all.all()) > 0
		})
		for _, n := range all.all() {
			if string(n.Params) != `{"level":"info","data":"good"}` {
				t.Errorf("told %+.200v", n)
			}
		}
		eventually(t, "it is counted",
			func() bool { return strings.Contains(h.log.String(), "a notification that is malformed") })
		if strings.Contains(h.log.String(), "stdout must carry nothing") {
			t.Errorf("the log calls a message of MCP other output:\n%s", h.log.String())
		}
	})
}

// TestChangesBeforeTheStreamStandsAreSeen checks that a tool is listed that was added after the first list, and before the
// server took the request for the stream on which it tells of that.
func TestChangesBeforeTheStreamStandsAreSeen(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprint("modern ", modern), func(t *testing.T) {
			t.Parallel()
			slow := make(chan struct{})
			cfg, far := overHTTP(t, "s", upstreamtest.Options{
				Script: upstreamtest.Script{Modern: modern},
				Intercept: func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
					if r.Method == http.MethodGet || bytes.Contains(body, []byte("subscriptions/listen")) {
						<-slow
					}
					return false
				},
			})
			hasten := sync.OnceFunc(func() { close(slow) })
			t.Cleanup(hasten)
			h := start(t, cfg)
			h.ready(t, "s")
			far.AddTool(upstreamtest.Tool("later"))
			hasten()
			eventually(t, "the new tool is listed", func() bool { return strings.HasSuffix(h.names("s"), " later") })
		})
	}
}

// TestWhatIsDroppedIsCounted checks the count that an operator sees: of what is malformed or too large, and of nothing else.
func TestWhatIsDroppedIsCounted(t *testing.T) {
	t.Parallel()
	progress := func(params string) string {
		return `{"jsonrpc":"2.0","method":"notifications/progress","params":` + params + `}`
	}
	long := strings.Repeat("x", 1<<20)
	bad := []string{message(`{"level":"info"}`), message(`7`), `{"jsonrpc":"2.0","method":"notifications/message"}`,
		progress(`{"progress":1}`), progress(`[]`), `{"jsonrpc":"2.0","method":"notifications/progress"}`,
		progress(`{"progressToken":$ID,"progress":1,"message":"` + long + `"}`), progress(`{"progressToken":null,"progress":1}`),
		progress(`{"progressToken":$ID}`), progress(`{"progressToken":$ID,"progress":"1"}`), progress(`{"progressToken":$ID,"progress":null}`),
		`nonsense`, `{"jsonrpc":"1.0","method":"x"}`, `[]`[:1]}
	good := []string{progress(`{"progressToken":$ID,"progress":1}`), progress(`{"progressToken":"late","progress":1}`),
		progress(`{"progressToken":7,"progress":1}`),
		message(`{"level":"info","data":1}`), `{"jsonrpc":"2.0","method":"notifications/unheard_of"}`}
	eachWay(t, func(t *testing.T, w way) {
		if w.http != nil && (w.http.JSON || w.http.Pretty || w.http.EventIDs) {
			return // there is no stream, or nothing but JSON on it, or nothing new
		}
		cfg := w.config(t, "s")
		h, _ := hear(t, cfg)
		h.ready(t, "s")
		h.mustCall(t, "s", "say", saying(3, good...))
		h.mustCall(t, "s", "say", saying(1, bad...))
		h.mustCall(t, "s", "echo", `{}`)
		want := int64(len(bad))
		eventually(t, "it is counted", func() bool { return h.status("s").Dropped >= want })
		if got := h.status("s"); got.Dropped != want || got.State != tool.ServerReady || got.Restarts != 0 {
			t.Errorf("%d are dropped, want %d; %+v", got.Dropped, want, got)
		}
	})
}

// TestFloodOfLogMessages checks that a flood costs no call, neither of its server nor of another one,
// and is told whole.
func TestFloodOfLogMessages(t *testing.T) {
	t.Parallel()
	const many = 20_000
	h, l := hear(t, stdio("s", upstreamtest.Script{Features: full()}),
		stdio("other", upstreamtest.Script{Features: full()}))
	h.ready(t, "s")
	h.ready(t, "other")
	h.mustCall(t, "s", "say", saying(many, message(`{"level":"debug","data":1}`)))
	h.mustCall(t, "other", "say", saying(1, message(`{"level":"debug","data":2}`)))
	h.mustCall(t, "s", "say", saying(1, message(`{"level":"debug","data":"last"}`)))
	eventually(t, "all is told", func() bool { return len(l.all()) == many+2 })
	if all := l.all(); !strings.Contains(string(all[len(all)-1].Params), "last") {
		t.Errorf("the last one is %s", all[len(all)-1].Params)
	}
}

func TestNotificationsOfASessionsOwnConnection(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{Features: full()})
	cfg.Isolated = true
	h, all := hear(t, cfg)
	a, b := newVisitor("a"), newVisitor("b")
	a.mustCall(t, h, "say", saying(1, message(`{"level":"info","data":1}`)))
	b.mustCall(t, h, "raw", `{"result":{}}`)
	eventually(t, "told", func() bool { return len(all.all()) == 1 })
	if n := all.all()[0]; n.Session != a.session.Key {
		t.Errorf("told of session %q", n.Session)
	}
}

// asked is what the fake server says that clients want.
type asked struct{ Subscribed, History, Levels []string }

func (a asked) String() string { return fmt.Sprint(a.Subscribed, a.History, a.Levels) }

func wishesIn(t testing.TB, result json.RawMessage) (a asked) {
	t.Helper()
	content, _ := rawjson.Get(result, "structuredContent")
	if err := json.Unmarshal(content, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func (h *harness) wishes(t testing.TB) asked {
	t.Helper()
	return wishesIn(t, h.mustCall(t, "s", "wishes", `{}`))
}

func TestSubscriptions(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		h, all := hear(t, w.config(t, "s"))
		h.ready(t, "s")
		ctx, a, b := t.Context(), newVisitor("a"), newVisitor("b")
		for _, step := range []struct {
			on   bool
			who  *visitor
			uri  string
			want string // subscribed then
		}{
			{true, a, "x://1", "[x://1]"}, {true, b, "x://1", "[x://1]"}, {true, b, "x://2", "[x://1 x://2]"}, {true, b, "x://2", "[x://1 x://2]"},
			{false, a, "x://1", "[x://1 x://2]"}, {false, a, "x://1", "[x://1 x://2]"}, {false, b, "x://2", "[x://1 x://2]"},
			{false, b, "x://2", "[x://1]"},
		} {
			err := error(nil)
			if step.on {
				err = h.Subscribe(ctx, "s", step.uri, step.who.session, tool.Hop{})
			} else {
				err = h.Unsubscribe(ctx, "s", step.uri, step.who.session)
			}
			if err != nil {
				t.Fatalf("%+v: %v", step, err)
			}
			eventually(t, "subscribed to "+step.want, func() bool { return fmt.Sprint(h.wishes(t).Subscribed) == step.want })
		}
		if got := strings.Join(h.wishes(t).History, " "); !modern(w) && got != "+x://1 +x://2 -x://2" {
			t.Errorf("the server was asked %s", got)
		}
		eventually(t, "an update is told", func() bool {
			h.mustCall(t, "s", "update", `{"uri":"x://1"}`)
			h.mustCall(t, "s", "update", `{"uri":"x://2"}`)
			return all.about("x://1") > 0
		})
		n := all.all()[0]
		if string(n.Params) != `{"uri":"x://1","x":1.50}` || n.Method != "notifications/resources/updated" || n.Server != "s" || n.Session != "" {
			t.Errorf("told %+v", n)
		}
		if all.about("x://2") > 0 {
			t.Error("told of what nobody wants any more")
		}
		if err := h.Subscribe(ctx, "s", upstreamtest.Refused, a.session, tool.Hop{}); err == nil {
			t.Error("a subscription that the server refuses is taken")
		}
		if err := h.Subscribe(ctx, "s", "x://3", a.session, tool.Hop{}); err != nil {
			t.Error(err)
		}
		eventually(t, "the refused one cost no other", func() bool { return fmt.Sprint(h.wishes(t).Subscribed) == "[x://1 x://3]" })
		if n := all.about("x://1"); n > 0 { // list_changed still comes
			h.mustCall(t, "s", "grow", `{"name":"late"}`)
			eventually(t, "the new tool is listed", func() bool { return strings.Contains(h.names("s"), "late") })
		}
	})
}

// TestSubscriptionsSurviveAReconnect checks that a server which was lost is asked again for everything, and that updates which
// it may not have been able to tell are made up for: once it is asked again, and not before.
func TestSubscriptionsSurviveAReconnect(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.script.Features = full()
			cfg, lose := w.config(t, "s"), func(h *harness) { _, _ = h.call(t.Context(), "s", "die", `{}`) }
			if w.http != nil && !w.http.SSE {
				o := *w.http
				o.Script = w.script
				var fake *upstreamtest.Handler
				cfg, fake = overHTTP(t, "s", o)
				lose = func(*harness) { fake.Forget(); fake.Cut() }
			}
			h, all := hear(t, cfg)
			h.ready(t, "s")
			h.SetLogLevel("warning")
			for i := range 3 {
				if err := h.Subscribe(t.Context(), "s", fmt.Sprintf("x://%d", i), tool.Session{Key: "k"}, tool.Hop{}); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(all.all()); n > 0 {
				t.Fatalf("told %d times of what has not changed", n)
			}
			lose(h)
			eventually(t, "subscribed again", func() bool {
				reply, err := h.call(t.Context(), "s", "wishes", `{}`)
				return err == nil && fmt.Sprint(wishesIn(t, reply.Result).Subscribed) == "[x://0 x://1 x://2]"
			})
			eventually(t, "what may have changed is told", func() bool {
				return all.about("x://0") > 0 && all.about("x://1") > 0 && all.about("x://2") > 0
			})
			if n := all.all()[0]; n.Server != "s" || n.Session != "" || !strings.HasPrefix(string(n.Params), `{"uri":"x://`) || len(n.Params) > 20 {
				t.Errorf("told %+v", n)
			}
			eventually(t, "an update is told", func() bool {
				h.mustCall(t, "s", "update", `{"uri":"x://1"}`)
				return slices.ContainsFunc(all.all(), func(n tool.Notification) bool { return string(n.Params) == `{"uri":"x://1","x":1.50}` })
			})
			eventually(t, "the level is set again", func() bool {
				levels := h.wishes(t).Levels
				return modern(w) && len(levels) == 0 || !modern(w) && len(levels) > 0 && levels[len(levels)-1] == "warning"
			})
		})
	}
}

// TestSubscribeFailsAtOnce checks servers that cannot take one, and that nothing of it stays.
func TestSubscribeFailsAtOnce(t *testing.T) {
	t.Parallel()
	never := stdio("never", upstreamtest.Script{Behaviours: []upstreamtest.Behaviour{upstreamtest.ExitsAtOnce}})
	h, _ := hear(t, stdio("none", upstreamtest.Script{}), never)
	h.ready(t, "none")
	for id, class := range map[string]string{"none": "JSON-RPC error -32601", "never": "dependency_unavailable", "unheard-of": "dependency_unavailable"} {
		err := h.Subscribe(t.Context(), id, "x://1", tool.Session{}, tool.Hop{})
		if err == nil || !strings.HasPrefix(err.Error(), class) {
			t.Errorf("%s: %v", id, err)
		}
		if err := h.Unsubscribe(t.Context(), id, "x://1", tool.Session{}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestSubscriptionsOfASession checks that they belong to the session's own connection, follow it to the next one, and end
// with nobody else's.
func TestSubscriptionsOfASession(t *testing.T) {
	t.Parallel()
	for _, w := range []way{{name: "2025"}, {name: "2026", script: upstreamtest.Script{Modern: true}}} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.script.Features = full()
			cfg := w.config(t, "s")
			cfg.Isolated = true
			h, all := hear(t, cfg)
			a, b := newVisitor("a"), newVisitor("b")
			for uri, v := range map[string]*visitor{"x://a": a, "x://b": b} {
				if err := h.Subscribe(t.Context(), "s", uri, v.session, tool.Hop{}); err != nil {
					t.Fatal(err)
				}
			}
			if got := wishesIn(t, a.mustCall(t, h, "wishes", `{}`).Result).Subscribed; fmt.Sprint(got) != "[x://a]" {
				t.Errorf("a is subscribed to %v", got)
			}
			a.mustCall(t, h, "update", `{"uri":"x://a"}`)
			eventually(t, "told", func() bool { return all.about("x://a") == 1 })
			if n := all.all()[0]; n.Session != a.session.Key {
				t.Errorf("told of session %q", n.Session)
			}
			before := a.pids(t, h)[0]
			ready := func() int { return strings.Count(h.log.String(), "server is ready") }
			was := ready()
			_, _ = a.call(t.Context(), h, "die", `{}`)
			eventually(t, "the connection is made again without a call", func() bool { return ready() > was })
			eventually(t, "the next connection is made, and subscribed", func() bool {
				reply, err := a.call(t.Context(), h, "wishes", `{}`)
				return err == nil && fmt.Sprint(wishesIn(t, reply.Result).Subscribed) == "[x://a]"
			})
			if a.pids(t, h)[0] == before {
				t.Error("it is the same process")
			}
			if got := wishesIn(t, b.mustCall(t, h, "wishes", `{}`).Result).Subscribed; fmt.Sprint(got) != "[x://b]" {
				t.Errorf("b is subscribed to %v", got)
			}
		})
	}
}

func TestSubscriptionsSurviveApply(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{Features: full()})
	h, _ := hear(t, cfg)
	h.ready(t, "s")
	if err := h.Subscribe(t.Context(), "s", "x://1", tool.Session{}, tool.Hop{}); err != nil {
		t.Fatal(err)
	}
	h.SetLogLevel("error")
	h.apply(t, changed(cfg, 1))
	eventually(t, "the next server is asked", func() bool {
		return h.wishes(t).String() == "[x://1] [+x://1] [error]"
	})
}

func TestLogLevel(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		h := start(t, w.config(t, "s"))
		h.ready(t, "s")
		want := []string{}
		for _, level := range []string{"info", "info", "debug", ""} {
			h.SetLogLevel(level)
			if level == "" {
				level = "emergency" // there is none for nothing
			}
			if !modern(w) && (len(want) == 0 || want[len(want)-1] != level) {
				want = append(want, level)
			}
			began := time.Now()
			got := h.wishes(t).Levels // by a call: its server knows the level before it is called, unless it takes a second for that
			if !slices.Equal(got, want) && time.Since(began) < time.Second {
				t.Errorf("the server was told %q, want %q", got, want)
			}
			eventually(t, "the server knows the level", func() bool { return slices.Equal(h.wishes(t).Levels, want) })
		}
	})
	h := start(t, stdio("s", upstreamtest.Script{})) // without logging
	h.ready(t, "s")
	h.SetLogLevel("debug")
	if got := h.wishes(t).Levels; len(got) > 0 {
		t.Errorf("levels %v", got)
	}
}

// TestSubscriptionBringsWhatTheClientCan checks that a session's connection that a subscription makes offers what the
// session's client can do, as one that a call makes.
func TestSubscriptionBringsWhatTheClientCan(t *testing.T) {
	t.Parallel()
	cfg, fake := overHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Features: full()}})
	cfg.Isolated = true
	h := start(t, cfg)
	h.ready(t, "s")
	says := tool.Hop{ClientCapabilities: json.RawMessage(`{"sampling":{},"elicitation":{"url":{}}}`)}
	if err := h.Subscribe(t.Context(), "s", "x://1", tool.Session{Key: "k"}, says); err != nil {
		t.Fatal(err)
	}
	var offered []string
	for _, r := range fake.Requests() {
		if params, _ := rawjson.Get(r.Body, "params"); strings.Contains(string(r.Body), `"initialize"`) {
			capabilities, _ := rawjson.Get(params, "capabilities")
			offered = append(offered, string(capabilities))
		}
	}
	if len(offered) != 2 || offered[1] != `{"sampling":{},"elicitation":{"url":{}}}` {
		t.Errorf("the server was offered %q", offered)
	}
}

// TestStandingStreamThatBreaks checks that a stream which is opened again, over the same connection, makes up for the updates
// that it may have missed.
func TestStandingStreamThatBreaks(t *testing.T) {
	t.Parallel()
	for _, isModern := range []bool{false, true} {
		t.Run(versionOf(isModern), func(t *testing.T) {
			t.Parallel()
			cfg, fake := overHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Modern: isModern, Features: full()}})
			h, all := hear(t, cfg)
			st := h.ready(t, "s")
			if err := h.Subscribe(t.Context(), "s", "x://1", tool.Session{Key: "k"}, tool.Hop{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the stream stands", func() bool {
				h.mustCall(t, "s", "update", `{"uri":"x://1"}`)
				return all.about("x://1") > 0
			})
			fake.Cut()
			eventually(t, "what may have changed is told", func() bool {
				return slices.ContainsFunc(all.all(), func(n tool.Notification) bool { return string(n.Params) == `{"uri":"x://1"}` })
			})
			if now := h.status("s"); now.Restarts != st.Restarts {
				t.Errorf("%d restarts", now.Restarts)
			}
		})
	}
}

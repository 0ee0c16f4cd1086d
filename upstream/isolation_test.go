//go:build unix

package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// visitor is a client session.
type visitor struct {
	session tool.Session
	ended   chan struct{}
}

func newVisitor(name string) *visitor {
	v := &visitor{ended: make(chan struct{})}
	v.session = tool.Session{Key: "test/" + name, Name: name, Ended: v.ended}
	return v
}

func (v *visitor) end() { close(v.ended) }

// call calls a tool of the server s in the visitor's session.
func (v *visitor) call(ctx context.Context, h *harness, native, arguments string) (tool.Reply, error) {
	x := execution("s", native, arguments)
	x.Params = json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s}`, native, arguments))
	x.Session = v.session
	return h.Execute(ctx, x)
}

// on is how the visitor calls tools of the server s.
func (v *visitor) on(h *harness) calls {
	return func(ctx context.Context, native, arguments string) (tool.Reply, error) {
		return v.call(ctx, h, native, arguments)
	}
}

func (v *visitor) mustCall(t testing.TB, h *harness, native, arguments string) tool.Reply {
	t.Helper()
	reply, err := v.call(t.Context(), h, native, arguments)
	if err != nil {
		t.Fatalf("%s calls %s: %v", v.session.Name, native, err)
	}
	return reply
}

// note keeps text at the server and returns all that was kept there.
func (v *visitor) note(t testing.TB, h *harness, text string) string {
	t.Helper()
	content, _ := rawjson.Get(v.mustCall(t, h, "note", `{"text":"`+text+`"}`).Result, "structuredContent")
	notes, _ := rawjson.Get(content, "notes")
	return string(notes)
}

// pids are the processes of the visitor's connection.
func (v *visitor) pids(t testing.TB, h *harness) []int {
	t.Helper()
	content, _ := rawjson.Get(v.mustCall(t, h, "pids", `{}`).Result, "structuredContent")
	raw, _ := rawjson.Get(content, "pids")
	var pids []int
	if err := json.Unmarshal(raw, &pids); err != nil || len(pids) == 0 {
		t.Fatalf("pids %s: %v", raw, err)
	}
	return pids
}

// withNotes is a script whose tools hold state.
func withNotes(s upstreamtest.Script) upstreamtest.Script {
	s.Tools = append(upstreamtest.DefaultTools(), upstreamtest.Tool("note"))
	return s
}

func isolated(cfg upstream.ServerConfig) upstream.ServerConfig {
	cfg.Isolated = true
	return cfg
}

func TestEachSessionHasItsOwnState(t *testing.T) {
	t.Parallel()
	for _, speaks := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern %v", speaks), func(t *testing.T) {
			t.Parallel()
			cfg, started := recorded(t, "s", withNotes(upstreamtest.Script{Modern: speaks, Stderr: []string{"a word"}}))
			h := start(t, isolated(cfg))
			st := h.reaches(t, "s", tool.ServerStopped) // the process that listed is not kept
			if len(h.catalog("s").Tools) != 14 || st.PID != 0 || st.LastError != "" || st.Isolation != "session" ||
				!strings.Contains(st.Hint, "a connection of its own") {
				t.Errorf("status %+v", st)
			}
			listed := started()
			ann, bob := newVisitor("ann"), newVisitor("bob")
			ann.note(t, h, "a1")
			bob.note(t, h, "b1")
			if got := ann.note(t, h, "a2"); got != `["a1","a2"]` {
				t.Errorf("ann sees %s", got)
			}
			if got := bob.note(t, h, "b2"); got != `["b1","b2"]` {
				t.Errorf("bob sees %s", got)
			}
			if st = h.status("s"); st.Sessions != 2 {
				t.Errorf("status %+v", st)
			}
			if n := started() - listed; !speaks && n != 2 {
				t.Errorf("2 sessions were connected %d times", n)
			}
			eventually(t, "the log says whose server wrote to stderr", func() bool {
				return strings.Contains(h.log.String(), `msg="a word" server=s session=ann stream=stderr`)
			})
		})
	}
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		h := start(t, stdio("s", withNotes(upstreamtest.Script{})))
		h.ready(t, "s")
		newVisitor("ann").note(t, h, "a1")
		if got := newVisitor("bob").note(t, h, "b1"); got != `["a1","b1"]` {
			t.Errorf("bob sees %s", got)
		}
		if st := h.status("s"); st.Isolation != "" || st.Sessions != 0 {
			t.Errorf("status %+v", st)
		}
	})
}

// TestRemoteServerSeesSessionsApart checks that each client session is a session of its own at a remote server, is told
// when it ends, and that one connection stays to hear of changes.
func TestRemoteServerSeesSessionsApart(t *testing.T) {
	t.Parallel()
	cfg, far := overHTTP(t, "s", upstreamtest.Options{Script: withNotes(upstreamtest.Script{})})
	h := start(t, isolated(cfg))
	h.ready(t, "s")
	ann, bob := newVisitor("ann"), newVisitor("bob")
	of := map[*visitor]string{}
	for range 2 {
		for _, v := range []*visitor{ann, bob} {
			id := v.mustCall(t, h, "raw", `{"result":{}}`).Mapping.SessionID
			if of[v] != "" && of[v] != id {
				t.Errorf("%s was in session %s and is in %s", v.session.Name, of[v], id)
			}
			of[v] = id
		}
	}
	if of[ann] == of[bob] || of[ann] == "" {
		t.Errorf("sessions %q and %q", of[ann], of[bob])
	}
	ann.end()
	eventually(t, "the server is told that ann's session is over", func() bool {
		for _, r := range far.Requests() {
			if r.Method == http.MethodDelete && r.Header.Get("Mcp-Session-Id") == of[ann] {
				return true
			}
		}
		return false
	})
	if id := bob.mustCall(t, h, "raw", `{"result":{}}`).Mapping.SessionID; id != of[bob] {
		t.Errorf("bob was moved to session %s", id)
	}
	far.AddTool(upstreamtest.Tool("later"))
	eventually(t, "the new tool is listed", func() bool { return strings.HasSuffix(h.names("s"), " later") })
}

func TestSessionEndEndsItsConnection(t *testing.T) {
	t.Parallel()
	h := start(t, isolated(stdio("s", withNotes(upstreamtestScript(upstreamtest.HasDescendant)))))
	h.reaches(t, "s", tool.ServerStopped)
	ann, bob := newVisitor("ann"), newVisitor("bob")
	gones, stays := ann.pids(t, h), bob.pids(t, h)
	hanging := make(chan error, 1)
	go func() {
		_, err := ann.call(t.Context(), h, "hang", `{}`)
		hanging <- err
	}()
	ann.mustCall(t, h, "raw", `{"result":{}}`)
	ann.end()
	if f := failure(t, <-hanging); f.Class != tool.ClassDependencyUnavailable && f.Class != tool.ClassCanceled {
		t.Errorf("the call in flight: %+v", f)
	}
	eventually(t, "ann's processes are gone", func() bool { return gone(gones) })
	eventually(t, "one connection is left", func() bool { return h.status("s").Sessions == 1 })
	if _, err := ann.call(t.Context(), h, "raw", `{"result":{}}`); failure(t, err).Class != tool.ClassCanceled {
		t.Errorf("a call after the end: %v", err)
	}
	if now := bob.pids(t, h); now[0] != stays[0] {
		t.Errorf("bob's server is process %d, was %d", now[0], stays[0])
	}
}

func TestUnusedSessionEnds(t *testing.T) {
	t.Parallel()
	cfg := isolated(stdio("s", withNotes(upstreamtest.Script{})))
	cfg.SessionIdle = 100 * time.Millisecond
	h := start(t, cfg)
	h.reaches(t, "s", tool.ServerStopped)
	ann := newVisitor("ann")
	ctx, cancel := context.WithCancel(t.Context())
	hanging := make(chan error, 1)
	go func() {
		_, err := ann.call(ctx, h, "hang", `{}`)
		hanging <- err
	}()
	ann.on(h).reach(t, "hang", 1)
	ann.note(t, h, "a1")
	pids := ann.pids(t, h)
	ann.mustCall(t, h, "sleep", `{"ms":500}`) // longer than it may be idle
	if got := ann.note(t, h, "a2"); got != `["a1","a2"]` {
		t.Errorf("a busy session lost its state: %s", got)
	}
	cancel()
	failure(t, <-hanging)
	eventually(t, "the unused connection is gone", func() bool { return gone(pids) && h.status("s").Sessions == 0 })
	if got := ann.note(t, h, "a3"); got != `["a3"]` {
		t.Errorf("after its idle time the session sees %s", got)
	}
	if st := h.status("s"); st.LastError != "" || st.State != tool.ServerStopped {
		t.Errorf("status %+v", st)
	}
}

func TestMaxSessions(t *testing.T) {
	t.Parallel()
	cfg := isolated(stdio("s", withNotes(upstreamtestScript(upstreamtest.HasDescendant))))
	cfg.MaxSessions = 2
	h := start(t, cfg)
	h.reaches(t, "s", tool.ServerStopped)
	ann, bob, eve := newVisitor("ann"), newVisitor("bob"), newVisitor("eve")
	ann.note(t, h, "a1")
	bob.note(t, h, "b1")
	_, err := eve.call(t.Context(), h, "note", `{"text":"e1"}`)
	f := failure(t, err)
	if f.Class != tool.ClassRateLimited || f.Code != "sessions_full" || !strings.Contains(f.Message, "max_sessions") ||
		!strings.Contains(f.Message, "10m0s") || f.OutcomeUnknown {
		t.Errorf("failure %+v", f)
	}
	if got := ann.note(t, h, "a2"); got != `["a1","a2"]` {
		t.Errorf("ann was disturbed: %s", got)
	}
	// At once after the end of another session: the call waits until that one's process has made room.
	pids := bob.pids(t, h)
	bob.end()
	if got := eve.note(t, h, "e1"); got != `["e1"]` {
		t.Errorf("eve sees %s", got)
	}
	if !gone(pids[:1]) {
		t.Error("there were three connections")
	}
	// A connection that has failed is in nobody's way.
	if err := syscall.Kill(eve.pids(t, h)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is noticed", func() bool { return h.status("s").Sessions == 1 })
	zoe := newVisitor("zoe")
	if got := zoe.note(t, h, "z1"); got != `["z1"]` {
		t.Errorf("zoe sees %s", got)
	}
}

func TestCrashConcernsOneSession(t *testing.T) {
	t.Parallel()
	h := start(t, isolated(stdio("s", withNotes(upstreamtest.Script{}))))
	h.reaches(t, "s", tool.ServerStopped)
	ann, bob := newVisitor("ann"), newVisitor("bob")
	for range 3 {
		ann.note(t, h, "a1")
		bob.note(t, h, "b")
		theirs, others := ann.pids(t, h)[0], bob.pids(t, h)[0]
		hanging := make(chan error, 1)
		go func() {
			_, err := ann.call(t.Context(), h, "hang", `{}`)
			hanging <- err
		}()
		ann.on(h).reach(t, "hang", 1)
		if err := syscall.Kill(theirs, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if f := failure(t, <-hanging); f.Class != tool.ClassDependencyUnavailable || !f.OutcomeUnknown {
			t.Errorf("the call in flight: %+v", f)
		}
		if got := ann.note(t, h, "a2"); got != `["a2"]` {
			t.Errorf("ann sees %s over the new connection", got)
		}
		if n := strings.Count(h.log.String(), `msg="the session's state at the server is lost: its next call starts afresh, `+
			`over a new connection" server=s session=ann`); n != 1 {
			t.Errorf("after a loss the log tells of %d", n)
		}
		if now := bob.pids(t, h)[0]; now != others {
			t.Errorf("bob's server is process %d, was %d", now, others)
		}
		if st := h.status("s"); st.Sessions != 2 || st.State != tool.ServerStopped || st.LastError != "" {
			t.Errorf("status %+v", st)
		}
		if err := syscall.Kill(ann.pids(t, h)[0], syscall.SIGKILL); err != nil { // unasked: the next call finds out
			t.Fatal(err)
		}
		eventually(t, "the loss is noticed", func() bool { return h.status("s").Sessions == 1 })
		if st := h.status("s"); !strings.Contains(st.LastError, "session ann: ") || !strings.Contains(st.LastError, "signal: killed") {
			t.Errorf("status %+v", st)
		}
		eventually(t, "ann can call again", func() bool {
			_, err := ann.call(t.Context(), h, "raw", `{"result":{}}`)
			return err == nil
		})
		ann.end()
		ann = newVisitor("ann")
		h.log.reset()
	}
}

func (l *logBuffer) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

func TestApplyAndSessions(t *testing.T) {
	t.Parallel()
	cfg := isolated(stdio("s", withNotes(upstreamtest.Script{})))
	h := start(t, cfg)
	h.reaches(t, "s", tool.ServerStopped)
	ann, bob := newVisitor("ann"), newVisitor("bob")
	anns, bobs := ann.pids(t, h), bob.pids(t, h)

	h.apply(t, cfg, stdio("other", upstreamtest.Script{}))
	if now := ann.pids(t, h); now[0] != anns[0] {
		t.Errorf("an entry that has not changed: process %d, was %d", now[0], anns[0])
	}
	done, end := make(chan error, 1), filepath.Join(t.TempDir(), "end")
	go func() {
		_, err := ann.call(t.Context(), h, "wait", fmt.Sprintf(`{"file":%q}`, end))
		done <- err
	}()
	ann.on(h).reach(t, "wait", 1)
	h.apply(t, changed(cfg, 1))
	eventually(t, "bob's connection, which was not busy, ends", func() bool {
		return strings.Contains(h.log.String(), `server=s session=bob state=stopped`)
	})
	select {
	case err := <-done:
		t.Fatalf("the call in flight has ended already: %v", err)
	default:
	}
	if now := ann.pids(t, h); now[0] == anns[0] {
		t.Error("a new call went to the retired connection")
	}
	if gone(anns) {
		t.Error("ann's busy connection is gone")
	}
	touch(t, end)
	if err := <-done; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	eventually(t, "the old connections are gone", func() bool { return gone(append(anns, bobs...)) })

	h.apply(t, changed(stdio("s", withNotes(upstreamtest.Script{})), 1)) // shared from now on
	ann.note(t, h, "a")
	if got := bob.note(t, h, "b"); got != `["a","b"]` {
		t.Errorf("shared again, bob sees %s", got)
	}
	h.apply(t, func() upstream.ServerConfig { c := isolated(cfg); c.Disabled = true; return c }())
	if _, err := ann.call(t.Context(), h, "raw", `{"result":{}}`); !strings.Contains(failure(t, err).Message, "disabled") {
		t.Errorf("disabled: %v", err)
	}
}

func TestCloseEndsSessions(t *testing.T) {
	t.Parallel()
	h := start(t, isolated(stdio("s", withNotes(upstreamtestScript(upstreamtest.HasDescendant)))))
	h.reaches(t, "s", tool.ServerStopped)
	ann, bob := newVisitor("ann"), newVisitor("bob")
	pids := append(ann.pids(t, h), bob.pids(t, h)...)
	hanging := make(chan error, 1)
	go func() {
		_, err := ann.call(t.Context(), h, "hang", `{}`)
		hanging <- err
	}()
	eventually(t, "in flight", func() bool { return h.status("s").InFlight == 1 })
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-hanging; err == nil {
		t.Error("the call in flight was answered")
	}
	eventually(t, "no process is left", func() bool { return gone(pids) })
	if _, err := bob.call(t.Context(), h, "raw", `{"result":{}}`); failure(t, err).Class != tool.ClassDependencyUnavailable {
		t.Errorf("after the end: %v", err)
	}
}

// TestLazyIsolatedServer checks that nothing is started where the tools are known, and that a session's connection brings
// the catalog up to date.
func TestLazyIsolatedServer(t *testing.T) {
	t.Parallel()
	store := newMemory()
	tools := filepath.Join(t.TempDir(), "tools")
	write := func(names ...string) {
		t.Helper()
		var all [][]byte
		for _, name := range names {
			all = append(all, upstreamtest.Tool(name))
		}
		if err := os.WriteFile(tools, append(append([]byte("["), bytes.Join(all, []byte(","))...), ']'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("note")
	cfg, started := recorded(t, "s", upstreamtest.Script{ToolsFile: tools})
	learn(t, store, cfg)
	before := started()
	write("note", "pids")
	cfg = isolated(cfg)
	cfg.Lazy = true
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: store})
	h.reaches(t, "s", tool.ServerStopped)
	if n := started() - before; n != 0 || h.names("s") != "note" {
		t.Errorf("started %d times, lists %s", n, h.names("s"))
	}
	newVisitor("ann").note(t, h, "a")
	eventually(t, "the catalog is true", func() bool { return h.names("s") == "note pids" && !h.catalog("s").Pending })
	if n := started() - before; n != 1 {
		t.Errorf("started %d times", n)
	}
}

// TestRefusedSessions checks that credentials which are refused to one session are not tried for every other.
func TestRefusedSessions(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	var asked atomic.Int64
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if !refuses.Load() || !bytes.Contains(body, []byte(`"initialize"`)) {
			return false
		}
		asked.Add(1)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return true
	}})
	h := start(t, isolated(cfg))
	h.ready(t, "s")
	refuses.Store(true)
	for i := range 5 {
		_, err := newVisitor(fmt.Sprint(i)).call(t.Context(), h, "raw", `{"result":{}}`)
		if f := failure(t, err); f.Class != tool.ClassSetupRequired || !strings.Contains(f.Message, "asks for a sign-in") {
			t.Errorf("failure %+v", f)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the server was asked %d times", n)
	}
	if st := h.reaches(t, "s", tool.ServerNeedsAuth); !strings.Contains(st.LastError, "asks for a sign-in") || st.Hint == "" {
		t.Errorf("status %+v", st)
	}
}

// TestSessionsShareTheBudget checks that clients which come and go do not start a broken server more often than its
// budget allows.
func TestSessionsShareTheBudget(t *testing.T) {
	t.Parallel()
	const budget = 5
	count := filepath.Join(t.TempDir(), "count")
	cfg := isolated(upstream.ServerConfig{ID: "s", Transport: upstream.Stdio, Command: "sh",
		Args: []string{"-c", `echo x >> "$0"; exit 3`, count}})
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, RetryMin: 5 * time.Millisecond,
		RetryMax: 10 * time.Millisecond, RetryBudget: budget, RetryRest: time.Hour})
	var last *tool.Failure
	for i := range 40 {
		v := newVisitor(fmt.Sprint(i))
		_, err := v.call(t.Context(), h, "raw", `{"result":{}}`)
		if last = failure(t, err); last.Class != tool.ClassDependencyUnavailable {
			t.Errorf("failure %+v", last)
		}
		v.end()
	}
	if last.RetryAfter < 30*time.Minute || !strings.Contains(last.Message, "so the hub pauses") {
		t.Errorf("failure %+v", last)
	}
	data, err := os.ReadFile(count)
	if err != nil {
		t.Fatal(err)
	}
	// Each failure is up to two starts: a server that ends when it is probed is tried once more without. The server's own
	// connection, which lists, has a budget as well.
	if n := strings.Count(string(data), "x"); n > 2*2*budget {
		t.Errorf("started %d times", n)
	}
	if st := h.status("s"); st.State != tool.ServerBackoff || st.NextTry == nil {
		t.Errorf("status %+v", st)
	}
}

// TestSessionsDoNotMix checks that sessions which call at the same time, end in between and find their connection just
// ended by idleness always get their own answers.
func TestSessionsDoNotMix(t *testing.T) {
	t.Parallel()
	web, _ := overHTTP(t, "s", upstreamtest.Options{})
	child := stdio("s", withNotes(upstreamtest.Script{}))
	for name, cfg := range map[string]upstream.ServerConfig{"http": web, "child": child} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := isolated(cfg)
			cfg.SessionIdle, cfg.MaxSessions = time.Millisecond, 4
			h := start(t, cfg)
			if err := h.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			var visitors sync.WaitGroup
			for i := range 4 {
				visitors.Go(func() {
					for round := range 4 {
						v := newVisitor(fmt.Sprintf("v%d.%d", i, round))
						for range 5 {
							reply, err := v.call(t.Context(), h, "echo", fmt.Sprintf(`{"me":%q}`, v.session.Name))
							if err != nil {
								t.Errorf("%s: %v", v.session.Name, err)
							} else if !bytes.Contains(reply.Result, []byte(v.session.Name)) {
								t.Errorf("%s got %s", v.session.Name, reply.Result)
							}
						}
						v.end()
					}
				})
			}
			visitors.Wait()
			eventually(t, "no connection is left", func() bool { return h.status("s").Sessions == 0 })
		})
	}
}

// TestServerThatAsksIsIsolatedByItself: sessions share a server until it asks one of them. That one keeps the connection with
// its state, and from then on others have their own.
func TestServerThatAsksIsIsolatedByItself(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("s", withNotes(withAsking(upstreamtest.Script{}))))
	h.ready(t, "s")
	ann, bob := newVisitor("ann"), newVisitor("bob")
	ann.note(t, h, "a1")
	if got := bob.note(t, h, "b1"); got != `["a1","b1"]` {
		t.Errorf("bob sees %s before the question", got)
	}
	x := execution("s", "ask", asks(`"q"`, tool.MethodElicit, `{}`))
	x.Session, x.Ask = ann.session, always(tool.Answer{Result: json.RawMessage(`{"action":"accept"}`)})
	if reply, err := h.Execute(t.Context(), x); err != nil || !strings.Contains(string(reply.Result), `accept`) {
		t.Errorf("the server is answered %s, %v", reply.Result, err)
	}
	if got := ann.note(t, h, "a2"); got != `["a1","b1","a2"]` {
		t.Errorf("ann sees %s", got)
	}
	if got := bob.note(t, h, "b2"); got != `["b2"]` {
		t.Errorf("bob sees %s", got)
	}
	if st := h.status("s"); st.Isolation != "session" || st.Sessions != 1 {
		t.Errorf("status %+v", st)
	}
}

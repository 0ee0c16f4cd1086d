package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func newServerLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

func logged(server, session, level, rest string) tool.Notification {
	return tool.Notification{Server: server, Session: session, Method: tool.NoteMessage,
		Params: json.RawMessage(`{"level":"` + level + `"` + rest + `}`)}
}

const aboutData = `,"data":{"b":1e400,"a":"\u0061"}`

// talkative logs at three wantedLevels on the call's own stream and reports progress between.
func talkative(_ context.Context, e *tool.Execution) (tool.Reply, error) {
	e.Notify(logged("s", "", "debug", aboutData))
	e.Notify(logged("s", "", "info", `,"logger":"l"`+aboutData+`,"_meta":{"mine":2}`))
	e.Progress(tool.Progress{Params: json.RawMessage(`{"progressToken":"own","progress":1}`)})
	e.Notify(logged("s", "", "error", aboutData))
	e.Notify(logged("s", "", "loud", aboutData))
	return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
}

func logLine(level, logger, rest string) string {
	return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `"` + logger + rest + `}}`
}

func TestLogMessagesOfACall(t *testing.T) {
	t.Parallel()
	debug, info, fault := logLine("debug", aboutData, `,"logger":"s"`), logLine("info", `,"logger":"s/l"`, aboutData+
		`,"_meta":{"mine":2}`),
		logLine("error", aboutData, `,"logger":"s"`)
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
	onEach(t, func(t *testing.T, c *client, v *servers, modern bool) {
		v.forward = func(ctx context.Context, r *tool.Request) (tool.Reply, error) {
			return talkative(ctx, &tool.Execution{Notify: r.Notify, Progress: r.Progress})
		}
		for _, level := range []string{"", "debug", "info", "error"} {
			meta, want := `"progressToken":1`, map[string][]string{"": {info, progress, fault},
				"debug": {debug, info, progress, fault},
				"info":  {info, progress, fault}, "error": {progress, fault}}[level]
			switch {
			case modern && level != "":
				meta += `,"io.modelcontextprotocol/logLevel":"` + level + `"`
			case modern:
				want = []string{progress} // nothing is sent to whoever has asked for nothing
			case level != "":
				c.want("0", "logging/setLevel", fmt.Sprintf(`"level":%q`, level),
					`{"jsonrpc":"2.0","id":0,"result":{}}`)
			}
			got := c.ask("1", "resources/read", `"uri":"file:///one","_meta":{`+meta+`}`)
			if strings.Join(got[:len(got)-1], "\n") != strings.Join(want, "\n") {
				t.Errorf("at level %q\ngot  %s\nwant %s", level, strings.Join(got, "\n     "),
					strings.Join(want, "\n     "))
			}
		}
		if got := c.ask("1", "logging/setLevel", `"level":"loud"`); !modern &&
			!strings.Contains(got[0], `"code":-32602`) {
			t.Errorf("a level that is none: %v", got)
		}
	})
}

func TestLogMessagesOfAToolCall(t *testing.T) {
	t.Parallel()
	f := behind(&servers{})
	f.execute = talkative
	s := newServer(t, Config{}, f)
	s.Apply(Config{}, []string{"default", "s/s"})
	c := newClient(t, s, "2025-11-25", true)
	if got := c.ask("1", "tools/call", `"name":"mcp.s.echo"`); len(got) != 3 ||
		got[0] != logLine("info", `,"logger":"s/l"`, aboutData+`,"_meta":{"mine":2}`) {
		t.Errorf("got %v", got)
	}
	w := dialProfile(t, s, "s/s")
	w.handshake("2025-11-25")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.echo"}}`)
	w.want(logLine("info", `,"logger":"l"`, aboutData+`,"_meta":{"mine":2}`), logLine("error", "", aboutData))
}

// What a server says during no call is for those who asked.
func TestLogMessagesOfNoCall(t *testing.T) {
	t.Parallel()
	v := &servers{told: make(chan string, 100)}
	s := newServer(t, Config{}, behind(v))
	ann, bob, eve := dial(t, s), dial(t, s), dial(t, s)
	for _, w := range []*wire{ann, bob, eve} {
		w.handshake("2025-06-18")
	}
	for level, w := range map[string]*wire{"info": ann, "error": bob} {
		w.send(`{"jsonrpc":"2.0","id":0,"method":"logging/setLevel","params":{"level":"` + level + `"}}`)
		w.want(`{"jsonrpc":"2.0","id":0,"result":{}}`)
	}
	v.tell(logged("s", "", "info", `,"data":1`))
	v.tell(logged("unknown", "", "emergency", `,"data":0`))
	v.tell(logged("s", "", "alert", `,"data":4`))
	ann.want(logLine("info", `,"data":1`, `,"logger":"s"`))
	for _, w := range []*wire{ann, bob} {
		w.want(logLine("alert", `,"data":4`, `,"logger":"s"`))
	}
	s.Changed(Change{Profile: "default", Prompts: true})
	eve.want(promptsChanged)
}

// What comes on a session's own connection is for that session alone, also before it has set a level.
func TestLogMessagesOfASessionsOwnConnection(t *testing.T) {
	t.Parallel()
	keys := make(chan string, 1)
	v := &servers{}
	f := behind(v)
	f.execute = func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		keys <- e.Session.Key
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	}
	s := newServer(t, Config{}, f)
	ann, bob := dial(t, s), dial(t, s)
	ann.handshake("2025-11-25")
	bob.handshake("2025-11-25")
	bob.send(`{"jsonrpc":"2.0","id":0,"method":"logging/setLevel","params":{"level":"debug"}}`)
	bob.next()
	ann.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.echo"}}`)
	ann.next()
	key := <-keys
	v.tell(logged("s", key, "debug", `,"data":0`))
	v.tell(logged("s", key, "info", `,"data":1`))
	ann.want(logLine("info", `,"data":1`, `,"logger":"s"`))
	v.tell(logged("s", "", "info", `,"data":2`))
	bob.want(logLine("info", `,"data":2`, `,"logger":"s"`))
}

// Servers hear the most talkative level that anybody wants, for as long as somebody does.
func TestLevelOfServers(t *testing.T) {
	t.Parallel()
	v := &servers{told: make(chan string, 100)}
	s := newServer(t, Config{}, behind(v))
	ann, bob := dial(t, s), dial(t, s)
	step := func(w *wire, level, want string) {
		t.Helper()
		w.send(`{"jsonrpc":"2.0","id":0,"method":"logging/setLevel","params":{"level":"` + level + `"}}`)
		w.next()
		if want == "" && len(v.told) > 0 {
			t.Errorf("%s changes nothing, but servers were told %s", level, <-v.told)
		} else if want != "" {
			if got := <-v.told; got != want {
				t.Errorf("servers were told %s, want %s", got, want)
			}
		}
	}
	ann.handshake("2025-11-25")
	bob.handshake("2025-11-25")
	step(ann, "warning", "level warning")
	step(bob, "error", "")
	step(bob, "debug", "level debug")
	_ = bob.in.Close()
	if got := <-v.told; got != "level warning" {
		t.Errorf("after bob has gone: %s", got)
	}
	step(ann, "info", "level info")
	c := newClient(t, s, "2025-11-25", true)
	c.ask("1", "logging/setLevel", `"level":"debug"`)
	s.sessions.closeWhere(func(*httpSession) bool { return true })
	for _, want := range []string{"level debug", "level info"} {
		if got := <-v.told; got != want {
			t.Errorf("around a session over HTTP servers were told %s, want %s", got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var last lastLevel
		l := wantedLevels{servers: &last}
		l.want("request", 0, levelFor)
		time.Sleep(levelFor / 2) // virtual
		l.want("request", 0, levelFor)
		time.Sleep(levelFor - time.Second)
		synctest.Wait()
		if last.Load() != "debug" {
			t.Errorf("while it counts the level is %q", last.Load())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if last.Load() != "" {
			t.Errorf("after a while the level is %q", last.Load())
		}
	})
}

// lastLevel is a server that keeps the level that it was told last.
type lastLevel struct{ atomic.Value }

func (l *lastLevel) SetLogLevel(level string) { l.Store(level) }

// The level of a session travels with its requests, for servers that want it there.
func TestLevelTravelsWithRequests(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 2)
	v := &servers{forward: func(_ context.Context, r *tool.Request) (tool.Reply, error) {
		seen <- string(r.Hop.LogLevel)
		return tool.Reply{Result: json.RawMessage(`{}`)}, nil
	}}
	c := newClient(t, newServer(t, Config{}, behind(v)), "2025-11-25", true)
	c.ask("1", "resources/read", `"uri":"file:///one"`)
	c.ask("1", "logging/setLevel", `"level":"notice"`)
	c.ask("1", "resources/read", `"uri":"file:///one"`)
	if before, after := <-seen, <-seen; before != "" || after != `"notice"` {
		t.Errorf("wantedLevels %q and %q", before, after)
	}
}

func TestOutboxIsBounded(t *testing.T) {
	t.Parallel()
	o := newOutbox(json.RawMessage(`1`))
	o.put(note{key: "k", method: "k", params: json.RawMessage(`{}`)})
	for i := range 2 * maxOutbox {
		o.put(note{method: fmt.Sprint(i), params: json.RawMessage(`{}`)})
		o.put(note{key: "k", method: "again", params: json.RawMessage(`{}`)})
	}
	var got []string
	o.drain(func(method string, _ json.RawMessage) { got = append(got, method) }, nil)
	if len(got) != maxOutbox+1 || got[0] != "k" || got[1] != fmt.Sprint(maxOutbox) ||
		got[maxOutbox] != fmt.Sprint(2*maxOutbox-1) {
		t.Errorf("%d notes: %.60q", len(got), got)
	}
	o.put(note{key: "k", method: "later", params: json.RawMessage(`{}`)})
	o.drain(func(method string, _ json.RawMessage) { got = append(got, method) }, nil)
	if got[len(got)-1] != "later" {
		t.Error("what comes later is taken for what has been told")
	}
	o.put(note{key: "k", method: "first", params: json.RawMessage(`{}`)})
	o.put(note{method: "between", params: json.RawMessage(`{}`)})
	o.drain(func(method string, _ json.RawMessage) {
		if got = append(got, method); method == "first" { // it has been told; this is news
			o.put(note{key: "k", method: "again", params: json.RawMessage(`{}`)})
		}
	}, nil)
	if got[len(got)-1] != "again" {
		t.Errorf("what comes while others are told is lost: %q", got[len(got)-2:])
	}
}

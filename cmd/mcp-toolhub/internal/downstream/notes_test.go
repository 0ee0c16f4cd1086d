package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// waitsForInput reports before its question, while that waits for the client's next request (once parked says so), and
// after the answer. said is closed when it has said what it has to say meanwhile.
func waitsForInput(meanwhile func(*tool.Execution), parked <-chan struct{}, said chan<- struct{}) func(context.Context,
	*tool.Execution) (tool.Reply, error) {
	return func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
		e.Progress(progressOf(1))
		done := make(chan struct{})
		go func() {
			defer close(done)
			<-parked
			meanwhile(e)
			close(said)
		}()
		answers, err := e.Ask(ctx, []tool.Question{{Method: tool.MethodRoots}})
		<-done
		e.Progress(progressOf(1000))
		return answered(answers, err)
	}
}

func progressOf(n int) tool.Progress {
	return tool.Progress{Params: json.RawMessage(fmt.Sprintf(`{"progress":%d}`, n))}
}

func logOf(level, data string) tool.Notification {
	return tool.Notification{Server: "s", Method: tool.NoteMessage,
		Params: json.RawMessage(fmt.Sprintf(`{"level":%q,"data":%q}`, level, data))}
}

// What a server says while its call waits for the client's next request belongs to that request:
// first of all, in order, under its token, and of the level that it asks for.
func TestSaidWhileSuspended(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, before, after string // levels of the two requests
		want                []string
	}{
		{"all", "debug", "debug", []string{"p2", "debug d", "p3", "error e", "p1000"}},
		{"another level", "debug", "error", []string{"p2", "p3", "error e", "p1000"}},
		{"no level any more", "debug", "", []string{"p2", "p3", "p1000"}},
		{"no level before", "", "debug", []string{"p2", "p3", "p1000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			parked, said := make(chan struct{}), make(chan struct{})
			f := &far{servers: &servers{}}
			f.execute = waitsForInput(func(e *tool.Execution) {
				e.Progress(progressOf(2))
				e.Notify(logOf("debug", "d"))
				e.Progress(progressOf(3))
				e.Notify(logOf("error", "e"))
			}, parked, said)
			s := newServer(t, Config{Version: "v"}, f)
			a := overHTTP(t, serve(t, s)+"/mcp")
			level := func(l string) string {
				if l == "" {
					return a.request("mcp.s.echo", `{}`, "")
				}
				return strings.Replace(a.request("mcp.s.echo", `{}`, ""), `"_meta":{`, `"_meta":{"`+metaLogLevel+`":"`+
					l+`",`, 1)
			}
			first := a.send(level(c.before))
			if len(first) != 2 || !strings.Contains(first[0], `"progress":1,"progressToken":1`) {
				t.Fatalf("got %v", first)
			}
			_, with := input(t, first[1])
			close(parked)
			<-said
			got := a.send(strings.Replace(level(c.after), `"arguments":{}`, `"arguments":{}`+
				with(`{"q1":{"roots":[]}}`), 1))
			var seen []string
			for _, m := range got[:len(got)-1] {
				var n struct {
					Params struct {
						Progress            int
						ProgressToken       int
						Level, Data, Logger string
					}
				}
				if err := json.Unmarshal([]byte(m), &n); err != nil {
					t.Fatal(err)
				}
				switch {
				case n.Params.Data != "":
					seen = append(seen, n.Params.Level+" "+n.Params.Data)
				case n.Params.ProgressToken != 2:
					t.Errorf("another request's token in %s", m)
				default:
					seen = append(seen, fmt.Sprint("p", n.Params.Progress))
				}
			}
			if !slices.Equal(seen, c.want) {
				t.Errorf("got %q, want %q", seen, c.want)
			}
			if h := s.Health(); h.Lost != 0 {
				t.Errorf("%d lost", h.Lost)
			}
		})
	}
}

// What is kept is bounded. Progress goes first, and what is lost is counted.
func TestSaidWhileSuspendedIsBounded(t *testing.T) {
	t.Parallel()
	parked, said := make(chan struct{}), make(chan struct{})
	f := &far{execute: waitsForInput(func(e *tool.Execution) {
		e.Notify(logOf("info", "kept"))
		for i := 2; i < 2+maxKept+10; i++ {
			e.Progress(progressOf(i))
		}
		e.Progress(tool.Progress{Params: json.RawMessage(`{"progress":7,"message":"` +
			strings.Repeat("x", maxKeptBytes) + `"}`)})
	}, parked, said)}
	s := newServer(t, Config{Version: "v"}, f)
	a := overHTTP(t, serve(t, s)+"/mcp")
	withLevel := func(request string) string {
		return strings.Replace(request, `"_meta":{`, `"_meta":{"`+metaLogLevel+`":"debug",`, 1)
	}
	first := a.send(withLevel(a.request("mcp.s.echo", `{}`, "")))
	_, with := input(t, first[len(first)-1])
	close(parked)
	<-said
	got := a.send(withLevel(a.request("mcp.s.echo", `{}`, with(`{"q1":{"roots":[]}}`))))
	const lost = 12 // 10, and one for the log message, and the one that is too large
	if want := maxKept + 2; len(got) != want || !strings.Contains(got[0], `"kept"`) ||
		!strings.Contains(got[1], fmt.Sprintf(`"progress":%d,`, 2+lost-1)) ||
		!strings.Contains(got[want-2], `"progress":1000`) {
		t.Errorf("%d messages, %.500s", len(got), strings.Join(got, "\n"))
	}
	if h := s.Health(); h.Lost != lost {
		t.Errorf("%d are lost, want %d", h.Lost, lost)
	}
}

func TestKept(t *testing.T) {
	t.Parallel()
	half := json.RawMessage(`"` + strings.Repeat("x", maxKeptBytes/2-2) + `"`)
	for _, c := range []struct {
		name  string
		add   []note
		left  int
		first json.RawMessage
	}{
		{"by size, progress first", []note{{method: tool.NoteMessage, params: half}, {method: tool.NoteProgress, params: half},
			{method: tool.NoteProgress, params: json.RawMessage("1")}}, 2, half},
		{"then logs", []note{{method: tool.NoteMessage, params: half}, {method: tool.NoteMessage, params: half},
			{method: tool.NoteMessage, params: json.RawMessage("1")}}, 2, half},
		{"too large by itself", []note{{method: tool.NoteProgress, params: json.RawMessage("1")},
			{method: tool.NoteProgress, params: slices.Concat(half, half, half)}}, 1, json.RawMessage("1")},
	} {
		k := callNotes{peer: &peer{modern: true, hop: tool.Hop{LogLevel: json.RawMessage(`"debug"`)}}}
		for _, n := range c.add {
			k.add(n)
		}
		all, size := k.waiting.All(), 0
		for _, n := range all {
			size += len(n.params)
		}
		if len(all) != c.left || k.lost != int64(len(c.add)-c.left) || size > maxKeptBytes ||
			string(all[0].params) != string(c.first) {
			t.Errorf("%s: %d left, %d lost, size %d", c.name, len(all), k.lost, size)
		}
	}
}

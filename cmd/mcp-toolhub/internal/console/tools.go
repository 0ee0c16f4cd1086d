package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Door is how the calls of the page come in.
const Door = "ui"

// SessionKey is the tool.Session.Key of calls that are made in a session of the page.
func SessionKey(id string) string { return Door + "/" + id }

// tools shows where each tool stands, or what a search finds.
func (v *visit) tools() (*page, error) {
	q := v.r.URL.Query()
	choices := map[string][]string{"server": serverIDs(v.Hub), "state": {"loaded", "deferred", "blocked", "excluded"},
		"client": v.today().Clients}
	data := map[string]any{"Query": q.Get("q"), "Filters": filters(q, choices, "client", "server", "state"),
		"Client": q.Get("client"), "At": v.r.URL.RawQuery}
	if query := strings.TrimSpace(q.Get("q")); query != "" {
		found, err := v.Hub.Search(v.r.Context(), v.session.id(), query)
		if err != nil {
			return nil, wrong(err)
		}
		data["Found"] = &found
		return &page{Name: "tools", Title: "Tools", Data: data}, nil
	}
	all, err := v.Hub.Places(q.Get("client"))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(t control.Tool) bool {
		return q.Get("server") != "" && t.Server != q.Get("server") || q.Get("state") != "" && t.State != q.Get("state")
	})
	slices.SortStableFunc(all, func(a, b control.Tool) int { return strings.Compare(a.Server, b.Server) })
	at, pager := v.part(len(all), toolsPerPage)
	data["Groups"], data["Pager"] = grouped(v.Hub, all, at, pager.here), pager
	return &page{Name: "tools", Title: "Tools", Data: data}, nil
}

// switchTool hides a tool from all clients, or shows it again.
func (v *visit) switchTool() (*page, error) {
	do, name := Steering(v.r.PathValue("do")), v.r.PostFormValue("name")
	if said := v.Hub.Says(name); do != Enable && do != Disable || !said.Switches {
		return nil, &fault{http.StatusConflict, "Only tools of servers can be hidden and shown."}
	}
	said, err := v.Hub.Steer(v.r.Context(), name, do)
	if err != nil {
		return nil, wrong(err)
	}
	v.sessions.say(v.session, name+": "+said)
	return &page{Redirect: Path + "tools?" + v.r.PostFormValue("at")}, nil
}

// tool shows one tool, and a form to call it.
func (v *visit) tool() (*page, error) { return v.toolPage(v.r.URL.Query().Get("name"), nil, "") }

// toolPage shows a tool with a form that has the values given, and what was wrong with them.
func (v *visit) toolPage(name string, given url.Values, problem string) (*page, error) {
	t, err := v.Hub.Tool(name)
	if errors.Is(err, ErrUnknown) {
		return nil, &fault{http.StatusNotFound, "There is no such tool, or its server is not ready."}
	}
	if err != nil {
		return nil, err
	}
	fields, rest := fieldsOf(t, given)
	p := &page{Name: "tool", Title: t.Name, Data: map[string]any{"Tool": t, "Fields": fields,
		"Rest":    strings.Join(rest, ", "),
		"Problem": problem, "JSON": given.Get("json"), "Declaration": indented(t.Declaration)}}
	if problem != "" {
		p.Status = http.StatusUnprocessableEntity
	}
	return p, nil
}

// maxTries bounds the tried calls that are kept to be shown, and those that run.
const maxTries = 50

// soon is how long a form waits for its call to end before it shows that the call runs.
const soon = time.Second

// try makes the call that the form says. It goes on without the browser; its own page shows how it ends.
func (v *visit) try() (*page, error) {
	name := v.r.PostFormValue("name")
	t, err := v.Hub.Tool(name)
	if err != nil {
		return nil, wrong(err)
	}
	arguments, err := argumentsOf(t, v.r.PostForm)
	if err != nil {
		return v.toolPage(name, v.r.PostForm, sentence(err.Error()))
	}
	call := Try{Invocation: tool.NewInvocationID(), Session: v.session.id(), Tool: name, Arguments: arguments,
		Shown: t.Mask(arguments)}
	ended, err := v.Console.tries.run(context.WithoutCancel(v.r.Context()), v.Hub, call)
	if err != nil {
		return nil, wrong(err)
	}
	timer := time.NewTimer(soon)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	return &page{Redirect: Path + "tries/" + string(call.Invocation)}, nil
}

// tried shows a call that was made here: that it runs, or how it ended.
func (v *visit) tried() (*page, error) {
	t := v.Console.tries.find(tool.InvocationID(v.r.PathValue("id")))
	if t == nil {
		return nil, &fault{http.StatusNotFound, "This call was made too long ago, or by another hub: look under Calls."}
	}
	p := &page{Name: "tried", Title: "Call of " + t.call.Tool,
		Data: map[string]any{"Call": t.call, "Arguments": indented(t.call.Shown)}}
	select {
	case <-t.ended:
		p.Data.(map[string]any)["Tried"] = &t.tried
	default:
		p.Refresh = "2"
	}
	return p, nil
}

// tries are the calls that were made on the page. Its zero value is empty. It is safe for concurrent use.
type tries struct {
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	all    []*oneTry // oldest first
}

// oneTry is a call. tried is set before ended is closed.
type oneTry struct {
	call  Try
	stop  context.CancelFunc
	ended chan struct{}
	tried Tried
}

// run makes a call. ended is closed when it has ended.
func (t *tries) run(ctx context.Context, hub Hub, call Try) (ended <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errors.New("the hub is stopping")
	}
	if len(t.all) >= maxTries {
		at := slices.IndexFunc(t.all, func(o *oneTry) bool { return o.isOver() })
		if at < 0 {
			return nil, errors.New("too many calls of this page run: wait until some have ended")
		}
		t.all = slices.Delete(t.all, at, at+1)
	}
	ctx, stop := context.WithCancel(ctx)
	one := &oneTry{call: call, stop: stop, ended: make(chan struct{})}
	t.all = append(t.all, one)
	t.running.Go(func() {
		defer stop()
		one.tried = hub.Try(ctx, call)
		close(one.ended)
	})
	return one.ended, nil
}

func (o *oneTry) isOver() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

func (t *tries) find(id tool.InvocationID) *oneTry {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.all {
		if o.call.Invocation == id {
			return o
		}
	}
	return nil
}

// close cancels the calls that run, and waits for them.
func (t *tries) close() {
	t.mu.Lock()
	t.closed = true
	for _, o := range t.all {
		o.stop()
	}
	t.mu.Unlock()
	t.running.Wait()
}

// indented is JSON for people; other text as it is.
func indented(text []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return string(text)
	}
	return out.String()
}

package login_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/login"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// newDesk makes an open desk for a hub without an HTTP side. A server of any id is at an address where nobody listens.
func newDesk(t *testing.T) *login.Desk {
	t.Helper()
	return newDeskAt(t, "")
}

// newDeskAt is newDesk for a hub with an HTTP side at base.
func newDeskAt(t *testing.T, base string) *login.Desk {
	t.Helper()
	d := login.New(login.Options{
		Store: signin.Open(t.TempDir()),
		Server: func(id string, _ tool.Session) (upstream.ServerConfig, bool) {
			return upstream.ServerConfig{ID: id, Transport: upstream.StreamableHTTP, URL: "http://127.0.0.1:1/mcp"}, true
		},
		Base: func() string { return base }, Signed: func() {}, Ready: func(context.Context) {}, Elicited: func(string) {},
		Logger: slog.New(slog.DiscardHandler),
	})
	d.Open()
	t.Cleanup(d.Close)
	return d
}

// need is a call of a client that takes addresses where ask is set.
func need(server string, ask tool.Asker) *tool.SignInNeed {
	why := &tool.Failure{Class: tool.ClassSetupRequired, Code: tool.CodeNeedsSignIn, Message: "sign in"}
	return &tool.SignInNeed{Server: server, Why: why, Session: tool.Session{Key: "x"},
		Hop: tool.Hop{ClientCapabilities: json.RawMessage(`{"elicitation":{"url":{}}}`)}, Ask: ask,
		Aside: func(_ context.Context, f func()) { f() }}
}

func accept(sent func(params string)) tool.Asker {
	return func(_ context.Context, all []tool.Question) ([]tool.Answer, error) {
		sent(string(all[0].Params))
		return []tool.Answer{{Result: json.RawMessage(`{"action":"accept"}`)}}, nil
	}
}

var (
	address = regexp.MustCompile(`http://127[^ "]+`)
	code    = regexp.MustCompile(`[B-Z]{4}-[B-Z]{4}`)
)

// privately is what only the caller is told.
func privately(t *testing.T, err error) string {
	t.Helper()
	f, ok := errors.AsType[*tool.Failure](err)
	if !ok || strings.Contains(f.Message, "sign-in/") {
		t.Fatal(err)
	}
	return f.Private
}

// get is the status at an address; 0 where nobody listens.
func get(t *testing.T, address string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestVisitsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDeskAt(t, "https://hub.example")
		err := d.SignIn(t.Context(), need("s", accept(func(string) {})))
		if err == nil || !strings.Contains(err.Error(), "nobody has signed in in time") {
			t.Errorf("the call ended with %v", err)
		}
		d.Close()
	})
}

func TestCloseEndsVisits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	at := ""
	err := d.SignIn(t.Context(), need("s", accept(func(params string) {
		at = address.FindString(params)
		go d.Close()
	})))
	if err == nil || !strings.Contains(err.Error(), "the hub is stopping") {
		t.Errorf("the call ended with %v", err)
	}
	d.Close() // which waits for the listener
	if status := get(t, at); at == "" || status != 0 {
		t.Errorf("%s answers %d", at, status)
	}
	if said := d.SignIn(t.Context(), need("s", nil)); strings.Contains(privately(t, said), "http") {
		t.Errorf("afterwards a call is sent to %v", said)
	}
}

// TestVisitsOfOneCaller: equal needs are one visit, and one caller cannot open any number.
func TestVisitsOfOneCaller(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := privately(t, d.SignIn(t.Context(), need("a", nil)))
	if again := privately(t, d.SignIn(t.Context(), need("a", nil))); address.FindString(again) != address.FindString(first) ||
		code.FindString(again) != code.FindString(first) {
		t.Errorf("%s is not %s", again, first)
	}
	for _, id := range []string{"b", "c", "d", "e"} {
		d.SignIn(t.Context(), need(id, nil))
	}
	if status := get(t, address.FindString(first)); status != http.StatusOK {
		t.Errorf("of five visits the first answers %d", status)
	}
	d.SignIn(t.Context(), need("f", nil))
	if status := get(t, address.FindString(first)); status != http.StatusNotFound {
		t.Errorf("of six visits the first answers %d", status)
	}
}

// TestCallsAskOnce: of several calls of one caller that need the same sign-in, one asks, and all end with it. The others wait for an
// answer that is long in coming, and ask nothing once there is one.
func TestCallsAskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDeskAt(t, "https://hub.example")
		var asked atomic.Int32
		answer := make(chan struct{})
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() {
				err := d.SignIn(t.Context(), need("s", accept(func(string) {
					asked.Add(1)
					<-answer
				})))
				if err == nil || !strings.Contains(err.Error(), "the hub is stopping") {
					t.Errorf("the call ended with %v", err)
				}
			})
		}
		synctest.Wait()
		if n := asked.Load(); n != 1 {
			t.Errorf("%d calls ask", n)
		}
		close(answer)
		time.Sleep(time.Minute)
		if n := asked.Load(); n != 1 {
			t.Errorf("%d calls have asked after the answer", n)
		}
		d.Close()
		calls.Wait()
	})
}

// TestNobodyIsSentToAPage where that does not help, or would be recorded.
func TestNobodyIsSentToAPage(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	hidden := need("s", nil)
	hidden.Hidden = true
	if said := privately(t, d.SignIn(t.Context(), hidden)); said != "" {
		t.Errorf("a part of a batch is told %s", said)
	}
}

// TestFailedSignIn: the page says why nobody is signed in, and so does the call.
func TestFailedSignIn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	page := ""
	err := d.SignIn(t.Context(), need("s", accept(func(params string) {
		at, form := address.FindString(params), url.Values{"code": {strings.ToLower(strings.ReplaceAll(code.FindString(params), "-", " "))}}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		page = w.Body.String()
	})))
	const says = "find the authorization server"
	if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(page, says) {
		t.Errorf("the call ended with %v, and the page is %s", err, page)
	}
}

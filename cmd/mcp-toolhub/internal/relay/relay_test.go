package relay

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
)

// line is the end of a connection that reads and writes lines.
type line struct {
	*bufio.Scanner
	io.WriteCloser
}

func (l *line) next(t *testing.T) string {
	t.Helper()
	if !l.Scan() {
		t.Fatal("there is no line more")
	}
	return l.Text()
}

func (l *line) wants(t *testing.T, text string) {
	t.Helper()
	if got := l.next(t); got != text {
		t.Fatalf("got  %s\nwant %s", got, text)
	}
}

func (l *line) say(text string) { fmt.Fprintln(l.WriteCloser, text) }

// pair is two ends of a connection.
type pair struct {
	io.Reader
	io.WriteCloser
}

func (p pair) CloseWrite() error { return p.Close() }

func newPair() (Hub, *line) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	scanner := bufio.NewScanner(inR)
	scanner.Buffer(nil, 1<<20)
	return pair{outR, inW}, &line{scanner, outW}
}

// over serves the client by a new hub, whose end it returns, with what Over returns.
func over(t *testing.T, r *Relay) (*line, <-chan bool) {
	hub, end := newPair()
	ended := make(chan bool, 1)
	go func() {
		gone, err := r.Over(t.Context(), hub)
		if err != nil {
			t.Error(err)
		}
		ended <- gone
	}()
	return end, ended
}

func request(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
}

func result(id string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id) }

// TestRelay: the next hub is told what the session is, once, and is sent what the one before has not answered, but for what that may
// have begun.
func TestRelay(t *testing.T) {
	t.Parallel()
	for _, moved := range []bool{true, false} {
		t.Run(fmt.Sprint("moved ", moved), func(t *testing.T) {
			t.Parallel()
			theirs, client := newPair()
			r := New(theirs, theirs)
			hub, ended := over(t, r)
			exchange := func(id, method, params string) {
				client.say(request(id, method, params))
				hub.wants(t, request(id, method, params))
				hub.say(result(id))
				client.wants(t, result(id))
			}
			initialize := `{"protocolVersion":"2025-11-25","n":12345678901234567890}`
			exchange("0", "initialize", initialize)
			client.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			hub.wants(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			exchange(`"l"`, "logging/setLevel", `{"level":"debug"}`)
			exchange("1", "resources/subscribe", `{"uri":"a:b"}`)
			exchange("2", "resources/subscribe", `{"uri":"a:c"}`)
			exchange("3", "resources/unsubscribe", `{"uri":"a:b"}`)
			exchange("4", "tools/call", `{"name":"done"}`)
			open := []string{request("5", "tools/call", `{"name":"open"}`), request("6", "tools/list", `{}`),
				"[" + request("7", "tools/call", `{}`) + "," + request("8", "ping", `{}`) + "]"}
			for _, text := range open {
				client.say(text)
				hub.wants(t, text)
			}
			client.say(request("9", "tools/call", `{"name":"canceled"}`))
			hub.next(t)
			cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`
			client.say(cancel)
			hub.wants(t, cancel)
			if moved {
				hub.say(strings.TrimSpace(string(Moved)))
			}
			_ = hub.Close()
			if !moved {
				for _, id := range []string{"5", "7"} {
					if got := client.next(t); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+`,"error":`) {
						t.Errorf("call %s, which may have begun, was answered %s", id, got)
					}
				}
			}
			if <-ended {
				t.Error("the client is taken to have gone")
			}

			hub, ended = over(t, r)
			for i, again := range []string{"initialize", "", "logging/setLevel", "resources/subscribe"} {
				got := hub.next(t)
				if again == "" {
					if got != `{"jsonrpc":"2.0","method":"notifications/initialized"}` {
						t.Errorf("after initialize came %s", got)
					}
					continue
				}
				if !strings.Contains(got, `"method":"`+again+`"`) || i == 0 && !strings.Contains(got, initialize) || i == 3 && !strings.Contains(got, "a:c") {
					t.Errorf("the next hub was sent %s, and wants %s", got, again)
				}
				id := got[strings.Index(got, `"id":`)+5 : strings.Index(got, `,"method"`)]
				hub.say(result(id)) // which the client does not see
			}
			want := []string{open[0], open[1], request("7", "tools/call", `{}`), request("8", "ping", `{}`)}
			if !moved {
				want = []string{open[1], request("8", "ping", `{}`)}
			}
			for _, text := range want {
				hub.wants(t, text)
			}
			client.wants(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			hub.say(result("6"))
			client.wants(t, result("6"))
			_ = client.Close()
			if hub.Scan() {
				t.Errorf("after the client has gone came %s", hub.Text())
			}
			_ = hub.Close()
			if !<-ended {
				t.Error("the client has gone")
			}
		})
	}
}

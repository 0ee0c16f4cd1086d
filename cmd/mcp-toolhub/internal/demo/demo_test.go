package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// wire is a client that speaks raw lines with a server, and keeps what was said.
type wire struct {
	t     *testing.T
	to    *io.PipeWriter
	lines chan string
	done  chan error
	log   strings.Builder
}

func dial(t *testing.T) *wire {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	w := &wire{t: t, to: to, lines: make(chan string), done: make(chan error, 1)}
	ctx := context.WithoutCancel(t.Context()) // which ends before the cleanup
	go func() { w.done <- Run(ctx, in, out, "1.2.3") }()
	go func() {
		defer close(w.lines)
		scan := bufio.NewScanner(from)
		scan.Buffer(nil, 32<<20)
		for scan.Scan() {
			w.lines <- scan.Text()
		}
	}()
	t.Cleanup(w.hangUp)
	return w
}

// hangUp ends the server's stdin, as a client does, and sees to it that the server ends without an error.
func (w *wire) hangUp() {
	w.to.Close()
	for range w.lines { // what was still under way
	}
	select {
	case err := <-w.done:
		if err != nil {
			w.t.Errorf("Run: %v", err)
		}
		w.done <- nil
	case <-time.After(time.Minute):
		w.t.Fatal("the server did not end with its stdin")
	}
}

func (w *wire) send(line string) {
	w.t.Helper()
	w.log.WriteString("> " + line + "\n")
	if _, err := io.WriteString(w.to, line+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

// receive reads one line.
func (w *wire) receive() string {
	w.t.Helper()
	select {
	case line, ok := <-w.lines:
		if !ok {
			w.t.Fatalf("the server hung up after\n%s", w.log.String())
		}
		w.log.WriteString("< " + line + "\n")
		return line
	case <-time.After(time.Minute):
		w.t.Fatalf("no answer after\n%s", w.log.String())
		return ""
	}
}

// change sends a call that changes the tools, and reads the answer and what tells of the change. Which of the two comes first is
// nobody's promise: the transcript holds the answer first.
func (w *wire) change(line string) {
	w.t.Helper()
	w.send(line)
	before := w.log.String()
	got := []string{w.receive(), w.receive()}
	if strings.Contains(got[0], "list_changed") {
		w.log.Reset()
		w.log.WriteString(before + "< " + got[1] + "\n< " + got[0] + "\n")
	}
}

// say sends a line and reads n.
func (w *wire) say(line string, n int) []string {
	w.t.Helper()
	w.send(line)
	var got []string
	for range n {
		got = append(got, w.receive())
	}
	return got
}

// golden compares what was said with testdata/name.txt.
func (w *wire) golden(name string) {
	w.t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(w.log.String()), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatalf("%v: run go test -update", err)
	}
	gotLines, wantLines := strings.SplitAfter(w.log.String(), "\n"), strings.SplitAfter(string(want), "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		got, want := lineAt(gotLines, i), lineAt(wantLines, i)
		if got != want {
			w.t.Fatalf("%s line %d:\n got %s\nwant %s", file, i+1, got, want)
		}
	}
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

func (w *wire) initialize(version, capabilities string) {
	w.t.Helper()
	w.say(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":`+capabilities+
		`,"clientInfo":{"name":"raw","version":"0"}}}`, 1)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// meta is the _meta of requests on 2026-07-28.
func meta(capabilities, more string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"0"},` +
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities + more + `}`
}

// features goes through all that needs no answer of the client. call returns a request of the generation.
func (w *wire) features(call func(id, method, params string) string) {
	w.t.Helper()
	w.say(call("1", "tools/list", ``), 1)
	w.say(call("2", "tools/call", `"name":"add","arguments":{"a":1.5,"b":-3}`), 1)
	w.say(call("3", "tools/call", `"name":"add","arguments":{"a":"x"}`), 1)
	w.say(call("4", "tools/call", `"name":"fail","arguments":{"message":"as asked"}`), 1)
	w.say(call("5", "tools/call", `"name":"no_such_tool","arguments":{}`), 1)
	w.say(call(`"six"`, "tools/call", `"name":"echo","arguments":{"z":1,"a":[{"big":12345678901234567890.50,"text":"é \u00e9"}]}`), 1)
	w.say(call("7", "tools/call", `"name":"big","arguments":{"bytes":70}`), 1)
	w.say(call("8", "tools/call", `"name":"big","arguments":{"bytes":99999999}`), 1)
	w.say(call("9", "resources/list", ``), 1)
	w.say(call("10", "resources/templates/list", ``), 1)
	w.say(call("11", "resources/read", `"uri":"demo://greeting"`), 1)
	w.say(call("12", "resources/read", `"uri":"demo://greeting/Ada%20L."`), 1)
	w.say(call("13", "resources/read", `"uri":"demo://other"`), 1)
	w.say(call("14", "prompts/list", ``), 1)
	w.say(call("15", "prompts/get", `"name":"greet","arguments":{"name":"Ada","style":"formal"}`), 1)
	w.say(call("16", "prompts/get", `"name":"greet"`), 1)
	w.say(call("17", "completion/complete", `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"k"}`), 1)
	w.say(call("18", "completion/complete", `"ref":{"type":"ref/resource","uri":"demo://greeting/{name}"},"argument":{"name":"name","value":"Gr"}`), 1)
	w.say(call("19", "completion/complete", `"ref":{"type":"ref/prompt","name":"other"},"argument":{"name":"name","value":""}`), 1)
}

func TestTranscripts2025(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := dial(t)
			w.initialize(version, `{"elicitation":{}}`)
			w.features(func(id, method, params string) string {
				return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `}}`
			})
			w.say(`{"jsonrpc":"2.0","id":30,"method":"tools/call","params":{"name":"countdown","arguments":{"steps":3,"delay_ms":1},"_meta":{"progressToken":"p1","own/key":1}}}`, 4)
			w.say(`{"jsonrpc":"2.0","id":31,"method":"tools/call","params":{"name":"countdown","arguments":{"steps":3,"delay_ms":0}}}`, 1)

			w.say(`{"jsonrpc":"2.0","id":40,"method":"tools/call","params":{"name":"countdown","arguments":{"steps":2,"delay_ms":50000},"_meta":{"progressToken":2}}}`, 1)
			w.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":40,"reason":"enough"}}`, 1)

			ask := w.say(`{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"ask_name","arguments":{}}}`, 1)[0]
			w.say(reply(t, ask, `{"action":"accept","content":{"name":"Ada"}}`), 1)
			ask = w.say(`{"jsonrpc":"2.0","id":51,"method":"tools/call","params":{"name":"ask_name","arguments":{}}}`, 1)[0]
			w.say(reply(t, ask, `{"action":"decline"}`), 1)

			w.say(`{"jsonrpc":"2.0","id":60,"method":"tools/call","params":{"name":"log","arguments":{"message":"not wanted"}}}`, 1)
			w.say(`{"jsonrpc":"2.0","id":61,"method":"logging/setLevel","params":{"level":"warning"}}`, 1)
			w.say(`{"jsonrpc":"2.0","id":62,"method":"tools/call","params":{"name":"log","arguments":{"message":"too low","level":"notice"}}}`, 1)
			w.say(`{"jsonrpc":"2.0","id":63,"method":"tools/call","params":{"name":"log","arguments":{"message":"heard","level":"error"}}}`, 2)

			w.change(`{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{"name":"grow"}}`)
			w.say(`{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"sprout_1"}}`, 1)
			w.change(`{"jsonrpc":"2.0","id":72,"method":"tools/call","params":{"name":"shrink"}}`)
			w.say(`{"jsonrpc":"2.0","id":73,"method":"tools/call","params":{"name":"shrink"}}`, 1)
			w.say(`{"jsonrpc":"2.0","id":74,"method":"ping"}`, 1)
			w.golden(version)
		})
	}
}

func TestTranscript2026(t *testing.T) {
	t.Parallel()
	w := dial(t)
	w.say(`{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{`+meta(`{}`, ``)+`}}`, 1)
	call := func(id, method, params, capabilities, more string) string {
		if params != "" {
			params += ","
		}
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + meta(capabilities, more) + `}}`
	}
	w.features(func(id, method, params string) string { return call(id, method, params, `{}`, ``) })
	w.say(call("30", "tools/call", `"name":"countdown","arguments":{"steps":3,"delay_ms":1}`, `{}`, `,"progressToken":7`), 4)

	w.say(call("40", "tools/call", `"name":"countdown","arguments":{"steps":2,"delay_ms":50000}`, `{}`, `,"progressToken":2`), 1) // it runs by now
	w.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":40}}`, 1)

	const form = `{"elicitation":{"form":{}}}`
	w.say(call("50", "tools/call", `"name":"ask_name","arguments":{}`, form, ``), 1)
	w.say(call("51", "tools/call", `"name":"ask_name","arguments":{},"inputResponses":{"name":{"action":"accept","content":{"name":"Ada"}}}`, form, ``), 1)
	w.say(call("52", "tools/call", `"name":"ask_name","arguments":{},"inputResponses":{"name":{"action":"cancel"}}`, form, ``), 1)
	w.say(call("53", "tools/call", `"name":"ask_name","arguments":{},"inputResponses":{"name":{"action":"accept","content":{"name":7}}}`, form, ``), 1)
	w.say(call("54", "tools/call", `"name":"ask_name","arguments":{}`, `{}`, ``), 1)
	w.say(call("55", "tools/call", `"name":"ask_name","arguments":{}`, `{"elicitation":{"url":{}}}`, ``), 1)

	const level = `,"io.modelcontextprotocol/logLevel":"info"`
	w.say(call("60", "tools/call", `"name":"log","arguments":{"message":"not wanted"}`, `{}`, ``), 1)
	w.say(call("61", "tools/call", `"name":"log","arguments":{"message":"heard"}`, `{}`, level), 2)

	w.say(call("70", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`, `{}`, ``), 1)
	w.change(call("71", "tools/call", `"name":"grow"`, `{}`, ``))
	w.change(call("72", "tools/call", `"name":"shrink"`, `{}`, ``))
	w.golden("2026-07-28")
}

// reply answers a request of the server.
func reply(t *testing.T, request, result string) string {
	t.Helper()
	var r struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.Unmarshal([]byte(request), &r); err != nil || r.Method != "elicitation/create" {
		t.Fatalf("no elicitation: %s", request)
	}
	return `{"jsonrpc":"2.0","id":` + string(r.ID) + `,"result":` + result + `}`
}

func TestAClientThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	for _, capabilities := range []string{`{}`, `{"elicitation":{"url":{}}}`} {
		w := dial(t)
		w.initialize("2025-11-25", capabilities)
		got := w.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_name"}}`, 1)[0]
		if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "cannot be asked") {
			t.Errorf("%s: %s", capabilities, got)
		}
	}
}

func TestGrowIsBounded(t *testing.T) {
	t.Parallel()
	g := &garden{server: newServer("0")}
	for range mostSprouts {
		if _, _, err := g.grow(); err != nil {
			t.Fatal(err)
		}
	}
	if _, out, err := g.grow(); err == nil {
		t.Errorf("one more: %v", out)
	}
	if _, out, err := g.shrink(); err != nil || len(out.Sprouts) != mostSprouts-1 {
		t.Errorf("%v, %v", out, err)
	}
}

func TestBig(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 63, 64, 65, 1000} {
		if got := big(n); len(got) != n {
			t.Errorf("big(%d) has %d bytes", n, len(got))
		}
	}
	if lines := strings.Split(big(1000), "\n"); len(lines[0]) != 63 || !strings.HasPrefix(lines[2], "00000128 ") {
		t.Errorf("%q", lines[:3])
	}
	w := dial(t)
	w.initialize("2025-11-25", `{}`)
	var r struct {
		Result struct{ Content []struct{ Text string } }
	}
	line := w.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big","arguments":{"bytes":8388608}}}`, 1)[0]
	if err := json.Unmarshal([]byte(line), &r); err != nil || len(r.Result.Content[0].Text) != 8<<20 {
		t.Errorf("the largest result: %v", err)
	}
}

// TestEndsWithItsInput hangs up while calls run that would take an hour or wait for an answer that never comes.
func TestEndsWithItsInput(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"nothing said": nil,
		"counting":     {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"countdown","arguments":{"steps":1000,"delay_ms":60000}}}`},
		"asking":       {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_name"}}`},
		"half a line":  {`{"jsonrpc":"2.0","id":1,"meth`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := dial(t)
			if lines != nil {
				w.initialize("2025-11-25", `{"elicitation":{"form":{}}}`)
			}
			for _, line := range lines {
				if name == "half a line" {
					io.WriteString(w.to, line)
					continue
				}
				w.send(line)
			}
			if name == "asking" {
				w.receive()
			}
			w.hangUp()
		})
	}
}

func TestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	in, to := io.Pipe()
	from, out := io.Pipe()
	go io.Copy(io.Discard, from)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, in, out, "0") }()
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server did not end with its context")
	}
	if _, err := to.Write([]byte("x")); err == nil {
		t.Error("stdin was left open")
	}
}

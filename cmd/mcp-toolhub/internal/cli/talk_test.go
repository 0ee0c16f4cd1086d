package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
)

// scriptTB lets a script's command use what tests use.
type scriptTB struct {
	testing.TB // nil: a command uses what is below, and no more
	ts         *testscript.TestScript
}

func (s scriptTB) Helper() {}

func (s scriptTB) Context() context.Context { return context.Background() }

func (s scriptTB) Errorf(format string, args ...any) { s.ts.Fatalf(format, args...) }

func (s scriptTB) Fatal(args ...any) { s.ts.Fatalf("%s", fmt.Sprintln(args...)) }

func (s scriptTB) Fatalf(format string, args ...any) { s.ts.Fatalf(format, args...) }

// scriptTalk: talk REVISION FILE [TOKEN] is a client that sends the requests in FILE to the hub, one a line, and prints
// the responses: "list", or "call NAME ARGUMENTS [META]". $REF stands for the first selection_ref that came so far, and
// "forget" makes the next one count. A file with "answer RESULT" steps is a client that can be asked: what it is asked during
// calls is printed, and answered with the latest of them. "cancel NAME ARGUMENTS" calls, and cancels when the call has reported progress.
// "send METHOD PARAMS" sends a request as it stands there.
func scriptTalk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: talk REVISION FILE [TOKEN]")
	}
	steps, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	w := wireHTTP(scriptTB{ts: ts}, ts.Getenv("HUB_URL")+"/mcp", args[0])
	if len(args) == 3 {
		w.headers = []string{"Authorization", "Bearer " + args[2]}
	}
	if strings.Contains("\n"+string(steps), "\nanswer ") {
		w.able()
	}
	w.open()
	ref, answer := "", ""
	x := &exchange{w: w, answer: func(_ int, q asked) string {
		fmt.Fprintln(ts.Stdout(), "?", q.params)
		return answer
	}}
	for line := range strings.Lines(string(steps)) {
		line = strings.TrimSpace(line)
		fmt.Fprintln(ts.Stdout(), ">", line)
		verb, rest, _ := strings.Cut(strings.ReplaceAll(line, "$REF", ref), " ")
		var r rawRequest
		switch verb {
		case "list":
			r = rawRequest{id: w.nextID(), method: "tools/list", params: w.params("", "")}
		case "call":
			name, more, _ := strings.Cut(rest, " ")
			arguments, meta, _ := strings.Cut(more, " META ")
			if x.meta = meta; answer != "" {
				fmt.Fprintln(ts.Stdout(), x.call(name, arguments))
				continue
			}
			r = w.call(name, arguments, meta)
		case "send":
			method, params, _ := strings.Cut(rest, " ")
			r = rawRequest{id: w.nextID(), method: method, params: params}
		case "answer":
			answer = rest
			continue
		case "cancel":
			name, arguments, _ := strings.Cut(rest, " ")
			talkCancel(ts, w, w.call(name, arguments, `"progressToken":"p"`))
			continue
		case "forget":
			ref = ""
			continue
		default:
			ts.Fatalf("%q is no step", line)
		}
		messages := w.send(r)
		response := messages[len(messages)-1]
		if found := refPattern.FindStringSubmatch(response); found != nil && ref == "" {
			ref = found[1]
		}
		for _, note := range messages[:len(messages)-1] {
			fmt.Fprintln(ts.Stdout(), "<", note)
		}
		fmt.Fprintln(ts.Stdout(), response)
	}
}

// talkCancel sends a request, waits for its first report of progress, and cancels it as its revision does over HTTP: on 2026-07-28 by closing
// its stream.
func talkCancel(ts *testscript.TestScript, w *wire, r rawRequest) {
	next, end := w.begin(r)
	defer end()
	note := next()
	fmt.Fprintln(ts.Stdout(), "<", note)
	if !strings.Contains(note, "notifications/progress") {
		ts.Fatalf("the call reports no progress")
	}
	if !w.modern() {
		w.post(rawRequest{method: "notifications/cancelled", params: `{"requestId":` + r.id + `,"reason":"the user pressed escape"}`})
	}
}

// scriptPending: pending NAME waits until one question is open in the hub whose state is in the home directory, and sets NAME
// to its id.
func scriptPending(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: pending NAME")
	}
	state := filepath.Join(ts.Getenv("XDG_STATE_HOME"), "mcp-toolhub")
	id := ""
	eventually(scriptTB{ts: ts}, "a question is open", func() bool {
		all, err := control.Find(context.Background(), state)
		if err != nil || len(all) != 1 {
			return false
		}
		open, err := all[0].Approvals(context.Background())
		if err != nil || len(open) != 1 {
			return false
		}
		id = string(open[0].ID)
		return true
	})
	ts.Setenv(args[0], id)
}

var refPattern = regexp.MustCompile(`selection_ref\\?":\\?"([A-Za-z0-9_-]{32})`)

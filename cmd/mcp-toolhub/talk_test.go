package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptTB lets a script's command use what tests use.
type scriptTB struct {
	testing.TB // nil: a command uses what is below, and no more
	ts         *testscript.TestScript
}

func (s scriptTB) Helper() {}

func (s scriptTB) Context() context.Context { return context.Background() }

func (s scriptTB) Fatal(args ...any) { s.ts.Fatalf("%s", fmt.Sprintln(args...)) }

func (s scriptTB) Fatalf(format string, args ...any) { s.ts.Fatalf(format, args...) }

// scriptTalk: talk REVISION FILE [TOKEN] is a client that sends the requests in FILE to the hub, one a line, and prints
// the responses: "list", or "call NAME ARGUMENTS [META]". $REF stands for the first selection_ref that came so far, and
// "forget" makes the next one count.
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
	w.open()
	ref := ""
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
			r = w.call(name, arguments, meta)
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
		fmt.Fprintln(ts.Stdout(), response)
	}
}

var refPattern = regexp.MustCompile(`selection_ref\\?":\\?"([A-Za-z0-9_-]{32})`)

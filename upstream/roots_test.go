package upstream_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestRootsChanged checks who is told that a client's roots have changed, in which words, and that the server which then
// asks for them is answered, though no call is in flight: by the next one's client.
func TestRootsChanged(t *testing.T) {
	t.Parallel()
	const note = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"`
	news := json.RawMessage("{\"_meta\":{\"io.modelcontextprotocol/x\":1,\"n\":12345678901234567890},\n\"y\":\"\\u003c\"}")
	for name, c := range map[string]struct {
		script   upstreamtest.Script
		http     *upstreamtest.Options
		shared   bool
		says     string
		news     json.RawMessage
		want     string // notification; "" for none
		answered bool
	}{
		"stdio":              {says: everything, news: news, want: note + `,"params":{"_meta":{"n":12345678901234567890},"y":"\u003c"}}`, answered: true},
		"sse":                {http: &upstreamtest.Options{SSE: true}, says: everything, want: note + `}`, answered: true},
		"http":               {http: &upstreamtest.Options{}, says: everything, news: json.RawMessage(`[`), want: note + `}`, answered: true},
		"client without":     {says: `{"roots":{}}`},
		"client of nothing":  {says: `{}`},
		"shared stdio":       {shared: true, says: everything},
		"shared http":        {shared: true, http: &upstreamtest.Options{}, says: everything},
		"2026-07-28 on http": {script: upstreamtest.Script{Modern: true}, http: &upstreamtest.Options{}, says: everything},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := withAsking(c.script)
			script.Behaviours = []upstreamtest.Behaviour{upstreamtest.AsksAgain}
			script.Record = filepath.Join(t.TempDir(), "received")
			cfg := stdio("s", script)
			var far *upstreamtest.Handler
			if c.http != nil {
				o := *c.http
				o.Script = script
				cfg, far = overHTTP(t, "s", o)
			}
			cfg.Isolated = !c.shared
			h := start(t, cfg)
			var asked atomic.Int64
			roots := tool.Answer{Result: json.RawMessage(`{"roots":[{"uri":"file:///new"}]}`)}
			ann := caller{name: "ann", says: c.says, ask: func(ctx context.Context, q []tool.Question) ([]tool.Answer, error) {
				asked.Add(1)
				return always(roots)(ctx, q)
			}}
			calls := func(native string) {
				t.Helper()
				if _, err := ann.call(t.Context(), h, native, `{}`); err != nil {
					t.Fatal(err)
				}
			}
			calls("echo")
			if c.answered && far != nil {
				eventually(t, "the session's connection is listened on", func() bool { return far.Listening() == 2 }) // and the one that lists
			}
			h.RootsChanged(tool.Session{Key: "test/bob", Name: "bob"}, nil) // who has no connection
			h.RootsChanged(tool.Session{Key: "test/ann", Name: "ann"}, c.news)
			if c.answered {
				all := ann.answers(t, h, "answers", `{"wait":"file:///new"}`)
				if !slices.ContainsFunc(all, func(a string) bool { // over HTTP the connection that lists is refused
					return strings.HasPrefix(a, `{"jsonrpc":"2.0","id":"again-`) && strings.HasSuffix(a, `"result":{"roots":[{"uri":"file:///new"}]}}`)
				}) {
					t.Errorf("answered %q", all)
				}
			}
			calls("echo")
			var told []string
			for _, line := range gotBy(t, far, script.Record) {
				if strings.Contains(line, "roots/list_changed") {
					told = append(told, line)
				}
			}
			if c.want == "" && len(told) > 0 || c.want != "" && !slices.Equal(told, []string{c.want}) {
				t.Errorf("told %q, want %s", told, c.want)
			}
			if n := asked.Load(); !c.answered && n > 0 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// gotBy is what a server got: far over HTTP, or else the one that records it.
func gotBy(t testing.TB, far *upstreamtest.Handler, record string) (lines []string) {
	t.Helper()
	if far != nil {
		for _, r := range far.Requests() {
			lines = append(lines, string(r.Body))
		}
		return lines
	}
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(data), "\n")
}

// TestRootsAreAskedForOutsideCalls checks that roots may be asked for when no call is in flight.
func TestRootsAreAskedForOutsideCalls(t *testing.T) {
	t.Parallel()
	script := withAsking(upstreamtest.Script{})
	script.Tools = append(script.Tools, upstreamtest.Tool("answer"))
	cfg := stdio("s", script)
	cfg.Isolated = true
	h := start(t, cfg)
	ann := caller{name: "ann", says: everything, ask: always(tool.Answer{Result: json.RawMessage(`{"roots":[]}`)})}
	if _, err := ann.call(t.Context(), h, "echo", `{}`); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(`{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}` + "\n" +
		`{"jsonrpc":"2.0","id":"news","method":"roots/list","params":{}}`) // as soon as the call has been answered
	if _, err := ann.call(t.Context(), h, "answer", `{"text":`+string(text)+`}`); err != nil {
		t.Fatal(err)
	}
	all := ann.answers(t, h, "answers", `{"wait":"roots"}`)
	if len(all) != 1 || !strings.Contains(all[0], `"id":"news"`) || !strings.Contains(all[0], `"roots":[]`) {
		t.Errorf("answered %q", all)
	}
}

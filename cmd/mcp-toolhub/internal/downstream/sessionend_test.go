package downstream

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// The end of a session is told under the name that its calls have, once, whichever way it ends.
// Callers without a session have no such name over HTTP; on stdio they have that of the one client.
func TestSessionEndIsTold(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stdio", "stdio without a handshake", "deleted", "idle", "without sessions"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cfg := Config{}
			if how == "idle" {
				cfg.HTTP.SessionIdle = 5 * time.Second // its one call comes before that
			}
			seen, ended := make(chan string, 10), make(chan string, 10)
			s := newServer(t, cfg, &far{execute: func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
				seen <- e.Actor.Session
				return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
			}, sessionEnds: ended})
			switch how {
			case "stdio", "stdio without a handshake":
				w := dial(t, s)
				call := callEcho
				if how == "stdio" {
					w.handshake("2025-11-25")
				} else {
					call = `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"mcp.s.echo","_meta":{` +
						modernMeta + `}}}`
				}
				w.send(call)
				w.next()
				if err := w.in.Close(); err != nil {
					t.Fatal(err)
				}
			case "without sessions":
				if status, got := modernCall(t, serve(t, s)+"/mcp", "1", "mcp.s.echo", ""); status != 200 {
					t.Fatalf("call: %d %v", status, got)
				}
				if session := <-seen; session != "" {
					t.Errorf("the caller has the session %q", session)
				}
				return
			default:
				url := serve(t, s) + "/mcp"
				id := open(t, url, "2025-11-25")
				if status, _, got := post(t, url, callEcho, headerSession, id); status != 200 {
					t.Fatalf("call: %d %v", status, got)
				}
				if how == "idle" {
					break
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set(headerSession, id)
				resp, err := web().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			}
			want := <-seen
			select {
			case got := <-ended:
				if got != want || got == "" {
					t.Errorf("ended is %q, called has %q", got, want)
				}
			case <-time.After(time.Minute):
				t.Fatal("nothing was told")
			}
			s.Drain(t.Context())
			select {
			case got := <-ended:
				t.Errorf("told again: %q", got)
			default:
			}
		})
	}
}

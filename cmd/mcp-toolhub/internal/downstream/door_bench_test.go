package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// BenchmarkDoor measures what a small tools/call takes from the HTTP handler to its answer, beside
// what the pipeline alone takes of that (invoke). The server answers at once, and nothing travels
// over a network.
func BenchmarkDoor(b *testing.B) {
	const call = `"method":"tools/call","params":{"name":"mcp.s.echo","arguments":{"text":"hello"}`
	old := `{"jsonrpc":"2.0","id":7,` + call + `}}`
	f := &far{sync: 100 * time.Millisecond, execute: func(context.Context, *tool.Execution) (tool.Reply, error) {
		text := json.RawMessage(`{"content":[{"type":"text","text":"hello"}],"structuredContent":{"text":"hello"}}`)
		object, err := rawjson.ReadObject(text)
		return tool.Reply{Result: text, Object: object}, err
	}}
	s := newServer(b, Config{}, f)
	handler := s.Handler()
	session := open(b, serve(b, s)+"/mcp", "2025-11-25")
	b.Run("invoke", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.deps.Pipeline.Invoke(b.Context(), &invoke.Call{Surface: f.surface, Name: "mcp.s.echo",
				Params:    json.RawMessage(old[40:]),
				Arguments: json.RawMessage(`{"text":"hello"}`), NativeCallID: json.RawMessage(`7`),
				Method: tool.MethodToolsCall,
				Actor:  tool.Actor{Name: localActor, Door: httpActor}})
		}
	})
	for name, request := range map[string]struct {
		body    string
		headers []string
	}{
		"2025-11-25": {old, []string{headerSession, session, headerVersion, "2025-11-25"}},
		"2026-07-28": {`{"jsonrpc":"2.0","id":7,` + call + `,"_meta":{` + modernMeta + `}}}`,
			[]string{headerVersion, "2026-07-28", headerMethod, tool.MethodToolsCall, headerName, "mcp.s.echo"}},
	} {
		b.Run(name, func(b *testing.B) {
			w := &fakeConn{header: http.Header{}}
			r, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://127.0.0.1/mcp", nil)
			for i := 0; i < len(request.headers); i += 2 {
				r.Header.Set(request.headers[i], request.headers[i+1])
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.ContentLength = int64(len(request.body))
			in := strings.NewReader("")
			r.Body = io.NopCloser(in)
			b.ReportAllocs()
			for b.Loop() {
				in.Reset(request.body)
				w.out.Reset()
				clear(w.header)
				handler.ServeHTTP(w, r)
			}
			if !strings.Contains(w.out.String(), `"structuredContent":{"text":"hello"}`) {
				b.Fatalf("answered %s", w.out.String())
			}
		})
	}
}

// fakeConn takes responses without a network.
type fakeConn struct {
	header http.Header
	status int
	out    bytes.Buffer
}

func (c *fakeConn) Header() http.Header              { return c.header }
func (c *fakeConn) WriteHeader(status int)           { c.status = status }
func (c *fakeConn) Write(text []byte) (int, error)   { return c.out.Write(text) }
func (c *fakeConn) Flush()                           {}
func (c *fakeConn) SetReadDeadline(time.Time) error  { return nil }
func (c *fakeConn) SetWriteDeadline(time.Time) error { return nil }

package upstream_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestAnswersInOddLines: on stdio an answer counts once its JSON is complete, whatever stands around it, and what can be
// no answer ends the call that waits for it.
func TestAnswersInOddLines(t *testing.T) {
	t.Parallel()
	const broken = "is no well-formed JSON"
	for name, c := range map[string]struct{ line, err string }{
		"text before":         {`Loading... {"jsonrpc":"2.0","id":'$id',"result":{"a":1}}`, ""},
		"colours before":      {`\033[2K{"jsonrpc":"2.0","id":'$id',"result":{"a":1}}`, ""},
		"a byte order mark":   {`\357\273\277{"jsonrpc":"2.0","id":'$id',"result":{"a":1}}`, ""},
		"another behind":      {`{"jsonrpc":"2.0","id":'$id',"result":{"a":1}}{"jsonrpc":"2.0","method":"notifications/message"}`, ""},
		"several lines":       {`{\n "jsonrpc": "2.0",\n "id": '$id',\n "result": {\n  "a": 1\n }\n}`, ""},
		"no version":          {`{"id":'$id',"result":{"a":1}}`, ""},
		"no such number":      {`{"jsonrpc":"2.0","id":'$id',"result":{"a":NaN}}`, broken},
		"cut short":           {`{"jsonrpc":"2.0","id":'$id',"result":{"a":"b`, broken},
		"cut short at its id": {`{"jsonrpc":"2.0","result":{"a":"b`, broken},
		"no beginning":        {`"jsonrpc":"2.0","id":'$id',"result":{"a":1}}`, broken},
		"an error for no id":  {`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot read that"}}`, "cannot read that"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, oddChild(c.line))
			h.ready(t, "s")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for range 2 {
				reply, err := h.call(ctx, "s", "t", `{}`)
				if c.err == "" && (err != nil || string(reply.Result) != `{"a":1}` && string(reply.Result) != `{ "a": 1 }`) ||
					c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
					t.Errorf("%s, %v", reply.Result, err)
				}
			}
		})
	}
}

// oddChild is a server on stdio that answers each call with this text, for printf; $id is the id.
func oddChild(answer string) upstream.ServerConfig {
	return upstream.ServerConfig{ID: "s", Transport: upstream.Stdio, Command: "/bin/sh", Args: []string{"-c", `while read -r line; do
		id=${line#*\"id\":}; id=${id%%,*}
		case $line in
		*server/discover*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no such method"}}' ;;
		*initialize\"*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}' ;;
		*tools/list*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}' ;;
		*tools/call*) printf '` + strings.ReplaceAll(answer, "%", "%%") + `\n' ;;
		esac; done`}}
}

// TestNoiseOfALogEndsNoCall: a line of a log is noise, though it has an id, or quotes a request.
func TestNoiseOfALogEndsNoCall(t *testing.T) {
	t.Parallel()
	h := start(t, oddChild(`{"level":30,"id":'$id'}\n{"log":{"jsonrpc":"2.0","id":'$id',"result":{}}}\n`+
		`got {"jsonrpc":"2.0","id":'$id',"method":"tools/call"}\n{\n{"jsonrpc":"2.0","id":'$id',"result":{"a":1}}`))
	h.ready(t, "s")
	if got := string(h.mustCall(t, "s", "t", `{}`)); got != `{"a":1}` {
		t.Errorf("result %s", got)
	}
}

// TestAnswersInOddBodies: over HTTP an answer counts once its JSON is complete.
func TestAnswersInOddBodies(t *testing.T) {
	t.Parallel()
	const answer = `{"jsonrpc":"2.0","id":$ID,"result":{"a":1}}`
	for name, c := range map[string]struct {
		media, body string
		length      int // over that of the body
		ends        bool
	}{
		"no blank line":          {"text/event-stream", "data: " + answer + "\n", 0, false},
		"no end of line":         {"text/event-stream", "data: " + answer, 0, true},
		"too long":               {"application/json", answer, 2, false},
		"too long, and ends":     {"application/json", answer, 2, true},
		"never ends":             {"application/json", answer, -1, false},
		"a byte order mark":      {"application/json", "\ufeff" + answer, 0, true},
		"an event as JSON":       {"application/json", "event: message\ndata: " + answer + "\n\n", 0, true},
		"another content type":   {"text/plain", answer, 0, true},
		"no content type at all": {"", answer, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
				var m struct{ ID json.RawMessage }
				if _ = json.Unmarshal(body, &m); !strings.Contains(string(body), `"tools/call"`) {
					return false
				}
				text := strings.ReplaceAll(c.body, "$ID", string(m.ID))
				conn, out, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return true
				}
				head := "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: " + c.media + "\r\n"
				if c.length >= 0 && c.media != "text/event-stream" {
					head += fmt.Sprintf("Content-Length: %d\r\n", len(text)+c.length)
				}
				send(out, head+"\r\n"+text)
				if c.ends {
					_ = conn.Close()
				} else {
					t.Cleanup(func() { _ = conn.Close() })
				}
				return true
			}})
			h := start(t, cfg)
			h.ready(t, "s")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if reply, err := h.call(ctx, "s", "echo", `{}`); err != nil || string(reply.Result) != `{"a":1}` {
				t.Errorf("result %s, %v", reply.Result, err)
			}
		})
	}
}

func send(out *bufio.ReadWriter, text string) {
	_, _ = out.WriteString(text)
	_ = out.Flush()
}

// TestAnswerOnTheStandingStream: a server may end the POST of a request without a byte, and answer on the stream that a
// GET has opened.
func TestAnswerOnTheStandingStream(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]func(http.ResponseWriter){
		"202":    func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) },
		"stream": func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") },
		"text":   func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/plain") },
	} {
		for _, offers := range []bool{true, false} {
			t.Run(fmt.Sprint(name, offers), func(t *testing.T) {
				t.Parallel()
				var once sync.Once
				answers, gone := make(chan string, 10), make(chan struct{})
				t.Cleanup(func() { once.Do(func() { close(gone) }) })
				cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
					var m struct {
						ID     json.RawMessage
						Method string
					}
					_ = json.Unmarshal(body, &m)
					switch {
					case r.Method == http.MethodGet && !offers:
						w.WriteHeader(http.StatusMethodNotAllowed)
					case r.Method == http.MethodGet:
						w.Header().Set("Content-Type", "text/event-stream")
						_ = http.NewResponseController(w).Flush()
						for {
							select {
							case answer := <-answers:
								fmt.Fprintf(w, "data: %s\n\n", answer)
								_ = http.NewResponseController(w).Flush()
							case <-r.Context().Done():
								return true
							case <-gone:
								return true
							}
						}
					case m.Method == "tools/call":
						answers <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"a":1}}`, m.ID)
						head(w)
					default:
						return false
					}
					return true
				}})
				h := start(t, cfg)
				h.ready(t, "s")
				reply, err := h.call(t.Context(), "s", "echo", `{}`)
				if offers && (err != nil || string(reply.Result) != `{"a":1}`) {
					t.Errorf("%s, %v", reply.Result, err)
				}
				if !offers {
					if f := failure(t, err); f.Class != tool.ClassDependencyUnavailable || !f.OutcomeUnknown {
						t.Errorf("failure %+v", f)
					}
				}
			})
		}
	}
}

// TestProgressTokenIsRefused: a server may refuse params that it does not know. The call is sent again without the hub's own token, and later calls have none.
func TestProgressTokenIsRefused(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{JSON: true, Intercept: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if !bytes.Contains(body, []byte(`"tools/call"`)) {
			return false
		}
		calls.Add(1)
		var m struct{ ID json.RawMessage }
		_ = json.Unmarshal(body, &m)
		w.Header().Set("Content-Type", "application/json")
		if bytes.Contains(body, []byte("_meta")) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown params ['_meta']"}}`, m.ID)
		} else {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"a":1}}`, m.ID)
		}
		return true
	}})
	h := start(t, cfg)
	h.ready(t, "s")
	for range 2 {
		if got := string(h.mustCall(t, "s", "echo", `{}`)); got != `{"a":1}` {
			t.Errorf("result %s", got)
		}
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// greeting is an initialize that a server has received, with the Accept of its request.
type greeting struct {
	Method string
	Params struct {
		ProtocolVersion string
		Capabilities    json.RawMessage
	}
	accept string
}

// fussy is a server over HTTP that refuses greetings. refuse answers one and returns true if it does so.
func fussy(t *testing.T, refuse func(http.ResponseWriter, greeting) bool) (upstream.ServerConfig, func() []greeting) {
	var mu sync.Mutex
	var all []greeting
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		g := greeting{accept: r.Header.Get("Accept")}
		_ = json.Unmarshal(body, &g)
		if g.Method != "initialize" && g.Method != "server/discover" {
			return false
		}
		if g.Method == "initialize" {
			mu.Lock()
			all = append(all, g)
			mu.Unlock()
		}
		return refuse(w, g)
	}})
	return cfg, func() []greeting {
		mu.Lock()
		defer mu.Unlock()
		return append([]greeting(nil), all...)
	}
}

// answerRPC answers a request of any id with an error.
func answerRPC(w http.ResponseWriter, status int, code int, message string) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`, code, message)
	return true
}

// TestHandshakeWithLess: a server that refuses initialize is offered less, and is spared the refused offers from then
// on, also by the next hub.
func TestHandshakeWithLess(t *testing.T) {
	t.Parallel()
	const older = `unsupported protocol version 2025-11-25, supported: 2024-11-05, 2025-03-26`
	for name, c := range map[string]struct {
		refuse func(http.ResponseWriter, greeting) bool
		tries  int
	}{
		"parts of elicitation": {func(w http.ResponseWriter, g greeting) bool {
			return strings.Contains(string(g.Params.Capabilities), "form") &&
				answerRPC(w, 200, -32603, `Unrecognized field "form"`)
		}, 2},
		"any capability, as text": {func(w http.ResponseWriter, g greeting) bool {
			if len(g.Params.Capabilities) <= len("{}") {
				return false
			}
			http.Error(w, "bad request", http.StatusBadRequest)
			return true
		}, 3},
		"a version that it names": {func(w http.ResponseWriter, g greeting) bool {
			return g.Params.ProtocolVersion != "2025-03-26" && answerRPC(w, 400, -32602, older)
		}, 2},
		"a version that it does not name": {func(w http.ResponseWriter, g greeting) bool {
			return g.Params.ProtocolVersion != "2025-06-18" && answerRPC(w, 200, -32602, "no")
		}, 4},
		"Accept": {func(w http.ResponseWriter, g greeting) bool {
			if strings.HasPrefix(g.accept, "text/event-stream") {
				return false
			}
			w.WriteHeader(http.StatusNotAcceptable)
			return true
		}, 1}, // server/discover finds it out
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, greetings := fussy(t, func(w http.ResponseWriter, g greeting) bool {
				return c.refuse(w, g) || g.Method == "server/discover" && answerRPC(w, 200, -32601, "no such method")
			})
			catalogs, err := persist.OpenCatalogs(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			all := upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: catalogs}
			h := startConfig(t, all)
			h.ready(t, "s")
			h.mustCall(t, "s", "echo", `{}`)
			if n := len(greetings()); n != c.tries {
				t.Errorf("%d times initialize, want %d: %+v", n, c.tries, greetings())
			}
			startConfig(t, all).ready(t, "s")
			if n := len(greetings()); n != c.tries+1 {
				t.Errorf("%d times initialize with the next hub, want %d", n, c.tries+1)
			}
		})
	}
}

// TestHandshakeThatIsRefused: what a server says to the first try is what people see, and refusals that say something
// about the hub or the server lead to no other try.
func TestHandshakeThatIsRefused(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{400: 6, 401: 1, 403: 1, 429: 1, 503: 1} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			cfg, greetings := fussy(t, func(w http.ResponseWriter, g greeting) bool {
				return answerRPC(w, status, -32600, g.Method+" with "+string(g.Params.Capabilities))
			})
			h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, RetryMin: 1 << 40})
			st := h.reaches(t, "s", map[bool]tool.ServerState{true: tool.ServerNeedsAuth, false: tool.ServerBackoff}[status == 401 ||
				status == 403])
			if n := len(greetings()); n != want {
				t.Errorf("%d times initialize, want %d", n, want)
			}
			if status == 400 && !strings.Contains(st.LastError, "form") {
				t.Errorf("error %q", st.LastError)
			}
		})
	}
}

// TestPinnedProtocol: an entry can say which revision is spoken.
func TestPinnedProtocol(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2026-07-28", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			cfg, handler := overHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Modern: version > "2026"}})
			cfg.Protocol = version
			h := start(t, cfg)
			h.ready(t, "s")
			if first := string(handler.Requests()[0].Body); !strings.Contains(first, version) ||
				strings.Contains(first, "initialize") != (version < "2026") {
				t.Errorf("first request %s", first)
			}
		})
	}
}

// TestHandshakeOfAChildThatEndsWithItsRefusal: the child is started again, for the next try.
func TestHandshakeOfAChildThatEndsWithItsRefusal(t *testing.T) {
	t.Parallel()
	const script = `while read -r line; do
		id=${line#*\"id\":}; id=${id%%,*}
		case $line in
		*server/discover*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no such method"}}' ;;
		*2025-03-26*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-03-26","capabilities":{}}}' ;;
		*initialize\"*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32602,"message":"I speak 2025-03-26"}}'; exit 1 ;;
		esac; done`
	h := start(t, upstream.ServerConfig{ID: "s", Transport: upstream.Stdio, Command: "/bin/sh", Args: []string{"-c", script}})
	if st := h.ready(t, "s"); st.ProtocolVersion != "2025-03-26" {
		t.Errorf("status %+v", st)
	}
}

// TestOneWrongValueOfAServer: a value of another type than the protocol's costs itself, and not the server.
func TestOneWrongValueOfAServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ hello, tools, want string }{
		"capabilities of PHP": {`"capabilities":{"tools":[],"prompts":[],"logging":[]},"serverInfo":{"name":"f"}`, `[{"name":"t","inputSchema":{}}]`, "t"},
		"capability true":     {`"capabilities":{"tools":true,"resources":{"subscribe":"yes"}}`, `[{"name":"t","inputSchema":{}}]`, "t"},
		"a list of none":      {`"capabilities":[]`, `[{"name":"t","inputSchema":{}}]`, "t"},
		"version":             {`"capabilities":{"tools":{}},"serverInfo":{"name":7,"version":1.0},"instructions":[]`, `[{"name":"t","inputSchema":{}}]`, "t"},
		"tools null":          {`"capabilities":{"tools":{}}`, `null`, ""},
		"tools of Lua":        {`"capabilities":{"tools":{}}`, `{}`, ""},
		"one element":         {`"capabilities":{"tools":{}}`, `[null,7,"x",{"name":"t","inputSchema":{}}]`, "t"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
				var m struct {
					ID     json.RawMessage
					Method string
				}
				_ = json.Unmarshal(body, &m)
				result := `{}`
				switch m.Method {
				case "initialize":
					result = `{"protocolVersion":"2025-06-18",` + c.hello + `}`
				case "tools/list":
					result = `{"tools":` + c.tools + `}`
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
				return m.ID != nil
			}})
			h := start(t, cfg)
			h.ready(t, "s")
			if got := h.names("s"); got != c.want {
				t.Errorf("tools %q, want %q", got, c.want)
			}
		})
	}
}

// TestRetryAfterOutlivesTheHub: a server that wants no request for a while is sent none by the next hub either.
func TestRetryAfterOutlivesTheHub(t *testing.T) {
	t.Parallel()
	cfg, handler := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	}})
	all := upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: newMemory()}
	startConfig(t, all).reaches(t, "s", tool.ServerBackoff)
	n := len(handler.Requests())
	st := startConfig(t, all).reaches(t, "s", tool.ServerBackoff)
	if len(handler.Requests()) != n || !strings.Contains(st.LastError, "wants no request") {
		t.Errorf("%d requests more, %q", len(handler.Requests())-n, st.LastError)
	}
}

package downstream

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// asker is a client of 2026-07-28, on stdio or HTTP.
type asker struct {
	t            *testing.T
	capabilities string
	send         func(request string) (messages []string) // up to the response
	id           int
}

// overStdio is such a client on a pipe.
func overStdio(t *testing.T, s *Server) *asker {
	w := dial(t, s)
	return &asker{t: t, capabilities: allCapabilities, send: func(request string) (all []string) {
		w.send(request)
		for {
			all = append(all, w.next())
			if !strings.Contains(all[len(all)-1], `"method":"notifications/`) {
				return all
			}
		}
	}}
}

// overHTTP is such a client of the hub at base, with further headers.
func overHTTP(t *testing.T, base string, headers ...string) *asker {
	return &asker{t: t, capabilities: allCapabilities, send: func(request string) []string {
		var m struct {
			Method string
			Params struct{ Name, URI string }
		}
		_ = json.Unmarshal([]byte(request), &m)
		_, _, got := post(t, base, request, append([]string{headerVersion, "2026-07-28", headerMethod, m.Method,
			headerName, m.Params.Name + m.Params.URI}, headers...)...)
		return got
	}}
}

// request is a tools/call with more params, for instance `,"requestState":"…"`.
func (c *asker) request(name, arguments, more string) string {
	return c.requestOf("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s%s`, name, arguments, more))
}

// requestOf is a request with params, the inside of the object.
func (c *asker) requestOf(method, params string) string {
	c.id++
	meta := strings.Replace(modernMeta, `clientCapabilities":{}`, `clientCapabilities":`+c.capabilities, 1)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,"_meta":{"progressToken":%d,%s}}}`,
		c.id, method, params, c.id, meta)
}

// ask sends such a request and returns its response.
func (c *asker) ask(method, params string) string {
	got := c.send(c.requestOf(method, params))
	return got[len(got)-1]
}

// call makes a call and returns its response.
func (c *asker) call(name, arguments, more string) string {
	got := c.send(c.request(name, arguments, more))
	return got[len(got)-1]
}

// input reads a result that needs input: what is asked, and the members of params that bring the answers.
func input(t testing.TB, response string) (requests string, with func(responses string) string) {
	t.Helper()
	result, _ := rawjson.Get([]byte(response), "result")
	kind, _ := rawjson.Get(result, "resultType")
	raw, _ := rawjson.Get(result, "inputRequests")
	state, _ := rawjson.Get(result, "requestState")
	if string(kind) != `"input_required"` || len(state) < 50 {
		t.Fatalf("no input is required: %s", response)
	}
	return string(raw), func(responses string) string {
		if responses == "" {
			return `,"requestState":` + string(state)
		}
		return `,"inputResponses":` + responses + `,"requestState":` + string(state)
	}
}

func elicitation(text string) tool.Question {
	return tool.Question{Method: tool.MethodElicit, Params: json.RawMessage(`{"message":"` + text + `"}`)}
}

// doors are a client on stdio and one over HTTP.
func doors(t *testing.T, f *far, test func(*testing.T, *far, *Server, *asker)) {
	for name, connect := range map[string]func(*testing.T, *Server) *asker{
		"stdio": overStdio,
		"http":  func(t *testing.T, s *Server) *asker { return overHTTP(t, serve(t, s)+"/mcp") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := &far{execute: f.execute}
			s := newServer(t, Config{Version: "v"}, mine)
			test(t, mine, s, connect(t, s))
		})
	}
}

// pipe is a client on stdio inside a bubble.
func pipe(t *testing.T, s *Server) (*asker, func() error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeStdio(t.Context(), inR, outW, Stdio{Profile: "default"}); _ = outW.Close() }()
	lines := make(chan string, 100)
	go func() {
		dec := json.NewDecoder(outR)
		for {
			var line json.RawMessage
			if dec.Decode(&line) != nil {
				close(lines)
				return
			}
			lines <- settle(string(line))
		}
	}()
	c := &asker{t: t, capabilities: allCapabilities, send: func(request string) []string {
		if _, err := io.WriteString(inW, request+"\n"); err != nil {
			t.Error(err)
		}
		return []string{<-lines}
	}}
	return c, func() error { _ = inW.Close(); return <-ended }
}

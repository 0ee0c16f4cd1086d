package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// servers is the far side of everything but tools. What is nil answers at once.
type servers struct {
	forward   func(context.Context, *tool.Request) (tool.Reply, error)
	subscribe func(ctx context.Context, server, uri string) error
	told      chan string // "+server uri", "-server uri" and "level L", as they come; nil: not told
	tell      func(tool.Notification)
}

func (v *servers) Forward(ctx context.Context, r *tool.Request) (tool.Reply, error) {
	if v.forward == nil {
		return mirror(ctx, r)
	}
	return v.forward(ctx, r)
}

func (v *servers) Subscribe(ctx context.Context, server, uri string, _ tool.Session, _ tool.Hop) error {
	if v.subscribe != nil {
		if err := v.subscribe(ctx, server, uri); err != nil {
			return err
		}
	}
	v.note("+" + server + " " + uri)
	return nil
}

func (v *servers) Unsubscribe(_ context.Context, server, uri string, _ tool.Session) error {
	v.note("-" + server + " " + uri)
	return nil
}

func (v *servers) Joined(tool.Session, tool.Hop) {}

func (v *servers) RootsChanged(who tool.Session, params json.RawMessage) {
	v.note(fmt.Sprintf("roots %s %s", strings.SplitN(who.Key, "/", 2)[0], orNull(params)))
}

func (*servers) Personal() []string { return nil }

func (*servers) Method(server, method string, known bool) *tool.Tool {
	return tool.MethodOf(server, method, known)
}

func (v *servers) SetLogLevel(level string) { v.note("level " + level) }

func (v *servers) OnNotification(tell func(tool.Notification)) { v.tell = tell }

func (v *servers) note(what string) {
	if v.told != nil {
		v.told <- what
	}
}

// mirror answers with what it got.
func mirror(_ context.Context, r *tool.Request) (tool.Reply, error) {
	if r.Progress != nil {
		r.Progress(tool.Progress{Params: json.RawMessage(`{"progressToken":"own","progress":1}`)})
	}
	params := r.Params
	if strings.Contains(string(params), modernVersion) {
		params = json.RawMessage(`"left out"`) // the hop's own _meta is in it
	}
	result := fmt.Sprintf(`{"server":%q,"method":%q,"params":%s,"meta":%s,"big":12345678901234567890,"e":"\u003c",`+
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"},"theirs":1}}`, r.Server, r.Method, params,
		orNull(r.Meta))
	return tool.Reply{Result: json.RawMessage(result)}, nil
}

func feature(server, native, shown, member string) tool.Feature {
	return tool.Feature{Offer: tool.Offer{Server: server, Native: native}, Shown: shown,
		Declaration: json.RawMessage(fmt.Sprintf(`{"x":1e400,%q:%q}`, member, shown))}
}

// behind is a far side with the servers a, b and s: both a and b claim file:///both.
func behind(v *servers) *far {
	f := &far{servers: v}
	f.offer("echo", "slow")
	f.surface.Features = tool.NewFeatures(tool.Features{
		Prompts: []tool.Feature{feature("a", "greet", "mcp.a.greet", "name"),
			feature("b", "greet", "mcp.b.greet", "name")},
		Resources: []tool.Feature{feature("a", "file:///one", "file:///one", "uri"),
			feature("a", "file:///both", "toolhub://a/file:///both", "uri")},
		Templates: []tool.Feature{feature("a", "t://{x}", "t://{x}", "uriTemplate"),
			feature("a", "d://{x}", "toolhub://a/d://{x}", "uriTemplate"),
			feature("b", "d://{x}", "toolhub://b/d://{x}", "uriTemplate")},
		Servers:      []string{"a", "b", "s"},
		Abilities:    tool.Abilities{Prompts: true, Resources: true, Subscribe: true, Completions: true, Logging: true},
		Headline:     "All of a.",
		Instructions: "a: be kind",
	}, map[string]int{"mcp.a.greet": 0, "a__greet": 0, "mcp.b.greet": 1}, func(uri string) ([]string, string) {
		switch {
		case uri == "file:///both":
			return []string{"a", "b"}, uri
		case uri == "file:///one" || strings.HasPrefix(uri, "t://") || uri == "file:///dir":
			return []string{"a"}, uri
		}
		if rest, ok := strings.CutPrefix(uri, "toolhub://"); ok {
			if server, native, ok := strings.Cut(rest, "/"); ok {
				return []string{server}, native
			}
		}
		return nil, uri
	})
	return f
}

func generations() []string {
	return []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", modernVersion}
}

// client speaks raw JSON-RPC on one revision, over one of the two wires.
type client struct {
	t       *testing.T
	version string
	w       *wire  // stdio
	url     string // HTTP
	session string
	headers []string
}

func newClient(t *testing.T, s *Server, version string, overHTTP bool) *client {
	t.Helper()
	c := &client{t: t, version: version}
	if overHTTP {
		c.url = serve(t, s) + "/mcp"
		c.open()
	} else {
		c.w = dial(t, s)
		if version < modernVersion {
			c.w.handshake(version)
		}
	}
	return c
}

func (c *client) open() {
	c.t.Helper()
	if c.version < modernVersion {
		c.session = open(c.t, c.url, c.version, c.headers...)
	}
}

// ask sends a request and returns every message up to its answer. params are the inside of the object.
func (c *client) ask(id, method, params string) []string {
	c.t.Helper()
	if c.version >= modernVersion {
		if strings.Contains(params, `"_meta":{`) {
			params = strings.Replace(params, `"_meta":{`, `"_meta":{`+modernMeta+`,`, 1)
		} else {
			params = strings.TrimPrefix(params+`,"_meta":{`+modernMeta+`}`, ",")
		}
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, params)
	if c.w != nil {
		c.w.send(body)
		var all []string
		for {
			all = append(all, c.w.next())
			if strings.HasPrefix(all[len(all)-1], `{"jsonrpc":"2.0","id":`+id+`,`) {
				return all
			}
		}
	}
	_, _, got := post(c.t, c.url, body, c.with(method, body)...)
	return got
}

// with are the headers of a request.
func (c *client) with(method, body string) []string {
	h := append([]string{headerVersion, c.version}, c.headers...)
	if c.version < modernVersion {
		return append(h, headerSession, c.session)
	}
	var m struct{ Params struct{ Name, URI string } }
	_ = json.Unmarshal([]byte(body), &m)
	return append(h, headerMethod, method, headerName, m.Params.Name+m.Params.URI)
}

func (c *client) want(id, method, params string, want ...string) {
	c.t.Helper()
	if got := c.ask(id, method, params); strings.Join(got, "\n") != strings.Join(want, "\n") {
		c.t.Errorf("%s {%s}\ngot  %s\nwant %s", method, params, strings.Join(got, "\n     "),
			strings.Join(want, "\n     "))
	}
}

// onEach runs f for a client of every revision over both wires.
func onEach(t *testing.T, f func(t *testing.T, c *client, v *servers, modern bool)) {
	t.Helper()
	for _, version := range generations() {
		for _, wire := range []string{"stdio", "http"} {
			t.Run(version+"/"+wire, func(t *testing.T) {
				t.Parallel()
				v := &servers{}
				s := newServer(t, Config{Version: "v"}, behind(v))
				f(t, newClient(t, s, version, wire == "http"), v, version >= modernVersion)
			})
		}
	}
}

// noServers stands for servers that offer nothing besides tools.
type noServers struct{}

func (noServers) Forward(_ context.Context, r *tool.Request) (tool.Reply, error) {
	return tool.Reply{}, &tool.RPCError{Code: tool.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not served",
		r.Method)}
}

func (noServers) Listen(context.Context, *tool.Request, func(json.RawMessage), func(tool.Notification)) error {
	return nil
}

func (noServers) Notify(context.Context, *tool.Request) error { return nil }

func (noServers) Subscribe(context.Context, string, string, tool.Session, tool.Hop) error {
	return &tool.RPCError{Code: tool.CodeMethodNotFound, Message: "subscriptions are not served"}
}

func (noServers) Unsubscribe(context.Context, string, string, tool.Session) error { return nil }

func (noServers) Joined(tool.Session, tool.Hop)              {}
func (noServers) RootsChanged(tool.Session, json.RawMessage) {}

func (noServers) Personal() []string { return nil }

func (noServers) Method(server, method string, known bool) *tool.Tool {
	return tool.MethodOf(server, method, known)
}

func (noServers) SetLogLevel(string) {}

func (noServers) OnNotification(func(tool.Notification)) {}

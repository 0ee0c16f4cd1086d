package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func TestFeatureTranscripts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c *client, _ *servers, modern bool) {
		tail, end := `,"_meta":{"theirs":1}`, ""
		if modern {
			tail, end = `,"_meta":{"theirs":1,`+serverInfoMember+`}`, `,"resultType":"complete"`
		}
		list := ""
		if modern {
			list = `,"ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{` + serverInfoMember + `}`
		}
		ok := func(id, result string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}` }
		c.want("1", "prompts/list", "", ok("1",
			`{"prompts":[{"x":1e400,"name":"mcp.a.greet"},{"x":1e400,"name":"mcp.b.greet"}]`+list+`}`))
		c.want("1", "resources/list", "", ok("1",
			`{"resources":[{"x":1e400,"uri":"file:///one"},{"x":1e400,"uri":"toolhub://a/file:///both"}]`+list+`}`))
		c.want("1.50", "resources/templates/list", "",
			ok("1.50", `{"resourceTemplates":[{"x":1e400,"uriTemplate":"t://{x}"},`+
				`{"x":1e400,"uriTemplate":"toolhub://a/d://{x}"},{"x":1e400,"uriTemplate":"toolhub://b/d://{x}"}]`+list+
				`}`))
		answer := func(server, method, params, meta string) string {
			if modern {
				params = `"left out"`
			}
			extra := ""
			if modern && method == "resources/read" {
				extra = `,"ttlMs":0,"cacheScope":"private"`
			}
			return fmt.Sprintf(`{"server":%q,"method":%q,"params":%s,"meta":%s,"big":12345678901234567890,"e":"\u003c"%s%s%s}`,
				server, method, params, meta, tail, extra, end)
		}
		c.want("2", "prompts/get",
			`"name":"a__greet","arguments":{"b":1,"a":"\u0061"},"_meta":{"mine":[1],"progressToken":1.50}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1.50,"progress":1}}`,
			ok("2", answer("a", "prompts/get",
				`{"name":"greet","arguments":{"b":1,"a":"\u0061"},"_meta":{"mine":[1],"progressToken":1.50}}`,
				`{"mine":[1]}`)))
		c.want("3", "resources/read", `"uri":"toolhub://b/file:///both","z":1`,
			ok("3", answer("b", "resources/read", `{"uri":"file:///both","z":1}`, "null")))
		c.want("4", "resources/read", `"z":1,"uri":"t://\u0061"`,
			ok("4", answer("a", "resources/read", `{"z":1,"uri":"t://\u0061"}`, "null")))
		for ref, to := range map[string][2]string{
			`{"type":"ref/prompt","name":"mcp.b.greet"}`:          {"b", `{"type":"ref/prompt","name":"greet"}`},
			`{"type":"ref/resource","uri":"t://{x}"}`:             {"a", `{"type":"ref/resource","uri":"t://{x}"}`},
			`{"uri":"toolhub://b/d://{x}","type":"ref/resource"}`: {"b", `{"uri":"d://{x}","type":"ref/resource"}`},
			`{"type":"ref/resource","uri":"file:///one","title":""}`: {"a",
				`{"type":"ref/resource","uri":"file:///one","title":""}`},
		} {
			argument := `"argument":{"name":"x","value":"1"}`
			c.want(`"c"`, "completion/complete", argument+`,"ref":`+ref,
				ok(`"c"`, answer(to[0], "completion/complete", `{`+argument+`,"ref":`+to[1]+`}`, "null")))
		}
	})
}

// What a server answers of a resource that goes by the hub's form of its URI names it as the server
// does, byte for byte.
func TestContentsNameResourcesAsTheirServerDoes(t *testing.T) {
	t.Parallel()
	const contents = `"contents":[{"uri":"file:///\u0062oth","text":"toolhub://b/file:///both"},{"uri":"file:///other","blob":""}]`
	onEach(t, func(t *testing.T, c *client, v *servers, _ bool) {
		v.forward = func(_ context.Context, r *tool.Request) (tool.Reply, error) {
			if uri, _ := rawjson.Get(r.Params, "uri"); string(uri) != `"file:///both"` {
				t.Errorf("the server is asked for %s", uri)
			}
			return tool.Reply{Result: json.RawMessage(`{` + contents + `}`)}, nil
		}
		got := c.ask("1", "resources/read", `"uri":"toolhub://b/file:///both"`)
		if !strings.HasPrefix(got[0], `{"jsonrpc":"2.0","id":1,"result":{`+contents) {
			t.Errorf("got %s", got[0])
		}
	})
}

func TestFeatureRefusals(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c *client, v *servers, modern bool) {
		v.forward = func(context.Context, *tool.Request) (tool.Reply, error) {
			return tool.Reply{}, &tool.RPCError{Code: -7, Message: "theirs",
				Raw: json.RawMessage(`{"code":-7,"message":"\u003c","x":1.0}`)}
		}
		missing := int64(-32002)
		if modern {
			missing = -32602
		}
		for _, r := range []struct{ method, params, want string }{
			{"prompts/get", `"name":"greet"`,
				`"error":{"code":-32602,"message":"unknown prompt \"greet\": list the prompts and use a name from there"}}`},
			{"prompts/get", ``, `"code":-3`}, // over HTTP the header is missing, too
			{"resources/read", `"uri":"file:///none"`,
				fmt.Sprintf(`"error":{"code":%d,"message":"resource \"file:///none\" is not found: `+
					`list the resources again","data":{"uri":"file:///none"}}}`, missing)},
			{"resources/read", `"uri":"ui://nobody"`, fmt.Sprintf(`"code":%d`, missing)},
			{"resources/read", `"uri":"file:///both"`, `servers [\"a\" \"b\"]`},
			{"completion/complete", `"ref":{"type":"ref/resource","uri":"d://{x}"}`, `servers \"a\" and \"b\"`},
			{"completion/complete", `"ref":{"type":"ref/other"}`, `"code":-32602`},
			{"completion/complete", ``, `"code":-32602`},
			{"prompts/list", `"cursor":"x"`, `"code":-32602`},
			{"prompts/get", `"name":"mcp.a.greet"`,
				`{"jsonrpc":"2.0","id":1,"error":{"code":-7,"message":"\u003c","x":1.0}}`},
		} {
			if got := c.ask("1", r.method, r.params); len(got) != 1 || !strings.Contains(got[0], r.want) {
				t.Errorf("%s {%s}: %v, want %s", r.method, r.params, got, r.want)
			}
		}
		only := map[bool][]string{true: {"logging/setLevel", "resources/subscribe", "resources/unsubscribe"},
			false: {"subscriptions/listen"}}[modern]
		for _, method := range only {
			if got := c.ask("1", method,
				`"level":"info","uri":"file:///one","notifications":{}`); !strings.Contains(got[0], `"code":-32601`) {
				t.Errorf("%s is not of this revision and answers %v", method, got)
			}
		}
		v.forward = func(context.Context, *tool.Request) (tool.Reply, error) {
			return tool.Reply{}, &tool.Failure{Class: tool.ClassDependencyUnavailable, Message: "it is down: try again"}
		}
		if got := c.ask("1", "resources/read", `"uri":"file:///one"`); !strings.Contains(got[0],
			`"error":{"code":-32603,"message":"it is down: `+
				`try again","data":{"toolhub/error":{"error_class":"dependency_unavailable","error_code":"dependency_unavailable","retry_after_ms":0},`+
				`"toolhub/invocation":{"invocation_id":"`) {
			t.Errorf("a server that is down: %v", got)
		}
	})
}

// What a server of 2026-07-28 answers is made fit for older clients, and never promised for longer or to more.
func TestResultsOfNewerServers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c *client, v *servers, modern bool) {
		v.forward = func(context.Context, *tool.Request) (tool.Reply, error) {
			return tool.Reply{Result: json.RawMessage(`{"contents":[],"ttlMs":5000,"cacheScope":"public","resultType":"complete"}`),
				Mapping: tool.ExternalMapping{ProtocolVersion: modernVersion}}, nil
		}
		want := `{"jsonrpc":"2.0","id":1,"result":{"contents":[]}}`
		if modern {
			want = `{"jsonrpc":"2.0","id":1,"result":{"contents":[],"ttlMs":5000,"cacheScope":"private","resultType":"complete","_meta":{` +
				serverInfoMember + `}}}`
		}
		c.want("1", "resources/read", `"uri":"file:///one"`, want)
	})
}

func TestCapabilitiesAndInstructions(t *testing.T) {
	t.Parallel()
	const all = `"capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},` +
		`"tools":{"listChanged":true}%s},"instructions":"All of a.\n\nmine\n\na: be kind"`
	for _, overHTTP := range []bool{false, true} {
		v := &servers{}
		f := behind(v)
		s := newServer(t, Config{Version: "v", Instructions: "mine"}, f)
		describe := func(version string) string {
			if overHTTP {
				url := serve(t, s) + "/mcp"
				if version == modernVersion {
					_, _, got := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{`+
						modernMeta+`}}}`,
						headerVersion, version, headerMethod, "server/discover")
					return got[0]
				}
				_, _, got := post(t, url, fmt.Sprintf(initialize, version))
				return got[0]
			}
			w := dial(t, s)
			if version == modernVersion {
				w.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{` + modernMeta + `}}}`)
				return w.next()
			}
			return w.handshake(version)
		}
		for _, version := range generations() {
			got := describe(version)
			if !strings.Contains(got, fmt.Sprintf(all, "")) ||
				version == modernVersion && !strings.Contains(got, `"ttlMs":0,"cacheScope":"private"`) {
				t.Errorf("%s: %s", version, got)
			}
		}
		bare := *f.surface
		bare.Features = tool.NewFeatures(tool.Features{Servers: []string{"a"}}, nil, nil)
		f.show(&bare)
		for _, version := range generations() {
			if got := describe(version); !strings.Contains(got,
				`"capabilities":{"tools":{"listChanged":true}},"instructions":"mine"`) {
				t.Errorf("%s, tools only: %s", version, got)
			}
		}
		bare.Features = tool.NewFeatures(tool.Features{Servers: []string{"s"}}, nil, nil) // which is in backoff
		f.show(&bare)
		if got := describe("2025-11-25"); !strings.Contains(got, `"prompts":{"listChanged":true}`) {
			t.Errorf("a server that is not up yet may have prompts: %s", got)
		}
		bare.Features = tool.NewFeatures(tool.Features{Servers: []string{"a"}, Abilities: tool.Abilities{
			Tasks: tool.Tasks{Calls: true, List: true, Cancel: true}, TaskExtension: true}}, nil, nil)
		f.show(&bare)
		for _, version := range generations() {
			if got := describe(version); !strings.Contains(got, `"tools":{"listChanged":true}`+anyTasks(version)+`}`) {
				t.Errorf("%s, tasks: %s", version, got)
			}
		}
		long := bare
		long.Features = tool.NewFeatures(tool.Features{Headline: "All.",
			Instructions: strings.Repeat("ü", 2*maxInstructions)}, nil, nil)
		f.show(&long)
		want := `"instructions":"All.\n\nmine\n\n` + strings.Repeat("ü", maxInstructions-len("All.nnminenn")-1) + `…"`
		if got := describe("2025-11-25"); !strings.Contains(got, want) {
			t.Errorf("long instructions are not cut at %d characters: %s", maxInstructions, got)
		}
	}
}

func TestPagesOfFeatures(t *testing.T) {
	t.Parallel()
	v := &servers{}
	f := behind(v)
	many := make([]tool.Feature, 2*pageSize+1)
	for i := range many {
		many[i] = feature("a", fmt.Sprint("p", i), fmt.Sprint("p", i), "name")
	}
	f.surface.Features = tool.NewFeatures(tool.Features{Prompts: many}, nil, nil)
	c := newClient(t, newServer(t, Config{}, f), "2025-11-25", false)
	seen, cursor := 0, ""
	for page := 0; page == 0 || cursor != ""; page++ {
		var m struct {
			Result struct {
				Prompts    []json.RawMessage
				NextCursor string
			}
		}
		if err := json.Unmarshal([]byte(c.ask("1", "prompts/list", fmt.Sprintf(`"cursor":%q`, cursor))[0]),
			&m); err != nil || page > 3 {
			t.Fatal(page, err)
		}
		seen += len(m.Result.Prompts)
		cursor = m.Result.NextCursor
		if page == 0 { // what goes before the cursor moves nothing
			f.mu.Lock()
			less := *f.surface
			less.Features = tool.NewFeatures(tool.Features{Prompts: many[1:]}, nil, nil)
			f.surface = &less
			f.mu.Unlock()
		}
	}
	if seen != len(many) {
		t.Errorf("%d prompts came in pages, want %d", seen, len(many))
	}
}

func TestPagesOfTools(t *testing.T) {
	t.Parallel()
	f := &far{}
	names := make([]string, pageSize+2)
	for i := range names {
		names[i] = fmt.Sprint("t", i)
	}
	f.offer(names...)
	c := newClient(t, newServer(t, Config{}, f), "2025-11-25", false)
	first := c.ask("1", "tools/list", "")[0]
	_, rest, _ := strings.Cut(first, `"nextCursor":"`)
	cursor, _, _ := strings.Cut(rest, `"`)
	second := c.ask("1", "tools/list", fmt.Sprintf(`"cursor":%q`, cursor))[0]
	if strings.Count(first, `"inputSchema"`) != pageSize || strings.Count(second, `"inputSchema"`) != 2 ||
		strings.Contains(second, "nextCursor") ||
		!strings.Contains(second, fmt.Sprintf(`"mcp.s.t%d"`, pageSize)) {
		t.Errorf("the second page, after %q: %.200s", cursor, second)
	}
}

// A page of a user interface comes from the server whose tool brings it along, a linked resource from the server that
// linked to it, and for nobody but the caller who got the link.
func TestOwnersOfUnlistedResources(t *testing.T) {
	t.Parallel()
	v := &servers{}
	f := behind(v)
	f.surface.Listed[0].Changed = json.RawMessage(`{"name":"mcp.s.echo","_meta":{"ui":{"resourceUri":"ui://s/page"}},"inputSchema":{"type":"object"}}`)
	f.execute = func(context.Context, *tool.Execution) (tool.Reply, error) {
		return tool.Reply{Result: json.RawMessage(`{"content":[{"type":"resource_link","uri":"x://link"},{"type":"text","text":"x://text"},` +
			`{"type":"resource","resource":{"uri":"x://inside","text":""}},{"type":"resource_link","uri":"ui://b/page"}]}`)}, nil
	}
	url := serve(t, newServer(t, Config{}, f)) + "/mcp"
	ann, bob := &client{t: t, version: "2025-11-25", url: url}, &client{t: t, version: "2025-11-25", url: url}
	ann.open()
	bob.open()
	ann.ask("1", "tools/call", `"name":"mcp.s.echo"`)
	for uri, server := range map[string]string{"x://link": "s", "x://inside": "s", "x://text": "", "ui://s/page": "s",
		"ui://b/page": ""} {
		for c, mine := range map[*client]bool{ann: true, bob: strings.HasPrefix(uri, "ui://s")} {
			got := c.ask("2", "resources/read", fmt.Sprintf(`"uri":%q`, uri))[0]
			if found := strings.Contains(got, fmt.Sprintf(`"server":%q`, server)); found != (mine && server != "") ||
				!found && !strings.Contains(got, "-32002") {
				t.Errorf("%s for the caller who got the links (%v): %s", uri, mine, got)
			}
		}
	}
}

// A link stays one to a server of the surface: who may no longer see the server does not reach it by its links.
func TestLinksOfHiddenServers(t *testing.T) {
	t.Parallel()
	f := behind(&servers{})
	f.execute = func(context.Context, *tool.Execution) (tool.Reply, error) {
		return tool.Reply{Result: json.RawMessage(`{"content":[{"type":"resource_link","uri":"x://link"}]}`)}, nil
	}
	c := newClient(t, newServer(t, Config{}, f), modernVersion, true)
	c.ask("1", "tools/call", `"name":"mcp.s.echo"`)
	if got := c.ask("1", "resources/read", `"uri":"x://link"`)[0]; !strings.Contains(got, `"server":"s"`) {
		t.Errorf("a link: %s", got)
	}
	less := *f.surface
	less.Features = tool.NewFeatures(tool.Features{Servers: []string{"a"}}, nil, nil)
	f.show(&less)
	if got := c.ask("1", "resources/read", `"uri":"x://link"`)[0]; !strings.Contains(got, "not found") {
		t.Errorf("a link to a server that is hidden now: %s", got)
	}
}

// Whatever a single server is asked on its direct view goes to it: it knows best what it has.
func TestDirectViewAsksItsServer(t *testing.T) {
	t.Parallel()
	f := &far{servers: &servers{}}
	f.offer("echo")
	f.surface.Features = tool.NewFeatures(tool.Features{Servers: []string{"s"}}, nil, nil)
	s := newServer(t, Config{}, f)
	s.Apply(Config{}, []string{"s/s"})
	c := newClient(t, s, "2025-11-25", true)
	for method, params := range map[string]string{"resources/read": `"uri":"x://any"`, "prompts/get": `"name":"any"`,
		"completion/complete": `"ref":{"type":"ref/prompt","name":"any"}`} {
		if got := c.ask("1", method, params)[0]; !strings.Contains(got, `"server":"s"`) {
			t.Errorf("%s: %s", method, got)
		}
	}
}

func TestFeatureCancel(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string, 1), make(chan error, 1)
	v := &servers{forward: func(ctx context.Context, r *tool.Request) (tool.Reply, error) {
		if r.Method == tool.MethodPromptsGet {
			return mirror(ctx, r)
		}
		began <- "began"
		<-ctx.Done()
		ended <- ctx.Err()
		return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: "canceled"}
	}}
	w := dial(t, newServer(t, Config{}, behind(v)))
	w.handshake("2025-11-25")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///one"}}`)
	<-began
	w.send(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"mcp.a.greet"}}`) // while 1 is open
	if got := w.next(); !strings.Contains(got, "is in use") {
		t.Errorf("an id in use: %s", got)
	}
	// a slow server holds up nobody
	w.send(`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"mcp.a.greet"}}`)
	if got := w.next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":2,"result"`) {
		t.Errorf("beside a slow server: %s", got)
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-ended
	w.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	w.want(`{"jsonrpc":"2.0","id":3,"result":{}}`)

	c := newClient(t, newServer(t, Config{}, behind(v)), "2025-06-18", true)
	var reading sync.WaitGroup
	reading.Go(func() {
		if got := c.ask("1", "resources/read", `"uri":"file:///one"`); !strings.Contains(got[0], `"error"`) {
			t.Errorf("a canceled request over HTTP: %v", got)
		}
	})
	<-began
	post(t, c.url, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, c.with("", "")...)
	<-ended
	reading.Wait()
}

// reuses is the connection of a client that uses an id again as soon as it has the answer.
type reuses struct {
	*httptest.ResponseRecorder
	again func()
}

func (w reuses) Write(text []byte) (int, error) {
	w.again()
	return w.ResponseRecorder.Write(text)
}

func TestAnIdIsFreeWithItsAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t, Config{}, behind(&servers{}))
	for _, request := range []string{`"method":"tools/list"`, `"method":"resources/read","params":{"uri":"x://none"}`} {
		m := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,` + request + `}`))
		var open inflight
		ctx, call, _ := open.add(t.Context(), m.ID)
		w := reuses{httptest.NewRecorder(), func() {
			_, again, refusal := open.add(t.Context(), m.ID)
			if refusal != nil {
				t.Errorf("{%s}: %s", request, refusal.Message)
				return
			}
			again.end()
		}}
		reply := newHTTPReply(w, httptest.NewRequest(http.MethodPost, "/mcp", nil), m.ID, false)
		reply.call = call
		s.serveLane(ctx, &peer{profile: "default", caller: &caller{}}, m, reply)
		if w.Body.Len() == 0 {
			t.Errorf("{%s}: not answered", request)
		}
	}
}

func TestParamHeaders(t *testing.T) {
	t.Parallel()
	f := behind(&servers{})
	f.surface.Listed[0].Tool.InputSchema = json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)
	url := serve(t, newServer(t, Config{HTTP: HTTPConfig{AllowedOrigins: []string{"https://app.example"}}}, f)) + "/mcp"
	call := func(arguments string, headers ...string) (int, string) {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.echo","arguments":` + arguments +
			`,"_meta":{` + modernMeta + `}}}`
		all := append([]string{headerVersion, modernVersion, headerMethod, "tools/call", headerName, "mcp.s.echo"},
			headers...)
		status, _, got := post(t, url, body, all...)
		return status, got[0]
	}
	for _, c := range []struct {
		arguments string
		headers   []string
		ok        bool
	}{{`{"region":"eu"}`, []string{"Mcp-Param-Region", "eu"}, true}, {`{}`, nil, true}, {`{"region":"eu"}`, nil, false},
		{`{"region":"eu"}`, []string{"Mcp-Param-Region", "us"}, false}, {`{}`, []string{"Mcp-Param-Region", "eu"},
			false}} {
		status, got := call(c.arguments, c.headers...)
		if (status == 200) != c.ok || !c.ok && (status != 400 || !strings.Contains(got, "-32020")) {
			t.Errorf("%s with %v: %d %s", c.arguments, c.headers, status, got)
		}
	}
	for method, params := range map[string]string{"resources/read": `"uri":"file:///one"`,
		"prompts/get": `"name":"mcp.a.greet"`} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{%s}}}`, method, params,
			modernMeta)
		for _, name := range []string{"", "other"} {
			if status, _, got := post(t, url, body, headerVersion, modernVersion, headerMethod, method, headerName,
				name); status != 400 ||
				!strings.Contains(got[0], "-32020") {
				t.Errorf("%s named %q in the header: %d %v", method, name, status, got)
			}
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodOptions, url, nil)
	req.Header.Set("Origin", "https://app.example")
	req.Header.Set("Access-Control-Request-Headers",
		"content-type, mcp-param-region, x-evil, Mcp-Param-, mcp-param-a:b")
	resp, err := web().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Access-Control-Allow-Headers"); !strings.HasSuffix(got, headerName+
		", mcp-param-region") {
		t.Errorf("a page may send %s", got)
	}
}

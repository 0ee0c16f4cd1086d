package downstream

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// splitSurface is a surface of n tools, mcp.s.t0 and so on, all of them deferred.
func splitSurface(n, maxTools int) *tool.Surface {
	var listed []tool.Listed
	names := map[string]int{}
	for i := range n {
		name := fmt.Sprint("mcp.s.t", i)
		listed = append(listed, tool.Listed{Name: name, Tool: &tool.Tool{Name: tool.Name(name), Server: "s",
			SchemaDigest: "1"}})
		names[name] = i
	}
	meta := map[string]*tool.Listed{}
	for _, own := range []*tool.HubTool{{Name: "tool_search", Finds: true}, {Name: "tool_call", Forwards: true}} {
		meta[string(own.Name)] = &tool.Listed{Name: string(own.Name), Tool: &tool.Tool{Name: own.Name, Server: "hub",
			Hub: own}}
	}
	return tool.NewSurface("srf", "p", "canonical", "", listed, nil, names).With(tool.Split{
		Listed: []tool.Listed{*meta["tool_search"], *meta["tool_call"]}, Deferred: listed, Own: meta,
		Habits: tool.Habits{MaxTools: maxTools}, ListsFound: true})
}

func TestAddressee(t *testing.T) {
	t.Parallel()
	s := splitSurface(2, 0)
	for params, want := range map[string]callTarget{
		`{"name":"mcp.s.t1","arguments":{"a":1}}`: {name: "mcp.s.t1",
			params: json.RawMessage(`{"name":"mcp.s.t1","arguments":{"a":1}}`)},
		`{"name":"mcp.s.t1","_meta":{"toolhub/selectionRef":"r"}}`: {name: "mcp.s.t1", ref: "r",
			params: json.RawMessage(`{"name":"mcp.s.t1","_meta":{"toolhub/selectionRef":"r"}}`)},
		`{"x":1,"name":"tool_call","arguments":{"name":"mcp.s.t1","arguments":{"a":1e400},"selection_ref":"r"},"y":2}`: {name: "mcp.s.t1", via: "tool_call", ref: "r",
			params: json.RawMessage(`{"x":1,"name":"mcp.s.t1","arguments":{"a":1e400},"y":2}`)},
		`{"name":"tool_call","arguments":{"name":"nope"}}`: {name: "nope", via: "tool_call",
			params: json.RawMessage(`{"name":"nope","arguments":{}}`)},
		`{"name":"tool_call","arguments":{"name":"t","arguments":null},"_meta":{"toolhub/selectionRef":"r"}}`: {name: "t", via: "tool_call", ref: "r",
			params: json.RawMessage(`{"name":"t","arguments":{},"_meta":{"toolhub/selectionRef":"r"}}`)},
		`{"name":"tool_call","arguments":{"name":"t","arguments":"{\"a\":1}"}}`: {name: "t", via: "tool_call",
			params: json.RawMessage(`{"name":"t","arguments":{"a":1}}`)},
		`{"name":"tool_call","arguments":{"name":"tool_call","arguments":{"name":"t"}}}`: {name: "tool_call",
			via: "tool_call", params: json.RawMessage(`{"name":"tool_call","arguments":{"name":"t"}}`)},
		// what is not in order is tool_call's own affair: its schema says what is wrong
		`{"name":"tool_call"}`:                                                {name: "tool_call"},
		`{"name":"tool_call","arguments":[]}`:                                 {name: "tool_call"},
		`{"name":"tool_call","arguments":{}}`:                                 {name: "tool_call"},
		`{"name":"tool_call","arguments":{"name":""}}`:                        {name: "tool_call"},
		`{"name":"tool_call","arguments":{"name":7}}`:                         {name: "tool_call"},
		`{"name":"tool_call","arguments":{"name":"t","arguments":[1]}}`:       {name: "tool_call"},
		`{"name":"tool_call","arguments":{"name":"t","arguments":"no json"}}`: {name: "tool_call"},
		`{"name":"tool_call","arguments":{"name":"t","selection_ref":7}}`:     {name: "tool_call"},
	} {
		if want.params == nil {
			want.params = json.RawMessage(params)
		}
		raw, _ := rawjson.Get([]byte(params), "name")
		name, _ := rawjson.String(raw)
		got := targetAt(t, s, name, params)
		if got.name != want.name || got.via != want.via || got.ref != want.ref ||
			string(got.params) != string(want.params) {
			t.Errorf("%s\n got %+v %s\nwant %+v %s", params, got, got.params, want, want.params)
		}
	}
	plain := tool.NewSurface("srf", "p", "canonical", "", nil, nil, nil) // as a direct view: no tool of the hub's own
	if got := targetAt(t, plain, "tool_call", `{"name":"tool_call","arguments":{"name":"t"}}`); got.via != "" {
		t.Errorf("a surface without tool_call: %+v", got)
	}
}

// targetAt is targetOf for params as a client sends them.
func targetAt(t *testing.T, s *tool.Surface, name, params string) callTarget {
	t.Helper()
	object, err := rawjson.ReadObject([]byte(params))
	if err != nil {
		t.Fatal(err)
	}
	var meta requestMeta
	meta.read(object)
	return targetOf(s, name, object, meta.ref)
}

func FuzzAddressee(f *testing.F) {
	f.Add(`{"name":"tool_call","arguments":{"name":"mcp.s.t1","arguments":{"a":1},"selection_ref":"r"},"_meta":{}}`)
	f.Add(`{"arguments":{"arguments":"{}","name":"a","name":"b"},"name":"tool_call","name":"tool_call"}`)
	s := splitSurface(2, 0)
	f.Fuzz(func(t *testing.T, params string) {
		if !rawjson.Valid([]byte(params)) || !rawjson.IsObject([]byte(params)) {
			return
		}
		c := targetAt(t, s, "tool_call", params)
		if !rawjson.Valid(c.params) {
			t.Fatalf("%s becomes %s", params, c.params)
		}
		if args, _ := rawjson.Get(c.params, "arguments"); string(args) != string(c.arguments) {
			t.Errorf("%s: the arguments are %s, and %s is sent", params, c.arguments, c.params)
		}
		raw, _ := rawjson.Get(c.params, "name")
		if name, _ := rawjson.String(raw); c.via != "" && name != c.name {
			t.Errorf("%s: %q is called, and %s is sent", params, c.name, c.params)
		}
	})
}

// TestLoaded: what a session has loaded stands behind what is listed anyway, in that order, as far
// as the client takes it.
func TestLoaded(t *testing.T) {
	t.Parallel()
	s := splitSurface(5, 0)
	c := &caller{out: newOutbox(nil)}
	told := func() bool {
		select {
		case <-c.out.wake:
			c.out.drain(func(string, json.RawMessage) {}, nil)
			return true
		default:
			return false
		}
	}
	tools := func(at ...int) (out []*tool.Tool) {
		for _, i := range at {
			out = append(out, s.Deferred[i].Tool)
		}
		return out
	}
	names := func(s *tool.Surface) string {
		out := ""
		for _, l := range c.listedBesides(s) {
			out += l.Name[len("mcp.s."):] + " "
		}
		return out
	}
	usual := *s
	usual.ListsFound = false
	c.Load(&usual, tools(4)...)
	if d, ok := c.Digest("mcp.s.t4"); told() || !ok || d != "1" || names(&usual) != "" {
		t.Errorf("what was found is on the list: %s", names(&usual))
	}
	c = &caller{out: newOutbox(nil)}
	c.Load(s, tools(3, 1)...)
	if !told() || names(s) != "t3 t1 " {
		t.Errorf("loaded: %s", names(s))
	}
	c.Load(s, tools(1, 3)...)
	if told() {
		t.Error("the client is told of nothing new")
	}
	c.Load(s, tools(0)...)
	if !told() || names(s) != "t3 t1 t0 " {
		t.Errorf("loaded: %s", names(s))
	}
	for maxTools, want := range map[int]string{100: "t3 t1 t0 ", 4: "t1 t0 ", 2: "", 1: ""} {
		if got := names(splitSurface(5, maxTools)); got != want {
			t.Errorf("of %d tools at most: %s", maxTools, got)
		}
	}
	few := splitSurface(5, 4)
	names(few)
	if c.Load(s, tools(3, 0)...); !told() || names(few) != "t0 t3 " {
		t.Errorf("wanted again after there was no room for it: %s", names(few))
	}
	if c.Load(s, tools(0, 3)...); told() {
		t.Error("the client is told of what it has listed")
	}
	if c.Load(s, tools(1)...); !told() || names(s) != "t0 t3 t1 " {
		t.Errorf("wanted again: %s", names(s))
	}
	if names(splitSurface(5, 2)); true {
		if c.Load(s, tools(0)...); told() {
			t.Error("the client is told of a tool that its list never has room for")
		}
	}
	if got := names(splitSurface(1, 0)); got != "t0 " {
		t.Errorf("after most have gone: %s", got)
	}
	changed := splitSurface(5, 0)
	changed.Deferred[3].Tool.SchemaDigest = "2"
	if d, _ := c.Digest("mcp.s.t3"); d != "1" {
		t.Errorf("before the list was read again: %s", d)
	}
	if names(changed); true {
		if d, ok := c.Digest("mcp.s.t3"); d != "2" || !ok {
			t.Errorf("after the list was read again: %s", d)
		}
	}
	for i := range maxLoaded + 10 {
		c.Load(s, &tool.Tool{Name: tool.Name(fmt.Sprint("mcp.x.", i))})
	}
	if _, ok := c.Digest("mcp.s.t3"); ok || len(c.loaded.digests) != maxLoaded || len(c.loaded.order) != maxLoaded {
		t.Errorf("%d and %d tools are kept", len(c.loaded.digests), len(c.loaded.order))
	}
}

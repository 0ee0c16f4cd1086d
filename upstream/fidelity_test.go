package upstream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// oddObjects are objects that a decoder and an encoder in between would change.
var oddObjects = []string{
	`{}`,
	`{"z":1,"a":2,"content":[],"m":3}`,
	`{"content":[],"n":123456789012345678901234567890,"f":1.0,"e":1E+2,"neg":-0,"small":1e-400}`,
	`{"content":[{"type":"hologram","data":{"b":1,"a":[]}}],"future":{"x":null}}`,
	`{"content":[{"type":"text","text":"<a href=\"x\">&amp;</a>   \u003c \/ \ud83d\ude00 😀"}]}`,
	`{"content":[],"_meta":{"toolhubs/x":1,"com.example/y":[1,{}]},"isError":true,"structuredContent":null}`,
	`{"content":[],"é":1,"é":2,"\u0065":3}`,
	`{ "content" : [ 1 ,	2 ] , "spaces" : { } }`,
	`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}`,
	`{"content":[],"deep":` + strings.Repeat(`[`, 500) + strings.Repeat(`]`, 500) + `}`,
}

func compact(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(s)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestResultsAreUnchanged(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			for _, want := range oddObjects {
				x := execution("s", "raw", `{"result":`+want+`}`)
				x.InputByRetry = true
				reply, err := h.Execute(t.Context(), x)
				if err != nil {
					t.Fatal(err)
				}
				got := reply.Result
				if strings.HasSuffix(w.name, "pretty") {
					want = compact(t, want) // the fake spreads it over lines, which a line-based wire cannot carry
				}
				if string(got) != want {
					t.Errorf("result\n got %s\nwant %s", got, want)
				}
			}
		})
	}
}

func TestErrorsAreUnchanged(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			want := `{"message":"<no>","data":{"z":12345678901234567890,"a":[]},"code":-32042,"more":1}`
			_, err := h.call(t.Context(), "s", "fail", `{"error":`+want+`}`)
			var rpc *tool.RPCError
			if !errors.As(err, &rpc) || string(rpc.Raw) != want || rpc.Code != -32042 || rpc.Message != "<no>" {
				t.Errorf("error %#v (%v), want %s", rpc, err, want)
			}
		})
	}
}

func TestParamsAreUnchanged(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			for _, odd := range oddObjects {
				x := execution("s", "echo", odd)
				x.Params = json.RawMessage(`{"task":{"ttl":9007199254740993},"arguments":{"old":1},"_meta":{"progressToken":1,"a":0},` +
					`"name":"mcp.s.echo","inputResponses":{"b":1,"a":2},"zz":1.50}`)
				x.Meta = json.RawMessage(`{"z/y":{"b":1,"a":1e2},"traceparent":"<00>"}`)
				reply, err := h.Execute(t.Context(), x)
				if err != nil {
					t.Fatal(err)
				}
				content, _ := rawjson.Get(reply.Result, "structuredContent")
				got, _ := rawjson.Get(content, "params")
				meta, _ := rawjson.Get(got, "_meta")
				wantMeta := fmt.Sprintf(`{"z/y":{"b":1,"a":1e2},"traceparent":"<00>","progressToken":%s`,
					reply.Mapping.JSONRPCRequestID)
				if modern(w) {
					wantMeta += `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":` +
						`{"name":"mcp-toolhub","version":"9.9"},"io.modelcontextprotocol/clientCapabilities":{}`
				}
				want := `{"task":{"ttl":9007199254740993},"arguments":` + odd + `,"_meta":` + wantMeta + `},` +
					`"name":"echo","inputResponses":{"b":1,"a":2},"zz":1.50}`
				if strings.HasSuffix(w.name, "pretty") {
					want = compact(t, want)
				}
				if string(got) != want {
					t.Errorf("params\n got %s\nwant %s\nmeta %s", got, want, meta)
				}
			}
		})
	}
}

func TestDeclarationsAreUnchanged(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			want := `{"execution":{"taskSupport":"optional"},"name":"odd","x-future":{"b":1,"a":12345678901234567890},` +
				`"inputSchema":{"properties":{"q":{"type":"string","description":"<&>"}},"type":"object"},"annotations":{"custom":1}}`
			w.script.Tools = []json.RawMessage{json.RawMessage(want)}
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			tools := h.catalog("s").Tools
			if len(tools) != 1 || string(tools[0].Declaration) != want {
				t.Fatalf("tools %s, want %s", tools[0].Declaration, want)
			}
		})
	}
}

func TestNullAndAbsentParts(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("s", upstreamtestScript()))
	h.ready(t, "s")
	x := execution("s", "echo", "")
	x.Params, x.Arguments = nil, nil
	reply, err := h.Execute(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	id := reply.Mapping.JSONRPCRequestID
	want := `{"name":"echo","arguments":{},"_meta":{"progressToken":` + id + `}}`
	if !strings.Contains(string(reply.Result), want) {
		t.Errorf("result %s, want params %s", reply.Result, want)
	}
}

func TestArgumentsOnSeveralLines(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			got := h.mustCall(t, "s", "raw", "{\"result\":{\n\"b\": 1,\r\n\"a\":\"\\n\"}}")
			if compact(t, string(got)) != `{"b":1,"a":"\n"}` || bytes.ContainsAny(got, "\r\n") {
				t.Errorf("result %q", got)
			}
		})
	}
}

func TestHopFacts(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			x := execution("s", "echo", `{}`)
			x.Hop.LogLevel = json.RawMessage(`"debug"`)
			x.Hop.ClientCapabilities = json.RawMessage(`{"elicitation":{}}`)
			x.Meta = json.RawMessage(`{"io.modelcontextprotocol/protocolVersion":"1999-01-01","k":1}`)
			if !modern(w) {
				x.Meta = json.RawMessage(`{"k":1}`)
			}
			reply, err := h.Execute(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			got := string(reply.Result)
			if has := strings.Contains(got, `"io.modelcontextprotocol/logLevel":"debug"`); has != modern(w) {
				t.Errorf("log level told: %v in %s", has, got)
			}
			if strings.Contains(got, "1999") || strings.Contains(got, "elicitation") {
				t.Errorf("the client's own hop was passed on: %s", got)
			}
		})
	}
}

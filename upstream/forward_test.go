//go:build unix

package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

func (h *harness) forward(ctx context.Context, method, params string) (tool.Reply, error) {
	return h.Forward(ctx, &tool.Request{Server: "s", Method: method, Params: json.RawMessage(params), InputByRetry: true})
}

func TestForwardIsUnchanged(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		h := start(t, w.config(t, "s"))
		h.ready(t, "s")
		for _, method := range []string{"prompts/get", "resources/read", "completion/complete"} {
			for _, want := range oddObjects {
				reply, err := h.forward(t.Context(), method, `{"name":"n","uri":"u://","answer":`+want+`}`)
				if strings.HasSuffix(w.name, "pretty") {
					want = compact(t, want)
				}
				if err != nil || string(reply.Result) != want {
					t.Errorf("%s\n got %s, %v\nwant %s", method, reply.Result, err, want)
				}
				if m := reply.Mapping; m.Method != method || m.ServerID != "s" || m.ToolName != "" || m.JSONRPCRequestID == "" {
					t.Errorf("mapping %+v", m)
				}
			}
			refusal := `{"code":-32002,"message":"<no>","data":{"b":1,"a":12345678901234567890},"more":true}`
			_, err := h.forward(t.Context(), method, `{"name":"n","uri":"u://","error":`+refusal+`}`)
			var rpc *tool.RPCError
			if !errors.As(err, &rpc) || rpc.Code != -32002 || !strings.HasSuffix(w.name, "pretty") && string(rpc.Raw) != refusal {
				t.Errorf("%s: error %v", method, err)
			}
		}
	})
}

// TestForwardedParams checks that params reach the server as they are, but for _meta.
func TestForwardedParams(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		h := start(t, w.config(t, "s"))
		h.ready(t, "s")
		r := &tool.Request{Server: "s", Method: "resources/read",
			Params: json.RawMessage(`{"z":[1.50,1e400],"uri":"a://\u00e9?<","_meta":{"progressToken":7,"old":1},"a":{"b":[]}}`),
			Meta:   json.RawMessage(`{"com.example/x":[1.0]}`),
			Hop:    tool.Hop{LogLevel: json.RawMessage(`"debug"`)}}
		reply, err := h.Forward(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		params, _ := rawjson.Get(reply.Result, "params")
		if w.http != nil && w.http.Pretty {
			params = []byte(compact(t, string(params)))
		}
		meta, _ := rawjson.Get(params, "_meta")
		rest, _, _ := rawjson.Delete(params, "_meta")
		if string(rest) != `{"z":[1.50,1e400],"uri":"a://\u00e9?<","a":{"b":[]}}` {
			t.Errorf("params %s", params)
		}
		token, _ := rawjson.Get(meta, "progressToken")
		own, _ := rawjson.Get(meta, "com.example/x")
		level, leveled := rawjson.Get(meta, "io.modelcontextprotocol/logLevel")
		_, old := rawjson.Get(meta, "old")
		if !isNumber(token) || string(own) != `[1.0]` || old || leveled != modern(w) {
			t.Errorf("_meta %s", meta)
		}
		if modern(w) && string(level) != `"debug"` {
			t.Errorf("level %s", level)
		}
	})
}

// TestForwardSaysWhatItIsAbout checks the headers that servers of 2026-07-28 compare with the body.
func TestForwardSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	cfg, fake := overHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Modern: true, Features: full()}})
	h := start(t, cfg)
	h.ready(t, "s")
	for method, want := range map[string]string{"resources/read": "a://b", "prompts/get": "greet", "completion/complete": ""} {
		if _, err := h.forward(t.Context(), method, `{"uri":"a://b","name":"greet"}`); err != nil {
			t.Error(err)
		}
		var got []string
		for _, r := range fake.Requests() {
			if r.Header.Get("Mcp-Method") == method {
				got = append(got, r.Header.Get("Mcp-Name"))
			}
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: Mcp-Name %q, want %q", method, got, want)
		}
	}
}

func TestForwardReportsProgress(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		if w.http != nil && w.http.JSON {
			return // it has no place there
		}
		h := start(t, w.config(t, "s"))
		h.ready(t, "s")
		var got []string
		_, err := h.Forward(t.Context(), &tool.Request{Server: "s", Method: "prompts/get", Params: json.RawMessage(`{"name":"progress"}`),
			Progress: func(p tool.Progress) {
				n, _ := rawjson.Get(p.Params, "progress")
				x, _ := rawjson.Get(p.Params, "x")
				got = append(got, string(n)+" "+string(x))
			}})
		if err != nil || strings.Join(got, ", ") != "1 1.50, 2 1.50" {
			t.Errorf("progress %v, %v", got, err)
		}
		if _, err := h.forward(t.Context(), "prompts/get", `{"name":"progress"}`); err != nil {
			t.Errorf("nobody wants to know: %v", err)
		}
	})
}

// TestForwardEndsAsCallsDo checks what becomes of a request whose server goes, hangs or is not there.
func TestForwardEndsAsCallsDo(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w way) {
		brief := w.config(t, "brief")
		brief.Timeouts.Call = 300 * time.Millisecond
		h := start(t, w.config(t, "s"), brief)
		h.ready(t, "s")
		h.ready(t, "brief")
		hangs := &tool.Request{Server: "brief", Method: "resources/read", Params: json.RawMessage(`{"uri":"hang"}`), InputByRetry: true}
		if _, err := h.Forward(t.Context(), hangs); failure(t, err).Class != tool.ClassTimeout {
			t.Errorf("timed out with %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := h.forward(ctx, "resources/read", `{"uri":"hang"}`)
			done <- err
		}()
		eventually(t, "the request is under way", func() bool { return h.status("s").InFlight == 1 })
		cancel()
		if err := <-done; failure(t, err).Class != tool.ClassCanceled {
			t.Errorf("canceled with %v", err)
		}
		_, err := h.forward(t.Context(), "resources/read", `{"uri":"die"}`)
		if f := failure(t, err); f.Class != tool.ClassDependencyUnavailable || !f.OutcomeUnknown {
			t.Errorf("died with %+v", f)
		}
		eventually(t, "it is back", func() bool {
			_, err := h.forward(t.Context(), "prompts/get", `{"name":"x"}`)
			return err == nil
		})
	})
}

func TestForwardRefuses(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("s", upstreamtest.Script{Features: full()}))
	h.ready(t, "s")
	for _, method := range []string{"tools/call", "resources/subscribe", "resources/unsubscribe", "logging/setLevel",
		"subscriptions/listen", "initialize", ""} {
		var rpc *tool.RPCError
		if _, err := h.forward(t.Context(), method, `{}`); !errors.As(err, &rpc) || rpc.Code != tool.CodeMethodNotFound {
			t.Errorf("%q: %v", method, err)
		}
	}
	for _, params := range []string{`[]`, `7`, `{`} {
		if _, err := h.forward(t.Context(), "prompts/get", params); failure(t, err).Class != tool.ClassInvalidArguments {
			t.Errorf("params %s: %v", params, err)
		}
	}
	if _, err := h.forward(t.Context(), "prompts/get", ``); err != nil {
		t.Errorf("no params: %v", err)
	}
	_, err := h.Forward(t.Context(), &tool.Request{Server: "nobody", Method: "prompts/get"})
	if failure(t, err).Code != "unknown_server" {
		t.Errorf("error %v", err)
	}
}

func TestForwardWakesALazyServer(t *testing.T) {
	t.Parallel()
	store := newMemory()
	cfg := stdio("s", upstreamtest.Script{Features: full()})
	learn(t, store, cfg)
	cfg.Lazy = true
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: store})
	if st := h.status("s"); st.PID != 0 {
		t.Fatalf("status %+v", st)
	}
	if _, err := h.forward(t.Context(), "resources/read", `{"uri":"x://"}`); err != nil {
		t.Error(err)
	}
}

// TestForwardIsSentAgain checks that a request which a forgotten session kept from being executed goes over the next one.
func TestForwardIsSentAgain(t *testing.T) {
	t.Parallel()
	cfg, fake := overHTTP(t, "s", upstreamtest.Options{Script: upstreamtest.Script{Features: full()}})
	h := start(t, cfg)
	h.ready(t, "s")
	fake.Forget()
	if _, err := h.forward(t.Context(), "resources/read", `{"uri":"x://"}`); err != nil {
		t.Error(err)
	}
}

// TestForwardGoesOverTheSessionsOwnConnection checks isolation: what a session asks for, its own server answers.
func TestForwardGoesOverTheSessionsOwnConnection(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{Features: full()})
	cfg.Isolated = true
	h := start(t, cfg)
	eventually(t, "it is listed", func() bool { return len(h.catalog("s").Resources) == 3 })
	a, b := newVisitor("a"), newVisitor("b")
	for _, v := range []*visitor{a, b} {
		_, err := h.Forward(t.Context(), &tool.Request{Server: "s", Method: "resources/read", Session: v.session,
			Params: json.RawMessage(`{"uri":"x://"}`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := h.status("s").Sessions; n != 2 {
		t.Errorf("%d sessions have a connection, want 2", n)
	}
	_, err := h.Forward(t.Context(), &tool.Request{Server: "s", Method: "resources/read", Session: a.session,
		Params: json.RawMessage(`{"uri":"die"}`)})
	if !failure(t, err).OutcomeUnknown {
		t.Errorf("error %v", err)
	}
	if got := fmt.Sprint(len(b.pids(t, h))); got == "0" {
		t.Error("the other session's connection is gone")
	}
	a.end()
	_, err = h.Forward(t.Context(), &tool.Request{Server: "s", Method: "resources/read", Session: a.session})
	if failure(t, err).Code != "session_ended" {
		t.Errorf("error %v", err)
	}
}

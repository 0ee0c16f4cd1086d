package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// framed is how many bytes one message takes with what the transport puts around it.
func framed(w way, message int) int {
	switch {
	case w.http == nil:
		return message + len("\n")
	case w.http.JSON:
		return message
	}
	return message + len("event: message") + len("data: ")
}

// bigResponse is the response of the tool big with n bytes to a request whose id has one digit.
func bigResponse(n int) int {
	return len(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""}]}}`) + n
}

// TestMessageLimit: a response that is one byte too large fails its call at once, and nothing else.
func TestMessageLimit(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		if !strings.Contains("stdio 2025, stdio 2026, http 2025 stream, http 2025 json, http 2026 stream, http 2026 json, sse", w.name) {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			const bytes = 200_000
			cfg := w.config(t, "s")
			cfg.Limits.Message = framed(w, bigResponse(bytes))
			h := start(t, cfg)
			h.ready(t, "s")
			if got := h.mustCall(t, "s", "big", fmt.Sprintf(`{"bytes":%d}`, bytes)); len(got) < bytes {
				t.Errorf("%d bytes came", len(got))
			}
			_, err := h.call(t.Context(), "s", "big", fmt.Sprintf(`{"bytes":%d}`, bytes+1))
			f := failure(t, err)
			value := fmt.Sprintf("%d bytes", cfg.Limits.Message)
			if f.Class != tool.ClassResultTooLarge || !f.OutcomeUnknown || !containsAll(f.Message, value, "limits.message", "hub.limits.message") {
				t.Errorf("failure %+v", f)
			}
			h.mustCall(t, "s", "echo", `{}`)
			if st := h.status("s"); st.Restarts != 0 || st.State != tool.ServerReady {
				t.Errorf("state %s after %d restarts", st.State, st.Restarts)
			}
			if !containsAll(h.log.String(), "over a limit", "limit=limits.message", value) {
				t.Error("the log does not name the limit")
			}
		})
	}
}

func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// TestMessageLimitWhileConnecting: a server that cannot be used for its large messages says so.
func TestMessageLimitWhileConnecting(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		if !strings.Contains("stdio 2025, stdio 2026, http 2025 stream, http 2025 json, http 2026 json, sse", w.name) {
			continue
		}
		for name, spoil := range map[string]func(*upstreamtest.Script){
			"initialize": func(s *upstreamtest.Script) { s.Instructions = strings.Repeat("x", 5000) },
			"tools/list": func(s *upstreamtest.Script) {
				s.Tools = []json.RawMessage{toolOfSize("large", 5000)}
			},
		} {
			t.Run(w.name+" "+name, func(t *testing.T) {
				t.Parallel()
				w := w
				spoil(&w.script)
				cfg := w.config(t, "s")
				cfg.Limits.Message = 4096
				h := start(t, cfg)
				st := h.reaches(t, "s", tool.ServerBackoff)
				if !containsAll(st.LastError, name+": ", "4 KiB", "limits.message") || !strings.Contains(st.Hint, "raise limits.message") {
					t.Errorf("last error %q, hint %q", st.LastError, st.Hint)
				}
				eventually(t, "the log names the limit", func() bool { return strings.Contains(h.log.String(), "limits.message") })
			})
		}
	}
}

// toolOfSize is a declaration of so many bytes.
func toolOfSize(name string, bytes int) json.RawMessage {
	const frame = `{"name":"","inputSchema":{"type":"object"},"description":""}`
	return fmt.Appendf(nil, `{"name":%q,"inputSchema":{"type":"object"},"description":"%s"}`, name, strings.Repeat("d", bytes-len(frame)-len(name)))
}

// TestListLimits crosses each limit of what is listed by one, and stays within it.
func TestListLimits(t *testing.T) {
	t.Parallel()
	plain := []json.RawMessage{toolOfSize("a", 100), toolOfSize("b", 100), toolOfSize("c", 100)}
	page := len(`{"tools":[`) + 3*100 + len(`,,]}`)
	deep := []json.RawMessage{upstreamtest.DeepTool("deep", 50), upstreamtest.Tool("echo")}
	schema, _ := rawjson.Get(deep[0], "inputSchema")
	levels := rawjson.Depth(schema)
	for _, c := range []struct {
		name           string
		script         upstreamtest.Script
		within, beyond upstream.Limits
		want           func(t *testing.T, h *harness) // beyond
	}{
		{"pages", upstreamtest.Script{Tools: plain, PageSize: 1}, upstream.Limits{Pages: 3}, upstream.Limits{Pages: 2}, func(t *testing.T, h *harness) {
			fails(t, h, "did not end within 2 pages", "report this")
		}},
		{"catalog", upstreamtest.Script{Tools: plain}, upstream.Limits{Catalog: page}, upstream.Limits{Catalog: page - 1}, func(t *testing.T, h *harness) {
			fails(t, h, fmt.Sprintf("larger than %d bytes", page-1), "list fewer or shorter tools")
		}},
		{"tools", upstreamtest.Script{Tools: plain}, upstream.Limits{Tools: 3}, upstream.Limits{Tools: 2}, func(t *testing.T, h *harness) {
			excludes(t, h, "a b", "(1 more)", "lists 3 tools", "first 2: list fewer tools")
		}},
		{"tool size", upstreamtest.Script{Tools: append(plain[:2:2], toolOfSize("c", 2048))}, upstream.Limits{ToolSize: 2048}, upstream.Limits{ToolSize: 2047},
			func(t *testing.T, h *harness) {
				excludes(t, h, "a b", "mcp.s.c", "2048 bytes", "2047 bytes: shorten it")
			}},
		{"schema depth", upstreamtest.Script{Tools: deep}, upstream.Limits{SchemaDepth: levels}, upstream.Limits{SchemaDepth: levels - 1},
			func(t *testing.T, h *harness) {
				if st := h.ready(t, "s"); st.Repaired != 1 || len(st.Excluded) != 0 {
					t.Fatalf("%d repaired, excluded %v", st.Repaired, st.Excluded)
				}
				repairs := h.catalog("s").Tools[0].Repairs
				if want := fmt.Sprintf("%d levels deep, more than %d: flatten it", levels, levels-1); len(repairs) != 1 ||
					repairs[0].Part != "inputSchema" || !strings.Contains(repairs[0].Reason, want) {
					t.Errorf("repairs %+v", repairs)
				}
				warns(t, h, "flatten it")
			}},
	} {
		for _, w := range []way{{name: "stdio", script: c.script}, {name: "http", script: c.script, http: &upstreamtest.Options{}}} {
			t.Run(c.name+" "+w.name, func(t *testing.T) {
				t.Parallel()
				cfg := w.config(t, "s")
				cfg.Limits = c.within
				h := start(t, cfg)
				if st := h.ready(t, "s"); st.Tools != len(c.script.Tools) || st.Repaired+len(st.Excluded) != 0 {
					t.Errorf("within the limit: %d tools, %d repaired, excluded %v", st.Tools, st.Repaired, st.Excluded)
				}
				cfg.Limits = c.beyond
				c.want(t, start(t, cfg))
			})
		}
	}
}

// fails wants a server that cannot be used.
func fails(t *testing.T, h *harness, lastError, hint string) {
	t.Helper()
	st := h.reaches(t, "s", tool.ServerBackoff)
	if !strings.Contains(st.LastError, lastError) || !strings.Contains(st.Hint, hint) {
		t.Errorf("last error %q, hint %q", st.LastError, st.Hint)
	}
	if _, err := h.call(t.Context(), "s", "a", `{}`); !containsAll(failure(t, err).Message, lastError, hint) {
		t.Errorf("a call is answered with %v", err)
	}
	eventually(t, "the log names the limit", func() bool { return strings.Contains(h.log.String(), lastError) })
}

// excludes wants a server with these tools and one exclusion.
func excludes(t *testing.T, h *harness, names, excluded string, reason ...string) {
	t.Helper()
	st := h.ready(t, "s")
	if h.names("s") != names || len(st.Excluded) != 1 || st.Excluded[0].Tool != excluded || !containsAll(st.Excluded[0].Reason, reason...) {
		t.Errorf("tools %s, excluded %+v", h.names("s"), st.Excluded)
	}
	warns(t, h, reason[0])
}

func warns(t *testing.T, h *harness, limit string) {
	t.Helper()
	eventually(t, "the log names the limit", func() bool {
		_, after, ok := strings.Cut(h.log.String(), "lists more than its limits allow")
		return ok && strings.Contains(after, limit)
	})
}

// TestRaisedLimit: a server whose limits have changed is started anew, and no other one.
func TestRaisedLimit(t *testing.T) {
	t.Parallel()
	small, other := stdio("s", upstreamtest.Script{}), stdio("other", upstreamtest.Script{})
	small.Limits.Message = 10_000
	h := start(t, small, other)
	pid := h.ready(t, "other").PID
	h.ready(t, "s")
	if _, err := h.call(t.Context(), "s", "big", `{"bytes":20000}`); failure(t, err).Class != tool.ClassResultTooLarge {
		t.Errorf("error %v", err)
	}
	small.Limits.Message = 30_000
	if err := h.Apply(upstream.Config{Servers: []upstream.ServerConfig{small, other}}); err != nil {
		t.Fatal(err)
	}
	h.mustCall(t, "s", "big", `{"bytes":20000}`)
	if now := h.status("other").PID; now != pid {
		t.Errorf("the other server is process %d, and was %d", now, pid)
	}
}

// TestMalformedListWithDeepTool: depth excuses nothing else.
func TestMalformedListWithDeepTool(t *testing.T) {
	t.Parallel()
	deep := string(upstreamtest.DeepTool("deep", 5000))
	for name, result := range map[string]string{
		"a tool":     `{"tools":[` + deep + `,{"name":"x","inputSchema":01}]}`,
		"the result": `{"tools":[` + deep + `],"nextCursor":nope}`,
		"no tools":   `{"tools":[],"x":` + deep + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, _ := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
				if method, _ := rawjson.Get(body, "method"); string(method) != `"tools/list"` {
					return false
				}
				id, _ := rawjson.Get(body, "id")
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
				return true
			}})
			h := start(t, cfg)
			if st := h.reaches(t, "s", tool.ServerBackoff); !strings.Contains(st.LastError, "nested too deeply") {
				t.Errorf("last error %q", st.LastError)
			}
		})
	}
}

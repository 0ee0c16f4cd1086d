//go:build unix

package upstream_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// TestServersThatUseTheSDK checks subscriptions, their renewal and the announcing of changes against servers of the SDK, in
// both generations.
func TestServersThatUseTheSDK(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	over := func(o *mcp.StreamableHTTPOptions) upstream.ServerConfig {
		s := sdkServer()
		srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, o))
		t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
		return upstream.ServerConfig{ID: "s", Transport: upstream.StreamableHTTP, URL: srv.URL}
	}
	for name, cfg := range map[string]upstream.ServerConfig{
		"stdio":          {ID: "s", Transport: upstream.Stdio, Command: self, Env: []string{"GORACE=atexit_sleep_ms=0", sdkVariable + "=1"}},
		"http":           over(nil),
		"http stateless": over(&mcp.StreamableHTTPOptions{Stateless: true}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, all := hear(t, cfg)
			version := h.ready(t, "s").ProtocolVersion
			t.Log("protocol", version)
			if c := h.catalog("s"); natives(c.Prompts) != "greet" || len(c.Resources) != 3 || !c.Abilities.Subscribe {
				t.Errorf("%s: %+v", version, c)
			}
			if reply, err := h.forward(t.Context(), "resources/read", `{"uri":"x://0"}`); err != nil || !strings.Contains(string(reply.Result), `"text"`) {
				t.Errorf("%s: %s, %v", version, reply.Result, err)
			}
			for i := range 3 {
				if err := h.Subscribe(t.Context(), "s", fmt.Sprintf("x://%d", i), tool.Session{}, tool.Hop{}); err != nil {
					t.Fatalf("%s: %v", version, err)
				}
			}
			if err := h.Subscribe(t.Context(), "s", "bad://", tool.Session{}, tool.Hop{}); err == nil {
				t.Errorf("%s: a subscription that the server refuses is taken", version)
			}
			for _, uri := range []string{"x://0", "x://1", "x://2"} {
				eventually(t, version+": told of "+uri, func() bool {
					h.mustCall(t, "s", "touch", `{"uri":"`+uri+`"}`)
					return all.about(uri) > 0
				})
			}
			if err := h.Unsubscribe(t.Context(), "s", "x://1", tool.Session{}); err != nil {
				t.Error(err)
			}
			// Updates of one stream keep their order: who hears of x://2 has heard of x://1 before. One that comes while the
			// subscription is renewed may be lost, so there are more rounds.
			eventually(t, version+": the end of a subscription is told", func() bool {
				one, two := all.about("x://1"), all.about("x://2")
				h.mustCall(t, "s", "touch", `{"uri":"x://1"}`)
				h.mustCall(t, "s", "touch", `{"uri":"x://2"}`)
				return settlesWithin(time.Second, func() bool { return all.about("x://2") > two }) && all.about("x://1") == one
			})
			h.mustCall(t, "s", "grow", `{"uri":""}`)
			eventually(t, version+": the new prompt is listed", func() bool { return strings.Contains(natives(h.catalog("s").Prompts), "late") })
		})
	}
}

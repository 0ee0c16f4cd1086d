//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestCacheHints holds what lists say on 2026-07-28 of keeping them: the least of what their servers said, and that they are
// for all callers only where all of these said so and nobody could see another list.
func TestCacheHints(t *testing.T) {
	t.Parallel()
	const minute, hour = 60_000, 3_600_000
	script := func(ms int, scope string) upstreamtest.Script {
		hint := []string{fmt.Sprintf(`,"ttlMs":%d,"cacheScope":%q`, ms, scope)}
		return upstreamtest.Script{Modern: true, Hints: map[string][]string{"tools": hint, "prompts": hint, "resources": hint, "resourceTemplates": hint},
			Features: upstreamtest.Features{Prompts: []json.RawMessage{json.RawMessage(`{"name":"p"}`)},
				Resources: []json.RawMessage{json.RawMessage(`{"uri":"a://b","name":"b"}`)},
				Templates: []json.RawMessage{json.RawMessage(`{"uriTemplate":"a://{x}","name":"x"}`)}}}
	}
	whole := map[string]any{"mode": "never"}
	profile := func(style string, deferred map[string]any, servers ...string) map[string]any {
		return map[string]any{"style": style, "servers": servers, "deferred": deferred}
	}
	hub := startHub(t, "hub.json", configText(t, map[string]any{
		"hours":   map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: script(2*hour, "public")})},
		"minutes": child(script(30*minute, "public")),
		"private": child(script(hour, "private")),
		"old":     child(upstreamtest.Script{Hints: script(hour, "public").Hints}),
		"off":     with(child(script(minute, "private")), "disabled", true),
	}, map[string]any{"hub": map[string]any{"toolsets": map[string]any{"code": map[string]any{"root": "."}}}, "profiles": map[string]any{
		"both":   profile("canonical", whole, "hours", "minutes", "off", "code"),
		"mixed":  profile("canonical", whole, "hours", "private"),
		"older":  profile("canonical", whole, "hours", "old"),
		"auto":   profile("auto", whole, "hours"),
		"held":   profile("canonical", map[string]any{"mode": "auto"}, "hours"),
		"nobody": profile("canonical", whole, "code"),
	}}))
	for _, server := range []string{"hours", "minutes", "private", "old"} {
		eventually(t, "the tools are known", func() bool { return hub.statusOf(t, server).Tools > 0 })
	}
	for path, want := range map[string]struct {
		ttl   int64
		scope string
	}{
		"/mcp/p/both": {30 * minute, "public"}, "/mcp/p/mixed": {hour, "private"}, "/mcp/p/older": {0, "private"},
		"/mcp/p/auto": {2 * hour, "private"}, "/mcp/p/held": {2 * hour, "private"}, "/mcp/p/nobody": {0, "private"}, "/mcp": {0, "private"},
		"/mcp/s/hours": {2 * hour, "public"}, "/mcp/s/minutes": {30 * minute, "public"}, "/mcp/s/private": {hour, "private"}, "/mcp/s/old": {0, "private"},
	} {
		w := wireHTTP(t, hub.url+path, rev2026)
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			eventually(t, method+" of "+path+" is as old as that", func() bool {
				messages := w.send(rawRequest{id: w.nextID(), method: method, params: w.params("", "")})
				var got struct {
					TTLMs      int64
					CacheScope string
				}
				mustDecode(t, w.resultOf(messages[len(messages)-1]), &got)
				want := want
				if method != "tools/list" { // the old one has none of the others
					switch path {
					case "/mcp/p/older":
						want.ttl, want.scope = 2*hour, "public"
					case "/mcp":
						want.ttl = 30 * minute
					}
				}
				if got.TTLMs > want.ttl || got.CacheScope == "public" && want.scope == "private" {
					t.Fatalf("%s of %s says %+v, which is more than %+v", method, path, got, want)
				}
				return got.TTLMs > want.ttl-10*minute && got.CacheScope == want.scope
			})
		}
	}
}

package downstream

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// A list says no more of keeping it than what every server said whose list was merged, and is
// private where others would see another one.
func TestCacheHintsOfLists(t *testing.T) {
	t.Parallel()
	type said map[string]tool.Freshness // by server; one that is not in it has no such list
	for name, c := range map[string]struct {
		said      said
		tokens    bool
		forClient bool
		want      string
	}{
		"nobody said": {said{}, false, false, `,"ttlMs":0,"cacheScope":"private"`},
		"the one that lists": {said{"a": left(1500*time.Millisecond, true)}, false, false,
			`,"ttlMs":1500,"cacheScope":"public"`},
		"the smallest of all": {said{"a": left(time.Hour, true), "b": left(2*time.Second, true),
			"s": left(time.Minute, true)}, false, false, `,"ttlMs":2000,"cacheScope":"public"`},
		"one is private": {said{"a": left(time.Hour, true), "b": left(time.Hour, false)}, false, false,
			`,"ttlMs":3600000,"cacheScope":"private"`},
		"one said nothing": {said{"a": left(time.Hour, true), "b": {}}, false, false,
			`,"ttlMs":0,"cacheScope":"private"`},
		"over": {said{"a": left(time.Hour, true), "b": left(-time.Hour, true)}, false, false,
			`,"ttlMs":0,"cacheScope":"public"`},
		"less than the unit": {said{"a": left(999*time.Microsecond, true)}, false, false,
			`,"ttlMs":0,"cacheScope":"public"`},
		"callers have tokens": {said{"a": left(time.Hour, true)}, true, false,
			`,"ttlMs":3600000,"cacheScope":"private"`},
		"clients see them own": {said{"a": left(time.Hour, true)}, false, true,
			`,"ttlMs":3600000,"cacheScope":"private"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behind(&servers{})
			s := newServer(t, Config{}, f)
			if c.tokens {
				s.Apply(Config{Auth: AuthConfig{Tokens: []Token{{Name: "ann", Secret: "x"}}}}, []string{"default"})
			}
			surface, _ := f.Surface("default", tool.Actor{})
			surface.ForClient = c.forClient
			synctest.Test(t, func(t *testing.T) {
				for _, method := range []string{"tools/list", "prompts/list", "resources/list",
					"resources/templates/list"} {
					f.fresh = func(server, asked string) (tool.Freshness, bool) {
						said, ok := c.said[server]
						if asked != method {
							t.Errorf("asked of %s, not of %s", asked, method)
						}
						if said.Until.IsZero() {
							return said, ok
						}
						said.Until = time.Now().Add(said.Until.Sub(epoch()))
						return said, ok
					}
					ttl, scope := s.surfaces.cacheHints(&peer{profile: "default", modern: true}, surface, method)
					if got := fmt.Sprintf(`,"ttlMs":%d,"cacheScope":%q`, ttl.Milliseconds(), scope); got != c.want {
						t.Errorf("%s says %s, want %s", method, got, c.want)
					}
				}
				f.fresh = func(string, string) (tool.Freshness, bool) {
					f.offer("other")
					f.show(f.surface)
					return tool.Freshness{Until: time.Now().Add(time.Hour), Public: true}, true
				}
				if ttl, scope := s.surfaces.cacheHints(&peer{profile: "default", modern: true}, surface,
					"tools/list"); ttl != 0 || scope != "private" {
					t.Errorf("what is said of a later list is taken for this one's: %s, %s", ttl, scope)
				}
			})
		})
	}
}

// epoch is when the servers of TestCacheHintsOfLists spoke.
func epoch() time.Time { return time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC) }

func left(d time.Duration, public bool) tool.Freshness {
	return tool.Freshness{Until: epoch().Add(d), Public: public}
}

// Clients of other revisions know nothing of it.
func TestCacheHintsAreOfTheirRevision(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c *client, _ *servers, modern bool) {
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			got := c.ask("1", method, "")
			if strings.Count(got[0], `,"ttlMs":0,"cacheScope":"private",`) != map[bool]int{true: 1}[modern] ||
				strings.Contains(got[0], "ttlMs") != modern {
				t.Errorf("%s", fmt.Sprint(got))
			}
		}
	})
}

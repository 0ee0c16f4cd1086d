package downstream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// The whole list of a surface is put together once for each kind of client. Parts of it, lists with
// tools that a session has loaded besides, and declarations with line breaks are put together anew.
func TestListIsPutTogetherOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		declaration string
		besides     bool
		to          int
		kept        bool
	}{
		"whole":       {`{"name":"a"}`, false, 2, true},
		"a page":      {`{"name":"a"}`, false, 1, false},
		"more tools":  {`{"name":"a"}`, true, 2, false},
		"line breaks": {"{\n\"name\":\"a\"}", false, 2, true},
	} {
		surface := tool.NewSurface("srf_1", "default", "canonical", "d", make([]tool.Listed, 2), nil, nil)
		asked := 0
		l := listedItems{member: "tools", length: 2, surface: surface, declaration: func(int) json.RawMessage {
			asked++
			return json.RawMessage(test.declaration)
		}}
		if test.besides {
			l.surface = nil
		}
		want := `{"tools":[` + strings.TrimSuffix(strings.Repeat(test.declaration+",", test.to), ",") + "]"
		for range 2 {
			if page := l.page(true, 0, test.to); string(page.joined()) != want {
				t.Errorf("%s: %s", name, page.joined())
			}
		}
		if kept := asked == test.to; kept != test.kept {
			t.Errorf("%s: declarations were asked for %d times", name, asked)
		}
		l.surface = surface
		if all := l.page(true, 0, 2); strings.Count(string(all.joined()), "name") != 2 {
			t.Errorf("%s: the whole list is %s afterwards", name, all.joined())
		}
		if text := surface.ListText(false); text != nil {
			t.Errorf("%s: other clients get %s", name, text)
		}
	}
}

package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// TestWhatTwoReadersReadDifferentlyIsNotJudged: of a member that stands there twice the hub may read the one and the tool's
// server the other, so a condition over it counts against the call. The same holds for what is no JSON object.
func TestWhatTwoReadersReadDifferentlyIsNotJudged(t *testing.T) {
	t.Parallel()
	letters := strings.Split(`"a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q","r","s","t"`, ",")
	safe := `has(arguments.path) && arguments.path == "/safe"`
	for input, why := range map[string]string{
		`{"path":"/etc","path":"/safe"}`:                                          "twice",
		`{"path":"/safe","path":"/etc"}`:                                          "twice",
		`{"path":"/safe","p\u0061th":"/etc"}`:                                     "twice",
		`{"path":"/safe","x":[{"y":{"a":1,"a":2}}]}`:                              "twice",
		`{"path":"/safe","Path":"/etc"}`:                                          "twice",
		`{"path":"/safe","1":1,"2":1,"3":1,"4":1,"5":1,"6":1,"7":1,"PATH":""}`:    "twice",
		`{"path":"/safe","1":1,"2":1,"3":1,"4":1,"5":1,"6":1,"7":1,"x":1,"X":""}`: "twice",
		`{"\u017fafe":1,"path":"/safe","SAFE":2}`:                                 "twice", // a long s
		`{"path":"/safe",` + strings.Join(letters, ":0,") + `:0,"PATH":"/etc"}`:   "twice",
		`["/safe"]`:           "no JSON object",
		`"/safe"`:             "no JSON object",
		`{"path":"/safe"`:     "no JSON",
		`{"path":"/safe"} {}`: "no JSON",
		`{"path":` + strings.Repeat("[", 2000) + `}`: "no JSON",
	} {
		for then, want := range map[tool.Behavior]tool.Behavior{tool.Allow: tool.Ask, tool.Passthrough: tool.Ask, tool.Deny: tool.Deny} {
			e := compile(t, policy.Settings{Sets: user(policy.Rule{ID: "r", Match: []string{"*"}, When: safe, Then: then})})
			r := writer("mcp.x.y")
			r.Input = json.RawMessage(input)
			d := decides(t, e, r, want, "user")
			if text, _ := d.Reason["condition_error"].(string); !strings.Contains(text, why) {
				t.Errorf("%.40s, %s: %v", input, then, d.Reason)
			}
		}
	}
}

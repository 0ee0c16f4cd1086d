package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// TestWhatConditionsSee: fields of records however they are reached, and values that may be missing.
func TestWhatConditionsSee(t *testing.T) {
	t.Parallel()
	r := writer("mcp.files.write_file")
	r.Input = json.RawMessage(`{"path":"/srv/a","n":3,"deep":{"x":[1,2]}}`)
	r.Targets = []target.Target{{Kind: target.Path, Resolved: "/srv/a", Write: true}, {Kind: target.URL, Host: "h"}}
	for when, want := range map[string]string{ // want "": an error
		`tool.name == "mcp.files.write_file" && !tool.read_only`:                 "true",
		`dyn(tool).name == tool.name && dyn(tool)["server"] == tool.server`:      "true",
		`"write" in tool.tags && tool.tags.size() > 0 && tool.tags == tool.tags`: "true",
		`has(tool.risk) && has(tool.name) && !has(targets[0].host)`:              "true",
		`has(dyn(tool).nothing)`:                                                  "",
		`dyn(tool).nothing == 1`:                                                  "",
		`type(tool) == type(actor) || type(tool) != type(tool)`:                   "false",
		`targets[0] == targets[0] && targets[0] != targets[1]`:                    "true",
		`targets.exists(t, t.host == "h") && targets.all(t, !t.remote)`:           "true",
		`targets.filter(t, t.write).map(t, t.resolved) == ["/srv/a"]`:             "true",
		`targets.exists_one(t, t.kind == "url")`:                                  "true",
		`arguments.?n.orValue(0) == 3 && arguments.?m.orValue(7) == 7`:            "true",
		`arguments.?deep.?x[?1].hasValue() && !arguments.?deep.?y.hasValue()`:     "true",
		`arguments.?m.or(optional.of(1)).value() == 1`:                            "true",
		`arguments.?m.value() == 1`:                                               "",
		`optional.ofNonZeroValue("") == optional.none()`:                          "true",
		`arguments[?"n"].orValue(0) >= 3.0`:                                       "true",
		`under(targets[0].resolved, "/srv") && !under("https://h/srv", "/srv")`:   "true",
		`under("srv", "/srv")`:                                                    "",
		`actor.name.matches("^[a-z]+$") && size(profile) >= 0`:                    "true",
		`time > timestamp("2020-01-01T00:00:00Z") && time.getHours("UTC") < 24`:   "true",
		`duration("1h") < duration("61m") && int("3") == arguments.n`:             "true",
		`policy.celTool{name: "x"}.name == "x"`:                                   "",
		`[1,2,3].map(a, [1,2,3].map(b, [1,2,3].map(c, [1,2,3].map(d, a)))) == []`: "false",
		`"aaaaaaaaaaaaaaaa".matches("(a+)+$") ? arguments.missing == 1 : true`:    "",
	} {
		e, err := policy.Compile(policy.Settings{Sets: user(policy.Rule{Match: []string{"*"}, When: when, Then: tool.Passthrough})})
		if err != nil {
			t.Errorf("%s: %v", when, err)
			continue
		}
		d := e.Decide(r)
		got := "false"
		if _, failed := d.Reason["condition_error"]; failed {
			got = ""
		} else if d.Behavior == tool.Passthrough {
			got = "true"
		}
		if got != want {
			t.Errorf("%s: %q, want %q (%v)", when, got, want, d.Reason)
		}
	}
	for _, when := range []string{`tool.nothing == 1`, `actor == 3`, `nobody.name == "x"`, `arguments.path`, `"x"`,
		`google.protobuf.Int64Value{value: 1} == 1`} {
		_, err := policy.Compile(policy.Settings{Sets: user(policy.Rule{Match: []string{"*"}, When: when, Then: tool.Allow})})
		if (err == nil) != (when == `arguments.path`) {
			t.Errorf("%s: %v", when, err)
		}
	}
}

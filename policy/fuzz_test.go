package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

func noon() time.Time { return time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC) }

// FuzzRules: whatever a rule file holds, it is read in little time, refused with a place, or does what it says.
func FuzzRules(f *testing.F) {
	f.Add([]byte(explained))
	f.Add([]byte(`{"rules":[{"match":"*","then":"deny"}]}`))
	f.Add([]byte("rules:\n  - &a {match: *a}\n"))
	f.Add([]byte("rules: [[[[{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := policy.ParseRules(policy.User, "f", data)
		var faults policy.Faults
		if err != nil && (!errors.As(err, &faults) || len(set.Rules) != 0) {
			t.Fatalf("%v is no faults, %d rules", err, len(set.Rules))
		}
		for _, fault := range faults.Faults {
			if fault.Line < 1 || fault.Column < 1 || fault.Message == "" {
				t.Errorf("%+v", fault)
			}
		}
		if err == nil {
			compile(t, policy.Settings{Sets: []policy.Set{set}})
		}
	})
}

// FuzzCondition: whatever a condition and the arguments are, an evaluation ends soon, never panics, and when it fails the
// call is not allowed.
func FuzzCondition(f *testing.F) {
	for _, condition := range []string{"true", "arguments.a == 1", "arguments.all(k, arguments[k] > 0)", "targets[0].write",
		"arguments.a.matches('^(a+)+$')", "'x'.matches(arguments.a)", "[1,2,3].map(x, x * 2)[0] == 2", "arguments.?a.orValue(1) > 0",
		"under(arguments.a, '/p')", "time > timestamp(arguments.a)", "_meta == {}", "duration(arguments.a) > duration('1s')"} {
		f.Add(condition, []byte(`{"a":1}`))
		f.Add(condition, []byte(`{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}`))
		f.Add(condition, []byte(`{"a":1,"a":2}`))
		f.Add(condition, []byte(`[`))
	}
	f.Fuzz(func(t *testing.T, condition string, input []byte) {
		allow := policy.Rule{ID: "allow", Match: []string{"*"}, When: condition, Then: tool.Allow}
		if condition == "" || len(policy.CheckRules([]policy.Rule{allow})) > 0 {
			return
		}
		deny := allow
		deny.ID, deny.Then = "deny", tool.Deny
		r := writer("mcp.x.y")
		r.Input, r.Now = json.RawMessage(input), noon()
		began := time.Now()
		one := compile(t, policy.Settings{Sets: user(allow)}).Decide(r)
		if spent := time.Since(began); spent > 2*time.Minute {
			t.Errorf("%v for %q", spent, condition)
		}
		other := compile(t, policy.Settings{Sets: user(deny)}).Decide(r)
		_, failed := one.Reason["condition_error"]
		switch {
		case failed && (one.Behavior != tool.Ask || other.Behavior != tool.Deny):
			t.Errorf("%q fails on %q: %s and %s", condition, input, one.Behavior, other.Behavior)
		case !failed && (one.Behavior == tool.Allow) != (other.Behavior == tool.Deny):
			t.Errorf("%q on %q both holds and does not: %s and %s", condition, input, one.Behavior, other.Behavior)
		}
		if _, err := json.Marshal(one); err != nil {
			t.Error(err)
		}
	})
}

// FuzzGrantFile: what a grant holds is read back as it was written, or covers less; a text never becomes another entry.
func FuzzGrantFile(f *testing.F) {
	f.Add("mcp.fs.write", "/p", "yes\n  - id: x")
	f.Add("mcp.fs.write", "/p\"}", "\u2028\x00\x7f\\")
	f.Add("a: b", "# c", "'\"\xff")
	f.Fuzz(func(t *testing.T, name, under, says string) {
		file := filepath.Join(t.TempDir(), "g.yaml")
		g := openGrants(t, policy.GrantOptions{File: file})
		grant := grantFor(tool.Name(name), under)
		grant.Says = says
		added, err := g.AddAlways(grant)
		if err != nil {
			return
		}
		again, err := policy.OpenGrants(policy.GrantOptions{File: file})
		if err != nil {
			text, _ := os.ReadFile(file)
			t.Fatalf("%v\n%s", err, text)
		}
		valid := func(text string) bool {
			return json.Valid(fmt.Appendf(nil, "%q", text)) && string([]rune(text)) == text
		}
		list := again.List()
		if len(list) != 1 || list[0].ID != added.ID || list[0].Then != tool.Allow {
			t.Fatalf("%+v", list)
		}
		if valid(name) && valid(under) && (list[0].Tool != added.Tool || list[0].Scopes[0] != added.Scopes[0]) {
			t.Errorf("%+v is read back as %+v", added, list[0])
		}
	})
}

// FuzzTable: a table of strangers is read or refused.
func FuzzTable(f *testing.F) {
	for _, file := range []string{"limits", "grants"} {
		data, err := os.ReadFile("testdata/decisions/" + file + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 4000)])
	}
	f.Add([]byte("policy: {rules: [{match: a, then: deny}]}\ntools: {a: {}}\ncalls: [{call: a, want: deny}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := policy.ParseTable("f", data)
		if err != nil {
			return
		}
		if table.Settings == nil {
			table.Settings = &policy.Settings{}
		}
		if _, err := table.Run(nil, nil); err != nil {
			return // twin ids of one source in two lists
		}
	})
}

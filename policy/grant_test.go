package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

func openGrants(t testing.TB, o policy.GrantOptions) *policy.Grants {
	t.Helper()
	g, err := policy.OpenGrants(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// grantFor is a grant of ann's for one directory.
func grantFor(name tool.Name, under string) policy.Grant {
	return policy.Grant{Then: tool.Allow, Tool: name, Actor: "actor:http/ann", Says: "says: \"yes\"\n#\u007f",
		Scopes: []policy.Scope{{Kind: target.Path, Under: under, Write: true}}}
}

func write(path string) policy.Request {
	r := writer("mcp.fs.write")
	r.Input = json.RawMessage(`{"path":` + fmt.Sprintf("%q", path) + `}`)
	r.Targets = []target.Target{{Kind: target.Path, Argument: "/path", Given: path, Resolved: path, Write: true}}
	return r
}

func decides(t *testing.T, e *policy.Engine, r policy.Request, want tool.Behavior, source string) tool.PermissionDecision {
	t.Helper()
	d := e.Decide(r)
	checkRecord(t, d)
	if d.Behavior != want || source != "" && d.Source != source {
		t.Errorf("got %s from %s %v, want %s from %s", d.Behavior, d.Source, d.Reason, want, source)
	}
	return d
}

func TestASessionGrantDiesWithItsSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := openGrants(t, policy.GrantOptions{})
		e := compile(t, policy.Settings{Grants: g})
		if _, err := g.AddSession("s1", grantFor("mcp.fs.write", "/p")); err != nil {
			t.Fatal(err)
		}
		mine, other := write("/p/a"), write("/p/a")
		other.Actor.Session = "s2"
		decides(t, e, mine, tool.Allow, "session_grant")
		decides(t, e, other, tool.Ask, "default")
		g.EndSession("")
		g.EndSession("s2")
		decides(t, e, mine, tool.Allow, "session_grant")
		g.EndSession("s1")
		decides(t, e, mine, tool.Ask, "default")
		// Where the protocol has no sessions, time ends it, and it is this caller's alone.
		granted, err := g.AddSession("", grantFor("mcp.fs.write", "/p"))
		if err != nil || !granted.Expires.Equal(granted.Created.Add(time.Hour)) {
			t.Fatalf("%+v, %v", granted, err)
		}
		mine.Actor.Session, other.Actor.Session, other.Actor.Name = "", "", "bob"
		decides(t, e, mine, tool.Allow, "session_grant")
		decides(t, e, other, tool.Ask, "default")
		time.Sleep(time.Hour)
		decides(t, e, mine, tool.Ask, "default")
		if len(g.List()) != 0 {
			t.Errorf("an expired grant is listed: %+v", g.List())
		}
		// An expired grant makes room, a live one does not.
		const most = 10_000
		for i := range most {
			name := fmt.Sprint("mcp.fs.write_", i%100)
			if _, err := g.AddSession("s3", grantFor(tool.Name(name), fmt.Sprint("/", i))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := g.AddSession("s3", grantFor("mcp.fs.write", "/s")); !errors.Is(err, policy.ErrTooMany) {
			t.Errorf("got %v", err)
		}
		if err := g.Revoke(g.List()[0].ID); err != nil {
			t.Error(err)
		}
		if err := g.Revoke("grt_none"); !errors.Is(err, policy.ErrNoGrant) || len(g.List()) != most-1 {
			t.Errorf("got %v, %d are left", err, len(g.List()))
		}
	})
}

func TestAlwaysGrantsAreAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state", "grants.yaml")
	g := openGrants(t, policy.GrantOptions{File: file})
	granted, err := g.AddAlways(grantFor("mcp.fs.write", "/p \"q\"/é"))
	if err != nil {
		t.Fatal(err)
	}
	if life := granted.Expires.Sub(granted.Created); life != 90*24*time.Hour {
		t.Errorf("it lives for %v", life)
	}
	info, err := os.Stat(file)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"targets":[{"kind":"path","under":"/p \"q\"/é","write":true}]`) {
		t.Errorf("%s, %v", text, err)
	}
	// Another hub reads it, and a person edits it.
	second := openGrants(t, policy.GrantOptions{File: file})
	if list := second.List(); len(list) != 1 || fmt.Sprint(list[0]) != fmt.Sprint(granted) {
		t.Errorf("got  %+v\nwant %+v", list, granted)
	}
	edited := strings.Replace(string(text), "grants:\n", "# mine\ngrants:\n  - {id: hand, then: deny, tool: mcp.x.y, actor: \"actor:http/ann\"}\n", 1)
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := g.Reload(); err != nil || len(g.List()) != 2 {
		t.Errorf("%v, %+v", err, g.List())
	}
	if err := g.Revoke(granted.ID); err != nil {
		t.Fatal(err)
	}
	if err := second.Reload(); err != nil || len(second.List()) != 1 || second.List()[0].ID != "hand" {
		t.Errorf("%v, %+v", err, second.List())
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "new-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("files are left behind: %v, %v", left, err)
	}
}

// TestAFaultyGrantFile is no start, and while a hub runs what it has read before still holds.
func TestAFaultyGrantFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "grants.yaml")
	g := openGrants(t, policy.GrantOptions{File: file})
	deny := grantFor("mcp.fs.write", "/p")
	deny.Then = tool.Deny
	if _, err := g.AddAlways(deny); err != nil {
		t.Fatal(err)
	}
	e := compile(t, policy.Settings{Grants: g})
	for name, text := range map[string]string{
		"pattern":    `grants: [{id: a, then: allow, tool: "mcp.*", actor: x}]`,
		"ask":        `grants: [{id: a, then: ask, tool: a, actor: x}]`,
		"no actor":   `grants: [{id: a, then: allow, tool: a}]`,
		"no id":      `grants: [{then: allow, tool: a, actor: x}]`,
		"no target":  `grants: [{id: a, then: allow, tool: a, actor: x, targets: [{kind: path}]}]`,
		"both":       `grants: [{id: a, then: allow, tool: a, actor: x, exact: b, targets: [{kind: path, under: /}]}]`,
		"unknown":    `grants: [{id: a, then: allow, tool: a, actor: x, target: /}]`,
		"bad time":   `grants: [{id: a, then: allow, tool: a, actor: x, expires: soon}]`,
		"not a list": `grants: {id: a}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var faults policy.Faults
		if _, err := policy.OpenGrants(policy.GrantOptions{File: file}); !errors.As(err, &faults) {
			t.Errorf("%s: got %v", name, err)
		}
		if err := g.Reload(); !errors.As(err, &faults) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := g.AddAlways(grantFor("mcp.fs.read", "/p")); err == nil {
			t.Errorf("%s: a faulty file is written over", name)
		}
		decides(t, e, write("/p/a"), tool.Deny, "always_grant")
	}
}

// TestTwoHubsWriteAtOnce starts processes that each add grants to one file: none is lost.
func TestTwoHubsWriteAtOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "grants.yaml")
	const hubs, each = 3, 8
	errs := make(chan error, hubs)
	for hub := range hubs {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperAddsGrants$")
		cmd.Env = append(os.Environ(), "GRANTS_FILE="+file, fmt.Sprintf("GRANTS_HUB=%d", hub))
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			errs <- err
		}()
	}
	for range hubs {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if list := openGrants(t, policy.GrantOptions{File: file}).List(); len(list) != hubs*each {
		t.Errorf("%d grants of %d are in the file", len(list), hubs*each)
	}
}

// TestHelperAddsGrants is the other process of TestTwoHubsWriteAtOnce.
func TestHelperAddsGrants(t *testing.T) {
	file := os.Getenv("GRANTS_FILE")
	if file == "" {
		return
	}
	g := openGrants(t, policy.GrantOptions{File: file})
	for n := range 8 {
		if _, err := g.AddAlways(grantFor("mcp.fs.write", fmt.Sprintf("/p/%s/%d", os.Getenv("GRANTS_HUB"), n))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSettle: a person's answers, and what each of them makes of this call and of the next ones.
func TestSettle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		choice             policy.Choice
		this, near, far    tool.Behavior
		source             string
		inFile, remembered int
	}{
		{policy.AllowOnce, tool.Allow, tool.Ask, tool.Ask, "default", 0, 0},
		{policy.AllowSession, tool.Allow, tool.Allow, tool.Ask, "session_grant", 0, 1},
		{policy.AllowAlways, tool.Allow, tool.Allow, tool.Ask, "always_grant", 1, 1},
		{policy.DenyOnce, tool.Deny, tool.Ask, tool.Ask, "default", 0, 0},
		{policy.DenyAlways, tool.Deny, tool.Deny, tool.Ask, "always_grant", 1, 1},
		{"nonsense", tool.Deny, tool.Ask, tool.Ask, "default", 0, 0},
		{"", tool.Deny, tool.Ask, tool.Ask, "default", 0, 0},
	} {
		file := filepath.Join(t.TempDir(), "grants.yaml")
		g := openGrants(t, policy.GrantOptions{File: file})
		e := compile(t, policy.Settings{Grants: g, Home: "/home/ann"})
		asked := decides(t, e, write("/srv/app/src/a.go"), tool.Ask, "default")
		if len(asked.SuggestedUpdates) != 3 {
			t.Fatalf("%+v", asked.SuggestedUpdates)
		}
		if s, ok := asked.SuggestedUpdates[0].(policy.SuggestedGrant); !ok || s.Targets[0].Under != "/srv/app/src" || !s.Targets[0].Write {
			t.Errorf("%+v", asked.SuggestedUpdates)
		}
		d, err := e.Settle(write("/srv/app/src/a.go"), policy.Settlement{Choice: c.choice, By: "cli/ann", Sentence: "mind the tabs", Modified: true})
		checkRecord(t, d)
		if err != nil || d.Behavior != c.this || d.Source != "person" || !d.UserModified || len(d.UpdatedInput) == 0 {
			t.Errorf("%s: %+v, %v", c.choice, d, err)
		}
		if c.this == tool.Allow && d.AcceptFeedback != "mind the tabs" || c.this == tool.Deny && d.ContentBlocks[0]["text"] != "mind the tabs" {
			t.Errorf("%s: the sentence is lost: %+v", c.choice, d)
		}
		decides(t, e, write("/srv/app/src/deep/b.go"), c.near, c.source)
		decides(t, e, write("/srv/app/other/b.go"), c.far, "default")
		if len(g.List()) != c.remembered || len(openGrants(t, policy.GrantOptions{File: file}).List()) != c.inFile {
			t.Errorf("%s: %+v", c.choice, g.List())
		}
	}
}

// TestAnAnswerOvercomesNoDeny: rules are looked at once more when a person has answered.
func TestAnAnswerOvercomesNoDeny(t *testing.T) {
	t.Parallel()
	g := openGrants(t, policy.GrantOptions{})
	e := compile(t, policy.Settings{Grants: g, Sets: user(policy.Rule{Match: []string{"mcp.fs.*"}, Then: tool.Deny})})
	d, err := e.Settle(write("/p/a"), policy.Settlement{Choice: policy.AllowSession})
	if err != nil || d.Behavior != tool.Deny || d.Source != "user" || len(g.List()) != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	e = compile(t, policy.Settings{Mode: policy.ModeReadOnly, Grants: g})
	if d, _ := e.Settle(write("/p/a"), policy.Settlement{Choice: policy.AllowOnce}); d.Behavior != tool.Deny || d.Source != "mode" {
		t.Errorf("%+v", d)
	}
}

// TestWhatIsAskedEveryTimeIsNotRemembered, nor offered to be.
func TestWhatIsAskedEveryTimeIsNotRemembered(t *testing.T) {
	t.Parallel()
	g := openGrants(t, policy.GrantOptions{})
	e := compile(t, policy.Settings{Grants: g, Sets: user(policy.Rule{Match: []string{"*"}, Then: tool.Ask, EveryTime: true})})
	if d := decides(t, e, write("/p/a"), tool.Ask, "user"); len(d.SuggestedUpdates) != 0 {
		t.Errorf("%+v", d.SuggestedUpdates)
	}
	d, err := e.Settle(write("/p/a"), policy.Settlement{Choice: policy.AllowSession})
	if err == nil || d.Behavior != tool.Allow || d.Reason["not_remembered"] == nil || len(g.List()) != 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestWhatCannotBeBoundedIsGrantedExactly: never a bare tool name, and never a program that runs what it is given.
func TestWhatCannotBeBoundedIsGrantedExactly(t *testing.T) {
	t.Parallel()
	command := func(executable, text string) policy.Request {
		r := writer("mcp.sh.run")
		r.CWD, r.Input = "/p", json.RawMessage(fmt.Sprintf(`{"command":%q}`, text))
		r.Targets = []target.Target{{Kind: target.Command, Argument: "/command", Resolved: text, Executable: executable, Write: true}}
		return r
	}
	for _, c := range []struct {
		executable string
		exact      bool
	}{
		{"/usr/bin/rg", false}, {"", true}, {"/bin/bash", true}, {"C:\\Python\\python3.exe", true}, {"/usr/bin/env", true},
		{"/usr/bin/python3.12", true}, {"sudo", true},
	} {
		g := openGrants(t, policy.GrantOptions{})
		e := compile(t, policy.Settings{Grants: g})
		if _, err := e.Settle(command(c.executable, "x one"), policy.Settlement{Choice: policy.AllowSession}); err != nil {
			t.Fatal(err)
		}
		if granted := g.List()[0]; (granted.Exact != "") != c.exact || (len(granted.Scopes) == 0) != c.exact {
			t.Errorf("%s: %+v", c.executable, granted)
		}
		decides(t, e, command(c.executable, "x one"), tool.Allow, "session_grant")
		want := tool.Allow
		if c.exact {
			want = tool.Ask
		}
		decides(t, e, command(c.executable, "x two"), want, "")
		elsewhere := command(c.executable, "x one")
		elsewhere.CWD = "/q"
		decides(t, e, elsewhere, tool.Ask, "default")
	}
	// A target that could not be normalised, and one whose arguments resolve to something else now.
	g := openGrants(t, policy.GrantOptions{})
	e := compile(t, policy.Settings{Grants: g})
	r := write("/p/a")
	r.Targets[0].Fault = "a loop of links"
	if _, err := e.Settle(r, policy.Settlement{Choice: policy.AllowSession}); err != nil || g.List()[0].Exact == "" {
		t.Errorf("%+v, %v", g.List(), err)
	}
	moved := write("/p/a")
	moved.Targets[0].Resolved = "/etc/passwd"
	decides(t, e, moved, tool.Ask, "default")
}

func TestDirectoryOf(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "f.txt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: dir, file: dir, filepath.Join(dir, "new", "x"): filepath.Join(dir, "new"),
		"/none": "/none", "/": "/", "/none-such/x": "/none-such/x", "/home/ann/.bashrc-none": "/home/ann/.bashrc-none",
		"/home/none.txt": "/home/none.txt", "/home/ann/src/x-none": "/home/ann/src",
	} {
		if got := policy.DirectoryOf("/home/ann/work/..", path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestDangerousWithoutTargets: an answer about a dangerous tool that is aimed at nothing holds for exactly its arguments.
func TestDangerousWithoutTargets(t *testing.T) {
	t.Parallel()
	e := compile(t, policy.Settings{Mode: policy.ModeDefault, Grants: openGrants(t, policy.GrantOptions{})})
	for _, c := range []struct { // the tool becomes dangerous: what was allowed before ends
		tags  []string
		exact bool
	}{{nil, false}, {[]string{"dangerous"}, true}} {
		r := writer("mcp.x.create")
		r.Facts = facts.Of(r.Tool, facts.Options{Overrides: []facts.Override{{Match: "*", Destructive: new(bool), Tags: c.tags}}})
		r.Input = json.RawMessage(`{"n":1}`)
		asked := decides(t, e, r, tool.Ask, "default")
		if s, ok := asked.SuggestedUpdates[0].(policy.SuggestedGrant); !ok || (s.Exact != "") != c.exact {
			t.Errorf("%q: %+v", c.tags, asked.SuggestedUpdates[0])
		}
		if _, err := e.Settle(r, policy.Settlement{Choice: policy.AllowSession, By: "test"}); err != nil {
			t.Fatal(err)
		}
		decides(t, e, r, tool.Allow, "session_grant")
		r.Input = json.RawMessage(`{"n":2}`)
		if d := e.Decide(r); (d.Behavior == tool.Ask) != c.exact {
			t.Errorf("%q: other arguments: %+v", c.tags, d)
		}
	}
}

// TestEqualAnswersLeaveOneGrant answers the same twice, as two calls do that wait for one answer. What differs in
// anything that a grant goes by stays apart.
func TestEqualAnswersLeaveOneGrant(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "grants.yaml")
	g, err := policy.OpenGrants(policy.GrantOptions{File: file})
	if err != nil {
		t.Fatal(err)
	}
	session := func(id string) func(policy.Grant) (policy.Grant, error) {
		return func(grant policy.Grant) (policy.Grant, error) { return g.AddSession(id, grant) }
	}
	denial, exact := grantFor("mcp.fs.write", "/p"), grantFor("mcp.fs.write", "/p")
	denial.Then = tool.Deny
	exact.Scopes, exact.Exact = nil, "sha256:1"
	want := 0
	for _, add := range []func(policy.Grant) (policy.Grant, error){g.AddAlways, session("s1"), session("s2"), session("")} {
		for _, grant := range []policy.Grant{grantFor("mcp.fs.write", "/p"), grantFor("mcp.fs.write", "/q"), grantFor("mcp.fs.read", "/p"), denial, exact} {
			first, err := add(grant)
			if err != nil {
				t.Fatal(err)
			}
			grant.By = "somebody else"
			again, err := add(grant)
			if err != nil || again.ID != first.ID {
				t.Errorf("the same answer again: %s, %v, want %s", again.ID, err, first.ID)
			}
			want++
			if got := g.List(); len(got) != want {
				t.Fatalf("%d grants, want %d: %+v", len(got), want, got)
			}
		}
	}
	read, err := policy.OpenGrants(policy.GrantOptions{File: file})
	if err != nil || len(read.List()) != 5 {
		t.Errorf("the file holds %d grants: %v", len(read.List()), err)
	}
	g.EndSession("s1")
	if got := len(g.List()); got != want-5 {
		t.Errorf("%d grants are left after the end of a session, want %d", got, want-5)
	}
}

package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/embed"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/limit"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// userConfig is where, below their home, users keep configuration.
func userConfig() string {
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join("Library", "Application Support")
	case "windows":
		return "AppData"
	}
	return ".config"
}

// TestEverySetting loads a file that holds each of the hub's keys and looks where each value went.
func TestEverySetting(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"HOME": here, "USERPROFILE": here, "AppData": filepath.Join(here, "AppData"), "SET": "a-token-of-enough-bytes", "EMPTY": ""}
	state := t.TempDir()
	s, err := config.Load(config.Source{Path: "testdata/full.yaml", StateDir: state, Env: env(vars)})
	if err != nil {
		t.Fatal(err)
	}
	const set, file = "a-token-of-enough-bytes", "a-secret-from-a-file"
	usual := upstream.Limits{Message: 10 << 20, HiddenText: upstream.HiddenStrip}
	unkept := []limit.Rule{{Match: "mcp.local.*", Strategy: tool.StrategyNeverPersist}}
	always := deferred.Settings{Mode: deferred.ModeAlways, Budget: 5000, ListFound: true, AlwaysLoad: []string{"code.*"}}
	want := &config.Settings{
		Path: "testdata/full.yaml", StateDir: state, Log: config.Log{Level: "debug", Format: "json"}, Telemetry: config.Telemetry{Metrics: "127.0.0.1:9464", Content: true},
		Secrets: []string{file, file, file}, Credentials: map[string][]string{"local": {"file:full.secret"}, "merged": {"file:full.secret"}, "web": {"env:SET", "header:Authorization"}},
		Upstream: upstream.Config{FirstListWithin: 5 * time.Second, Origin: filepath.Join(here, "full.yaml"),
			Servers: []upstream.ServerConfig{
				{ID: "local", Transport: upstream.Stdio, Command: filepath.Join(here, "bin", "server"),
					Args: []string{"--port", "8080", "eu", "${kept}", set, "fallback"},
					Env:  []string{"A=1", "B=true", "C=" + set, "E=" + file}, Secrets: []string{file}, Dir: filepath.Join(here, "sub"),
					Trust: true, Tags: []string{"one", "two"}, Validate: "warn", MaxParallel: 7,
					Lazy: true, IdleStop: 10 * time.Minute,
					Limits:   upstream.Limits{Message: 2 << 20, HiddenText: upstream.HiddenRefuse},
					Timeouts: upstream.Timeouts{Connect: 90 * time.Second, List: 90 * time.Second, Call: 90 * time.Second, CallMax: 2 * time.Hour}},
				{ID: "merged", Transport: upstream.Stdio, Command: "x", Limits: usual, Env: []string{"A=own", "B=true", "C=" + set, "E=" + file}, Secrets: []string{file}},
				{ID: "web", Transport: upstream.StreamableHTTP, URL: "https://example.com/mcp", Validate: "off", Limits: usual,
					Isolated: true, SessionIdle: 5 * time.Minute, MaxSessions: 3,
					Headers: map[string]string{"Authorization": "Bearer " + set}},
				{ID: "events", Transport: upstream.SSE, URL: "https://example.com/sse/", Limits: usual},
				{ID: "typed", Transport: upstream.StreamableHTTP, URL: "https://example.com/sse", Limits: usual},
				{ID: "idle", Transport: upstream.Stdio, Command: "x", Disabled: true, Limits: usual},
			}},
		Profiles: []namespace.Profile{
			{Name: "default", Style: namespace.StyleSafe},
			{Name: "small", Style: namespace.StyleShort, Servers: []string{"local", "code", "w*"}, Include: []string{"mcp.local.*"},
				Exclude: []string{"mcp.*.delete_*"},
				Tools:   []namespace.Override{{Match: "mcp.local.a", Name: "b", Title: "T", Description: "D"}}},
		},
		Deferred: deferred.Config{
			Default: always,
			Profiles: map[string]deferred.Settings{"default": always, "small": {Mode: deferred.ModeNever, Budget: 5000,
				ListFound: true, AlwaysLoad: []string{"code.*", "mcp.local.*"}}},
			Hints: []deferred.Hint{{Match: "mcp.local.a", Text: "first letter"}, {Match: "mcp.local.a", Text: "b T D"}},
		},
		Results: limit.Config{Default: limit.Settings{MaxInlineTokens: 5000, Strategy: tool.StrategyRefOnly, Tools: unkept},
			Profiles: map[string]limit.Settings{"default": {MaxInlineTokens: 5000, Strategy: tool.StrategyRefOnly, Tools: unkept},
				"small": {MaxInlineTokens: 5000, Strategy: tool.StrategyInline, Tools: unkept}}},
		Stored:     payload.Config{Dir: filepath.Join(here, "kept"), Key: set, MaxAge: 7 * 24 * time.Hour, MaxBytes: 3_000_000},
		RuleFiles:  []string{filepath.Join(here, "sub", "rules.yaml")},
		Policy:     everyPolicySetting(here, set),
		Embeddings: embed.Config{URL: "https://example.com/v1", Model: "m", Key: set, Timeout: time.Second, Dir: filepath.Join(state, "embeddings")},
		Journal: persist.JournalConfig{Dir: filepath.Join(here, "journal"), MaxBytes: 2_000_000, MaxAge: 30 * 24 * time.Hour,
			SyncWithin: 20 * time.Millisecond},
		Store: "postgres://hub:" + set + "@db.example.com/records?sslmode=verify-full", Records: persist.RecordsConfig{MaxAge: 90 * 24 * time.Hour, MaxBytes: 1_000_000_000},
		Code: code.Config{Enabled: true, Root: here, SensitivePaths: []string{"*.secret", "~/private"}, Home: here,
			AllowedWriteRoots: []string{here, filepath.Join(here, "sub")},
			Run: code.RunConfig{Enabled: true, Bounds: command.Config{Roots: []string{filepath.Join(here, "sub"), filepath.Join(here, "sub")},
				Env: []string{"GOPATH"}, Timeout: 5 * time.Minute}}},
		Declarative: declarative.Config{Enabled: true, Dir: filepath.Join(here, userConfig(), "mcp-toolhub", "tools"), Bounds: command.Config{
			Root: filepath.Join(here, "sub"), Roots: []string{here}}},
		Downstream: downstream.Config{Name: "my hub", Instructions: "Be kind.", MaxMessageBytes: 16 << 20,
			HTTP: downstream.HTTPConfig{Listen: "0.0.0.0:8808", MaxBodyBytes: 16 << 20, MaxSessions: 5,
				AllowedOrigins: []string{"https://app.example.com"}, AllowedHosts: []string{"hub.example.com"}, NoDirectViews: true,
				DrainTimeout: 3 * time.Second},
			Auth: downstream.AuthConfig{Tokens: []downstream.Token{{Name: "alice", Secret: set}, {Name: "bob", Secret: file, Profiles: []string{"small", "s/local"}}}}},
		Uses: []string{
			"local: runs ~/bin/server --port 8080 ${input:region} $${kept} ${SET:-x} ${EMPTY:-fallback}, in sub, " +
				"with the variables A B C D E, and believes what it says of its tools",
			"merged: runs x, with the variables A B C D E", "web: connects to https://example.com/mcp, with the headers Authorization",
			"events: connects to https://example.com/sse/", "typed: connects to https://example.com/sse",
			"policy.ask.webhook: sends questions to https://hooks.example.com/${SET}",
			"deferred.embeddings: sends descriptions and questions to https://example.com/v1",
			"persist.store: writes the records of calls to \"postgres://hub:[masked]@db.example.com/records?sslmode=verify-full\"",
			"hub.http: listens on 0.0.0.0:8808", "hub.metrics: listens on 127.0.0.1:9464",
			"hub.telemetry: sends arguments and results of calls to the collector that OTEL_* variables name", "hub.toolsets.code: reads " + here + "; writes " + here + " " + filepath.Join(here, "sub") + "; runs commands",
			"policy.tools: says what tools can do", "policy.targets: says where calls may be aimed at", "policy.mode: client",
		},
	}
	for _, file := range append([]string{s.Path}, s.RuleFiles...) {
		if info, err := os.Stat(file); err != nil || s.Read[file] == nil || !os.SameFile(s.Read[file], info) || s.Read[file].Size() != info.Size() {
			t.Errorf("%s was read as %v, %v", file, s.Read[file], err)
		}
	}
	for _, file := range []string{"full.yaml", "full.secret", "sub/rules.yaml"} {
		if s.Digests[filepath.Join(here, file)] == "" {
			t.Errorf("%s is not among the files that were read: %v", file, s.Digests)
		}
	}
	if set, none := s.Variables["SET"], s.Variables["EMPTY"]; set == "" || none == "" || set == none {
		t.Errorf("variables that were looked up: %v", s.Variables)
	}
	if len(s.Patterns) == 0 || len(s.Strays) > 0 {
		t.Errorf("patterns %v, strays %v", s.Patterns, s.Strays)
	}
	for i := range s.Upstream.Servers {
		sc := &s.Upstream.Servers[i]
		if signsIn := len(sc.Env)+len(sc.Headers) > 0; (sc.Account != "") != signsIn {
			t.Errorf("the account of %s is %q", sc.ID, sc.Account)
		}
		sc.Account = ""
	}
	for id, starts := range s.Starts {
		if id != "idle" && !slices.Contains(s.Uses, id+": "+starts) || id == "idle" && starts != "runs x" {
			t.Errorf("%s starts %q", id, starts)
		}
	}
	if len(s.Starts) != len(s.Upstream.Servers) {
		t.Errorf("what servers start: %q", s.Starts)
	}
	s.Read, s.Digests, s.Variables, s.Patterns, s.Starts = nil, nil, nil, nil, nil
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
}

// everyPolicySetting is what the key policy of testdata/full.yaml says.
func everyPolicySetting(here, set string) gate.Config {
	yes := true
	return gate.Config{Mode: policy.ModeClient,
		Sets: []policy.Set{
			{Source: policy.User, Rules: []policy.Rule{{ID: "own", Match: []string{"mcp.local.*"}, Tags: []string{"write"},
				Server: []string{"local", "w*"}, Profile: []string{"small"}, Actor: []string{"alice"}, When: "true", Then: tool.Ask,
				EveryTime: true, Reason: "Why not.", Place: "testdata/full.yaml:70:7"}}},
			{Source: policy.Managed, Rules: []policy.Rule{{ID: "theirs", Match: []string{"*"}, Then: tool.Deny,
				Place: filepath.Join(here, "sub", "rules.yaml") + ":2:5"}}}},
		Tools: facts.Config{Tools: []facts.Override{{Match: "mcp.merged.a", Disabled: true}, {Match: "mcp.merged.b", Disabled: true},
			{Match: "mcp.merged.*", Except: []string{"mcp.merged.c", "mcp.merged.d*", "mcp.merged.e"}, Disabled: true}, {Match: "mcp.local.a", ReadOnly: &yes, Tags: []string{"fast"},
				Arguments: map[string]string{"/to": "path"}}}},
		Limits: target.Config{AllowedWriteRoots: []string{filepath.Join(here, "sub")},
			SensitivePaths: []string{"*.tfstate"}, ExemptPaths: []string{".env.example"}, AllowedHosts: []string{"a.example"},
			DeniedHosts: []string{"10.0.0.0/8"}},
		Channels: []gate.Channel{gate.ChannelWebhook, gate.ChannelQueue}, Webhook: "https://hooks.example.com/" + set, NotSelfBeyond: true,
		AskTimeout: 2 * time.Minute}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n", "mcpServers:\nhub:\nprofiles:\n", "{}", "---\n...\n", "\xef\xbb\xbfhub: {}"} {
		s, err := config.Parse("c.yaml", []byte(text), testEnv())
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if s.Log.Level != "info" || s.Log.Format != "auto" || s.Code.Enabled || len(s.Upstream.Servers) != 0 ||
			len(s.Profiles) != 1 || s.Profiles[0].Name != namespace.DefaultProfile ||
			s.Journal.Dir != filepath.Join(s.StateDir, "journal") || len(s.Warnings) != 1 {
			t.Errorf("%q: %+v", text, s)
		}
	}
	s, err := config.Parse("c.yaml", []byte("hub: {toolsets: {code: }}"), testEnv())
	if err != nil || !s.Code.Enabled {
		t.Errorf("the key alone does not enable code: %+v, %v", s, err)
	}
}

func TestExample(t *testing.T) {
	t.Parallel()
	path := filepath.Join(root, "config.example.yaml")
	s, err := config.Load(config.Source{Path: path, Env: testEnv()})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Warnings) > 0 || !s.Code.Enabled || s.Code.Root != dir {
		t.Errorf("warnings %v, code %+v", s.Warnings, s.Code)
	}
	demo := upstream.ServerConfig{ID: "demo", Transport: upstream.Stdio, Command: "mcp-toolhub", Args: []string{"demo-server"}, Trust: true}
	if len(s.Upstream.Servers) != 1 || !reflect.DeepEqual(s.Upstream.Servers[0], demo) {
		t.Errorf("servers: %+v", s.Upstream.Servers)
	}
}

// TestExampleUncommented holds the entries that are commented out to the same rules.
func TestExampleUncommented(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(root, "config.example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(data), "\n"); first != "# yaml-language-server: $schema=config.schema.json" {
		t.Errorf("the first line does not name the schema: %s", first)
	}
	text := regexp.MustCompile(`(?m)^( *)# ( *)([a-z_A-Z]+:( |$)|- )`).ReplaceAllString(string(data), "$1$2$3")
	vars := env(map[string]string{"HOME": "/h", "LocalAppData": `C:\l`, "GITHUB_TOKEN": "t", "HUB_TOKEN_ALICE": "0123456789abcdef",
		"HUB_REF_KEY": "0123456789abcdef"})
	s, err := config.Parse("x.yaml", []byte(text), vars)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Warnings) > 0 || len(s.Upstream.Servers) != 4 || len(s.Profiles) != 2 {
		t.Errorf("warnings %v, %d servers, %d profiles", s.Warnings, len(s.Upstream.Servers), len(s.Profiles))
	}
}

// TestMissingFile holds that a file which is not there costs the server whose entry refers to it, and no other.
func TestMissingFile(t *testing.T) {
	t.Parallel()
	src := config.Source{Path: "c.yaml", Env: testEnv(), LeaveOut: true}
	s, err := config.LoadText(src, []byte("mcpServers: {a: {command: x, env: {K: '${file:nowhere}'}}, b: {command: y}}"))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := s.Upstream.Servers[0].Missing, s.Upstream.Servers[1].Missing; !strings.Contains(a.What, "no such file") &&
		!strings.Contains(a.Hint, "no such file") || b.What != "" {
		t.Errorf("a misses %+v, b %+v", a, b)
	}
	if _, err := config.LoadText(src, []byte("hub: {auth: {tokens: [{name: a, token: '${file:nowhere}'}]}}")); err == nil {
		t.Error("a token that cannot be read is no fault")
	}
}

// TestWhereResultsAre has directories, buckets, and what is neither. Whether buckets are taken is a matter of the build.
func TestWhereResultsAre(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	vars := env(map[string]string{"HOME": "/h", "LocalAppData": `C:\l`, "WHERE": "s3://kept?region=here"})
	for text, want := range map[string]string{
		"kept": "kept", here: here, "s3://kept?region=here": "bucket", "gs://kept": "bucket", "azblob://kept": "bucket", "${env:WHERE}": "bucket",
		"file:///kept": "names no place for results",
		"ftp://kept":   "names no place for results", "s3://u:p@kept": "", "s3://?region=here": "", "s3://%zz": "is no URL",
	} {
		s, err := config.Parse("c.yaml", []byte("persist:\n  results:\n    dir: '"+text+"'\n"), vars)
		report := ""
		if err != nil {
			if report = err.Error(); !strings.Contains(report, "c.yaml:3:10: persist.results.dir") || strings.Contains(report, "u:p") {
				t.Errorf("%s: %s", text, report)
			}
		}
		switch {
		case want == "bucket" && err != nil:
			if !strings.Contains(report, "a driver for") || !strings.Contains(report, "-tags clouds") {
				t.Errorf("%s: %s", text, report)
			}
		case want == "bucket":
			if s.Stored.Dir != "" || !strings.Contains(s.Stored.URL, "://kept") {
				t.Errorf("%s: %+v", text, s.Stored)
			}
		case want == "kept" || want == here:
			if err != nil || s.Stored.URL != "" || !filepath.IsAbs(s.Stored.Dir) || !strings.HasSuffix(s.Stored.Dir, want) {
				t.Errorf("%s: %+v, %v", text, s.Stored, err)
			}
		case err == nil || !strings.Contains(report, want):
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestNoFaultShowsASecret puts a secret into every place of a file and breaks each of them in turn.
func TestNoFaultShowsASecret(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-5f1e"
	places := []string{
		"mcpServers: {a: {command: x, args: [%s]}}", "mcpServers: {a: {command: x, env: {K: %s}}}",
		"mcpServers: {a: {command: x, env: %s}}", "mcpServers: {a: {command: %s}}", "mcpServers: {a: {command: x, cwd: %s}}",
		"mcpServers: {a: {url: %s}}", "mcpServers: {a: {url: https://x, headers: {Authorization: %s}}}",
		"mcpServers: {a: {url: https://x, headers: %s}}", "mcpServers: {a: %s}", "mcpServers: %s", "servers: [%s]",
		"mcpServers: {a: {type: %s}}", "mcpServers: {a: {command: x, timeout_max: %s}}", "mcpServers: {a: {command: x, tags: %s}}",
		"mcpServers: {a: {command: x, validate: %s}}", "mcpServers: {a: {command: x, timeout: %s}}",
		"mcpServers: {a: {command: x, disabled: %s}}", "mcpServers: {a: {command: x, envFile: %s}}",
		"hub: %s", "hub: {auth: {tokens: [{name: a, token: %s}]}}", "hub: {auth: {tokens: [%s]}}", "hub: {auth: {tokens: %s}}",
		"hub: {http: {listen: %s}}", "hub: {limits: {client_message: %s}}", "hub: {http: {allowed_hosts: [%s]}}",
		"hub: {log: {level: %s}}", "hub: {retry: {min: %s}}", "mcpServers: {a: {command: x, idle_stop: %s}}", "hub: {toolsets: {code: {root: %s}}}", "hub: {toolsets: {code: {sensitive_paths: [%s]}}}",
		"persist: {journal: {max_bytes: %s}}", "persist: {journal: {dir: %s}}", "persist: {results: {dir: %s}}", "profiles: {p: {style: %s}}",
		"profiles: {p: {include: [%s]}}", "inputs: [{id: a, type: %s}]", "policy: %s", "zzz: %s", "%s",
	}
	values := []string{
		canary, `"` + canary + `\0"`, `"` + canary + `\r\n"`, `"${` + canary + ` }"`, `"` + canary + `${UNSET}"`, `"${` + canary,
		`"${A:-` + canary + `${B}}"`, `[` + canary + `, {}]`, `{x y: ` + canary + `}`, `"http://` + canary + `:%zz"`, `"ftp://u:` + canary + `@h"`,
		`"` + canary, `'` + canary, "!x " + canary, "*" + "a " + canary, "\t" + canary, "x: " + canary,
		`{"K=` + canary + `": 1}`, `{"Authorization: Bearer ` + canary + `": }`, "[" + canary,
		`"${SECRET}"`, `"${SECRET}\n"`, `"x${SECRET}[{\0"`, `{"a": "` + canary + `" "b"}`,
	}
	vars := env(map[string]string{"HOME": "/h", "LocalAppData": `C:\l`, "SECRET": canary + "\x00"})
	reports := 0
	for _, place := range places {
		for _, value := range values {
			for _, name := range []string{"c.yaml", "c.json"} {
				s, err := config.Parse(name, []byte(fmt.Sprintf(place, value)), vars)
				var report string
				if err != nil {
					report = err.Error()
					reports++
				} else {
					for _, w := range s.Warnings {
						report += w.Error()
					}
				}
				if strings.Contains(report, canary) {
					t.Errorf("%s with %s: %s", place, value, report)
				}
			}
		}
	}
	if reports < 500 {
		t.Errorf("%d reports only: the test breaks too little", reports)
	}
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, want := range map[string]string{filepath.Join(dir, "none.yaml"): "no such file", dir: "not a regular file"} {
		_, err := config.Load(config.Source{Path: path, Env: testEnv()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestHostileFiles are small files that would stand for much, and large ones.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 60 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
	}
	cases := map[string]string{
		"bomb.yaml":      bomb,
		"flow.yaml":      "hub: " + strings.Repeat("[", 100_000),
		"sequence.yaml":  strings.Repeat("- ", 100_000),
		"questions.yaml": strings.Repeat("? ", 100_000),
		"anchors.yaml":   "a: " + strings.Repeat("&a ", 100_000),
		"long.yaml":      "a:\n" + strings.Repeat("  k: 1\n", 200_000),
		"deep.json":      strings.Repeat(`{"a":[`, 100_000),
		"quotes.json":    strings.Repeat(`"/*`, 100_000),
		"comments.json":  strings.Repeat("/**/", 100_000),
		"large.json":     `{"a": "` + strings.Repeat("x", 4<<20) + `"}`,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, err := config.Parse(name, []byte(text), testEnv())
			var faults textfile.Faults
			if !errors.As(err, &faults) {
				t.Errorf("no faults: %v", err)
			}
			if d := time.Since(start); d > 2*time.Minute {
				t.Errorf("took %s", d)
			}
		})
	}
}

// TestClientMessage: one limit for clients, over stdio and HTTP.
func TestClientMessage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int64{
		"{}":                               {},
		"{limits: {client_message: 8MiB}}": {8 << 20, 8 << 20},
		"{limits: {message: 8MiB}}":        {},
	} {
		s, err := config.Parse("c.yaml", []byte("hub: "+text), testEnv())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := [2]int64{s.Downstream.MaxMessageBytes, s.Downstream.HTTP.MaxBodyBytes}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestIsolationKeysThatDoNothing checks that a key which the entry's isolation has no use for is pointed at.
func TestIsolationKeysThatDoNothing(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"isolation: shared, max_sessions: 2":                 `c.yaml:1:63: mcpServers.a.max_sessions: ignored; it takes isolation: session or oauth: {identity: caller}`,
		"isolation: session, idle_stop: 5m, max_sessions: 2": "",
	} {
		s, err := config.Parse("c.yaml", []byte("mcpServers: {a: {command: x, "+entry+"}}"), testEnv())
		if err != nil {
			t.Errorf("%s: %v", entry, err)
			continue
		}
		got := ""
		for _, w := range s.Warnings {
			got += w.Error()
		}
		if got != want {
			t.Errorf("%s: warnings %q, want %q", entry, got, want)
		}
	}
}

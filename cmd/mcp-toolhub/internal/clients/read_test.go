package clients_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
)

// told is a server on one line, as far as it is not empty.
func told(s clients.Server) string {
	words := []string{s.Name + ":", s.Line()}
	for _, p := range s.Env {
		words = append(words, p.Name+"="+p.Value)
	}
	for _, p := range s.Headers {
		words = append(words, p.Name+": "+p.Value)
	}
	for name, set := range map[string]bool{"sse": s.SSE, "disabled": s.Disabled, "in " + s.Dir: s.Dir != ""} {
		if set {
			words = append(words, "<"+name+">")
		}
	}
	slices.Sort(words[2:])
	if id := s.SignIn; id.ID != "" {
		words = append(words, fmt.Sprint(id))
	}
	if len(s.Off)+len(s.Unanswered) > 0 {
		words = append(words, fmt.Sprint(s.Off, s.Unanswered))
	}
	return strings.Join(words, " ")
}

// TestRead: what each sample says, in the words of the hub's config.
func TestRead(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"claude-desktop": {"filesystem: npx -y @modelcontextprotocol/server-filesystem /Users/ann/Desktop"},
		"claude-code": {"sentry: https://mcp.sentry.dev/mcp", "slack: https://mcp.slack.com/mcp {1601185624273.8899143856786  http://localhost:3118/callback []}", "asana: https://mcp.asana.com/sse <sse> Authorization: Bearer ${ASANA_TOKEN}",
			"shop-db: uvx postgres-mcp <disabled> DATABASE_URI=${SHOP_DB:-postgres://localhost/shop}"},
		"cursor": {"github: npx -y server-github GITHUB_TOKEN=ghp_0123456789abcdefghij",
			"linear: https://mcp.linear.app/mcp X-Team: ${env:TEAM} {ann ${env:LINEAR_SECRET}  [read write]}"},
		"vscode": {"Perplexity: npx -y server-perplexity-ask PERPLEXITY_API_KEY=${secret:perplexity-key} [] [perplexity-key]",
			"fetch: https://fetch.example/mcp"},
		"windsurf": {"github-mcp-server: docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server " +
			"GITHUB_PERSONAL_ACCESS_TOKEN=<YOUR_PERSONAL_ACCESS_TOKEN> [delete_file] []",
			"remote-http-mcp: https://remote.example/mcp <disabled> API_KEY: Bearer ${env:AUTH_TOKEN}"},
		"codex": {"context7: npx -y @upstash/context7-mcp LOCAL_TOKEN=${LOCAL_TOKEN} MY_ENV_VAR=MY_ENV_VALUE OTHER_TOKEN=${OTHER_TOKEN} [resolve] []",
			"figma: https://mcp.figma.com/mcp <disabled> Authorization: Bearer ${FIGMA_OAUTH_TOKEN} X-Figma-Region: us-east-1"},
		"gemini": {"pythonTools: python -m my_mcp_server --port 8080 <in ./mcp-servers/python> API_KEY=${MY_API_TOKEN} [unsafe_tool] []",
			"httpServer: http://localhost:3000/mcp", "sseServer: http://localhost:3001/events <sse>"},
		"copilot": {"playwright: npx @playwright/mcp@latest", "context7: https://mcp.context7.com/mcp <disabled> CONTEXT7_API_KEY: YOUR-API-KEY-0001"},
		"zed":     {"old: /usr/bin/old run", "remote-mcp-server: https://zed.example/mcp Authorization: Bearer <token-of-ann>"},
		"opencode": {"my-local-mcp-server: npx -y my-mcp-command MY_ENV_VAR=${env:MY_VALUE}",
			"my-remote-mcp: https://remote.example/mcp <disabled>"},
		"goose": {"github: npx -y @modelcontextprotocol/server-github GITHUB_PERSONAL_ACCESS_TOKEN=ghp_0123456789abcdefghij",
			"musicwire: https://musicwire.example/mcp <disabled>"},
		"amp": {"playwright: npx -y @playwright/mcp@latest --headless", "semgrep: https://mcp.semgrep.ai/mcp"},
		"cline": {"local-server: python /path/to/server.py API_KEY=your_api_key_0001", "remote-server: https://remote.example/mcp <disabled>",
			"older: https://older.example/events <sse>"},
		"kiro":     {"web-search: npx -y @modelcontextprotocol/server-bravesearch BRAVE_API_KEY=${BRAVE_API_KEY} [local_search] []"},
		"lmstudio": {"hf-mcp-server: https://huggingface.co/mcp Authorization: Bearer hf_0123456789abcdefghij"},
		"continue": {"SQLite MCP: npx -y mcp-sqlite /path/to/your/database.db",
			"hosted: https://hosted.example/mcp Authorization: Bearer ${secret:HOSTED_KEY} [] [HOSTED_KEY]"},
	}
	for id, data := range samples(t) {
		c := clients.ByID(id)
		f, err := splice.Read(c.Format, data)
		must(t, err)
		var got []string
		for _, s := range c.Read(f, "file") {
			got = append(got, told(s))
		}
		if !slices.Equal(got, want[id]) {
			t.Errorf("%s:\n%s\nwant\n%s", id, strings.Join(got, "\n"), strings.Join(want[id], "\n"))
		}
	}
}

// TestSources: a client may have servers in several files.
func TestSources(t *testing.T) {
	t.Parallel()
	for id, files := range map[string]map[string]string{
		"opencode": {".config/opencode/opencode.json": `{"mcp": {"a": {"url": "https://a/mcp"}}}`,
			".config/opencode/opencode.jsonc": `{"mcp": {"b": {"url": "https://b/mcp"}}}`},
		"cline": {".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json": `{"mcpServers": {"a": {"command": "x"}}}`,
			".cline/data/settings/cline_mcp_settings.json": `{"mcpServers": {"b": {"command": "y"}}}`},
		"continue": {".continue/config.yaml": "mcpServers: [{name: a, command: x}]\n", ".continue/mcpServers/b.yaml": "name: b\nmcpServers: [{name: b, command: y}]\n",
			".continue/mcpServers/c.json": `{"mcpServers": {"c": {"command": "z"}}}`, ".continue/mcpServers/README.md": "none"},
	} {
		home := t.TempDir()
		for name, text := range files {
			must(t, os.MkdirAll(filepath.Join(home, filepath.Dir(name)), 0o755))
			must(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
		}
		env := clients.Env{OS: "linux", Lookup: func(name string) (string, bool) { return map[string]string{"HOME": home}[name], name == "HOME" }}
		var got []string
		for _, source := range clients.ByID(id).Sources(env) {
			f, err := source.ReadClient(source.Path)
			must(t, err)
			for _, s := range source.Read(f, source.Path) {
				got = append(got, s.Name)
			}
		}
		if want := []string{"a", "b", "c"}; !slices.Equal(got, want[:min(len(files), 3)]) {
			t.Errorf("%s: %q", id, got)
		}
	}
}

// TestServersThatGeminiLeavesOut: its settings say by name which servers it uses.
func TestServersThatGeminiLeavesOut(t *testing.T) {
	t.Parallel()
	for chosen, want := range map[string]string{
		`{}`: "", `{"excluded": ["a"]}`: "a", `{"allowed": ["a"]}`: "b c", `{"allowed": []}`: "", `{"allowed": ["a", "b"], "excluded": ["b"]}`: "b c",
	} {
		f, err := splice.Read(splice.JSON, []byte(`{"mcp": `+chosen+`, "mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "c": {"command": "z"}}}`))
		must(t, err)
		var off []string
		for _, s := range clients.ByID("gemini").Read(f, "file") {
			if s.Disabled {
				off = append(off, s.Name)
			}
		}
		if got := strings.Join(off, " "); got != want {
			t.Errorf("%s: %q is disabled, want %q", chosen, got, want)
		}
	}
}

// TestServersThatGeminiDisables: gemini mcp disable writes a file of its own.
func TestServersThatGeminiDisables(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	path := m.write("gemini", []byte(`{"mcpServers": {"Off": {"command": "x"}, "on": {"command": "y"}}}`), 0o600)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(path), "mcp-server-enablement.json"), []byte(`{"off": {"enabled": false}, "on": {"enabled": true}}`), 0o600))
	one := clients.ByID("gemini")
	f, err := one.ReadClient(path)
	must(t, err)
	if all := one.Read(f, path); !all[0].Disabled || all[1].Disabled {
		t.Errorf("%+v", all)
	}
}

// TestRulesForTools: clients that say for the tools of all servers which are used.
func TestRulesForTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ id, rules, want string }{
		{"amp", `"amp.tools.disable": ["mcp__a__danger", "mcp__a__x*", "bash"]`, "a [danger x*] [], b.b [] []"},
		{"amp", `"amp.tools.disable": ["mcp__b_b__*"]`, "a [] [], b.b off [] []"},
		{"opencode", `"tools": {"a_danger": false, "b_b*": false, "bash": false}`, "a [danger] [], b.b off [] []"},
		{"opencode", `"tools": {"*": false, "a*": true}, "permission": {"a_danger": "deny", "a_x": "ask", "edit": {"*": "deny"}}`, "a [danger] [], b.b off [] []"},
		{"opencode", `"tools": {"a_*": false, "a_x": true}, "permission": "allow"`, "a [] [x], b.b [] []"},
		{"opencode", `"tools": {"a*": false, "b_b*": false}, "agent": {"x": {"tools": {"a*": true, "b_b_y": false}}}`, "a [] [], b.b off [] []"},
		{"opencode", `"tools": {"a_x": false}, "permission": {"a_x": "allow"}`, "a [] [], b.b [] []"},
	} {
		one := clients.ByID(c.id)
		f, err := splice.Read(splice.JSON, fmt.Appendf(nil, `{%q: {"a": {"url": "https://a/mcp"}, "b.b": {"url": "https://b/mcp"}}, %s}`, one.Path[0], c.rules))
		must(t, err)
		var got []string
		for _, s := range one.Read(f, "file") {
			said := s.Name
			if s.Disabled {
				said += " off"
			}
			got = append(got, fmt.Sprint(said, " ", s.Off, " ", s.On))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s: %q, want %q", c.id, c.rules, got, c.want)
		}
	}
}

// TestReferencesForPrograms: ${NAME} in an argument is the program's to replace where the entry sets NAME, and where the client takes
// ${env:NAME} alone.
func TestReferencesForPrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ id, arg, env, want string }{
		{"cursor", "A:${TOKEN}", `"TOKEN": "x"`, "A:$${TOKEN}"},
		{"claude-code", "Authorization:${TOKEN}", `"TOKEN": "x"`, "Authorization:$${TOKEN}"},
		{"claude-code", "A:${TOKEN}", `"OTHER": "x"`, "A:${TOKEN}"},
		{"claude-code", "A:${TOKEN}", `"TOKEN": "${TOKEN}"`, "A:${TOKEN}"},
		{"claude-code", "A:${TOKEN}", `"TOKEN": "${TOKEN:-abc}"`, "A:${TOKEN}"},
		{"gemini", "A:$TOKEN $OTHER", `"TOKEN": "x"`, "A:$TOKEN ${OTHER}"},
		{"windsurf", "A:${TOKEN} ${env:TOKEN}", `"TOKEN": "x"`, "A:$${TOKEN} ${env:TOKEN}"},
		{"windsurf", "${file:~/token}", ``, "${file:~/token}"},
		{"cursor", "${file:~/token} ${secret:token}", ``, "$${file:~/token} $${secret:token}"},
		{"claude-code", "${file:~/token} ${secret:token}", ``, "$${file:~/token} $${secret:token}"},
		{"vscode", "${TOKEN} ${workspaceFolder}/x ${userHome}", ``, "$${TOKEN} ${workspaceFolder}/x ${userHome}"},
	} {
		one := clients.ByID(c.id)
		f, err := splice.Read(splice.JSON, fmt.Appendf(nil, `{%q: {"s": {"command": "x", "args": [%q], "env": {%s}}}}`, one.Path[0], c.arg, c.env))
		must(t, err)
		s := one.Read(f, "file")[0]
		s.MoveSecrets(func(name, _ string) string { return name })
		if got := s.Args[0]; got != c.want {
			t.Errorf("%s: %s with %s became %s, want %s", c.id, c.arg, c.env, got, c.want)
		}
	}
}

// TestDoubledKeys: the last one counts, as for JSON.parse.
func TestDoubledKeys(t *testing.T) {
	t.Parallel()
	f, err := splice.Read(splice.JSON, []byte(`{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "x", "command": "y"}, "b": {"command": "z", "command": "q"}}}`))
	must(t, err)
	if _, err := f.Take(clients.ByID("cursor").Place, "b"); err == nil || !strings.Contains(err.Error(), "stands here twice") {
		t.Errorf("one of them is taken out: %v", err)
	}
	if all := clients.ByID("cursor").Read(f, "file"); len(all) != 1 || told(all[0]) != "b: q" {
		t.Errorf("%+v", all)
	}
}

// TestFilesOfOpenCode: a relative path starts at the file that names it.
func TestFilesOfOpenCode(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	path := m.write("opencode", []byte(`{"mcp": {"s": {"type": "local", "command": ["x", "{file:./key.txt}", "{file:~/key} ${x}"]}}}`), 0o600)
	want := []string{"${file:" + filepath.Join(filepath.Dir(path), "key.txt") + "}", "${file:~/key} $${x}"}
	one := clients.ByID("opencode")
	f, err := one.ReadClient(path)
	must(t, err)
	if s := one.Read(f, path)[0]; !slices.Equal(s.Args, want) {
		t.Errorf("%q, want %q", s.Args, want)
	}
	must(t, m.connect("opencode", hub, func(s *clients.Server) bool {
		if !slices.Equal(s.Args, want) {
			t.Errorf("connect reads %q, want %q", s.Args, want)
		}
		return false
	}))
}

// TestReferencesOfGoose: in addresses and headers, to the variables that the entry lists.
func TestReferencesOfGoose(t *testing.T) {
	t.Parallel()
	f, err := splice.Read(splice.YAML, []byte("extensions:\n  gs:\n    type: streamable_http\n    uri: https://$HOST/mcp\n    envs: {HOST: gs.example, MY_TOKEN: hunter22}\n"+
		"    env_keys: [GS_TOKEN]\n    headers: {Authorization: Bearer $GS_TOKEN, X-B: \"${GS_TOKEN}\", X-C: \"$OTHER ${OTHER}\", X-D: x $MY_TOKEN}\n"))
	must(t, err)
	want := "gs: https://gs.example/mcp Authorization: Bearer ${GS_TOKEN} X-B: ${GS_TOKEN} X-C: $OTHER $${OTHER} X-D: ${secret:gs.X-D}"
	s := clients.ByID("goose").Read(f, "file")[0]
	s.MoveSecrets(func(name, _ string) string { return name })
	if got := told(s); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestWorkDir: which servers run in the home directory, so that clients of all directories can share them.
func TestWorkDir(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"npx -y @scope/server": true, "uvx mcp-server-git": true, "docker run -i --rm ghcr.io/github/github-mcp-server": true,
		"/opt/bin/server --config /etc/server.json": true, `C:\bin\server.exe run`: true, "node C:/tools/build/index.js": true, "npx server@1.2.3": true,
		"./server": false, "bin/server": false, "node build/index.js": false, "python -m server .": false, "uv --directory ../x run": false,
		"node --config=conf/server.json": false, "server --root=./src": false, "server ${workspaceFolder}": false,
	} {
		words := strings.Fields(line)
		s := clients.Server{Command: words[0], Args: words[1:]}
		if (s.WorkDir() == clients.HomeDir) != want {
			t.Errorf("%s: %v", line, !want)
		}
		if s.Dir = "/x"; s.WorkDir() != "/x" {
			t.Errorf("%s in /x runs in any directory", line)
		}
	}
	f, err := splice.Read(splice.JSON, []byte(`{"mcpServers": {"a": {"command": "x"}}, "projects": {"/p": {"mcpServers": {"b": {"command": "y"}, "c": {"command": "x"}}}}}`))
	must(t, err)
	all := clients.Merge(clients.ByID("claude-code").Read(f, "file"))
	if len(all) != 2 || all[0].WorkDir() != clients.HomeDir || all[1].WorkDir() != "/p" {
		t.Errorf("%+v", all)
	}
}

// TestDetect: the client that a file of another name is of, by what it holds.
func TestDetect(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"mcpServers": {"a": {"command": "x"}}}`:         "a",
		`{"mcpServers": {}}`:                              "",
		"name: x\nmcpServers:\n- name: a\n  command: x\n": "a",
		`{"mcp": {"excluded": ["a"]}, "mcpServers": {"a": {"httpUrl": "https://h/mcp"}, "b": {"command": "x", "env": {"K": "$V"}}}}`: "a off, b K=${V}",
		`{"mcpServers": {"a": {"type": "local", "command": "x", "tools": []}, "b": {"url": "https://h/mcp", "tools": ["t"]}}}`:       "a off, b [t]",
	} {
		file := filepath.Join(t.TempDir(), "f.txt")
		if strings.HasPrefix(text, "name") {
			file = filepath.Join(t.TempDir(), "f.yaml")
		}
		c, f, err := clients.Detect(file, clients.Env{Lookup: func(string) (string, bool) { return "", false }}, func(format splice.Format) (*splice.File, error) { return splice.Read(format, []byte(text)) })
		if err != nil || c == nil {
			t.Errorf("%s: %v, %v", text, c, err)
			continue
		}
		var got []string
		for _, s := range c.Read(f, file) {
			said := s.Name
			if s.Disabled {
				said += " off"
			}
			for _, p := range s.Env {
				said += " " + p.Name + "=" + p.Value
			}
			if len(s.On) > 0 {
				said += fmt.Sprint(" ", s.On)
			}
			got = append(got, said)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestMoveSecrets: what is taken for a secret, what the config says then, and that Reveal brings it back.
func TestMoveSecrets(t *testing.T) {
	t.Parallel()
	s := clients.Server{Name: "a b", URL: "https://ann:pa55word@h.example/mcp?api_key=q1&team=x",
		Args: []string{"--api-key", "k1", "--token=k2", "--header", "Authorization: Bearer k3",
			"ghp_0123456789abcdef", "--port", "80", "--max-tokens", "9", "--key", "q7Zk2LmX9vTgRw4pYbN8sHdE", "--key", "~/.ssh/key.pem"},
		Env: []clients.Pair{{Name: "API_KEY", Value: "k4 $${x}"}, {Name: "MODE", Value: "fast"}, {Name: "OTHER", Value: "sk-0123456789abcdef"},
			{Name: "TOKEN", Value: "${TOKEN}"}},
		Headers: []clients.Pair{{Name: "Authorization", Value: "Bearer k5"}, {Name: "X-Region", Value: "${R}"}, {Name: "X-Team", Value: "x"}},
		SignIn:  clients.SignIn{ID: "i", Secret: "k6"}}
	all := func() string { return told(s) + " " + strings.Join(s.Args, " ") }
	was := all()
	stored := map[string]string{}
	s.MoveSecrets(func(name, secret string) string {
		for stored[name] != "" {
			name += "-2"
		}
		stored[name] = secret
		return name
	})
	now := all()
	for _, secret := range []string{"pa55word", "q1", "k1", "k2", "k3", "ghp_", "q7Zk2", "k4", "sk-", "k5", "k6"} {
		if strings.Contains(now, secret) {
			t.Errorf("%s is still there: %s", secret, now)
		}
	}
	for _, plain := range []string{"MODE=fast", "--port 80", "--max-tokens 9", "--key ~/.ssh/key.pem", "TOKEN=${TOKEN}", "X-Region: ${R}", "X-Team: ${secret:a-b.X-Team}",
		"Authorization: Bearer ${secret:a-b.Authorization}"} {
		if !strings.Contains(now, plain) {
			t.Errorf("%q is gone: %s", plain, now)
		}
	}
	if stored["a-b.API_KEY"] != "k4 ${x}" {
		t.Errorf("stored: %v", stored)
	}
	if s.Reveal(stored); all() != was {
		t.Errorf("revealed: %s\nwant %s", all(), was)
	}
}

// TestSecretsWithinTexts: secrets in the middle of texts, and beside references.
func TestSecretsWithinTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"--env=API_KEY=hunter22":                 "--env=API_KEY=<hunter22>",
		"--env=MY_PAT=hunter22":                  "--env=MY_PAT=<hunter22>",
		"-e=MODE=fast":                           "-e=MODE=fast",
		"--header=X-Api-Key: hunter22":           "--header=X-Api-Key: <hunter22>",
		"--header=Authorization:Bearer hunter22": "--header=Authorization:Bearer <hunter22>",
		"DBPASS=hunter22":                        "DBPASS=<hunter22>",
		"--env=DB_PW=hunter22":                   "--env=DB_PW=<hunter22>",
		"PGPASS=hunter22":                        "PGPASS=<hunter22>",
		"BYPASS=hunter22":                        "BYPASS=hunter22",
		"https://h/api?code=de-AT":               "https://h/api?code=de-AT",
		"https://h.example/api?code=hunter22Wq0xy-7zLmKpUAzFu1AbCdEf==": "https://h.example/api?code=<hunter22Wq0xy-7zLmKpUAzFu1AbCdEf==>",
		"--max-tokens=4096": "--max-tokens=4096",
		"token=hunter22":    "token=<hunter22>",
		`{"Authorization":"Bearer hunter22","Version":"2022"}`:                          `{"Authorization":"Bearer <hunter22>","Version":"2022"}`,
		`--headers={"X-Api-Key": "hun\"ter22", "a": 1}`:                                 `--headers={"X-Api-Key": "<hun\"ter22>", "a": 1}`,
		"https://h/mcp?api_key=hunter22&x=${env:REGION}":                                "https://h/mcp?api_key=<hunter22>&x=${env:REGION}",
		"https://h/mcp?api_key=${env:KEY}&x=1":                                          "https://h/mcp?api_key=${env:KEY}&x=1",
		"postgresql://u:hunter22@${env:DBHOST}/db":                                      "postgresql://u:<hunter22>@${env:DBHOST}/db",
		"postgresql://${env:U}:${env:PW}@${env:DBHOST}/db":                              "postgresql://${env:U}:${env:PW}@${env:DBHOST}/db",
		"--url=mysql://u:hun@ter22@h/db":                                                "--url=mysql://u:<hun@ter22>@h/db",
		"https://hunter22@h.example/mcp":                                                "https://<hunter22>@h.example/mcp",
		"https://h.example/@scope/mcp?to=a@b":                                           "https://h.example/@scope/mcp?to=a@b",
		"git+ssh://git@h.example/x":                                                     "git+ssh://git@h.example/x",
		"Server=h;User Id=u;Password=hunter22;Encrypt=true":                             "Server=h;User Id=u;Password=<hunter22>;Encrypt=true",
		"X-User=ann,X-Custom-Auth=hunter22,X-Mode=fast":                                 "X-User=ann,X-Custom-Auth=<hunter22>,X-Mode=fast",
		"Server=h;Password=hun,ter22":                                                   "Server=h;Password=<hun,ter22>",
		"type=bind,src=/token,dst=/x":                                                   "type=bind,src=/token,dst=/x",
		"host=h password=hunter22 dbname=d":                                             "host=h password=<hunter22> dbname=d",
		"run ghp_0123456789abcdef in ${userHome}":                                       "run <ghp_0123456789abcdef> in ${userHome}",
		"TOKEN: hunter22-${env:REGION}":                                                 "TOKEN: <hunter22->${env:REGION}",
		"Authorization: Basic ${env:U}:${env:PW}":                                       "Authorization: Basic ${env:U}:${env:PW}",
		"Authorization: Bearer $${hunter22}":                                            "Authorization: Bearer <${hunter22}>",
		"Authorization: Bearer ${env:A:-hunter22}":                                      "Authorization: Bearer ${env:A:-<hunter22>}",
		"--env=API_KEY=${API_KEY:-hunter22}":                                            "--env=API_KEY=${API_KEY:-<hunter22>}",
		"postgresql://u:${A:-hunter22}@${DBHOST:-localhost}/db":                         "postgresql://u:${A:-<hunter22>}@${DBHOST:-localhost}/db",
		"run in ${MODE:-fastest} as ${MY_TOKEN:-hunter22}":                              "run in ${MODE:-fastest} as ${MY_TOKEN:-<hunter22>}",
		"https://h/mcp?keyword=cats&monkey=1&author=bob":                                "https://h/mcp?keyword=cats&monkey=1&author=bob",
		"--token=${A:-$2b$10$hunter22}":                                                 "--token=${A:-<$2b$10$hunter22>}",
		"--token=${A:-hunter\n22}":                                                      "--token=${A:-<hunter\n22>}",
		"${URL:-https://h/mcp?api_key=hunter22}":                                        "${URL:-<https://h/mcp?api_key=hunter22>}",
		"${DB:-postgres://u:hunter22@h/db}":                                             "${DB:-<postgres://u:hunter22@h/db>}",
		"WEBHOOK_PORT=8080808":                                                          "WEBHOOK_PORT=8080808",
		"https://h/mcp?key=hunter22":                                                    "https://h/mcp?key=<hunter22>",
		"https://mcp.zapier.com/api/mcp/s/MzQ1YmYtNGQxOC00OWE5/mcp":                     "https://mcp.zapier.com/api/mcp/s/<MzQ1YmYtNGQxOC00OWE5>/mcp",
		"git+https://github.com/Klavis-AI/ModelContextProtocolServerV2.git":             "git+https://github.com/Klavis-AI/ModelContextProtocolServerV2.git",
		"https://h/MyProjectDirectory2024Final/mcp":                                     "https://h/MyProjectDirectory2024Final/mcp",
		"https://h/v1/model-context-protocol-server-2/mcp":                              "https://h/v1/model-context-protocol-server-2/mcp",
		"https://hooks.slack.com/services/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": "https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/<q7Zk2LmX9vTgRw4pYbN8sHdE>",
		"--token=${A:-${env:B}}":                                                        "--token=${A:-${env:B}}",
		"--token=${A:-${secret:x}}":                                                     "--token=${A:-<x}}",
		"a \U00100000 that somebody has written, and ${env:REGION}":                     "a \U00100000 that somebody has written, and ${env:REGION}",
	} {
		stored := map[string]string{}
		s := clients.Server{Name: "s", Args: []string{text}}
		s.MoveSecrets(func(_, secret string) string {
			stored[secret] = secret
			return secret
		})
		now := strings.NewReplacer("${secret:", "<").Replace(s.Args[0])
		for secret := range stored {
			now = strings.ReplaceAll(now, "<"+secret+"}", "<"+secret+">")
		}
		if now != want {
			t.Errorf("%s became %s, want %s", text, now, want)
		}
		if masked := clients.Mask(text); strings.Contains(want, "@h.example") && strings.Contains(masked, "hunter22") {
			t.Errorf("shown as %s", masked)
		}
	}
	for _, text := range []string{`url: "https://h/mcp?api_key=${secret:s.url}"`, `url: "https://h/mcp?api_key=${K:-${secret:s.url}}"`} {
		if masked := clients.Mask(text); masked != text {
			t.Errorf("%s is shown as %s", text, masked)
		}
	}
	s := clients.Server{Name: "s", Env: []clients.Pair{{Name: "API_KEY", Value: "${API_KEY:-hunter22}"}, {Name: "MODE", Value: "${MODE:-fastest}"}}}
	s.MoveSecrets(func(name, _ string) string { return name })
	if s.Env[0].Value != "${API_KEY:-${secret:s.API_KEY}}" || s.Env[1].Value != "${MODE:-fastest}" {
		t.Errorf("the variables are %v", s.Env)
	}
}

// TestHeaders: import takes every header for a secret that is not known to be none, also one in an argument, and what is shown is masked
// by the same rule.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"X-Access: word":                           "X-Access: <word>",
		"X-Access: two words":                      "X-Access: <two words>",
		"X-Access: hunter22":                       "X-Access: <hunter22>",
		"X-Access: ${env:T}":                       "X-Access: ${env:T}",
		"X-Access: $ecret":                         "X-Access: <$ecret>",
		"X-Access: $A_1 $B":                        "X-Access: $A_1 $B",
		"X-Access: $T ${T}":                        "X-Access: $T ${T}",
		"X-Access: hunter22-${env:T}":              "X-Access: <hunter22->${env:T}",
		"X-Access: Bearer hunter22":                "X-Access: Bearer <hunter22>",
		"X-Api-Key: 12345":                         "X-Api-Key: <12345>",
		"CONTEXT7_API_KEY: hunter22":               "CONTEXT7_API_KEY: <hunter22>",
		"Authorization: Bearer ${env:T}":           "Authorization: Bearer ${env:T}",
		"Authorization: Bearer $GITHUB_TOKEN":      "Authorization: Bearer $GITHUB_TOKEN",
		"Authorization: Bearer $hunter22":          "Authorization: Bearer <$hunter22>",
		"Authorization: Bearer ${T:-hunter22}":     "Authorization: Bearer ${T:-<hunter22>}",
		"Accept: application/json":                 "Accept: application/json",
		"User-Agent: mine (1.0)":                   "User-Agent: mine (1.0)",
		"MCP-Protocol-Version: 2025-06-18":         "MCP-Protocol-Version: 2025-06-18",
		"Notion-Version: 2022-06-28":               "Notion-Version: 2022-06-28",
		"X-MCP-Toolsets: repos":                    "X-MCP-Toolsets: repos",
		"X-MCP-Tools: get_me,issue_read":           "X-MCP-Tools: get_me,issue_read",
		"X-MCP-Readonly: true":                     "X-MCP-Readonly: true",
		"X-Features: docs, error-tracking":         "X-Features: docs, error-tracking",
		"X-Site: https://x.example":                "X-Site: https://x.example",
		"X-Site: https://x.example?token=hunter22": "X-Site: https://x.example?token=<hunter22>",
	} {
		name, value, _ := strings.Cut(line, ": ")
		s := clients.Server{Name: "s", Headers: []clients.Pair{{Name: name, Value: value}}, Args: []string{"--header", line, "--header=" + line}}
		secret := ""
		s.MoveSecrets(func(_, found string) string { secret = found; return "x" })
		mark := strings.NewReplacer("${secret:x}", "<"+secret+">")
		for _, got := range []string{name + ": " + mark.Replace(s.Headers[0].Value), mark.Replace(s.Args[1]), strings.TrimPrefix(mark.Replace(s.Args[2]), "--header=")} {
			if got != want {
				t.Errorf("%s became %s, want %s", line, got, want)
			}
		}
		for _, entry := range []any{map[string]any{"headers": map[string]string{name: value}}, map[string]any{"args": []string{"--header", line}}} {
			text, err := json.Marshal(entry)
			must(t, err)
			f, err := splice.Read(splice.JSON, text)
			must(t, err)
			shown := clients.Mask(string(text), f.Root)
			if len(secret) >= 6 && strings.Contains(shown, secret) || want == line && !strings.Contains(line, "$") && shown != string(text) {
				t.Errorf("%s is shown as %s", text, shown)
			}
		}
	}
}

// TestMaskFlags: what import takes for a secret behind a flag is masked where it is shown.
func TestMaskFlags(t *testing.T) {
	t.Parallel()
	text := `{"args": ["--key", "LS045qwERTy8Zx356355vb", "--token", "hunter22", "--key", "~/.ssh/key.pem"]}`
	f, err := splice.Read(splice.JSON, []byte(text))
	must(t, err)
	want := `{"args": ["--key", "[masked]", "--token", "[masked]", "--key", "~/.ssh/key.pem"]}`
	if got := clients.Mask(text, f.Root); got != want {
		t.Errorf("shown as %s, want %s", got, want)
	}
}

// TestMerge: servers that are the same become one, whatever they are called; the hub is no server.
func TestMerge(t *testing.T) {
	t.Parallel()
	all := clients.Merge([]clients.Server{
		{Name: "a", Command: "x", Disabled: true, Off: []string{"p", "q"}, Origin: "1"},
		{Name: "hub", Command: "npx", Args: []string{"-y", "mcp-toolhub", "serve"}},
		{Name: "hub", Command: `C:\bin\mcp-toolhub.exe`, Args: []string{"serve", "--stdio"}},
		{Name: "hub", Command: "npx", Args: []string{"-y", "mcp-toolhub@latest", "serve"}},
		{Name: "hub", Command: "sh", Args: []string{"-c", "exec mcp-toolhub serve --config c.yaml"}},
		{Name: "hub", Command: "cmd", Args: []string{"/c", "npx", "-y", "mcp-toolhub"}},
		{Name: "toolhub", URL: "http://127.0.0.1:8808/mcp"},
		{Name: "b", Command: "x", Off: []string{"q", "r"}, Origin: "2"},
		{Name: "a", Command: "x", Args: []string{"y"}, Origin: "3"},
		{Name: "files", Command: "npx", Args: []string{"server-filesystem", "/home/ann/mcp-toolhub"}},
		{Name: "demo", Command: "mcp-toolhub", Args: []string{"demo-server"}},
		{Name: "toolhub", URL: "https://other.example/mcp"},
	})
	if len(all) != 5 || all[0].Disabled || !slices.Equal(all[0].Off, []string{"q", "r"}) || !slices.Equal(all[0].Origins, []string{"1", "2"}) {
		t.Errorf("%+v", all)
	}
}

// TestMergeTools: of servers that are the same, those tools are in use that are at one of their clients, whichever comes first.
func TestMergeTools(t *testing.T) {
	t.Parallel()
	list := func(text string) []string { return strings.Fields(text) }
	for _, c := range []struct{ off1, on1, off2, on2, off, on string }{
		{off1: "a b", off2: "b c", off: "b"},
		{on1: "a b", on2: "b c", on: "a b c"},
		{off1: "a b", on2: "b c", off: "a"},
		{off1: "a"},
		{on1: "a"},
		{off1: "a", on1: "a b", off2: "c", off: "c"},
		{off1: "a", on1: "a b", on2: "c", off: "a", on: "a b c"},
	} {
		one := clients.Server{Name: "s", Command: "x", Off: list(c.off1), On: list(c.on1)}
		two := clients.Server{Name: "s", Command: "x", Off: list(c.off2), On: list(c.on2)}
		for _, all := range [][]clients.Server{{one, two}, {two, one}} {
			got := clients.Merge(all)[0]
			slices.Sort(got.Off)
			slices.Sort(got.On)
			if !slices.Equal(got.Off, list(c.off)) || !slices.Equal(got.On, list(c.on)) {
				t.Errorf("%+v: %q, %q", c, got.Off, got.On)
			}
		}
	}
}

// TestMergeSignIns: a client that was registered by hand is not lost, and two of them are two servers.
func TestMergeSignIns(t *testing.T) {
	t.Parallel()
	as := func(id string) clients.Server {
		return clients.Server{Name: "s", URL: "https://s.example/mcp", SignIn: clients.SignIn{ID: id}}
	}
	if all := clients.Merge([]clients.Server{as(""), as("x"), as("y"), as("x")}); len(all) != 2 || all[0].SignIn.ID != "x" || len(all[0].Origins) != 3 {
		t.Errorf("%+v", all)
	}
}

// TestMergeSpellings: a variable is the same one however a client spells it.
func TestMergeSpellings(t *testing.T) {
	t.Parallel()
	var all []clients.Server
	for id, text := range map[string]string{
		"cursor":      `{"mcpServers": {"s": {"url": "https://h/${env:T}", "headers": {"A": "x ${env:T}"}}}}`,
		"claude-code": `{"mcpServers": {"s": {"url": "https://h/${T}", "headers": {"A": "x ${T}"}}}}`,
		"gemini":      `{"mcpServers": {"s": {"httpUrl": "https://h/$T", "headers": {"A": "x $T"}}}}`,
		"opencode":    `{"mcp": {"s": {"type": "remote", "url": "https://h/{env:T}", "headers": {"A": "x {env:T}"}}}}`,
	} {
		f, err := splice.Read(splice.JSON, []byte(text))
		must(t, err)
		all = append(all, clients.ByID(id).Read(f, "file")...)
	}
	if merged := clients.Merge(all); len(merged) != 1 {
		t.Errorf("%+v", merged)
	}
	a, b := clients.Server{Command: "x", Args: []string{"$${env:T}"}}, clients.Server{Command: "x", Args: []string{"$${T}"}}
	if a.Same(b) {
		t.Error("a text that only looks like a reference is one")
	}
}

// TestUntaken: what an entry says in a way that the hub cannot take over is named.
func TestUntaken(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`{"command": "npx", "args": "-y pkg"}`:                                                  "args",
		`{"command": "npx", "env": ["A=1"]}`:                                                    "env",
		`{"command": "npx", "args": ["${config:a.b}"], "env": {"A": "${command:pick}"}}`:        "${config:a.b} ${command:pick}",
		`{"command": "npx", "args": ["${env:A}", "$5 {config:a}"], "env": null, "cwd": "/tmp"}`: "",
	} {
		f, err := splice.Read(splice.JSON, []byte(`{"servers": {"a": `+entry+`}}`))
		must(t, err)
		if got := strings.Join(clients.ByID("vscode").Read(f, "file")[0].Untaken, " "); got != want {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}

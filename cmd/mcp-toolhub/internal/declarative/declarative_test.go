//go:build unix

package declarative_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// rig is a toolset with the files of a test.
type rig struct {
	*declarative.Toolset
	dir, project string
}

func newRig(t testing.TB, files map[string]string, change ...func(*declarative.Config)) *rig {
	t.Helper()
	r := &rig{dir: t.TempDir()}
	var err error
	if r.project, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.load(t, change...)
	return r
}

func (r *rig) load(t testing.TB, change ...func(*declarative.Config)) {
	t.Helper()
	c := declarative.Config{Enabled: true, Dir: r.dir, Runner: command.NewRunner("", slog.New(slog.DiscardHandler)),
		Logger: slog.New(slog.DiscardHandler), Bounds: command.Config{Root: r.project,
			Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=/nowhere", "API_TOKEN=tok-123456", "OTHER=x", "ARG_n=5"}}}
	for _, f := range change {
		f(&c)
	}
	var err error
	if r.Toolset, err = declarative.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Runner.Close(); err != nil {
			t.Error(err)
		}
	})
}

// call calls the one tool that is declared.
func (r *rig) call(ctx context.Context, arguments string) (map[string]any, error) {
	all := r.Catalog().Tools
	if len(all) != 1 {
		return nil, fmt.Errorf("%d tools: %v", len(all), r.Problems())
	}
	reply, err := r.Execute(ctx, &tool.Execution{Tool: all[0], Arguments: json.RawMessage(arguments)})
	if err != nil {
		return nil, err
	}
	var result map[string]any
	err = json.Unmarshal(reply.Result, &result)
	return result, err
}

// text is the first text of a result.
func text(result map[string]any) string {
	content, _ := result["content"].([]any)
	if len(content) == 0 {
		return ""
	}
	block, _ := content[0].(map[string]any)
	s, _ := block["text"].(string)
	return s
}

// file is a declaration whose members may be replaced; null takes one away.
func file(t testing.TB, members map[string]any) string {
	t.Helper()
	all := map[string]any{"name": "x", "description": "Does x.", "permission": "write", "command": "true",
		"input_schema": map[string]any{"type": "object", "properties": map[string]any{
			"text": map[string]any{"type": "string"}, "n": map[string]any{"type": "integer", "default": 7},
			"word": map[string]any{"type": "string", "enum": []string{"a", "-b"}, "default": "a"},
			"list": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
			"flag": map[string]any{"type": "boolean", "default": false}, "maybe": map[string]any{"type": "string"},
		}, "required": []string{"text"}}}
	for k, v := range members {
		if all[k] = v; v == nil {
			delete(all, k)
		}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// show writes its arguments to a file, each in brackets.
const show = `for a in "$@"; do printf '[%s]' "$a"; done > out; printf ok`

func (r *rig) printed(t testing.TB) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.project, "out"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Every refusal says where and what, and a file with one fault declares nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	schema := func(properties string) any {
		return json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)
	}
	for name, c := range map[string]struct {
		members map[string]any
		want    string
	}{
		"unknown field":            {map[string]any{"cwd": "."}, "cwd: unknown key"},
		"another case":             {map[string]any{"Name": "y"}, `Name: unknown key; did you mean "name"?`},
		"no name":                  {map[string]any{"name": nil}, "the key name is missing"},
		"canonical name":           {map[string]any{"name": "declarative.x"}, "name: want small letters"},
		"name with a dot":          {map[string]any{"name": "a.b"}, "name: want small letters"},
		"name is no text":          {map[string]any{"name": 1}, "name: want a string"},
		"no description":           {map[string]any{"description": " "}, "description: is empty"},
		"no permission":            {map[string]any{"permission": nil}, "the key permission is missing"},
		"permission":               {map[string]any{"permission": "admin"}, `permission: want "readonly" or "write"`},
		"tag":                      {map[string]any{"tags": []string{"A b"}}, "tags[0]: want small letters"},
		"tag twice":                {map[string]any{"tags": []string{"a", "a"}}, "tags[1]: the tag is there twice"},
		"tag contradicts":          {map[string]any{"tags": []string{"readonly"}}, "tags[0]: the tag contradicts"},
		"tag write of a reader":    {map[string]any{"permission": "readonly", "tags": []string{"write"}}, "tags[0]: the tag contradicts"},
		"command type":             {map[string]any{"command_type": "python"}, `command_type: want "exec" or "shell"`},
		"no command":               {map[string]any{"command": nil}, "the key command is missing"},
		"empty command":            {map[string]any{"command": " "}, "command: is empty"},
		"command is a list":        {map[string]any{"command": []string{"ls"}}, "command: want a string"},
		"command is a template":    {map[string]any{"command": "{{text}}"}, "command: the program cannot be a value"},
		"shell of a reader":        {map[string]any{"permission": "readonly", "command_type": "shell"}, "command_type: a shell command needs the tag"},
		"args is a text":           {map[string]any{"args": "a"}, "args: want a list"},
		"argument is a number":     {map[string]any{"args": []any{1}}, "args[0]: want a string"},
		"argument with NUL":        {map[string]any{"args": []any{"a\x00"}}, "args[0]: holds a NUL"},
		"no such variable":         {map[string]any{"args": []any{"a", "{{other}}"}}, "args[1]: {{other}} names no property"},
		"environment in templates": {map[string]any{"args": []any{"{{env.HOME}}"}}, "args[0]: {{env.HOME}} names no property"},
		"expression":               {map[string]any{"args": []any{"{{text | upper}}"}}, "names no property"},
		"three braces":             {map[string]any{"args": []any{"{{{text}}}"}}, "args[0]:"},
		"open template":            {map[string]any{"args": []any{"{{text"}}, `args[0]: there is "{{" without "}}"`},
		"empty template":           {map[string]any{"args": []any{"{{}}"}}, "names no property"},
		"list in a template":       {map[string]any{"args": []any{"{{list}}"}}, "args[0]: {{list}} is of type array"},
		"may be missing":           {map[string]any{"args": []any{"{{maybe}}"}}, "args[0]: {{maybe}} may be missing"},
		"outside":                  {map[string]any{"working_dir": "/"}, "working_dir: is outside"},
		"outside by dots":          {map[string]any{"working_dir": ".."}, "working_dir: is outside"},
		"no such directory":        {map[string]any{"working_dir": "nope"}, "working_dir: there is no directory"},
		"directory of the call":    {map[string]any{"working_dir": "{{text}}"}, "working_dir: the directory cannot be a value"},
		"variable with value":      {map[string]any{"env_allowlist": []any{"A=b"}}, "env_allowlist[0]: want the name"},
		"timeout":                  {map[string]any{"timeout_ms": 86400001}, "timeout_ms: out of range; write a number from 1 to 86400000"},
		"no timeout":               {map[string]any{"timeout_ms": 0}, "timeout_ms: out of range; write a number from 1"},
		"timeout as text":          {map[string]any{"timeout_ms": "1s"}, "timeout_ms: want a whole number"},
		"fraction":                 {map[string]any{"timeout_ms": 1.5}, "timeout_ms: want a whole number"},
		"output":                   {map[string]any{"output": "json"}, `output: want "text" or "result"`},
		"stdout limit":             {map[string]any{"stdout_limit_bytes": 1 << 30}, "stdout_limit_bytes: out of range; write a number from 1"},
		"stderr limit":             {map[string]any{"stderr_limit_bytes": -1}, "stderr_limit_bytes: out of range; write a number from 1"},
		"schema of a text":         {map[string]any{"input_schema": map[string]any{"type": "string"}}, `input_schema: want "type": "object"`},
		"no schema":                {map[string]any{"input_schema": nil}, "the key input_schema is missing"},
		"pattern":                  {map[string]any{"input_schema": schema(`"a":{"type":"string","pattern":"("}`)}, "input_schema: "},
		"type of a property":       {map[string]any{"input_schema": schema(`"a":{"type":"text"}`)}, "input_schema: "},
		"no single value":          {map[string]any{"args": []any{"{{a}}"}, "input_schema": schema(`"a":{"type":["string","null"]}`)}, "args[0]: {{a}} is of type any"},
		"default": {map[string]any{"args": []any{"{{a}}"}, "input_schema": schema(`"a":{"type":"integer","default":"x"}`)},
			"args[0]: the default of a: its own schema refuses it"},
	} {
		r := newRig(t, map[string]string{"x.json": file(t, c.members),
			"good.json": `{"name":"good","description":"d","permission":"readonly","command":"true","input_schema":{"type":"object"}}`})
		problems := r.Problems()
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), filepath.Join(r.dir, "x.json")+":1:") ||
			!strings.Contains(problems[0].Error(), c.want) {
			t.Errorf("%s: %v", name, problems)
		}
		if tools := r.Catalog().Tools; len(tools) != 1 || tools[0].Name != "declarative.good" || len(r.Catalog().Excluded) != 1 {
			t.Errorf("%s: %v", name, tools)
		}
	}
}

// problem declares a tool and returns what is wrong with it; "" for nothing.
func problem(t *testing.T, members map[string]any) string {
	t.Helper()
	p := newRig(t, map[string]string{"x.json": file(t, members)}).Problems()
	if len(p) == 0 {
		return ""
	}
	return p[0].Error()
}

// No template stands in a shell's text. The variables that it reads have a value in every call.
func TestShellTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`grep {{text}} f`:                        `command: "{{" cannot stand in a shell's text: write "$ARG_name", in double quotes`,
		`grep '{{text}}' f`:                      `command: "{{" cannot stand`,
		`docker ps --format '{{.Names}}'`:        `put the text into a script of your own`,
		`grep "$ARG_other" f`:                    "command: $ARG_other names no property of input_schema",
		`rm -r "${ARG_maybe}"/*`:                 "command: $ARG_maybe may be missing in a call",
		`echo ${#ARG_list}`:                      "command: $ARG_list is of type array",
		`echo "$ARG_text2"`:                      "command: $ARG_text2 names no property",
		`grep -- "$ARG_text" f "$ARG_text" $PWD`: "",
		`echo "${ARG_n:-}" "${ARG_flag%e}"`:      "",
		`getconf ARG_MAX`:                        "",
		`echo (`:                                 "", // the shell says so
	} {
		if got := problem(t, map[string]any{"command_type": "shell", "command": text}); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A value is neither the program that env starts, nor a shell's text, file or option.
func TestProgramsAreNoValues(t *testing.T) {
	t.Parallel()
	const stands, input, says, behind = "{{text}} stands where a shell's text", "would take its commands from elsewhere", "may run what ", "a shell behind "
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"sh", "-c", "{{text}}"}, "args[1]: " + stands},
		{[]string{"dash", "{{text}}"}, "args[0]: " + stands},
		{[]string{"/bin/bash", "-c", "ls {{text}}"}, "args[1]: ls " + stands},
		{[]string{"sh", "-c{{text}}"}, "command: sh " + input},
		{[]string{"bash", "-eo", "pipefail", "-c", "{{text}}"}, "command: bash " + input},
		{[]string{"bash", "--rcfile", "{{text}}", "-i"}, "command: bash " + input},
		{[]string{"bash-5.2", "-c", "--", "{{text}}"}, "command: bash-5.2 " + input},
		{[]string{"sh", "-o", "{{text}}"}, "command: sh " + input},
		{[]string{"ZSH.exe", "--", "{{text}}"}, "command: zsh " + input},
		{[]string{"sh"}, "command: sh " + input},
		{[]string{"sh", "-c"}, "command: sh " + input},
		{[]string{"sh", ""}, "command: sh " + input},
		{[]string{"ksh", "-e", "-"}, "command: ksh " + input},
		{[]string{"sh", "-es", "a", "{{text}}"}, "command: sh " + input},
		{[]string{"env", "{{text}}"}, "args[0]: env " + says},
		{[]string{"env", "PATH={{text}}", "ls"}, "args[0]: env " + says},
		{[]string{"/usr/bin/env", "-i", "A=b", "sh", "-c", "{{text}}"}, "args[2]: " + behind},
		{[]string{"env", "-S", "sh -c", "{{text}}"}, "args[1]: " + behind},
		{[]string{"env", "--split-string=sh -c", "{{text}}"}, "args[1]: env " + says},
		{[]string{"env", "ls", "{{text}}"}, "args[1]: env " + says},
		{[]string{"busybox", "{{text}}"}, "args[0]: busybox " + says},
		{[]string{"env", "bash"}, "args[0]: " + behind},
		{[]string{`C:\Windows\cmd.exe`, "/c", "dir {{text}}"}, "args[1]: cmd " + says},
		{[]string{"fish", "x.fish", "{{text}}"}, "args[1]: fish " + says},

		{[]string{"sh", "-c", `ls "$1"`, "sh", "{{text}}"}, ""},
		{[]string{"sh", "own.sh", "-s", "-c", "{{text}}"}, ""},
		{[]string{"env"}, ""},
		{[]string{"env", "-i", "A=b", "ls"}, ""},
		{[]string{"grep", "-c", "{{text}}"}, ""},
		{[]string{"grep", "sh", "{{text}}"}, ""},
		{[]string{"git", "log", "--grep={{text}}"}, ""},
		{[]string{"timeout", "5", "{{text}}"}, ""}, // the person's own word
	} {
		got := problem(t, map[string]any{"command": c.argv[0], "args": c.argv[1:]})
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q: %q, want %q", c.argv, got, c.want)
		}
	}
}

// The files that the documentation shows declare tools.
func TestDocumentedFiles(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?ms)^```json\n(.*?)^```$")
	for _, page := range []string{"tools.md", "declared-tools.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, m := range block.FindAllSubmatch(text, -1) {
			if !strings.Contains(string(m[1]), `"input_schema"`) {
				continue
			}
			seen++
			if p := newRig(t, map[string]string{"x.json": string(m[1])}).Problems(); len(p) != 0 {
				t.Errorf("%s: %v", page, p)
			}
		}
		if seen == 0 {
			t.Errorf("%s shows no file", page)
		}
	}
}

// A file that others could have put there, or that is none, is not read; two of one name are both left out.
func TestFiles(t *testing.T) {
	t.Parallel()
	good := file(t, nil)
	r := newRig(t, map[string]string{"a.json": good, "b.json": good, "c.txt": "x", ".d.json": "x", "e.json": "{", "f.json": `{"name":"f","name":"g"}`,
		"g.json": good + "x", "h.json": "\n\n  []", "i.json": `{"a":1,` + "\n" + ` "b": tru}`, "j.json": strings.Repeat(" ", 300<<10)})
	if err := os.Symlink(filepath.Join(r.dir, "c.txt"), filepath.Join(r.dir, "k.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "l.json"), []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(r.dir, "l.json"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(r.dir, "m.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.load(t)
	want := []string{`a.json:1:`, `b.json:1:`, "e.json:1:", "f.json:1:", "g.json:1:", "h.json:3:3: want a mapping", "i.json:2:", "j.json: it is larger",
		"k.json: it is a link", "l.json: everybody may write", "m.json: it is no regular file"}
	problems := r.Problems()
	if len(problems) != len(want) || len(r.Catalog().Tools) != 0 {
		t.Fatalf("%d problems: %v", len(problems), problems)
	}
	for i, p := range problems {
		if !strings.HasPrefix(p.Error(), filepath.Join(r.dir, want[i])) {
			t.Errorf("%v, want %s", p, want[i])
		}
	}
	if !strings.Contains(problems[0].Error(), "b.json as well") || !strings.Contains(problems[1].Error(), "a.json as well") {
		t.Errorf("%v", problems[:2])
	}
	if err := os.Chmod(r.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	r.load(t)
	if p := r.Problems(); len(p) != 1 || !strings.Contains(p[0].Error(), "everybody may write to the directory") {
		t.Errorf("%v", p)
	}
	if r := newRig(t, nil, func(c *declarative.Config) { c.Dir = filepath.Join(c.Dir, "none") }); len(r.Problems())+len(r.Catalog().Tools) != 0 {
		t.Errorf("%v", r.Problems())
	}
}

// hostile are values that want to be more than one argument.
func hostile() []string {
	return []string{"a b", `it's "quoted"`, "$(touch hit)", "`touch hit`", "a\nb", "; touch hit #", "&& touch hit", "| touch hit", "${IFS}", "*", "~",
		`\`, `'`, `"`, "", "{{n}}", "}}", "$1", "%s%n", "a\tb", "\r", "é\u202e", ">hit", "$ARG_text", "'; touch hit; '", `"; touch hit; "`, "a[$(touch hit)]"}
}

// Whatever a value is, it stays one argument or one variable, and no shell reads it.
func TestOneArgument(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		members map[string]any
		want    string // V is the value
	}{
		"exec": {map[string]any{"command": "sh", "args": []string{"-c", show, "sh", "--", "x={{text}}", "{{text}}", "{{ n }}{{word}}{{flag}}"}},
			"[--][x=V][V][7afalse]"},
		"variables": {map[string]any{"command_type": "shell", "env_allowlist": []string{"ARG_n"},
			"command": `printf '[%s]' "$ARG_text" "$ARG_n" "${ARG_word}" "$ARG_flag" > out; printf ok`}, "[V][7][a][false]"},
		"arguments": {map[string]any{"command_type": "shell", "command": show, "args": []string{"{{text}}", "constant", "x={{text}}"}},
			"[V][constant][x=V]"},
		"both": {map[string]any{"command_type": "shell", "command": strings.Replace(show, `"$@"`, `"$1" "$ARG_text"`, 1), "args": []string{"{{text}}"}},
			"[V][V]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"x.json": file(t, c.members)})
			for _, value := range hostile() {
				arguments, err := json.Marshal(map[string]string{"text": value})
				if err != nil {
					t.Fatal(err)
				}
				result, err := r.call(t.Context(), string(arguments))
				if err != nil || text(result) != "ok" {
					t.Fatalf("%q: %v %v", value, result, err)
				}
				if got := r.printed(t); got != strings.ReplaceAll(c.want, "V", value) {
					t.Errorf("%q became %q", value, got)
				}
				if _, err := os.Stat(filepath.Join(r.project, "hit")); err == nil {
					t.Fatalf("%q was run", value)
				}
			}
		})
	}
}

// A value that the program would take for an option is refused, but where the file has closed that off.
func TestOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		send string
		ok   bool
	}{
		{[]string{"{{text}}"}, `{"text":"-rf"}`, false},
		{[]string{"{{text}}x"}, `{"text":"-rf"}`, false},
		{[]string{"--", "{{text}}"}, `{"text":"-rf"}`, true},
		{[]string{"--x={{text}}"}, `{"text":"-rf"}`, true},
		{[]string{"{{n}}"}, `{"text":"","n":-5}`, true},
		{[]string{"{{word}}"}, `{"text":"","word":"-b"}`, true},
		{[]string{"{{text}}"}, `{"text":"a-b"}`, true},
		{[]string{"{{n}}"}, `{"text":"","n":2.0}`, true},
		{[]string{"{{n}}"}, `{"text":"","n":1e400}`, false},
		{[]string{"{{n}}"}, `{"text":"","n":1.5}`, false},
		{[]string{"{{n}}"}, `{"text":"","n":"1"}`, false},
		{[]string{"{{flag}}"}, `{"text":"","flag":null}`, false},
		{[]string{"{{text}}"}, `{"text":"a\u0000b"}`, false},
		{[]string{"{{text}}"}, `{}`, false},
	} {
		r := newRig(t, map[string]string{"x.json": file(t, map[string]any{"command": "sh", "args": append([]string{"-c", show, "sh"}, c.args...)})})
		_, err := r.call(t.Context(), c.send)
		var f *tool.Failure
		if c.ok && err != nil || !c.ok && (!errors.As(err, &f) || f.Class != tool.ClassInvalidArguments) {
			t.Errorf("%v %s: %v", c.args, c.send, err)
		}
	}
	for _, c := range []struct {
		command string
		args    []string
		ok      bool
	}{
		{`echo "$ARG_text"`, nil, false},
		{`echo "$1"`, []string{"{{text}}"}, false},
		{`echo "$2"`, []string{"--", "{{text}}"}, false},
		{`echo "$1"`, []string{"x={{text}}"}, true},
		{`cat`, nil, true},
	} {
		r := newRig(t, map[string]string{"x.json": file(t, map[string]any{"command_type": "shell", "command": c.command, "args": c.args})})
		if _, err := r.call(t.Context(), `{"text":"-n"}`); (err == nil) != c.ok {
			t.Errorf("%s %q: %v", c.command, c.args, err)
		}
	}
}

// What the command prints is the text of the result.
func TestPlainText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   string // the result, or the code of the failure
	}{
		"text":      {`echo hello`, `{"content":[{"text":"hello\n","type":"text"}]}`},
		"arguments": {`cat`, `{"content":[{"text":"{\"text\":\"v\"}\n","type":"text"}]}`},
		"nothing":   {`:`, `{"content":[]}`},
		"no UTF-8":  {`printf 'a\377b'`, "{\"content\":[{\"text\":\"a\ufffdb\",\"type\":\"text\"}]}"},
		"a result":  {`printf '{"content":[]}'`, `{"content":[{"text":"{\"content\":[]}","type":"text"}]}`},
		"secret":    {`printf "$API_TOKEN,$OTHER"`, `{"content":[{"text":"[redacted],","type":"text"}]}`},
	} {
		prints(t, name, "", c.script, c.want)
	}
}

// A text that is too long for the result is there in part, and whole as an artifact. The record says how the command ended.
func TestLongText(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"x.json": file(t, map[string]any{"command_type": "shell", "command": "seq 1 1000",
		"stdout_limit_bytes": 100})})
	reply, err := r.Execute(t.Context(), &tool.Execution{Tool: r.Catalog().Tools[0], Arguments: json.RawMessage(`{"text":"v"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(reply.Result), "bytes left out") || len(reply.Result) > 300 || len(reply.Artifacts) != 1 ||
		reply.Artifacts[0].Name != "x.stdout" || len(reply.Artifacts[0].Bytes) != 3893 {
		t.Errorf("%s %v", reply.Result, reply.Artifacts)
	}
	if m := reply.Mapping; m.ExitCode == nil || *m.ExitCode != 0 || m.CWD == "" || m.ToolName != "x" {
		t.Errorf("%+v", m)
	}
}

// prints declares a shell's text, calls it, and compares its result, or the code of its failure.
func prints(t *testing.T, name, output, script, want string) {
	t.Helper()
	members := map[string]any{"command_type": "shell", "command": script, "env_allowlist": []string{"API_TOKEN"}}
	if output != "" {
		members["output"] = output
	}
	r := newRig(t, map[string]string{"x.json": file(t, members)})
	result, err := r.call(t.Context(), `{"text":"v"}`)
	var f *tool.Failure
	if errors.As(err, &f) {
		if f.Code != want {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	if got, _ := json.Marshal(result); string(got) != want {
		t.Errorf("%s: %s %v", name, got, err)
	}
}

// A tool that prints a result as JSON, and has no output: result, is named in the log: once.
func TestResultIsMeant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		prints, output string
		lines          int
	}{
		{`{"content":[]}`, "", 1},
		{`{"content":[]}`, "text", 0},
		{`{"content":[]}`, "result", 0},
		{`{"content":"a text"}`, "", 0},
		{`content`, "", 0},
	} {
		members := map[string]any{"command": "printf", "args": []string{"%s", c.prints}}
		if c.output != "" {
			members["output"] = c.output
		}
		var log strings.Builder
		r := newRig(t, map[string]string{"x.json": file(t, members)}, func(config *declarative.Config) {
			config.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		for range 2 {
			if _, err := r.call(t.Context(), `{"text":""}`); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Count(log.String(), "looks like a tool result") != c.lines ||
			c.lines > 0 && (!strings.Contains(log.String(), `\"output\": \"result\"`) || !strings.Contains(log.String(), "x.json")) {
			t.Errorf("%+v: %s", c, log.String())
		}
	}
}

// With output: result the command prints a tool result as JSON.
func TestResults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   string // the result, or the code of the failure
	}{
		"text":                 {`echo '{"content":[{"type":"text","text":"a"}]}'`, `{"content":[{"text":"a","type":"text"}]}`},
		"arguments":            {`printf '{"structured_content":'; cat; printf '}'`, `{"content":[{"text":"{\"text\":\"v\"}","type":"text"}],"structuredContent":{"text":"v"}}`},
		"json block":           {`echo '{"content":[{"type":"json","json":{"a":1}}],"is_error":true}'`, `{"content":[{"text":"{\"a\":1}","type":"text"}],"isError":true}`},
		"the protocol's":       {`echo '{"content":[],"structuredContent":{"a":1},"isError":false,"_meta":{"b":2},"status":"ok"}'`, `{"_meta":{"b":2},"content":[],"structuredContent":{"a":1}}`},
		"no json":              {`echo hello`, "invalid_tool_output"},
		"nothing":              {`:`, "invalid_tool_output"},
		"a list":               {`echo '[]'`, "invalid_tool_output"},
		"two":                  {`echo '{"content":[]}{"content":[]}'`, "invalid_tool_output"},
		"no content":           {`echo '{}'`, "invalid_tool_output"},
		"content is a text":    {`echo '{"content":"a"}'`, "invalid_tool_output"},
		"block without type":   {`echo '{"content":[{"text":"a"}]}'`, "invalid_tool_output"},
		"block without text":   {`echo '{"content":[{"type":"text"}]}'`, "invalid_tool_output"},
		"is_error is a text":   {`echo '{"content":[],"is_error":"no"}'`, "invalid_tool_output"},
		"structured is a list": {`echo '{"structured_content":[]}'`, "invalid_tool_output"},
		"too much":             {`head -c 5000000 /dev/zero`, "stdout_limit"},
		"secret":               {`printf '{"content":[{"type":"text","text":"%s"}]}' "$API_TOKEN,$OTHER"`, `{"content":[{"text":"[redacted],","type":"text"}]}`},
	} {
		prints(t, name, "result", c.script, c.want)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"x.json": file(t, map[string]any{"command_type": "shell", "command": `echo why >&2; echo '{"content":[]}'; exit 3`})})
	result, err := r.call(t.Context(), `{"text":""}`)
	structured, _ := result["structuredContent"].(map[string]any)
	if err != nil || result["isError"] != true || text(result) != "the command failed: exit code 3\nwhy\n" || structured["exit_code"] != 3.0 {
		t.Errorf("%v %v", result, err)
	}
	var f *tool.Failure
	r = newRig(t, map[string]string{"x.json": file(t, map[string]any{"command": "no-such-program"})})
	if _, err := r.call(t.Context(), `{"text":""}`); !errors.As(err, &f) || f.Class != tool.ClassSetupRequired {
		t.Error(err)
	}
	r = newRig(t, map[string]string{"x.json": file(t, map[string]any{"command": "sleep", "args": []string{"300"}, "timeout_ms": 200})})
	began := time.Now()
	if _, err := r.call(t.Context(), `{"text":""}`); !errors.As(err, &f) || f.Class != tool.ClassTimeout || !f.OutcomeUnknown ||
		time.Since(began) > 2*time.Minute {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.call(ctx, `{"text":""}`); !errors.As(err, &f) || f.Class != tool.ClassCanceled {
		t.Error(err)
	}
	old := r.Catalog().Tools[0]
	if err := os.WriteFile(filepath.Join(r.dir, "x.json"), []byte(file(t, map[string]any{"command": "rm"})), 0o600); err != nil {
		t.Fatal(err)
	}
	r.load(t)
	if now := r.Catalog().Tools[0]; now.Version() == old.Version() || now.SchemaDigest != old.SchemaDigest ||
		now.SchemaDigest != tool.Digest(now.InputSchema) {
		t.Errorf("another command, and the same schema: %q %q, was %q %q", now.Version(), now.SchemaDigest, old.Version(), old.SchemaDigest)
	}
	if _, err := r.Execute(t.Context(), &tool.Execution{Tool: old, Arguments: json.RawMessage(`{"text":""}`)}); !errors.As(err, &f) ||
		f.Code != "tool_changed" {
		t.Error(err)
	}
}

// The declaration closes the schema, and says what the file says.
func TestDeclaration(t *testing.T) {
	t.Parallel()
	sub := map[string]any{"name": "list-it", "permission": "readonly", "tags": []string{"network", "readonly"}, "working_dir": "sub"}
	r := newRig(t, map[string]string{"x.json": file(t, sub)})
	if len(r.Problems()) != 1 {
		t.Errorf("%v", r.Problems())
	}
	if err := os.Mkdir(filepath.Join(r.project, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.load(t)
	d := r.Catalog().Tools[0]
	if d.Name != "declarative.list-it" || d.Server != "declarative" || strings.Join(d.Tags, " ") != "declarative network readonly" ||
		!strings.Contains(string(d.Declaration), `"readOnlyHint":true`) || !strings.Contains(string(d.InputSchema), `"additionalProperties":false`) ||
		r.Dirs()[d.Name] != filepath.Join(r.project, "sub") {
		t.Errorf("%+v %v", d, r.Dirs())
	}
}

// FuzzFile: whatever a file holds, reading it ends in a tool or in faults with places, and never both.
func FuzzFile(f *testing.F) {
	f.Add(file(f, nil))
	f.Add(file(f, map[string]any{"command_type": "shell", "command": "grep \"$ARG_text\" 'a' # c", "tags": []string{"dangerous"}}))
	f.Add(file(f, map[string]any{"args": []string{"{{text}}", "{{", "}}"}}))
	f.Add(`{"name":"\u0061","name":[[[{}]]]}`)
	r := newRig(f, nil)
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(r.dir, "x.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.load(t)
		tools, problems := r.Catalog().Tools, r.Problems()
		if len(tools)+len(problems) != 1 {
			t.Fatalf("%d tools, problems %v", len(tools), problems)
		}
		for _, p := range problems {
			if !strings.HasPrefix(p.Error(), filepath.Join(r.dir, "x.json")+":") || len(p.Faults) == 0 {
				t.Errorf("%v", p)
			}
		}
		for _, d := range tools {
			if !json.Valid(d.Declaration) || strings.ContainsRune(string(d.Declaration), '\n') {
				t.Errorf("%s", d.Declaration)
			}
		}
	})
}

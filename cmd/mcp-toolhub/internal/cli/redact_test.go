//go:build e2e

package cli

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// secretOf is a secret for one place, shaped like a token of GitHub: where it is found, its name says how it came there.
func secretOf(place string) string {
	sum := sha256.Sum256([]byte(place))
	return "gh" + "p_" + hex.EncodeToString(sum[:18])
}

// secretsHub is a hub whose tools, callers, hooks and people send a secret in each place where something is recorded.
type secretsHub struct {
	*permitted
	secrets   map[string]string // by place
	collector *collector        // gets telemetry, with arguments and results
}

func (s *secretsHub) at(place string) string {
	s.secrets[place] = secretOf(place)
	return s.secrets[place]
}

func startSecretsHub(t *testing.T, webhook string) *secretsHub {
	t.Helper()
	s := &secretsHub{&permitted{t: t, dir: t.TempDir()}, make(map[string]string), startCollector(t)}
	script := upstreamtest.Script{}
	for _, name := range []string{"echo", "fail", "raw", "asked", "changed"} {
		script.Tools = append(script.Tools, bytes.Replace(upstreamtest.Tool(name), []byte("fake"), []byte(s.at("description of "+name)), 1))
	}
	s.far = map[string]any{"s": child(script), "kept": child(script)}
	s.state, s.file = filepath.Join(s.dir, "state"), filepath.Join(s.dir, "hub.json")
	says := `{"systemMessage": "it is ` + s.at("message of a hook") + `", "toolhub": {"progress": [{"message": "at ` + s.at("progress of a hook") + `"}]},
		"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"text": "` + s.at("input of a hook") + `"}}}`
	writeFile(t, filepath.Join(s.dir, "says.json"), says)
	s.write(map[string]any{"rules": []any{map[string]any{"match": "mcp.s.asked", "then": "ask"}, map[string]any{"match": "*", "then": "allow"}},
		"ask": map[string]any{"channels": []any{"webhook", "queue"}, "webhook": webhook}},
		map[string]any{"hooks": []any{map[string]any{"event": "pre_tool_use", "match": "mcp.s.changed", "command": []any{"cat", "says.json"}}},
			"hub":     map[string]any{"telemetry": map[string]any{"content": true}},
			"results": map[string]any{"max_inline_tokens": 500, "tools": []any{map[string]any{"match": "mcp.kept.*", "redact": "redact"}}}})
	h, err := launch(s.dir, append(scratchEnv(s.dir), s.collector.env()...), "--config", s.file, "--state-dir", s.state, "--log-level", "debug")
	if err != nil {
		t.Fatal(err)
	}
	s.runningHub = h
	s.cleanUp(h)
	return s
}

// arguments have a secret in each form.
func (s *secretsHub) arguments(of string) string {
	text, err := json.Marshal(map[string]any{
		"text": "it is " + s.at(of+": text") + ".", "nested": map[string]any{"a": []any{map[string]any{"password": s.at(of + ": nested")}}},
		"base64": base64.StdEncoding.EncodeToString([]byte("export API_KEY=" + s.at(of+": base64") + "\n")), "url": "https://ann:" + s.at(of+": URL") + "@h.example/x",
		"query": "https://h.example/x?access_token=" + s.at(of+": parameter") + "&n=1", "request": "GET / HTTP/1.1\r\nAuthorization: Bearer " + s.at(of+": header") + "\r\n",
		s.at(of + ": name of a member"): "x", "json": `{"headers": {"X-Api-Key": "` + s.at(of+": JSON in a text") + `"}}`})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// holds reports where a text has a secret, as it is or in base64.
func (s *secretsHub) holds(where, text string) {
	for place, secret := range s.secrets {
		found := strings.Contains(text, secret)
		for i := range 3 { // of all ways in which its bytes can fall
			coded := base64.StdEncoding.EncodeToString([]byte("xxx"[:i] + secret))
			found = found || strings.Contains(text, coded[4:len(coded)-4])
		}
		if found {
			s.t.Errorf("%s has the secret of %q", where, place)
		}
	}
}

// TestSecretsAreInNoRecord sends secrets in each place through the real program, on both generations. Callers get what tools answer, byte for byte,
// unless the config says otherwise. Nothing else has a secret: no file of the state directory, no log, no command that shows records, no question, no
// message to a webhook, no metric, and no trace or log of a collector that gets arguments and results.
func TestSecretsAreInNoRecord(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the hook is a Unix command")
	}
	address, told := webhookOf(t, http.StatusOK)
	s := startSecretsHub(t, address)
	h := s.hub()
	for _, version := range []string{rev2025, rev2026} {
		s.calls(version)
		w := s.client(version).open()
		rest := w.waits(w.call("mcp.s.asked", s.arguments("a question on "+version), `"progressToken":"p"`))
		v := s.pending(h)
		shown, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		s.holds("the question", string(shown))
		s.holds("the page", s.run("approvals", "show", string(v.ID)))
		s.holds("the message to the webhook", await(t, told))
		s.run("approvals", "deny", string(v.ID), "--message", "because of "+s.at("words of a person on "+version))
		rest()
	}
	s.holds("health", func() string { _, text := s.health(t); return text }())
	s.holds("the metrics", s.metrics())
	s.lookEverywhere()
}

// calls makes the calls of one client.
func (s *secretsHub) calls(version string) {
	s.t.Helper()
	w := s.client(version).open()
	arguments := s.arguments("arguments on " + version)
	passes := func(name, args, meta, want string) {
		s.t.Helper()
		answer := w.send(w.call(name, args, meta))
		if last := answer[len(answer)-1]; !strings.Contains(last, want) {
			s.t.Errorf("%s on %s: %q is missing in %s", name, version, want, last)
		}
	}
	passes("mcp.s.echo", arguments, `"toolhub/run":"`+s.at("run on "+version)+`"`, secretOf("arguments on "+version+": text"))
	passes("mcp.s.fail", fmt.Sprintf(`{"error":{"code":-32000,"message":"bad %s","data":{"token":%q}}}`, s.at("error on "+version), s.at("data on "+version)), "",
		secretOf("error on "+version))
	password := "open sesame on " + version // which no rule finds where the server repeats it
	s.secrets["a password on "+version] = password
	passes("mcp.s.fail", fmt.Sprintf(`{"password":%q,"error":{"code":-32000,"message":"the password is not %s"}}`, password, password), "", password)
	passes("mcp.s.raw", fmt.Sprintf(`{"result":{"isError":true,"content":[{"type":"text","text":"bad %s"}]}}`, s.at("failure on "+version)), "", secretOf("failure on "+version))
	passes("mcp.s."+s.at("name of a tool on "+version), `{"text":"`+s.at("arguments of no tool on "+version)+`"}`, "", `unknown tool`)
	passes("mcp.s.echo", `[]`, `"toolhub/run":"`+s.at("run of a malformed call on "+version)+`"`, "error")
	passes("mcp.s.changed", `{"text":"`+s.at("text on "+version)+`"}`, "", "result")
	passes("mcp.kept.echo", arguments, "", "[masked:")
	long := strings.Repeat("word ", 2000)
	passes("mcp.kept.raw", fmt.Sprintf(`{"result":{"content":[{"type":"text","text":%q}],"structuredContent":{"api_key":%q}}}`, long+s.at("large on "+version)+" "+long,
		s.at("structured on "+version)), "", `toolhub://results/res_`)
	passes("mcp.s.raw", fmt.Sprintf(`{"result":{"content":[{"type":"text","text":%q}]}}`, long[:5000]+"password: "+s.at("in a preview on "+version)), "", `toolhub://results/res_`)
}

// run runs a command of the program, and returns what it says.
func (s *secretsHub) run(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("mcp-toolhub", append(args, "--config", s.file, "--state-dir", s.state)...)
	cmd.Env = append(os.Environ(), scratchEnv(s.dir)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("%v: %v %s", args, err, out)
	}
	return string(out)
}

// metrics is what Prometheus gets.
func (s *secretsHub) metrics() string {
	s.t.Helper()
	resp, err := http.Get(s.url + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), `toolhub_calls_total{`) {
		s.t.Errorf("%v, the metrics are %s", err, text)
	}
	return string(text)
}

// lookEverywhere looks at what commands show, at the log, and at all files, once the hub has ended.
func (s *secretsHub) lookEverywhere() {
	s.t.Helper()
	if err := s.stop(); err != nil {
		s.t.Fatal(err)
	}
	s.holds("the log", s.log())
	s.collector.mu.Lock()
	sent := s.collector.all.String()
	s.collector.mu.Unlock()
	if s.holds("the telemetry", sent); !strings.Contains(sent, "gen_ai.tool.call.arguments") || !strings.Contains(sent, "gen_ai.tool.call.result") {
		s.t.Error("the telemetry has no arguments, or no results")
	}
	bundle := filepath.Join(s.dir, "bundle.tar.gz")
	for _, args := range [][]string{{"journal"}, {"events", "tail"}, {"events", "tail", "--format", "cloudevents"}, {"events", "tail", "--format", "acp"},
		{"calls", "list", "-o", "json"}, {"calls", "export"}, {"calls", "export", "--format", "csv"}, {"calls", "export", "--format", "evidence", "--output", bundle}} {
		s.holds(strings.Join(args, " "), s.run(args...))
	}
	f, err := os.Open(bundle)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		s.t.Fatal(err)
	}
	s.holds("the bundle", string(text))
	files := 0
	err = filepath.WalkDir(s.state, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "catalogs" {
			return fs.SkipDir // they are what clients get
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files++
		text := readFile(s.t, path)
		if strings.Contains(path, string(filepath.Separator)+"bytes"+string(filepath.Separator)) {
			text = s.payload(text)
		}
		s.holds(path, text)
		return nil
	})
	if err != nil || files < 8 || len(s.secrets) < 40 {
		s.t.Errorf("%d files, %d secrets, %v", files, len(s.secrets), err)
	}
}

// payload is what a stored result holds. One that was to be stored as it was is left out.
func (s *secretsHub) payload(text string) string {
	d, err := zstd.NewReader(strings.NewReader(text[len("thp1z"):]))
	if err != nil {
		s.t.Fatal(err)
	}
	defer d.Close()
	raw, err := io.ReadAll(d)
	if err != nil {
		s.t.Fatal(err)
	}
	if strings.Contains(string(raw), "password: ") {
		return ""
	}
	return string(raw)
}

//go:build e2e

package cli

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// aimed is a hub before a server "s" on this machine, whose tools write to paths and get addresses, with a directory that
// may be written to and one that may not. Everything is allowed but for what the limits hold against it.
type aimed struct {
	*permitted
	root, outside string
	w             *wire
}

const aimedTools = `[{"name":"write_file","description":"Writes a file","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}}},
{"name":"fetch","description":"Gets an address","inputSchema":{"type":"object","properties":{"url":{"type":"string"}}}}]`

func startAimed(t *testing.T, more map[string]any) *aimed {
	t.Helper()
	a := &aimed{}
	for _, dir := range []*string{&a.root, &a.outside} {
		var err error
		if *dir, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	var tools []json.RawMessage
	mustDecode(t, aimedTools, &tools)
	settings := map[string]any{"mode": "default", "ask": map[string]any{"channels": []string{"queue"}},
		"rules": []map[string]any{{"id": "all", "match": "mcp.s.*", "then": "allow"}}}
	for key, value := range more {
		settings[key] = value
	}
	a.permitted = startPermittedWith(t, with(child(upstreamtest.Script{Tools: tools}), "cwd", a.root), settings)
	a.w = a.client(rev2025).open()
	return a
}

// outcome calls a tool and returns what became of it: "ran", "asked", where it is then denied, or why it was refused.
func (a *aimed) outcome(name, args string) string {
	a.t.Helper()
	answered := make(chan string, 1)
	r := a.w.call(name, args, "")
	go func() { answered <- strings.Join(a.w.send(r), "\n") }()
	h, asked := a.hub(), false
	got := ""
	eventually(a.t, "the call ends", func() bool {
		select {
		case got = <-answered:
			return true
		default:
		}
		open, err := h.Approvals(a.t.Context())
		if err == nil && len(open) == 1 {
			_, err = h.Answer(a.t.Context(), string(open[0].ID), control.Reply{Choice: policy.DenyOnce})
			asked = asked || err == nil
		}
		return false
	})
	switch {
	case strings.Contains(got, `"status":"succeeded"`):
		return "ran"
	case asked:
		return "asked"
	}
	return got
}

// Whatever way a path is written, a call that leads out of what may be written to, to something sensitive or nobody knows
// where does not run unasked.
func TestAttackPaths(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of systems with one root")
	}
	a := startAimed(t, nil)
	write := func(dir, name string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(a.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(a.root, "plain.txt")
	write(a.root, ".env")
	far := write(a.outside, "far.txt")
	if err := os.Link(far, filepath.Join(a.root, "hard.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(a.root, "sub", "deep", "a", "b", "c"), 0o700); err != nil {
		t.Fatal(err)
	}
	link(a.outside, "away")
	link(far, "far.txt")
	link(filepath.Join(a.outside, "sub", "deep"), "elsewhere")
	link(".env", "harmless.txt")
	link(filepath.Join(a.root, "sub", "deep", "a", "b", "c"), "sub/deep/up")
	link("loop", "loop")
	for path, want := range map[string]string{
		"plain.txt": "ran", "./sub/../plain.txt": "ran", a.root + "/new.txt": "ran", "sub//deep/./x": "ran",
		"../" + filepath.Base(a.outside) + "/far.txt": "asked", "sub/../../../../../../etc/passwd": "asked", "/etc/passwd": "asked", "away/x": "asked",
		"away/../x": "asked", "elsewhere/../x": "asked", "sub/deep/up/../../../../../x": "asked", "far.txt": "asked", "hard.txt": "asked", "away/./far.txt": "asked", "sub/deep/../../away/x": "asked",
		".env": "asked", "harmless.txt": "asked", ".ENV": "asked", "sub/.env": "asked", "./sub/../.env": "asked", ".env.local": "asked",
		".e\u200dnv": "asked", "．env": "asked", "id_rsa": "asked", "ID_RSA.pem": "asked", "~/.ssh/config": "asked", "~/x": "asked",
		"/proc/self/root/etc/passwd": "leads through the files of a process", "/proc/self/cwd/plain.txt": "leads through the files of a process",
		"/proc/1/root/x": "leads through the files of a process", "/proc/thread-self/root/x": "leads through the files of a process",
		"/dev/fd/3": "leads through the files of a process", "file://" + a.root + "/plain.txt": "ran", "file:///etc/passwd": "asked", "FILE:/etc/passwd": "asked",
		"file://localhost/etc/pass%77d": "asked", "$HOME/x": "asked", "${HOME}/x": "asked", "$TMPDIR/x": "holds a variable", "~root/x": "names the home directory",
		"a`id`": "holds a variable", "plain.txt\u0000.png": "NUL", "\u0000": "NUL", "loop/x": "circle", strings.Repeat("a/", 5000): "longer than any path",
	} {
		if runtime.GOOS != "linux" && (strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/dev/fd/")) {
			continue // nothing of that kind is there
		}
		got := a.outcome("mcp.s.write_file", `{"path":`+quoted(path)+`,"content":"x"}`)
		if want == "ran" || want == "asked" {
			if got != want {
				t.Errorf("%.60q: %s, want %s", path, got, want)
			}
		} else if !strings.Contains(got, want) || !strings.Contains(got, `"error_class":"policy_blocked"`) {
			t.Errorf("%.60q: %s, want %s", path, got, want)
		}
	}
	for args, want := range map[string]string{ // the argument that the server may take for the one it knows
		`{"path":"plain.txt","path":"/etc/passwd"}`: "argument_repeated", `{"path":"/etc/passwd","path":"plain.txt"}`: "argument_repeated", `{"path":"plain.txt","PATH":"/etc/passwd"}`: "asked",
		`{"p\u0061th":"/etc/passwd"}`: "asked", `{"path":["/etc/passwd"]}`: `schema_validation_failed`, `{"file":"/etc/passwd"}`: "asked",
	} {
		if got := a.outcome("mcp.s.write_file", args); got != want && (want == "asked" || !strings.Contains(got, want)) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	a.checkBlocked(t, filepath.Join(a.outside, "far.txt"))
}

// checkBlocked holds that the decisions of the hub say what path or host they are about, and why.
func (a *aimed) checkBlocked(t *testing.T, want string) {
	t.Helper()
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	blocked := 0
	for _, r := range recordsIn(t, filepath.Join(a.state, "journal")) {
		if r["object"] != "tool_permission_decision" || r["behavior"] == "allow" || r["source"] != "limit" {
			continue
		}
		reason, _ := r["reason"].(map[string]any)
		if path, _ := r["blocked_path"].(string); path == "" || reason["type"] != "limit" || reason["message"] == "" {
			t.Errorf("a decision that blocks nothing: %v", r)
		} else if path == want {
			blocked++
		}
	}
	if blocked == 0 {
		t.Errorf("no decision names %s", want)
	}
}

// A remembered answer holds for where a path led when it was given, and not for where it leads once a link is swapped; nor
// does the answer to an open question. A file with other names is asked about each time.
func TestAttackGrants(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	a := startAimed(t, map[string]any{"rules": []map[string]any{}})
	inner, swap := filepath.Join(a.root, "inner"), filepath.Join(a.root, "swap")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	lead := func(to string) {
		_ = os.Remove(swap)
		if err := os.Symlink(to, swap); err != nil {
			t.Fatal(err)
		}
	}
	answered, h := make(chan string, 1), a.hub()
	ask := func(path string, choice policy.Choice, meanwhile func()) string {
		r := a.w.call("mcp.s.write_file", `{"path":`+quoted(path)+`}`, "")
		go func() { answered <- strings.Join(a.w.send(r), "\n") }()
		v := a.pending(h)
		meanwhile()
		if _, err := h.Answer(t.Context(), string(v.ID), control.Reply{Choice: choice}); err != nil {
			t.Fatal(err)
		}
		return await(t, answered)
	}
	lead(inner)
	if got := ask("swap/x", policy.AllowOnce, func() { lead(a.outside) }); !strings.Contains(got, "has changed since a person was asked about it: call again") {
		t.Errorf("swapped while the question was open: %s", got)
	}
	lead(inner)
	if got := ask("swap/x", policy.AllowSession, func() {}); !strings.Contains(got, `"status":"succeeded"`) {
		t.Errorf("%s", got)
	}
	for path, want := range map[string]string{"swap/y": "ran", "inner/z": "ran", "inner/../inner/z": "ran", "inner/../x": "asked", "INNER/x": "asked",
		"ｉnner/x": "asked", "inner2/x": "asked", "inner/.env": "asked", "inner/*": "asked"} {
		if runtime.GOOS == "darwin" && path == "INNER/x" {
			continue // it is the same directory
		}
		if got := a.outcome("mcp.s.write_file", `{"path":`+quoted(path)+`}`); got != want {
			t.Errorf("%s after an answer for %s: %s, want %s", path, inner, got, want)
		}
	}
	far := filepath.Join(a.outside, "far.txt")
	if err := os.WriteFile(far, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(far, filepath.Join(inner, "hard.txt")); err != nil {
		t.Fatal(err)
	}
	if got := a.outcome("mcp.s.write_file", `{"path":"inner/hard.txt"}`); got != "asked" {
		t.Errorf("a file with other names: %s", got)
	}
	lead(a.outside)
	if got := a.outcome("mcp.s.write_file", `{"path":"swap/y"}`); got != "asked" {
		t.Errorf("after the link was swapped: %s", got)
	}
}

// Whatever way a host is written, what is denied is denied, and where hosts are listed no other one is reached.
func TestAttackHosts(t *testing.T) {
	t.Parallel()
	a := startAimed(t, map[string]any{"targets": map[string]any{"denied_hosts": []string{"127.0.0.0/8", "::1", "169.254.0.0/16", "localhost",
		"evil.example", "*.evil.example"},
		"allowed_hosts": []string{"0.0.0.0/0", "::/0", "good.example", "*.good.example", "evil.example", "*.evil.example"}}})
	for url, want := range map[string]string{
		"https://good.example/": "ran", "https://a.good.example:8443/x?y=https://evil.example/": "ran", "HTTPS://GOOD.EXAMPLE./": "ran", "http://8.8.8.8/": "ran",
		"https://good.example@evil.example/": "evil.example", "https://good.example:80@evil.example/": "evil.example", "https://evil.example#@good.example/": "evil.example",
		"https://good.example.evil.example/": "good.example.evil.example", "https://EVIL.example./": "evil.example", "https://ｅｖｉｌ．example/": "evil.example",
		"https://ev\u00adil.example/": "evil.example", "https://notgood.example/": "notgood.example", "https://good.example.com/": "good.example.com",
		"http://127.0.0.1/": "127.0.0.1", "http://127.1/": "127.0.0.1", "http://2130706433/": "127.0.0.1", "http://0x7f000001/": "127.0.0.1", "http://0x7f.0.0.1/": "127.0.0.1",
		"http://[::1]/": "::1", "http://[0:0:0:0:0:0:0:1]/": "::1", "http://[::ffff:127.0.0.1]/": "127.0.0.1", "http://[::ffff:7f00:1]/": "127.0.0.1",
		"http://[::127.0.0.1]/": "::7f00:1", "http://[64:ff9b::7f00:1]/": "64:ff9b::7f00:1", "http://[2002:7f00:1::]/": "2002:7f00:1::", "http://localhost:8080/": "localhost",
		"http://a.localhost/": "a.localhost", "http://LOCALHOST./": "localhost", "//127.0.0.1/": "127.0.0.1", "127.0.0.1:80/x": "127.0.0.1",
		"http://169.254.169.254/latest/meta-data": "169.254.169.254", "http://2852039166/": "169.254.169.254", "http://[fe80::1%25eth0]/": "IPv6 address",
		"http://0177.0.0.1/": "one host for some programs and another one for others", "http://127.0.0.1\t/": "127.0.0.1", "http:\\\\127.0.0.1/": "127.0.0.1", "http://good.example\\@127.0.0.1/": "one host for some programs",
		"http://a@b@127.0.0.1/": "more than one @", "http://%31%32%37.0.0.1/": "127.0.0.1", "javascript:fetch('http://127.0.0.1')": "is no address but a program",
	} {
		got := a.outcome("mcp.s.fetch", `{"url":`+quoted(url)+`}`)
		if want == "ran" && got != "ran" || want != "ran" && (!strings.Contains(got, want) || !strings.Contains(got, `"error_class":"policy_blocked"`)) {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	for url, want := range map[string]string{"file:///etc/shadow": "asked", "view-source:file:///etc/shadow": "asked", "FILE://localhost/root/.ssh/id_rsa": "asked", "file:/x/../.env": "asked"} {
		if got := a.outcome("mcp.s.fetch", `{"url":`+quoted(url)+`}`); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
	a.checkBlocked(t, "127.0.0.1")
}

// A server of the config that answers with a redirect leads the hub to no other host, whose tools nobody has allowed.
func TestAttackRedirects(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	other.Listener = l
	other.Start()
	t.Cleanup(other.Close)
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1) + "/mcp"
	var away atomic.Bool
	url, _ := fakeHandler(t, upstreamtest.Options{Script: upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo")}},
		Intercept: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if away.Load() && r.Method == http.MethodPost {
				http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
				return true
			}
			return false
		}})
	p := startPermittedWith(t, map[string]any{"type": "http", "url": url, "headers": map[string]string{"Authorization": "Bearer of-the-server"}},
		map[string]any{"mode": "default", "rules": []map[string]any{{"match": "mcp.s.*", "then": "allow"}}})
	w := p.client(rev2025).open()
	away.Store(true)
	got := w.send(w.call("mcp.s.echo", `{"secret":"x"}`, ""))
	if last := got[len(got)-1]; strings.Contains(last, `"status":"succeeded"`) || reached.Load() > 0 {
		t.Errorf("the other host got %d requests: %s", reached.Load(), last)
	}
}

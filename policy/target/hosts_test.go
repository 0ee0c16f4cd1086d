package target_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// TestFaultyHosts: an address that has no one spelling is shown and recorded without what may be secret in it.
func TestFaultyHosts(t *testing.T) {
	t.Parallel()
	p := plan(t, "fetch", `"url":{"type":"string"}`)
	for given, want := range map[string]string{
		"https://u:SECRET@a@h/x":         "https://…@h/x",
		"https://h:port/x?token=SECRET":  "https://h:port/x…",
		"u:SECRET@a@h":                   "…@h",
		"https://u:SECRET@h:1:2/#SECRET": "https://…@h:1:2/…",
		"https://u:SECRET@h:x/a b":       "https://…@h:x/a b",
	} {
		got := resolve(t, p, map[string]string{"url": given}, target.Root{})[0]
		if got.Fault == "" || got.Resolved != want || strings.Contains(got.Fault, "SECRET") {
			t.Errorf("%s: %+v, want %q and a fault", given, got, want)
		}
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	p := plan(t, "fetch", `"url":{"type":"string"}`)
	for _, c := range []struct {
		given, host, resolved string
		note                  target.Note
	}{
		{"https://example.com", "example.com", "https://example.com/", ""},
		{"HTTPS://EXAMPLE.com:443/a/../b?token=x#y", "example.com", "https://example.com/b", ""},
		{"http://example.com:8080/%61", "example.com", "http://example.com:8080/a", ""},
		{"https://example.com./x", "example.com", "https://example.com/x", ""},
		{"https://good.com@evil.com/", "evil.com", "https://evil.com/", target.UserInfo},
		{"https://user:pw@evil.com", "evil.com", "https://evil.com/", target.UserInfo},
		{"https://evil.com#@good.com/", "evil.com", "https://evil.com/", ""},
		{"https://evil.com?@good.com/", "evil.com", "https://evil.com/", ""},
		{"//evil.com/x", "evil.com", "https://evil.com/x", target.NoScheme},
		{"evil.com/x", "evil.com", "https://evil.com/x", target.NoScheme},
		{"localhost:8080", "localhost", "https://localhost:8080/", target.Loopback},
		{"git@github.com:a/b.git", "github.com", "ssh://github.com/a/b.git", ""},
		{"mailto:a@b.com", "b.com", "mailto://b.com/", ""},
		{"jdbc:postgresql://db:5432/x", "db", "postgresql://db:5432/x", target.Private},
		{"http://127.0.0.1/", "127.0.0.1", "http://127.0.0.1/", target.Loopback},
		{"http://2130706433/", "127.0.0.1", "http://127.0.0.1/", target.OddIP},
		{"http://0x7f000001/", "127.0.0.1", "http://127.0.0.1/", target.OddIP},
		{"http://0x7F.1/", "127.0.0.1", "http://127.0.0.1/", target.OddIP},
		{"http://127.1/", "127.0.0.1", "http://127.0.0.1/", target.OddIP},
		{"http://127.0.0.01/", "127.0.0.1", "http://127.0.0.1/", target.OddIP},
		{"http://127.0.0.1./", "127.0.0.1", "http://127.0.0.1/", target.Loopback},
		{"http://１２７.０.０.１/", "127.0.0.1", "http://127.0.0.1/", target.Loopback},
		{"http://127。0。0。1/", "127.0.0.1", "http://127.0.0.1/", target.Loopback},
		{"http://0/", "0.0.0.0", "http://0.0.0.0/", target.Loopback},
		{"http://169.254.169.254/latest", "169.254.169.254", "http://169.254.169.254/latest", target.LinkLocal},
		{"http://2852039166/", "169.254.169.254", "http://169.254.169.254/", target.LinkLocal},
		{"http://10.1.2.3/", "10.1.2.3", "http://10.1.2.3/", target.Private},
		{"http://100.64.0.1/", "100.64.0.1", "http://100.64.0.1/", target.Private},
		{"http://[::1]:80/", "::1", "http://[::1]/", target.Loopback},
		{"http://[0:0:0:0:0:0:0:1]/", "::1", "http://[::1]/", target.Loopback},
		{"http://[::ffff:127.0.0.1]/", "127.0.0.1", "http://127.0.0.1/", target.Loopback},
		{"http://[::ffff:7f00:1]/", "127.0.0.1", "http://127.0.0.1/", target.Loopback},
		{"http://[::127.0.0.1]/", "::7f00:1", "http://[::7f00:1]/", target.Loopback},
		{"http://[64:ff9b::a9fe:a9fe]/", "64:ff9b::a9fe:a9fe", "http://[64:ff9b::a9fe:a9fe]/", target.LinkLocal},
		{"http://[2002:7f00:1::]/", "2002:7f00:1::", "http://[2002:7f00:1::]/", target.Loopback},
		{"http://[fd00::1]/", "fd00::1", "http://[fd00::1]/", target.Private},
		{"http://[fe80::1]/", "fe80::1", "http://[fe80::1]/", target.LinkLocal},
		{"http://bücher.example/", "xn--bcher-kva.example", "http://xn--bcher-kva.example/", target.IDN},
		{"http://xn--bcher-kva.example/", "xn--bcher-kva.example", "http://xn--bcher-kva.example/", target.IDN},
		{"http://BU\u0308CHER.example/", "xn--bcher-kva.example", "http://xn--bcher-kva.example/", target.IDN},
		{"http://例え.テスト/", "xn--r8jz45g.xn--zckzah", "http://xn--r8jz45g.xn--zckzah/", target.IDN},
		{"http://ｅｖｉｌ．com/", "evil.com", "http://evil.com/", target.IDN},
		{"http://ev\u00adil.com/", "evil.com", "http://evil.com/", target.IDN},
		{"http:/169.254.169.254/latest", "169.254.169.254", "http://169.254.169.254/latest", target.LinkLocal},
		{"https:/evil.com", "evil.com", "https://evil.com/", ""},
		{"https:evil.com/x", "evil.com", "https://evil.com/x", ""},
		{"http:///evil.com/x", "evil.com", "http://evil.com/x", ""},
		{`http:\\evil.com\x`, "evil.com", "http://evil.com/x", ""},
		{`\\evil.com\x`, "evil.com", "https://evil.com/x", target.NoScheme},
		{`/\evil.com/x`, "evil.com", "https://evil.com/x", target.NoScheme},
		{"/\t/evil.com/x", "evil.com", "https://evil.com/x", target.NoScheme},
		{"ht\ntp://evil.com\t/", "evil.com", "http://evil.com/", ""},
		{"\u0000 \u00a0http:/evil.com\n", "evil.com", "http://evil.com/", ""},
		{"http://ev%69l.com/", "evil.com", "http://evil.com/", ""},
		{"http://evil.com:080/a b", "evil.com", "http://evil.com/a%20b", ""},
		{"gopher:/evil.com:70/_x", "evil.com", "gopher://evil.com:70/_x", ""},
		{"http://[64:ff9b:1::a9fe:a9fe]/", "64:ff9b:1::a9fe:a9fe", "http://[64:ff9b:1::a9fe:a9fe]/", target.LinkLocal},
		{"http://[::ffff:0:169.254.169.254]/", "::ffff:0:a9fe:a9fe", "http://[::ffff:0:a9fe:a9fe]/", target.LinkLocal},
		{"http://[2001:db8::5efe:127.0.0.1]/", "2001:db8::5efe:7f00:1", "http://[2001:db8::5efe:7f00:1]/", target.Loopback},
		{"http://[2001:0:1:2:3:4:5601:5601]/", "2001:0:1:2:3:4:5601:5601", "http://[2001:0:1:2:3:4:5601:5601]/", target.LinkLocal},
		{"http://x.internal/", "x.internal", "http://x.internal/", target.Private},
		{"http://metadata/", "metadata", "http://metadata/", target.Private},
	} {
		got := resolve(t, p, map[string]string{"url": c.given}, target.Root{})
		if len(got) != 1 {
			t.Errorf("%q: %+v", c.given, got)
			continue
		}
		if got[0].Host != c.host || got[0].Resolved != c.resolved || got[0].Fault != "" || c.note != "" && !got[0].Has(c.note) {
			t.Errorf("%q: %+v, want %s, %s, %s", c.given, got[0], c.host, c.resolved, c.note)
		}
	}
}

func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	p := plan(t, "fetch", `"url":{"type":"string"}`)
	for _, given := range []string{
		"http://good.com@a@evil.com/", "http://evil.com /", "http://ev\u200dil.com/", "http://08.1.1.1/", "http://256.1.1.1/",
		"http://1.2.3.4.5/", "http://4294967296/", "http://99999999999999999999/", "http://[fe80::1%25eth0]/",
		"http://[::1", "http://[127.0.0.1]/", "http://::1/", "http://a..b/", "http://a../", "0ü。。", "http:///",
		"http://a:b/", "http://a:99999/", "http://a|b/", "javascript:alert(1)", "", "1http://x/",
	} {
		if got := resolve(t, p, map[string]string{"url": given}, target.Root{}); len(got) != 1 || got[0].Fault == "" {
			t.Errorf("%q: %+v, want a fault", given, got)
		}
	}
}

// TestAddressesOfSeveralHosts: where programs read several hosts in one address, each is judged, and the call refused.
func TestAddressesOfSeveralHosts(t *testing.T) {
	t.Parallel()
	p := plan(t, "fetch", `"url":{"type":"string"}`)
	for given, want := range map[string][]string{
		`http://good.com\@evil.com/`:      {"good.com", "evil.com"},
		"http://010.8.8.8/":               {"8.8.8.8", "10.8.8.8"},
		"http://faß.example/":             {"xn--fa-hia.example", "fass.example"},
		"http:8080/x":                     {"0.0.31.144", "http"},
		"http://evil.com @good.com/":      {"good.com", "evil.com"},
		"http://evil.com%3a80/":           {"evil.com"},
		"http://evil.com%2f.good.com/":    {"evil.com"},
		"http://[fe80::1%25eth0]/":        {"fe80::1"},
		"http://a@b@evil.com/":            {"evil.com"},
		"redis://u:p@169.254.169.254:x/0": nil,
	} {
		var hosts []string
		for _, got := range resolve(t, p, map[string]string{"url": given}, target.Root{}) {
			if got.Fault == "" {
				t.Errorf("%q has no fault: %+v", given, got)
			}
			if got.Host != "" {
				hosts = append(hosts, got.Host)
			}
		}
		if !slices.Equal(hosts, want) {
			t.Errorf("%q: hosts %q, want %q", given, hosts, want)
		}
	}
}

func TestAddressesOfOtherKinds(t *testing.T) {
	t.Parallel()
	p := plan(t, "fetch", `"url":{"type":"string"}`)
	got := resolve(t, p, map[string]string{"url": "mongodb://a:1,evil.com:2/db"}, target.Root{})
	if len(got) != 2 || got[0].Host != "a" || got[1].Host != "evil.com" {
		t.Errorf("two hosts in one: %+v", got)
	}
	got = resolve(t, p, map[string]string{"url": "file:///etc/passwd"}, target.Root{})
	if len(got) != 1 || got[0].Kind != target.Path || got[0].Resolved == "" {
		t.Errorf("a file as URL: %+v", got)
	}
	if got := resolve(t, p, map[string]string{"url": "/api/x"}, target.Root{}); len(got) != 1 || got[0].Kind != target.Resource || got[0].Host != "" {
		t.Errorf("an address of the server's own: %+v", got)
	}
	h := plan(t, "connect", `"host":{"type":"string"}`)
	for given, want := range map[string]string{"EXAMPLE.com": "example.com", "example.com:22": "example.com:22", "::1": "[::1]", "0x7f.1": "127.0.0.1"} {
		if got := resolve(t, h, map[string]string{"host": given}, target.Root{}); len(got) != 1 || got[0].Resolved != want || got[0].Kind != target.URL {
			t.Errorf("%q: %+v, want %s", given, got, want)
		}
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	p := plan(t, "run", `"command":{}`)
	for arguments, want := range map[string]string{ // executable, resolved, notes
		`{"command":["ls","-l","a b"]}`:                   "ls|ls -l 'a b'|",
		`{"command":["/bin/rm","-rf","it's"]}`:            `/bin/rm|/bin/rm -rf 'it'\''s'|`,
		`{"command":["bash","-c","x"]}`:                   "bash|bash -c x|wrapper",
		`{"command":["/usr/bin/python3.12"]}`:             "/usr/bin/python3.12|/usr/bin/python3.12|wrapper",
		`{"command":["sed","-n","1e id","x"]}`:            "sed|sed -n '1e id' x|wrapper",
		`{"command":["/lib64/ld-linux-x86-64.so.2","x"]}`: "/lib64/ld-linux-x86-64.so.2|/lib64/ld-linux-x86-64.so.2 x|wrapper",
		`{"command":["SUDO.exe","x"]}`:                    "SUDO.exe|SUDO.exe x|wrapper",
		`{"command":"ls  -l"}`:                            "ls|ls -l|",
		`{"command":"ls; rm -rf /"}`:                      "|ls; rm -rf /|shell",
		`{"command":"A=1 ls"}`:                            "|A=1 ls|shell",
		`{"command":"ls $(id)"}`:                          "|ls $(id)|shell",
		"{\"command\":\"ls\\nrm\"}":                       "|ls\nrm|shell",
		`{"command":[]}`:                                  "fault",
		`{"command":[""]}`:                                "fault",
		`{"command":["ls",1]}`:                            "fault",
		`{"command":["l\u0000s"]}`:                        "fault",
		`{"command":""}`:                                  "fault",
		`{"command":"a\u0000"}`:                           "fault",
		`{"command":{}}`:                                  "fault",
	} {
		got := resolve(t, p, arguments, target.Root{})
		if len(got) != 1 {
			t.Errorf("%s: %+v", arguments, got)
			continue
		}
		text := "fault"
		if got[0].Fault == "" {
			text = got[0].Executable + "|" + got[0].Resolved + "|"
			for _, n := range got[0].Notes {
				text += string(n)
			}
		}
		if text != want || got[0].Kind != target.Command {
			t.Errorf("%s: %q, want %q", arguments, text, want)
		}
	}
	if got := resolve(t, plan(t, "run", `"script":{"type":"string"}`), `{"script":"rm()"}`, target.Root{}); len(got) != 1 || !got[0].Has(target.Code) {
		t.Errorf("%+v", got)
	}
}

func limits(tb testing.TB, c target.Config) *target.Limits {
	tb.Helper()
	l, err := target.NewLimits(c, target.HubPaths{})
	must(tb, err)
	return l
}

func TestSensitivePaths(t *testing.T) {
	t.Parallel()
	l := limits(t, target.Config{SensitivePaths: []string{"/data/private", "*.secret"}, ExemptPaths: []string{"fixtures/*.pem", ".env.example"}})
	for path, want := range map[string]string{
		"/home/u/.ssh/id_rsa": "keys", "/home/u/.SSH/config": "keys", "/x/ID_RSA": "keys", "/x/id_rsa.pub": "", "/x/id_ed25519": "keys",
		"/x/a.pem": "keys", "/x/a.PEM": "keys", "/x/a.pem.bak": "keys", "/x/a.key~": "keys", "/x/.id_rsa.swp": "keys", "/x/key": "",
		"/x/.env": "environment", "/x/.env.local": "environment", "/x/.ENV.production": "environment", "/x/.environment": "", "/x/.env/x": "environment",
		"/x/.e\u200bnv": "environment", "/x/.ｅnv": "environment",
		"/home/u/.aws/credentials": "credentials", "/home/u/.config/gcloud/x": "credentials", "/home/u/.config/other": "",
		"/home/u/.kube/config": "credentials", "/home/u/.docker/config.json": "credentials", "/home/u/.docker/other.json": "",
		"/x/terraform.tfstate": "credentials", "/x/service-account-1.json": "credentials", "/home/u/.netrc": "credentials",
		"/home/u/.bash_history": "history", "/home/u/.config/google-chrome/Default/Cookies": "browser",
		"/Users/u/Library/Application Support/Google/Chrome/x": "browser", `C:\Users\u\AppData\Local\Google\Chrome\x`: "browser",
		"/proc/1/environ": "system", "/x/proc/1": "", "/etc/shadow": "system", "/x/etc/shadow": "", "/var/run/docker.sock": "system",
		"/data/private/x": "configured", "/x/data/private/x": "", "/x/y.SECRET": "configured",
		"/x/fixtures/a.pem": "", "/x/.env.example": "", "/x/src/main.go": "", "/": "", "/x/.en?": "environment", "/x/.s*h/x": "keys", "/x/*.pem": "keys",
		"/x/*": "", "/x/**/*.go": "", "/x/[id]/page.tsx": "",
	} {
		got := l.Sensitive(&target.Target{Kind: target.Path, Resolved: path})
		if got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{"/home/u/.bashrc": "startup", "/x/.git/hooks/pre-commit": "startup", "/x/.vscode/tasks.json": "startup",
		"/etc/hosts": "startup", "/x/main.go": ""} {
		if got := l.Sensitive(&target.Target{Kind: target.Path, Resolved: path, Write: true}); got != want {
			t.Errorf("written, %q: %q, want %q", path, got, want)
		}
		if got := l.Sensitive(&target.Target{Kind: target.Path, Resolved: path}); got != "" {
			t.Errorf("read, %q: %q", path, got)
		}
	}
}

// TestTheMachineItselfIsOneHost: who denies one of its names and addresses denies them all, and who denies others none.
func TestTheMachineItselfIsOneHost(t *testing.T) {
	t.Parallel()
	p := plan(t, "fetch", `"url":{"type":"string"}`)
	own := []string{"http://localhost:8080/", "http://LOCALHOST./", "http://a.localhost/", "http://127.0.0.1/", "http://127.1.2.3/", "http://0/", "http://0.0.0.0/",
		"http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://2130706433/", "ip6-localhost"}
	denied := func(host, url string) bool {
		found := limits(t, target.Config{DeniedHosts: []string{host}}).Judge(resolve(t, p, `{"url":"`+url+`"}`, target.Root{}), target.Root{})
		return len(found) == 1 && found[0].Code == target.HostDenied && found[0].Behavior == tool.Deny
	}
	for _, host := range []string{"localhost", "127.0.0.1", "127.0.0.0/8", "::1", "::/0", "0.0.0.0/0"} {
		for _, url := range own {
			if !denied(host, url) {
				t.Errorf("%s is denied, and %s is not", host, url)
			}
		}
	}
	for _, url := range own {
		if denied("10.0.0.0/8", url) || denied("example.com", url) {
			t.Errorf("%s is denied", url)
		}
	}
	if denied("localhost", "http://10.0.0.1/") || denied("127.0.0.0/8", "http://example.com/") {
		t.Error("another machine is denied")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	root, outside := tree(t)
	l := limits(t, target.Config{DeniedHosts: []string{"169.254.0.0/16", "*.evil.com", "bad.com", "Worse.COM.", "*.Worse.COM."},
		AllowedHosts: []string{"10.0.0.0/8", "::1", "example.com", "*.example.com", "*.worse.com", "evil.com", "*.evil.com", "bad.com"}})
	write, read := plan(t, "write", `"path":{"type":"string"}`), plan(t, "get", `"path":{"type":"string"}`, readOnly)
	fetch := plan(t, "fetch", `"url":{"type":"string"}`)
	for _, c := range []struct {
		p         *target.Plan
		argument  string
		given     string
		code      string
		behaviour tool.Behavior
		blocked   string
	}{
		{write, "path", "src/a.go", "", "", ""},
		{write, "path", "out/x", target.OutsideRoots, tool.Ask, filepath.Join(outside, "x")},
		{write, "path", "deep/../b.go", target.OutsideRoots, tool.Ask, filepath.Join(outside, "b.go")},
		{read, "path", "out/x", "", "", ""},
		{read, "path", ".env", target.Sensitive, tool.Ask, filepath.Join(root.Dir, ".env")},
		{read, "path", "keys/config", target.Sensitive, tool.Ask, filepath.Join(root.Home, ".ssh", "config")},
		{write, "path", "a\x00", target.Unresolved, tool.Deny, "a␀"},
		{fetch, "url", "https://example.com/", "", "", ""},
		{fetch, "url", "https://a.example.com/", "", "", ""},
		{fetch, "url", "https://notexample.com/", target.HostUnlisted, tool.Deny, "notexample.com"},
		{fetch, "url", "https://example.com.evil.org/", target.HostUnlisted, tool.Deny, "example.com.evil.org"},
		{fetch, "url", "https://example.com@other.org/", target.HostUnlisted, tool.Deny, "other.org"},
		{fetch, "url", "https://a.evil.com/", target.HostDenied, tool.Deny, "a.evil.com"},
		{fetch, "url", "https://evil.com/", "", "", ""},
		{fetch, "url", "https://BAD.com./", target.HostDenied, tool.Deny, "bad.com"},
		{fetch, "url", "https://a.b.worse.com/", target.HostDenied, tool.Deny, "a.b.worse.com"},
		{fetch, "url", "http://2852039166/", target.HostDenied, tool.Deny, "169.254.169.254"},
		{fetch, "url", "http://[::ffff:169.254.169.254]/", target.HostDenied, tool.Deny, "169.254.169.254"},
		{fetch, "url", "http://[64:ff9b::a9fe:a9fe]/", target.HostDenied, tool.Deny, "64:ff9b::a9fe:a9fe"},
		{fetch, "url", "http:/169.254.169.254/latest", target.HostDenied, tool.Deny, "169.254.169.254"},
		{fetch, "url", "https:/a.evil.com", target.HostDenied, tool.Deny, "a.evil.com"},
		{fetch, "url", "http://10.2.3.4/", "", "", ""},
		{fetch, "url", "http://[::1]/", "", "", ""},
	} {
		found := l.Judge(resolve(t, c.p, map[string]string{c.argument: c.given}, root), root)
		worst, any := target.Worst(found)
		if !any && c.code == "" {
			continue
		}
		if worst.Code != c.code || worst.Behavior != c.behaviour || worst.Blocked != c.blocked || worst.Reason == "" {
			t.Errorf("%q: %+v, want %s %s %q", c.given, worst, c.behaviour, c.code, c.blocked)
		}
	}
	must(t, os.Symlink("src/a.go", filepath.Join(root.Dir, ".env"))) // called so, and something else
	if found := l.Judge(resolve(t, read, map[string]string{"path": ".env"}, root), root); len(found) != 1 || found[0].Code != target.Sensitive {
		t.Errorf("a link with a sensitive name: %+v", found)
	}
	more := limits(t, target.Config{AllowedWriteRoots: []string{filepath.Join(root.Dir, "out")}}) // a link
	if found := more.Judge(resolve(t, write, map[string]string{"path": "out/x"}, root), root); len(found) > 0 {
		t.Errorf("a root that is a link: %+v", found)
	}
	remote := target.Root{Remote: true}
	if found := l.Judge(resolve(t, write, map[string]string{"path": "/srv/x"}, remote), remote); len(found) > 0 {
		t.Errorf("another machine's directories: %+v", found)
	}
	if found := l.Judge(resolve(t, write, map[string]string{"path": "/srv/.env"}, remote), remote); len(found) != 1 || found[0].Code != target.Sensitive {
		t.Errorf("another machine's secrets: %+v", found)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := target.Config{AllowedWriteRoots: []string{t.TempDir()}, SensitivePaths: []string{"*.secret", "/x/**"}, ExemptPaths: []string{".env.example"},
		AllowedHosts: []string{"example.com", "*.example.com", "10.0.0.0/8", "::1", "BÜCHER.example"}, DeniedHosts: []string{"evil.com"}}
	must(t, good.Validate())
	bad := target.Config{AllowedWriteRoots: []string{"x"}, SensitivePaths: []string{"[a", ""}, ExemptPaths: []string{"*", "/**"},
		AllowedHosts: []string{"https://x", "x:80", "a@b", "*", "", "10.0.0.0/99"}, DeniedHosts: []string{"*.", "x/y"}}
	err := bad.Validate()
	if err == nil {
		t.Fatal("every fault is overlooked")
	}
	for _, at := range []string{"allowed_write_roots[0]", "sensitive_paths[0]", "sensitive_paths[1]", "exempt_paths[0]", "exempt_paths[1]",
		"allowed_hosts[0]", "allowed_hosts[1]", "allowed_hosts[2]", "allowed_hosts[3]", "allowed_hosts[4]", "allowed_hosts[5]", "denied_hosts[0]",
		"denied_hosts[1]"} {
		if !strings.Contains(err.Error(), at+": ") {
			t.Errorf("no fault at %s in:\n%v", at, err)
		}
	}
	if _, err := target.NewLimits(bad, target.HubPaths{}); err == nil {
		t.Error("limits of a faulty config")
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"a", "../a", "~/a", "/proc/self/root", "a\x00", "out/../x", "file:///a", "$HOME/x", "//a/b", `\\a\b`, "C:x", "*"} {
		f.Add(s)
	}
	root, outside := tree(f)
	l := limits(f, target.Config{})
	p := plan(f, "write", `"path":{"type":"string"}`)
	f.Fuzz(func(t *testing.T, path string) {
		for _, got := range resolve(t, p, map[string]string{"path": path}, root) {
			if got.Fault != "" {
				if len(l.Judge([]target.Target{got}, root)) == 0 {
					t.Errorf("%q: %+v is held against by nothing", path, got)
				}
				continue
			}
			if got.Kind != target.Path || !filepath.IsAbs(got.Resolved) || filepath.Clean(got.Resolved) != got.Resolved {
				t.Errorf("%q: %+v is not resolved", path, got)
			}
			again := one(t, got.Resolved, root)
			if again.Fault == "" && again.Resolved != got.Resolved && !again.Has(target.Home) {
				t.Errorf("%q: resolved to %q, and that to %q", path, got.Resolved, again.Resolved)
			}
			if target.Within(got.Resolved, root.Dir) && target.Within(got.Resolved, outside) {
				t.Errorf("%q is in two places", path)
			}
		}
	})
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{"https://example.com/a", "http://a@b@c", "0x7f.1", "http://[::1]", "//x", "a:b", "mailto:a@b", "http://ü。x", "git@h:p", "file:a"} {
		f.Add(s)
	}
	p := plan(f, "fetch", `"url":{"type":"string"},"host":{"type":"string"}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, argument := range []string{"url", "host"} {
			for _, got := range resolve(t, p, map[string]string{argument: text}, target.Root{}) {
				if got.Fault != "" || got.Kind != target.URL || got.Host == "" {
					continue
				}
				if got.Host != strings.ToLower(got.Host) || strings.ContainsAny(got.Host, " /@%\\?#[]") || strings.HasSuffix(got.Host, ".") {
					t.Errorf("%q: host %q", text, got.Host)
				}
				if argument == "url" && !got.Has(target.NoScheme) {
					again := resolve(t, p, map[string]string{"url": got.Resolved}, target.Root{})
					if len(again) != 1 || again[0].Host != got.Host {
						t.Errorf("%q: resolved to %q, and that to %+v", text, got.Resolved, again)
					}
				}
			}
		}
	})
}

func FuzzArguments(f *testing.F) {
	f.Add(`{"path":"a","url":["b"],"command":["c"],"id":1}`)
	f.Add(`{"path":{"path":[[]]},"PATH":null,"command":{}}`)
	p := plan(f, "write", `"path":{"type":"string"},"url":{"type":"string"},"command":{"type":"array"},"id":{"type":"integer"},"e":{"type":"array","items":{"properties":{"file":{"type":"string"}}}}`)
	f.Fuzz(func(t *testing.T, arguments string) {
		got, err := p.Resolve(t.Context(), json.RawMessage(arguments), target.Root{Dir: "/nowhere"})
		if err == nil && !json.Valid([]byte(arguments)) {
			t.Errorf("%q is taken for JSON", arguments)
		}
		for _, tg := range got {
			if tg.Argument == "" || !slices.Contains([]target.Kind{target.Path, target.URL, target.Command, target.Resource}, tg.Kind) {
				t.Errorf("%+v", tg)
			}
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	root, _ := tree(b)
	l := limits(b, target.Config{AllowedHosts: []string{"*.example.com"}})
	for name, c := range map[string]struct{ properties, arguments string }{
		"none": {`"text":{"type":"string"}`, `{"text":"x"}`},
		"path": {`"path":{"type":"string"}`, `{"path":"src/a.go"}`},
		"url":  {`"url":{"type":"string"}`, `{"url":"https://www.example.com/a/b?c=d"}`},
		"argv": {`"command":{"type":"array"}`, `{"command":["go","test","./..."]}`},
	} {
		p := plan(b, "write", c.properties)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				targets, err := p.Resolve(b.Context(), json.RawMessage(c.arguments), root)
				if err != nil {
					b.Fatal(err)
				}
				l.Judge(targets, root)
			}
		})
	}
}

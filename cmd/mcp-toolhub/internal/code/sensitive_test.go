package code

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

func TestSensitivePaths(t *testing.T) {
	t.Parallel()
	s, err := newSensitivePaths([]string{"~/vault", "/srv/secret", "deploy/prod*.yaml", "*.kdbx", "/data/[ab]/x"}, "/home/me")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/home/me/.ssh":                  true,
		"/home/me/.ssh/id_ed25519":       true,
		"/home/me/.SSH/config":           true,
		"/home/me/.\u017fsh/x":           true, // long s folds to s
		"/home/me/.s\u200csh/x":          true, // HFS+ ignores it
		"/root/.gnupg/a/b":               true,
		"/home/me/.aws/credentials":      true,
		"/home/me/.config/gcloud":        true,
		"/home/me/.config/gcloud/x.json": true,
		"/home/me/.config/other":         false,
		"/p/.env":                        true,
		"/p/.env.local":                  true,
		"/p/a/b/.ENV.Production":         true,
		"/p/.env. ":                      true,
		"/p/.envrc":                      false,
		"/p/env":                         false,
		"/p/server.pem":                  true,
		"/p/server.PEM":                  true,
		"/p/server.key":                  true,
		"/p/\u212aeys/a.\u212aEY":        true, // Kelvin sign
		"/p/certs.pem/inner":             true,
		"/p/server.key.md":               false,
		"/p/monkey":                      false,
		"/p/ssh/x":                       false,
		"/proc/self/environ":             true,
		"/p/proc/x":                      false,
		"/home/me/vault":                 true,
		"/home/me/vault/deep/x":          true,
		"/home/you/vault":                false,
		"/srv/secret/x":                  true,
		"/mnt/srv/secret/x":              false,
		"/p/deploy/prod-eu.yaml":         true,
		"/p/deploy/test.yaml":            false,
		"/p/a.KDBX":                      true,
		"/data/a/x":                      true,
		"/data/c/x":                      false,
		"/":                              false,
	} {
		if got := s.Match(filepath.FromSlash(path)); got != want {
			t.Errorf("%q: sensitive %v, want %v", path, got, want)
		}
	}
}

// secret must never be in an answer of these tests.
const secret = "TOPSECRET"

func TestHostilePaths(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{
		"home/.ssh/id": secret, "root/.env": secret, "root/sub/.env.local": secret, "root/deploy/server.KEY": secret,
		"root/plain": "fine\n", "outside/plain": "outside\n", "root/dir/x": "x\n", "root/harmless.txt": "public\n",
	}, func(c *Config) { c.SensitivePaths = []string{"~/vault"} })
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(p.root, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	link(filepath.Join(p.home, ".ssh"), "keys")
	link(filepath.Join(p.home, ".ssh", "id"), "innocent.txt")
	link("innocent.txt", "twice.txt")
	link("harmless.txt", ".env.example")
	link("loop-b", "loop-a")
	link("loop-a", "loop-b")
	link(".", "here")
	link("plain", "alias")
	link("nowhere", "dangling")

	denied, notFound := string(tool.ClassPermissionDenied), codeFileNotFound
	for path, code := range map[string]string{
		".env":                              denied,
		"sub/.env.local":                    denied,
		"sub/../sub/./.ENV.local":           denied,
		"deploy/server.KEY":                 denied,
		"keys/id":                           denied,
		"keys":                              denied,
		"innocent.txt":                      denied,
		"twice.txt":                         denied,
		".env.example":                      denied,
		"here/here/here/keys/id":            denied,
		"~/.ssh/id":                         denied,
		"../home/.ssh/id":                   denied,
		"../home/.ssh/missing":              denied, // not a way to learn what is there
		"~/vault/missing":                   denied,
		filepath.Join(p.home, ".ssh", "id"): denied,
		"missing":                           notFound,
		"plain/x":                           notFound,
		"dangling":                          notFound,
		"../nowhere":                        notFound,
		strings.Repeat("../", 200) + "no-such-file": notFound,
		"loop-a":                    codeSymlinkLoop,
		"dir":                       codeIsDirectory,
		".":                         codeIsDirectory,
		"..":                        codeIsDirectory,
		"plain\x00":                 "invalid_arguments",
		strings.Repeat("n", 4000):   codeReadFailed, // too long a name
		"here/here/here/here/plain": "",
		"alias":                     "",
		"../outside/plain":          "",
		"~/../outside/plain":        "",
	} {
		_, f := p.call(t, readFile, object{"path": path})
		got := ""
		if f != nil {
			got = f.ErrorCode()
			if strings.Contains(f.Message, secret) {
				t.Errorf("%.60q: the message holds the secret", path)
			}
		}
		if runtime.GOOS == "windows" && (path == "loop-a" || got == codeReadFailed) {
			continue
		}
		if got != code {
			t.Errorf("%.60q: error code %q, want %q", path, got, code)
		}
	}
	for _, path := range []string{"keys", "../home/.ssh", "deploy/server.KEY"} {
		for _, native := range []string{listDir, search} {
			_, f := p.call(t, native, map[string]any{listDir: object{"path": path}, search: object{"path": path, "query": "T"}}[native])
			if f == nil || f.Class != tool.ClassPermissionDenied || !strings.Contains(f.Message, "sensitive") {
				t.Errorf("%s %q: %v", native, path, f)
			}
		}
	}
}

// TestExchangedAfterTheCheck is the race between looking at a name and using it: the descriptor decides.
func TestExchangedAfterTheCheck(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"home/.ssh/id": secret, "root/plain": "fine\n"})
	name := filepath.Join(p.root, "name")
	point := func(target string) {
		t.Helper()
		os.Remove(name)
		if err := os.Symlink(target, name); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	key := filepath.Join(p.home, ".ssh", "id")
	point(key)
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	point(filepath.Join(p.root, "plain")) // what a check by name would look at now
	if _, err := judge(f, name, p.sensitive, errSensitive); err == nil {
		t.Error("a descriptor of a sensitive file was let through because its name leads elsewhere now")
	}
	if err := os.Remove(key); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	if _, err := judge(f, name, p.sensitive, errSensitive); err == nil {
		t.Error("a descriptor of a removed sensitive file was let through")
	}

	// The same with both sides running.
	if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		other := name + ".new"
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			os.Symlink([]string{key, filepath.Join(p.root, "plain")}[i%2], other)
			os.Rename(other, name)
		}
	}()
	read := 0
	for range 3000 {
		r, f := p.call(t, readFile, object{"path": "name"})
		if f == nil && strings.Contains(r.text(), secret) {
			t.Fatal("the race was won")
		}
		if f == nil {
			read++
		}
	}
	close(stop)
	<-done
	t.Logf("%d of 3000 reads found the harmless file", read)
}

func TestResolvedName(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"root/a": "a", "root/b": "b"})
	info, err := os.Stat(filepath.Join(p.root, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if names, err := resolvedName(info, filepath.Join(p.root, "a")); err != nil || names[0] != filepath.Join(p.root, "a") {
		t.Errorf("%q, %v", names, err)
	}
	for _, other := range []string{"b", "none"} {
		if names, err := resolvedName(info, filepath.Join(p.root, other)); err == nil {
			t.Errorf("%q was taken for a: %q", other, names)
		}
	}
}

func TestSensitiveDirs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state [1]*")
	if err := os.MkdirAll(filepath.Join(dir, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := newSensitivePaths(target.Literal(dir), "")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dir: true, filepath.Join(dir, "journal", "x"): true, dir + "x": false, filepath.Dir(dir): false} {
		if got := s.Match(path); got != want {
			t.Errorf("contain(%q) = %v, want %v", path, got, want)
		}
	}
}

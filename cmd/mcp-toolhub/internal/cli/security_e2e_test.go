//go:build e2e

package cli

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// canaries are secrets that a hub is given, by where they are put. Each is to be found where it belongs and nowhere else.
var canaries = map[string]string{
	"token of the hub":       "canary-hub-token-0123456789",
	"other token of the hub": "canary-other-token-9876543210",
	"header of a":            "canary-header-of-a",
	"key of a":               "canary-key-of-a",
	"header of b":            "canary-header-of-b",
	"header of the redirect": "canary-header-of-redirect",
	"header of the refused":  "canary-header-of-refused",
	"header of the broken":   "canary-header-of-broken",
	"password in a url":      "canary-url-password",
	"query of a url":         "canary-url-query",
	"env of the child":       "canary-env-of-child",
	"env of the quitter":     "canary-env-of-quitter",
	"env of the absent":      "canary-env-of-absent",
	"environment of the hub": "canary-environment-of-hub",
	"cookie of the caller":   "canary-cookie-of-caller",
}

// otherHosts are HTTP servers that do not do as they should: they redirect, refuse or fail, and repeat what they were sent.
func otherHosts(t testing.TB, target string) (redirects, refuses, breaks string) {
	t.Helper()
	serve := func(h http.HandlerFunc) string {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		return srv.URL
	}
	return serve(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
		}), serve(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", "Bearer error_description=\""+r.Header.Get("Authorization")+"\"")
			http.Error(w, "refused: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		}), serve(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "broken: "+r.Header.Get("Authorization"), http.StatusInternalServerError)
		})
}

// TestSecretsStayWhereTheyBelong gives a hub secrets in every place there is for them, uses it, lets it fail, and looks
// for them in all that it sends and writes.
func TestSecretsStayWhereTheyBelong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(canaries["token of the hub"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(dir, "record")
	a, handlerA := fakeHandler(t, upstreamtest.Options{Script: upstreamtest.Script{Modern: true}})
	b, handlerB := fakeHandler(t, upstreamtest.Options{})
	redirects, refuses, breaks := otherHosts(t, b)
	bearer := func(name string) map[string]any { return map[string]any{"Authorization": "Bearer " + canaries[name]} }
	variable := func(entry map[string]any, name, value string) map[string]any {
		entry["env"].(map[string]any)[name] = value
		return entry
	}
	remote := func(url string, headers map[string]any) map[string]any {
		return map[string]any{"type": "http", "url": url, "headers": headers}
	}
	headersOfA := bearer("header of a")
	headersOfA["X-Api-Key"] = canaries["key of a"]
	config := configText(t, map[string]any{
		"a":         remote(a, headersOfA),
		"b":         remote(b, bearer("header of b")),
		"redirects": remote(redirects, bearer("header of the redirect")),
		"refuses":   remote(refuses, bearer("header of the refused")),
		"breaks":    remote(breaks, bearer("header of the broken")),
		"dead": remote("http://user:"+canaries["password in a url"]+"@127.0.0.1:1/mcp?key="+canaries["query of a url"],
			map[string]any{}),
		"child": variable(child(upstreamtest.Script{Record: record,
			Stderr: []string{"started with " + canaries["env of the child"]}}), "SERVICE_TOKEN", canaries["env of the child"]),
		"quits": variable(child(upstreamtest.Script{Behaviours: []upstreamtest.Behaviour{upstreamtest.ExitsAtOnce},
			Stderr: []string{"bad key " + canaries["env of the quitter"]}}), "API_KEY", canaries["env of the quitter"]),
		"absent": map[string]any{"command": "no-such-command-anywhere",
			"env": map[string]any{"PASSWORD": canaries["env of the absent"]}},
	}, map[string]any{"hub": map[string]any{"auth": map[string]any{"tokens": []map[string]any{
		{"name": "ann", "token": "${file:" + token + "}"},
		{"name": "bob", "token": "${env:HUB_TOKEN_OF_BOB}"},
	}}}})
	file := filepath.Join(dir, "hub.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(scratchEnv(dir), "HUB_TOKEN_OF_BOB="+canaries["other token of the hub"],
		"AWS_SECRET_ACCESS_KEY="+canaries["environment of the hub"])
	hub, err := launch(dir, env, "--config", file, "--log-level", "debug")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.stop() })
	authorization := []string{"Authorization", "Bearer " + canaries["token of the hub"]}
	said := useAndMisuse(t, hub, append(authorization, "Cookie", "session="+canaries["cookie of the caller"],
		"X-Api-Key", canaries["cookie of the caller"], "X-Forwarded-For", canaries["cookie of the caller"]))
	_, health := hub.health(t, authorization...)
	checkEnvironment(t, hub.url, authorization)
	if err := hub.stop(); err != nil {
		t.Errorf("the hub ended with %v", err)
	}

	checkCanaries(t, "answers", said)
	checkCanaries(t, "health", health)
	checkCanaries(t, "the log", hub.log())
	checkCanaries(t, "what the child got", readFile(t, record))
	checkCanaries(t, "what a got", requestsText(handlerA), "header of a", "key of a")
	checkCanaries(t, "what b got", requestsText(handlerB), "header of b")
	for _, want := range []struct{ name, text string }{
		{"header of a", requestsText(handlerA)}, {"header of b", requestsText(handlerB)},
	} {
		if !strings.Contains(want.text, canaries[want.name]) {
			t.Errorf("the %s did not arrive", want.name)
		}
	}
	for _, want := range []string{"started with [masked]", "bad key [masked]", "refused the credentials"} {
		if !strings.Contains(hub.log(), want) {
			t.Errorf("the log does not hold %q: secrets were not looked for where they could have been", want)
		}
	}
	checkState(t, filepath.Join(dir, "state"))
}

// useAndMisuse calls what there is, rightly and wrongly, and returns all that the hub has answered.
func useAndMisuse(t *testing.T, hub *runningHub, headers []string) string {
	t.Helper()
	var said strings.Builder
	for _, version := range []string{rev2025, rev2026} {
		w := wireHTTP(t, hub.url+"/mcp", version, headers...).open()
		for _, server := range []string{"a", "b", "child"} {
			for _, r := range []rawRequest{
				w.call("mcp."+server+".echo", `{"k":1}`, `"x":1`), w.call("mcp."+server+".fail", `{"error":{"code":1,"message":"no"}}`, ""),
				w.call("mcp."+server+".nothing", `{}`, ""), w.call("mcp."+server+".echo", `[]`, ""),
				w.call("mcp."+server+".progress", `{"n":2}`, `"progressToken":1`),
			} {
				said.WriteString(strings.Join(w.send(r), "\n"))
			}
		}
		for name, declaration := range w.tools() {
			said.WriteString(name + declaration)
		}
		said.WriteString(strings.Join(w.send(w.call("mcp.child.die", `{}`, "")), "\n"))
	}
	for _, given := range []string{"", "Bearer wrong", "Bearer " + canaries["token of the hub"] + "x"} {
		w := wireHTTP(t, hub.url+"/mcp", rev2026, "Authorization", given)
		status, h, messages := w.post(w.call("mcp.a.echo", `{}`, ""))
		if status != http.StatusUnauthorized {
			t.Errorf("Authorization %q: HTTP %d", given, status)
		}
		_, _ = fmt.Fprint(&said, h, messages)
	}
	return said.String()
}

// checkEnvironment looks into the child's environment: it holds what its entry names and nothing of the hub's own.
func checkEnvironment(t *testing.T, url string, authorization []string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	hub, env := &runningHub{url: url}, ""
	eventually(t, "the child is back", func() bool {
		health, _ := hub.health(t, authorization...)
		for _, st := range health.Servers {
			if st.Server == "child" && st.State == tool.ServerReady {
				data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", st.PID))
				if err == nil { // otherwise it is about to be seen that it is gone
					env = string(data)
				}
			}
		}
		return env != ""
	})
	checkCanaries(t, "the child's environment", env, "env of the child")
	if !strings.Contains(env, "SERVICE_TOKEN="+canaries["env of the child"]) {
		t.Errorf("the child's environment lacks what its entry names: %q", env)
	}
}

// checkCanaries looks for every secret but the allowed ones in text.
func checkCanaries(t *testing.T, where, text string, allowed ...string) {
	t.Helper()
	if text == "" {
		t.Errorf("%s: there is nothing to look at", where)
	}
	for name, secret := range canaries {
		ok := false
		for _, a := range allowed {
			ok = ok || a == name
		}
		if at := strings.Index(text, secret); at >= 0 && !ok {
			t.Errorf("%s: the %s stands in …%s…", where, name, text[max(0, at-200):min(len(text), at+100)])
		}
	}
}

// checkState holds that nobody but this user can look into the state directory, and that no secret is in it.
func checkState(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if mode := info.Mode().Perm(); runtime.GOOS != "windows" && path != dir && mode&0o077 != 0 {
			t.Errorf("%s has the mode %o", path, mode)
		}
		if !d.IsDir() && info.Size() > 0 {
			files++
			checkCanaries(t, path, readFile(t, path))
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files in the state directory: %v", files, err)
	}
}

// requestsText is all that a fake server was sent.
func requestsText(h *upstreamtest.Handler) string {
	var b strings.Builder
	for _, r := range h.Requests() {
		_, _ = fmt.Fprintf(&b, "%s %v\n%s\n", r.Method, r.Header, r.Body)
	}
	return b.String()
}

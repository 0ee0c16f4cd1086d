//go:build e2e

package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// planted are secrets in the entries of servers, by where they stand. Percent-encoding, JSON and base64 change each.
var planted = map[string]string{
	"env": `env/sec+ret"é-91`, "option": `opt/sec+ret"é=92`, "NAME=": `nam/sec+ret"é~93`, "argument's header": `arg/sec+ret"é~94`,
	"argument's address": `url/sec+ret~95`, "header": `hdr/sec+ret"~96`, "user information": `usr/sec+ret"é97`, "query": `qry/sec+ret"é98`,
	"path": `pathsecret0123456789x`, "line of a key": `MIIEvQIBADANBgkqhkiG9w0`,
}

// forms are the ways in which servers write a secret.
func forms(secret string) []string {
	quoted, _ := json.Marshal(secret)
	inner := string(quoted[1 : len(quoted)-1])
	std := base64.StdEncoding.EncodeToString
	return []string{secret, "Bearer " + secret, url.QueryEscape(secret), url.PathEscape(secret), strings.NewReplacer("%2F", "%2f", "%2B", "%2b", "%3D", "%3d", "%C3%A9", "%c3%a9").Replace(url.QueryEscape(secret)), inner,
		strings.ReplaceAll(inner, "/", `\/`), strings.TrimRight(std([]byte(secret)), "="), base64.RawURLEncoding.EncodeToString([]byte(secret))}
}

// carrying is base64 of a text that holds the secret, and the part of it that tells the secret.
func carrying(secret string) (whole, telling string) {
	whole = base64.StdEncoding.EncodeToString([]byte("user:" + secret + "."))
	return whole, whole[8 : len(whole)-4]
}

// repeating is everything planted, in every form, and asunder.
func repeating() string {
	var b strings.Builder
	for _, secret := range planted {
		whole, _ := carrying(secret)
		fmt.Fprintf(&b, "%s Basic %s %s\x1b[31m%s %s\u200b%s ", strings.Join(forms(secret), " "), whole, secret[:7], secret[7:], secret[:5], secret[5:])
	}
	return b.String()
}

// TestSecretsThatServersRepeatAreSeenNowhere: servers of all kinds repeat, in all that they say besides results, the secrets of
// their entries. Nothing that the hub logs, shows, answers by itself or writes holds one, in any form; and however much they
// say, no line of the log is long.
func TestSecretsThatServersRepeatAreSeenNowhere(t *testing.T) {
	t.Parallel()
	all := repeating()
	entries := repeaters(t, all)
	for id, entry := range entries {
		plant(entry)
		entries[id] = entry
	}
	config := configText(t, entries, nil)
	seen := make(map[string]string)
	for _, format := range []string{"json", "text"} {
		dir := t.TempDir()
		w := wireHubIn(t, dir, config, rev2025, "--log-format", format, "--log-level", "debug").open()
		for _, id := range []string{"stdio", "http", "sse"} {
			w.ready("mcp." + id + ".boom")
			for _, name := range map[string][]string{"stdio": {"boom", "large", "junk", "notes", "die"}, "sse": {"boom", "large", "status500", "die"},
				"http": {"boom", "large", "status500", "status400", "page", "elsewhere", "die"}}[id] {
				for _, m := range w.send(w.call("mcp."+id+"."+name, `{}`, `"progressToken":1`)) {
					if strings.Contains(m, "toolhub/invocation") { // otherwise the server's own
						seen[format+" "+id+" "+name] = m
					}
				}
			}
		}
		w.hangUp()
		seen["log "+format] = w.log.String()
		readState(t, dir, seen)
		run := func(args ...string) {
			cmd := exec.Command(hubProgram(t), append(args, "--config", filepath.Join(dir, "hub.json"))...)
			cmd.Dir, cmd.Env = dir, scratchEnv(dir)
			out, _ := cmd.CombinedOutput() // some servers cannot be used: that is what is looked at
			seen[strings.Join(args, " ")] = string(out)
		}
		if format == "text" {
			run("servers")
			run("servers", "-o", "json") // as /health/ready has it
			run("doctor")
			run("tools", "list")
			run("tools", "call", "mcp.stdio.boom")
		}
	}
	for where, text := range seen {
		checkRepeated(t, where, text)
	}
	for _, want := range []string{"server failed", "call failed", "stdout must carry nothing but", "stream"} {
		if !strings.Contains(seen["log json"], want) {
			t.Errorf("the log does not hold %q: secrets were not looked for where they could have been", want)
		}
	}
}

// repeaters are the entries of servers that say all over and over.
func repeaters(t *testing.T, all string) map[string]any {
	quoted, _ := json.Marshal(all)
	script := upstreamtest.Script{Name: all, Instructions: all, Tools: []json.RawMessage{
		[]byte(`{"name":"bad\u0001 ` + string(quoted[1:min(200, len(quoted))]) + `x","inputSchema":{"type":"object"}}`)},
		Says: map[string]string{
			"boom":  `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":` + string(quoted) + `,"data":` + string(quoted) + `}}`,
			"large": `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"$LONG"}}`,
		}}
	for _, name := range []string{"boom", "large", "junk", "notes", "status500", "status400", "page", "elsewhere", "die"} {
		script.Tools = append(script.Tools, upstreamtest.Tool(name))
	}
	remote := upstreamtest.Options{Script: script, Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		w.Header().Set("X-Repeated", "***")
		switch {
		case strings.Contains(string(body), `"status500"`):
			http.Error(w, all, http.StatusInternalServerError)
		case strings.Contains(string(body), `"status400"`):
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":%s}}`, quoted)
		case strings.Contains(string(body), `"page"`):
			w.Header().Set("Content-Type", "text/"+strings.ReplaceAll(planted["path"], " ", ""))
		case strings.Contains(string(body), `"elsewhere"`):
			w.Header().Set("Location", "http://other.example/"+planted["path"]+"/x?"+url.QueryEscape(all[:400]))
			w.WriteHeader(http.StatusTemporaryRedirect)
		default:
			return false
		}
		return true
	}}
	web, _ := fakeHandler(t, remote)
	remote.SSE = true
	sse, _ := fakeHandler(t, remote)
	for line := range strings.FieldsSeq(all) {
		script.Stderr = append(script.Stderr, line)
	}
	cut := strings.Repeat("y", 4096-5)
	script.Stderr = append(script.Stderr, "Error: "+all, cut+planted["env"], strings.Repeat("z", 4096-14)+planted["header"])
	script.Says["junk"] = all + "\n" + strings.Repeat("q", 110) + planted["env"] + "\n" + `{"jsonrpc":"2.0","id":$ID,"error":{"code":1,"message":"no"}}`
	script.Says["notes"] = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1,"message":` + string(quoted) +
		`}}` + "\n" + `{"jsonrpc":"2.0","method":` + string(quoted) + `,"params":{}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":1,"data":` + string(quoted) + `}}` + "\n" +
		`{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}`
	exits := upstreamtest.Script{Behaviours: []upstreamtest.Behaviour{upstreamtest.ExitsAtOnce}, Stderr: script.Stderr[len(script.Stderr)-3:]}
	refuses, _ := fakeHandler(t, upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":%s}}`, quoted)
		return true
	}})
	return map[string]any{"stdio": child(script), "exits": child(exits), "http": map[string]any{"type": "http", "url": web},
		"sse": map[string]any{"type": "sse", "url": sse}, "refuses": map[string]any{"type": "http", "url": refuses},
		"gone": map[string]any{"type": "http", "url": "http://127.0.0.1:1"}}
}

// plant puts the secrets into an entry. Each has all of them that it has places for, and repeats those of others, too: so each
// place is given to every entry that has it.
func plant(entry any) {
	e := entry.(map[string]any)
	if e["url"] == nil {
		env := e["env"].(map[string]any)
		for i, secret := range []string{"header", "user information", "query", "path"} { // they have no place of their own here
			env[fmt.Sprintf("OTHER_TOKEN_%d", i)] = planted[secret]
		}
		env["SERVICE_TOKEN"] = planted["env"]
		env["SIGNING_KEY"] = "-----BEGIN KEY-----\n" + planted["line of a key"] + "\n-----END KEY-----\n"
		e["args"] = []any{"--api-key", planted["option"], "-e", "NAME_TOKEN=" + planted["NAME="], "--header",
			"Authorization: Bearer " + planted["argument's header"], "postgres://u:" + url.QueryEscape(planted["argument's address"]) + "@db.example/x"}
		return
	}
	e["url"] = strings.Replace(e["url"].(string), "://", "://user:"+url.QueryEscape(planted["user information"])+"@", 1) + "/" + planted["path"] +
		"/mcp?key=" + url.QueryEscape(planted["query"])
	headers := map[string]any{"Authorization": "Bearer " + planted["header"]}
	for i, secret := range []string{"env", "option", "NAME=", "argument's header", "argument's address", "line of a key"} {
		headers[fmt.Sprintf("X-Token-%d", i)] = planted[secret]
	}
	e["headers"] = headers
}

func hubProgram(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// readState reads all that a hub has written beneath dir, but for the lists of servers: what clients get of them, byte for byte.
func readState(t *testing.T, dir string, to map[string]string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "state"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(filepath.Dir(path)) != "catalogs" {
			var text []byte
			text, err = os.ReadFile(path)
			to[path] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkRepeated looks for what is planted, in a text of the hub's.
func checkRepeated(t *testing.T, where, text string) {
	t.Helper()
	for name, secret := range planted {
		_, telling := carrying(secret)
		for _, form := range append(forms(secret), telling, secret[:len(secret)-3]) {
			quoted, _ := json.Marshal(form)
			for _, written := range []string{form, string(quoted[1 : len(quoted)-1])} {
				if at := strings.Index(text, written); at >= 0 {
					t.Errorf("%s: the %s stands as %s in …%s…", where, name, written, text[max(0, at-200):min(len(text), at+100)])
				}
			}
		}
	}
	if strings.ContainsAny(text, "\u200b\x1b") && !filepath.IsAbs(where) { // files hold keys, which are any bytes
		t.Errorf("%s: hidden characters", where)
	}
	if !strings.HasPrefix(where, "log") {
		return
	}
	for line := range strings.Lines(text) {
		if len(line) > 16<<10 {
			t.Errorf("%s: a line of %d bytes: %.200s", where, len(line), line)
		}
	}
}

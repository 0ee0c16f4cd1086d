//go:build e2e

package cli

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestKnownSecretsAreSeenNowhere gives servers and a hook secrets under names that tell nothing, and lets them repeat these. The
// client gets a result byte for byte. Log, health, state directory, errors of the hub and bundle have none of them.
func TestKnownSecretsAreSeenNowhere(t *testing.T) {
	t.Parallel()
	known := map[string]string{"stored": `blue "jay" 71`, "read": "magenta", "header": "Basic dTpwYWludDcz", "hook": "ochre-74", "in an address": "umber/75"}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "shape"), known["read"]+"\n")
	all := "I have " + known["stored"] + " and " + known["read"] + ", " + known["header"] + ", " + known["hook"] + " and " + known["in an address"]
	quoted, _ := json.Marshal(all)
	told := `{"content":[{"type":"text","text":` + string(quoted) + `}],"structuredContent":{"colours":[` + string(quoted) + `],"n":1}}`
	painter := child(upstreamtest.Script{Stderr: []string{all}, Results: map[string]json.RawMessage{"raw": json.RawMessage(told)},
		Says: map[string]string{"answer": `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":` + string(quoted) + `}}`}})
	painter["env"].(map[string]any)["COLOUR"], painter["env"].(map[string]any)["SHAPE"] = "${secret:colour}", "${file:shape}"
	quits := child(upstreamtest.Script{Behaviours: []upstreamtest.Behaviour{upstreamtest.ExitsAtOnce}, Stderr: []string{"Error: I have " + known["stored"] + known["read"] + known["in an address"]}})
	quits["env"].(map[string]any)["COLOUR"], quits["args"] = "${secret:colour}", []string{"postgres://u:${secret:umber}@db/x", "${file:shape}"}
	web, _ := fakeHandler(t, upstreamtest.Options{Script: upstreamtest.Script{Results: map[string]json.RawMessage{"raw": json.RawMessage(told)}}})
	writeFile(t, filepath.Join(dir, "hub.json"), configText(t, map[string]any{"s": painter, "quits": quits,
		"web": map[string]any{"type": "http", "url": web, "headers": map[string]any{"X-Paint": known["header"]}}},
		map[string]any{"hooks": []map[string]any{{"event": "pre_tool_use", "match": "mcp.s.echo", "env": []string{"HOOK_TOKEN"},
			"shell": `echo "not with $HOOK_TOKEN" >&2; exit 2`}}}))
	env := append(scratchEnv(dir), "HOOK_TOKEN="+known["hook"])
	for name, secret := range map[string]string{"colour": known["stored"], "umber": known["in an address"]} {
		set := exec.CommandContext(t.Context(), hubProgram(t), "secrets", "set", name)
		set.Dir, set.Env, set.Stdin = dir, env, strings.NewReader(secret)
		if out, err := set.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	hub, err := launch(dir, env, "--config", filepath.Join(dir, "hub.json"), "--log-level", "debug")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.stop() })
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	for _, server := range []string{"s", "web"} {
		if got := w.result("mcp."+server+".raw", `{"colour":`+string(quoted)+`}`, ""); !strings.HasPrefix(got, strings.TrimSuffix(told, "}")) {
			t.Errorf("%s: the client got %s\nwant %s", server, got, told)
		}
	}
	w.send(w.call("mcp.s.answer", `{}`, "")) // a server's own error is its client's, as it is
	seen := map[string]string{"an error of the hub": strings.Join(w.send(w.call("mcp.s.echo", `{}`, "")), "\n")}
	_, seen["health"] = hub.health(t)
	seen["the list of calls"] = hub.command(t, "journal", "--config", "hub.json")
	hub.command(t, "doctor", "--bundle", "report.txt", "--config", "hub.json")
	seen["the bundle"] = readFile(t, filepath.Join(dir, "report.txt"))
	if err := hub.stop(); err != nil {
		t.Errorf("the hub ended with %v", err)
	}
	seen["log"] = hub.log()
	readState(t, dir, seen)
	for where, text := range seen {
		for name, secret := range known {
			form, _ := json.Marshal(secret)
			for _, written := range []string{secret, string(form[1 : len(form)-1])} {
				if at := strings.Index(text, written); at >= 0 && !strings.HasSuffix(where, "config.json") {
					t.Errorf("%s: the secret %s is in …%s…", where, name, text[max(0, at-200):min(len(text), at+100)])
				}
			}
		}
	}
	for where, want := range map[string]string{"an error of the hub": "not with [", "health": "Error: I have [masked][masked]", "log": "I have [masked]", "the list of calls": "I have [masked:"} {
		if !strings.Contains(seen[where], want) {
			t.Errorf("%s does not hold %q: secrets were not looked for where they could have been: %.3000s", where, want, seen[where])
		}
	}
}

//go:build e2e

package cli

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestCommandOutputBecomesAnArtifact has code.run_command print more than its answer keeps: all of it can be read, by its caller alone,
// until it expires, and the records name it.
func TestCommandOutputBecomesAnArtifact(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	h := startHubIn(t, tokensOfTwo, "hub.json", commandHub(""), "--state-dir", state)
	var all []link
	for i, version := range []string{rev2025, rev2026} {
		ann := wireHTTP(t, h.url+"/mcp", version, headerOf("ann")...).open()
		bob := wireHTTP(t, h.url+"/mcp", version, headerOf("bob")...).open()
		run := func(argv string) (link, string) {
			response := last(ann.send(ann.call("code.run_command", `{"argv":[`+argv+`]}`, "")))
			links, said := linksOf(t, response)
			if len(links) != 1 || !strings.Contains(said, " is stored, ") || !strings.Contains(said, `read on with result_read and {"id":"`+string(links[0].id())+`"}`) {
				t.Fatalf("%s: %d links, %q in %.3000s", argv, len(links), said, response)
			}
			all = append(all, links[0])
			return links[0], said
		}
		part := func(w *wire, arguments string) string { return last(w.send(w.call("result_read", arguments, ""))) }

		want := lines(30_000 + i)
		out, said := run(fmt.Sprintf(`"sh","-c","seq 1 %d; exit 3"`, 30_000+i))
		if out.Name != "sh.stdout" || out.MimeType != "text/plain; charset=utf-8" || out.Size != len(want) || out.Meta["toolhub/sha256"] != tool.Digest([]byte(want)) ||
			!strings.HasPrefix(said, fmt.Sprintf("sh.stdout is stored, all of its %d bytes: ", len(want))) {
			t.Errorf("%s: %+v, %q", version, out, said)
		}
		if got := resourceText(t, last(ann.send(ann.readStored(out.URI)))); got != want {
			t.Errorf("%s: read %d bytes of %d", version, len(got), len(want))
		}
		for arguments, want := range map[string]string{`"lines":"1500-1501"`: `1500\n1501\n`, `"bytes":"5000-5009"`: want[5000:5010], `"grep":"^29.9$"`: "2989", `"grep":".","count":true`: fmt.Sprintf(`matching_lines\":%d`, 30_000+i)} {
			want = strings.ReplaceAll(want, "\n", `\n`)
			if got := part(ann, `{"id":"`+string(out.id())+`",`+arguments+`}`); !strings.Contains(got, want) || strings.Contains(got, `"isError":true`) {
				t.Errorf("%s: %s is %.2000s, want %q", version, arguments, got, want)
			}
		}
		if got := last(bob.send(bob.readStored(out.URI))) + part(bob, `{"id":"`+string(out.id())+`"}`); strings.Contains(got, "1500") ||
			!strings.Contains(got, "is not found") || !strings.Contains(got, "unknown_result") {
			t.Errorf("%s: bob got %.2000s", version, got)
		}

		zeros, _ := run(`"head","-c","200000","/dev/zero"`)
		var m struct {
			Result struct{ Contents []struct{ Blob string } }
		}
		mustDecode(t, last(ann.send(ann.readStored(zeros.URI))), &m)
		if raw, err := base64.StdEncoding.DecodeString(m.Result.Contents[0].Blob); err != nil || string(raw) != strings.Repeat("\x00", 200_000) ||
			zeros.MimeType != "application/octet-stream" || zeros.Name != "head.stdout" {
			t.Errorf("%s: %d bytes, %v of %+v", version, len(raw), err, zeros)
		}
		if i > 0 {
			continue // it costs
		}
		want = lines(500_000)
		large, said := run(`"seq","1","500000"`)
		if large.Size != len(want) || large.Meta["toolhub/sha256"] != tool.Digest([]byte(want)) || !strings.Contains(said, fmt.Sprintf("all of its %d bytes: ", len(want))) {
			t.Errorf("of %d bytes: %+v, %q", len(want), large, said)
		}
		if got := resourceText(t, last(ann.send(ann.readStored(large.URI)))); got != want {
			t.Errorf("read %d bytes of %d", len(got), len(want))
		}
		if got := part(ann, `{"id":"`+string(large.id())+`","bytes":"3000000-3000049"}`); !strings.Contains(got, quoted(want[3_000_000:3_000_050])) {
			t.Errorf("%.1000s", got)
		}
		whole := lines(900_000)
		large, said = run(`"seq","1","900000"`)
		const half = 2 << 20
		want = whole[:half] + fmt.Sprintf("\n[… %d bytes left out …]\n", len(whole)-2*half) + whole[len(whole)-half:]
		if large.Size != len(want) || large.Meta["toolhub/sha256"] != tool.Digest([]byte(want)) || large.MimeType != "text/plain; charset=utf-8" ||
			!strings.Contains(said, fmt.Sprintf(", %d of its %d bytes, from its beginning and its end: ", 2*half, len(whole))) {
			t.Errorf("%+v, %q", large, said)
		}
	}
	w := wireHTTP(t, h.url+"/mcp", rev2025, headerOf("ann")...).open()
	if links, said := linksOf(t, last(w.send(w.call("code.run_command", `{"argv":["seq","1","200"]}`, "")))); len(links) > 0 || said != "" {
		t.Errorf("the answer has all of an output, and yet %+v, %q", links, said)
	}
	for range 2 {
		links, _ := linksOf(t, last(w.send(w.call("code.run_command", `{"argv":["sh","-c","seq 1 30001"]}`, ""))))
		all = append(all, links...)
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}

	said, versions := statedIn(t, state), ""
	for _, l := range all {
		id := tool.InvocationOf(l.id())
		result, invocation, decisions := said.results[id], said.invocations[id], said.decisions[id]
		if len(result) != 1 || len(invocation) != 1 || len(decisions) != 1 || decisions[0].Persisted == nil {
			t.Fatalf("%s: %+v, %+v, %+v", l.Name, result, invocation, decisions)
		}
		ref := result[0]
		if ref != invocation[0] || ref != *decisions[0].Persisted || ref.URI != l.URI || ref.ArtifactID != l.id() || ref.Name != l.Name || ref.MediaType != l.MimeType ||
			int(ref.Size) != l.Size || ref.SHA256 != l.Meta["toolhub/sha256"] || decisions[0].Strategy != tool.StrategyRefOnly {
			t.Errorf("%+v is %+v, %+v", l, ref, decisions[0])
		}
		versions += fmt.Sprintf("%s %d, ", ref.Name, ref.Version)
	}
	if want := "sh.stdout 1, head.stdout 1, seq.stdout 1, seq.stdout 2, sh.stdout 2, head.stdout 1, sh.stdout 2, sh.stdout 2, "; versions != want {
		t.Errorf("versions are %s, want %s", versions, want)
	}

	// After 40 days it is gone.
	file := filepath.Join(state, "results", "index", string(all[0].id())+".json")
	old := time.Now().Add(-40 * 24 * time.Hour).UTC().Format(time.RFC3339)
	writeFile(t, file, createdAt.ReplaceAllString(readFile(t, file), `"created_at":"`+old+`"`))
	h = startHubIn(t, tokensOfTwo, "hub.json", commandHub(""), "--state-dir", state)
	if err := h.waitFor(regexp.MustCompile("a stored result has expired.*" + regexp.QuoteMeta(string(all[0].id())))); err != nil {
		t.Fatal(err)
	}
	w = wireHTTP(t, h.url+"/mcp", rev2025, headerOf("ann")...).open()
	if got := last(w.send(w.readStored(all[0].URI))); !strings.Contains(got, "result_expired") {
		t.Errorf("%.1000s", got)
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	decisions := statedIn(t, state).decisions[tool.InvocationOf(all[0].id())]
	if d := decisions[len(decisions)-1]; len(decisions) != 2 || d.Strategy != tool.StrategyDropWithReason || d.Persisted == nil || d.Persisted.Name != "sh.stdout" ||
		d.Reason != "results are kept for 30 days" {
		t.Errorf("%+v", decisions)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestWhatAResultNamesIsTakenIn has a server answer with links to its resources and with files: those that the rule has are stored, the
// result passes byte for byte, and the record says of each of the others why it is not stored.
func TestWhatAResultNamesIsTakenIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, state := filepath.Join(dir, "out"), filepath.Join(dir, "state")
	if err := os.MkdirAll(filepath.Join(root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(root, name) }
	writeFile(t, in("a.txt"), "first")
	writeFile(t, in("sub/b.json"), `{"b":1}`)
	writeFile(t, in(".env"), "TOKEN=secret")
	writeFile(t, in("big"), "")
	if err := errors.Join(os.Truncate(in("big"), 16<<20+1), os.Symlink("a.txt", in("inner")), os.Symlink("../secret", in("way out")),
		os.Symlink(".env", in("harmless")), os.Symlink(dir, in("up"))); err != nil {
		t.Skip(err) // some systems have no links
	}
	writeFile(t, filepath.Join(dir, "secret"), "not to be read")

	script := upstreamtest.Script{Features: upstreamtest.Features{Resources: []json.RawMessage{}}, Results: map[string]json.RawMessage{
		"memo://a":       json.RawMessage(`{"contents":[{"uri":"memo://a","text":"ä memo"}]}`),
		"memo://two":     json.RawMessage(`{"contents":[{"uri":"memo://two/1","mimeType":"text/x-one","text":"1"},{"uri":"memo://two/2","blob":"AAEC"}]}`),
		"memo://refused": json.RawMessage(`{"code":-32002,"message":"no such memo"}`),
		"memo://broken":  json.RawMessage(`{"contents":[{"uri":"memo://broken","blob":"?"}]}`),
	}}
	links, named := []string{"memo://a", "memo://two", "memo://none", "memo://refused", "memo://broken", fileURI(in("a.txt")), fileURI(in("way out"))},
		[]string{in("sub/b.json"), in("inner"), in("harmless"), in(".env"), in("big"), in("sub"), in("none"), in("up/secret"), in("../secret")}
	var content, structured []string
	for _, l := range links {
		content = append(content, `{"type":"resource_link","name":"x","uri":"`+l+`"}`)
	}
	for i, n := range named {
		uri := "file://" + n // as they are written, with what leads out
		structured = append(structured, fmt.Sprintf(`"f%d":"%s"`, i, strings.ReplaceAll(uri, "/", `\/`)))
	}
	result := fmt.Sprintf(`{"x": 1.50,"content":[%s],"structuredContent":{%s}}`, strings.Join(content, ","), strings.Join(structured, ","))
	server, files := encoded(t, child(script)), `"files":["`+root+`"]`
	h := startHubIn(t, nil, "hub.json", fmt.Sprintf(`{"mcpServers":{"s":%[1]s,"files":%[1]s,"resources":%[1]s,"denied":%[1]s},"policy":{"mode":"accept_all",
 "rules":[{"id":"no","match":"mcp.denied.resources/read","then":"deny"}]},"profiles":{"small":{"results":{"max_inline_tokens":250}}},
 "results":{"tools":[{"match":"mcp.s.raw","artifacts":{"resources":true,%[2]s}},{"match":"mcp.files.raw","artifacts":{%[2]s}},
  {"match":"mcp.*.raw","artifacts":{"resources":true}}]}}`, server, files), "--state-dir", state)
	open := func(path, version string) *wire {
		w := wireHTTP(t, h.url+path, version).open()
		w.awaitTools("mcp.s.raw", "mcp.files.raw", "mcp.resources.raw", "mcp.denied.raw")
		return w
	}
	call := func(w *wire, name string) (map[string]tool.PersistedRef, string) {
		return refsIn(t, w.result(name, `{"result":`+result+`}`, ""))
	}
	want := map[string]struct{ text, mediaType string }{
		"memo://a": {"ä memo", "text/plain; charset=utf-8"}, "memo://two/1": {"1", "text/x-one"}, "memo://two/2": {"\x00\x01\x02", "application/octet-stream"},
		fileURI(in("a.txt")): {"first", "text/plain; charset=utf-8"}, "file://" + in("sub/b.json"): {`{"b":1}`, "application/json"},
		"file://" + in("inner"): {"first", "text/plain; charset=utf-8"},
	}
	for i, version := range []string{rev2025, rev2026} {
		w := open("/mcp", version)
		refs, rest := call(w, "mcp.s.raw")
		if !strings.HasPrefix(rest, strings.TrimSuffix(result, "}")) {
			t.Errorf("%s: the result is %s, and was %s", version, rest, result)
		}
		for name, want := range want {
			ref := refs[name]
			if ref.SHA256 != tool.Digest([]byte(want.text)) || ref.MediaType != want.mediaType || int(ref.Size) != len(want.text) || ref.Version == 0 {
				t.Errorf("%s: %s is %+v", version, name, ref)
				continue
			}
			got := last(w.send(w.readStored(ref.URI)))
			if want.text == "\x00\x01\x02" {
				got = strings.ReplaceAll(got, `"blob":"AAEC"`, `"text":"\u0000\u0001\u0002"`)
			}
			if text := resourceText(t, got); text != want.text {
				t.Errorf("%s: %s reads %q", version, name, text)
			}
		}
		if len(refs) != len(want) {
			t.Errorf("%s: %v", version, refs)
		}
		if i == 0 { // later, and other bytes
			writeFile(t, in("a.txt"), "second")
			if refs, _ := call(w, "mcp.s.raw"); refs[fileURI(in("a.txt"))].Version != 2 || refs["memo://a"].Version != 1 {
				t.Errorf("after a change: %+v", refs)
			}
			writeFile(t, in("a.txt"), "first")
		}
	}
	for server, count := range map[string]int{"files": 3, "resources": 3} {
		if refs, _ := call(open("/mcp", rev2025), "mcp."+server+".raw"); len(refs) != count {
			t.Errorf("%s: %v", server, refs)
		}
	}
	w := open("/mcp/p/small", rev2026)
	cut := w.result("mcp.files.raw", `{"result":`+result+`}`, "")
	refs, rest := refsIn(t, cut)
	if len(refs) != 3 || !strings.Contains(rest, "This is a part of the result") {
		t.Errorf("where results are cut: %v, %s", refs, rest)
	}
	if got := w.result("result_read", `{"id":"`+string(refs[fileURI(in("a.txt"))].ArtifactID)+`"}`, ""); !strings.Contains(got, `"text":"first"`) {
		t.Errorf("result_read: %s", got)
	}
	if refs, _ := call(open("/mcp", rev2026), "mcp.denied.raw"); len(refs) > 0 {
		t.Errorf("a rule denies resources/read, and yet %v", refs)
	}
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}

	p := &profiled{t, nil, state, ""}
	p.says("mcp.s.raw", "supports_artifacts", true)
	said, reasons := statedIn(t, state), make(map[string][]string)
	whyNot := regexp.MustCompile(`^the artifact "(.*)" is not stored: (.*)$`)
	for _, decisions := range said.decisions {
		for _, d := range decisions {
			if d.Persisted != nil {
				continue
			}
			m := whyNot.FindStringSubmatch(d.Reason)
			if m == nil || d.Strategy != tool.StrategyDropWithReason {
				t.Errorf("%+v", d)
				continue
			}
			reasons[m[1]] = append(reasons[m[1]], m[2])
		}
	}
	for name, part := range map[string]string{"memo://none": "no contents", "memo://refused": "no such memo", "memo://broken": "base64",
		fileURI(in("way out")): "outside the allowed directories", "file://" + in("up/secret"): fmt.Sprintf("leads out of %q: list the directory", root),
		"file://" + in("../secret"): "below none of the directories",
		"file://" + in("harmless"):  "sensitive", "file://" + in(".env"): "sensitive", "file://" + in("big"): "larger than 16 MiB", "file://" + in("sub"): "no regular file",
		"file://" + in("none"): "no such file", "memo://a": "policy does not allow", fileURI(filepath.Join(dir, "secret")): "more than 16"} {
		if got := reasons[name]; !slices.ContainsFunc(got, func(r string) bool { return strings.Contains(r, part) }) {
			t.Errorf("%s is not stored because %q, want %q", name, got, part)
		}
	}
}

func (l link) id() tool.ResultID { return tool.ResultID(strings.TrimPrefix(l.URI, tool.ResultURI(""))) }

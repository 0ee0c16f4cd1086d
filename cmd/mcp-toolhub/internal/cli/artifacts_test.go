package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// commandHub is a config with code.run_command, whose answers are never cut once more, and callers ann and bob over HTTP.
func commandHub(more string) string {
	config := strings.Replace(demoHub(`,"results":{"max_inline_tokens":1000000}`+more), `"hub":{`,
		`"hub":{"toolsets":{"code":{"root":".","run_command":{}}},`, 1)
	return strings.Replace(config, `{"demo":{"command":"mcp-toolhub","args":["demo-server"]}}`, `{}`, 1)
}

// link is a content block that links to an artifact.
type link struct {
	Type, Text, URI, Name, Description, MimeType string
	Size                                         int
	Meta                                         map[string]any `json:"_meta"`
}

// linksOf returns the links of a response, and the texts that the hub has added.
func linksOf(t *testing.T, response string) (links []link, said string) {
	t.Helper()
	var m struct{ Result struct{ Content []link } }
	mustDecode(t, response, &m)
	for _, c := range m.Result.Content {
		if c.Type == "resource_link" {
			links = append(links, c)
		} else if c.Meta["toolhub/preview"] == true {
			said += c.Text + "\n"
		}
	}
	return links, said
}

// lines are the numbers from 1 to n, as seq prints them.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// stated is what the journal says of artifacts: the references of results and invocations by the invocation, and the decisions.
type stated struct {
	results, invocations map[tool.InvocationID][]tool.PersistedRef
	decisions            map[tool.InvocationID][]tool.ResultPersistenceRecord
}

func statedIn(t *testing.T, state string) stated {
	t.Helper()
	s := stated{make(map[tool.InvocationID][]tool.PersistedRef), make(map[tool.InvocationID][]tool.PersistedRef),
		make(map[tool.InvocationID][]tool.ResultPersistenceRecord)}
	err := persist.Read(filepath.Join(state, "journal"), func(object json.RawMessage) bool {
		var r struct {
			Object    tool.Object
			ID        tool.InvocationID   `json:"invocation_id"`
			EndedAt   *time.Time          `json:"ended_at"`
			Artifacts []tool.PersistedRef `json:"artifact_refs"`
		}
		mustDecode(t, string(object), &r)
		switch {
		case r.Object == tool.ObjectResult:
			s.results[r.ID] = r.Artifacts
		case r.Object == tool.ObjectInvocation && r.EndedAt != nil:
			s.invocations[r.ID] = r.Artifacts
		case r.Object == tool.ObjectResultPersistence:
			var d tool.ResultPersistenceRecord
			mustDecode(t, string(object), &d)
			s.decisions[r.ID] = append(s.decisions[r.ID], d)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestArtifactsThatAreNotStored has a file stand where results are stored, hooks that take a result away or change it, and a rule that
// nothing is kept: each call has its answer, and nothing says that the rest is stored.
func TestArtifactsThatAreNotStored(t *testing.T) {
	t.Parallel()
	const seq = `{"argv":["seq","1","30000"]}`
	run := func(t *testing.T, h *runningHub, path string) (links []link, said, whole string) {
		w := wireHTTP(t, h.url+path, rev2025, headerOf("ann")...).open()
		whole = last(w.send(w.call("code.run_command", seq, "")))
		links, said = linksOf(t, whole)
		return links, said, whole
	}
	decided := func(t *testing.T, state string) (all []tool.ResultPersistenceRecord) {
		said := statedIn(t, state)
		for id, refs := range said.results {
			if len(refs) > 0 || len(said.invocations[id]) > 0 {
				t.Errorf("%s has artifacts: %+v", id, refs)
			}
			all = append(all, said.decisions[id]...)
		}
		return all
	}
	t.Run("the disk", func(t *testing.T) {
		t.Parallel()
		state := t.TempDir()
		writeFile(t, filepath.Join(state, "results"), "")
		h := startHubIn(t, tokensOfTwo, "hub.json", commandHub(""), "--state-dir", state)
		links, said, whole := run(t, h, "/mcp")
		if len(links) > 0 || said != "seq.stdout could not be stored.\n" || !strings.Contains(whole, `"status":"succeeded"`) || !strings.Contains(whole, `exit code 0 after`) {
			t.Errorf("%+v, %q: %.3000s", links, said, whole)
		}
		if health, text := h.health(t, headerOf("ann")...); health.Status != "degraded" || !strings.Contains(text, "it could not be stored") {
			t.Errorf("health is %s", text)
		}
		if err := h.stop(); err != nil {
			t.Fatal(err)
		}
		if all := decided(t, state); len(all) != 1 || all[0].Strategy != tool.StrategyDropWithReason || all[0].OriginalSize != len(lines(30_000)) ||
			!strings.HasPrefix(all[0].Reason, `the artifact "seq.stdout" could not be stored: store a result: `) {
			t.Errorf("%+v", all)
		}
	})
	t.Run("hooks and rules", func(t *testing.T) {
		t.Parallel()
		state := t.TempDir()
		h := startHubIn(t, tokensOfTwo, "hub.json", commandHub(`,"profiles":{"stops":{},"changes":{},"hides":{},
 "never":{"results":{"strategy":"never_persist"}}},"hooks":[
 {"profile":"stops","event":"post_tool_use","shell":"echo '{\"continue\":false,\"stopReason\":\"no\"}'"},
 {"profile":"changes","event":"post_tool_use","redact":["2999"]},
 {"profile":"hides","event":"result_persistence","redact":["2999"]}]`), "--state-dir", state)
		for _, profile := range []string{"stops", "changes", "hides", "never"} {
			links, said, whole := run(t, h, "/mcp/p/"+profile)
			if len(links) > 0 || strings.Contains(said, "stored") || strings.Contains(whole, "2999") == (profile == "stops" || profile == "changes") {
				t.Errorf("%s: %+v, %q: %.3000s", profile, links, said, whole)
			}
		}
		if err := h.stop(); err != nil {
			t.Fatal(err)
		}
		reasons := map[string]int{}
		for _, d := range decided(t, state) {
			reasons[string(d.Strategy)+d.Reason]++
		}
		if len(reasons) != 2 || reasons[`drop_with_reasonthe artifact "seq.stdout" is not stored: the caller does not get the result as the tool has made it`] != 3 ||
			reasons["never_persist"] != 1 {
			t.Errorf("the journal says %v", reasons)
		}
		if _, err := os.Stat(filepath.Join(state, "results")); err == nil {
			t.Error("something is stored")
		}
	})
}

// refsIn are the artifacts that _meta of a result names, and the rest of the result without _meta.
func refsIn(t *testing.T, result string) (refs map[string]tool.PersistedRef, rest string) {
	t.Helper()
	var m struct {
		Meta struct {
			Invocation struct {
				Artifacts []tool.PersistedRef `json:"artifact_refs"`
			} `json:"toolhub/invocation"`
		} `json:"_meta"`
	}
	mustDecode(t, result, &m)
	refs = make(map[string]tool.PersistedRef)
	for _, a := range m.Meta.Invocation.Artifacts {
		refs[a.Name] = a
	}
	bare, _, err := rawjson.Delete([]byte(result), "_meta")
	if err != nil {
		t.Fatal(err)
	}
	return refs, string(bare)
}

// fileURI is the URI of a file.
func fileURI(path string) string {
	return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(path), "/")}).String()
}

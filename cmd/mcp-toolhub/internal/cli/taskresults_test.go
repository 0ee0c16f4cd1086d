package cli

import (
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// followed is a hub with a server that makes tasks, and a client that follows them.
type followed struct {
	*taskClient
	hub                *runningHub
	dir, config, state string
}

// follow starts the hub with more in its config, and more in the declaration of the tool that becomes a task.
func follow(t *testing.T, version, declared string, more, entry map[string]any) *followed {
	t.Helper()
	f := &followed{dir: t.TempDir()}
	f.state, f.config = filepath.Join(f.dir, "state"), filepath.Join(f.dir, "hub.json")
	script := taskScript(version == rev2026)
	script.Tools[0] = json.RawMessage(strings.TrimSuffix(string(script.Tools[0]), "}") + declared + "}")
	script.Features.Resources = []json.RawMessage{}
	script.Results = map[string]json.RawMessage{"memo://a": json.RawMessage(`{"contents":[{"uri":"memo://a","mimeType":"text/x-memo","text":"a memo"}]}`)}
	server := child(script)
	maps.Copy(server, entry)
	f.hub = startHubIn(t, nil, "hub.json", configText(t, map[string]any{"far": server}, more), "--state-dir", f.state)
	w := wireHTTP(t, f.hub.url+"/mcp", version)
	w.can = map[bool]string{false: everyCapability, true: followsTasks}[version == rev2026]
	w.open()
	f.taskClient = newTaskClient(t, w, "mcp.far.").stand()
	return f
}

// task makes a task with that result, has it end, and returns what says so: the result as each way to it gives it, asked twice.
func (f *followed) task(result string) (all []string) {
	f.t.Helper()
	as, method := `"task":{}`, "tasks/result"
	if f.w.modern() {
		as, method = "", "tasks/get"
	}
	id := taskID(f.t, f.do(f.tool("task", `{"text":"","result":`+result+`}`, as, "")))
	if f.w.modern() {
		f.notes = f.w.listen(f.w.newRequest(f.request("subscriptions/listen", "", `"notifications":{"taskIds":[`+quoted(id)+`]}`, "")))
		f.note("acknowledged")
	}
	f.do(f.tool("finish", `{"task":`+quoted(id)+`}`, "", ""))
	if f.w.modern() {
		params, _ := memberOf(f.t, f.note(`"notifications/tasks"`, `"completed"`), "params")
		all = append(all, params)
	}
	for range 2 {
		answer, _ := memberOf(f.t, f.do(f.about(method, id)), "result")
		all = append(all, answer)
	}
	for i := range all {
		if f.w.modern() {
			all[i], _ = memberOf(f.t, all[i], "result")
		}
		if all[i] != all[0] {
			f.t.Errorf("asked again, the hub gives %s, and before %s", all[i], all[0])
		}
	}
	return all
}

// results stops the hub, and returns the results of tasks that the journal has, with its lines of them.
func (f *followed) results() (all []tool.Result, lines []string) {
	f.t.Helper()
	if err := f.hub.stop(); err != nil {
		f.t.Fatal(err)
	}
	dir := filepath.Join(f.state, "journal")
	checkRecords(f.t, dir, -1)
	ids := make(map[string]bool)
	err := persist.Read(dir, func(object json.RawMessage) bool {
		var r tool.Result
		mustDecode(f.t, string(object), &r)
		for _, name := range []string{"event_id", "decision_id", "hook_id"} {
			if id, ok := memberOf(f.t, string(object), name); ok && (name == "event_id") == (r.Object == tool.ObjectEvent) && r.Object != tool.ObjectInvocation {
				if ids[id] {
					f.t.Errorf("two records have the id %s", id)
				}
				ids[id] = true
			}
		}
		if r.Object == tool.ObjectTaskResult {
			all = append(all, r)
		}
		return true
	})
	if err != nil {
		f.t.Fatal(err)
	}
	_ = persist.NewLines(dir, "", make(map[string]int64), func(line json.RawMessage) bool {
		if strings.HasPrefix(string(line), `{"object":"task_record"`) {
			lines = append(lines, string(line))
		}
		return true
	})
	return all, lines
}

// program runs the program on the stopped hub's state.
func (f *followed) program(args ...string) string {
	f.t.Helper()
	writeFile(f.t, f.config, `{}`)
	cmd := exec.Command("mcp-toolhub", append(args, "--config", f.config, "--state-dir", f.state)...)
	cmd.Dir, cmd.Env, cmd.Stderr = f.dir, scratchEnv(f.dir), f.t.Output()
	out, err := cmd.Output()
	if err != nil {
		f.t.Errorf("%q: %v", args, err)
	}
	return string(out)
}

// TestWhatTheResultOfATaskNamesIsTakenIn has the result of a task name a resource and a file: both become artifacts of the call, once,
// and whoever looks the call up finds them.
func TestWhatTheResultOfATaskNamesIsTakenIn(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			file := filepath.Join(root, "report.txt")
			writeFile(t, file, "a report")
			f := follow(t, version, "", map[string]any{"results": map[string]any{"tools": []any{
				map[string]any{"match": "mcp.far.*", "artifacts": map[string]any{"resources": true, "files": []string{root}}}}}}, nil)
			content := `"content":[{"type":"resource_link","name":"x","uri":"memo://a"},{"type":"text","text":"see ` + fileURI(file) + `"}]`
			got := f.task(`{"x": 1.50,` + content + `}`)[0]
			refs, rest := refsIn(t, got)
			if !strings.HasPrefix(rest, `{"x": 1.50,`+content) {
				t.Errorf("the result is %s", rest)
			}
			for name, want := range map[string][2]string{"memo://a": {"a memo", "text/x-memo"}, fileURI(file): {"a report", "text/plain; charset=utf-8"}} {
				ref := refs[name]
				if ref.SHA256 != tool.Digest([]byte(want[0])) || ref.MediaType != want[1] || ref.Version != 1 {
					t.Errorf("%s is %+v", name, ref)
				} else if text := resourceText(t, last(f.w.send(f.w.readStored(ref.URI)))); text != want[0] {
					t.Errorf("%s reads %q", name, text)
				}
			}
			f.task(`{"content":[]}`)
			all, lines := f.results()
			if len(all) != 2 || len(all[0].Artifacts) != 2 || len(all[0].Persistence) != 2 || !strings.Contains(string(all[0].Content), "memo://a") ||
				all[1].Output != tool.OutputEmpty || all[0].Status != tool.StatusSucceeded {
				t.Errorf("the journal has %+v", all)
			}
			if len(lines) != 2 || !strings.Contains(lines[0], `"task_id":"task-1"`) || strings.Contains(lines[0], "model_input") {
				t.Errorf("the lines are %s", lines)
			}
			if found := f.program("calls", "list", "--text", "report", "-o", "json"); !strings.Contains(found, string(all[0].InvocationID)) {
				t.Errorf("report is not found: %s", found)
			}
			story := f.program("calls", "show", string(all[0].InvocationID))
			for _, part := range []string{`(?m)^result +yielded$`, `ms  artifact +ref_only`, `ms  task result +succeeded`, `(?m)^task result +succeeded$`,
				`(?m)^artifact +memo://a  version 1  text/x-memo  6 bytes`} {
				if !regexp.MustCompile(part).MatchString(story) {
					t.Errorf("no %s in\n%s", part, story)
				}
			}
			bundle := filepath.Join(f.dir, "bundle.tar.gz")
			f.program("calls", "export", "--format", "evidence", "--output", bundle, "--without", "model_input,result")
			if out, err := exec.Command("mcp-toolhub", "evidence", "verify", bundle).CombinedOutput(); err != nil || !strings.Contains(string(out), "values were left out") {
				t.Errorf("%v: %s", err, out)
			}
			if text, err := exec.Command("tar", "-xzOf", bundle).Output(); err == nil && strings.Contains(string(text), "report.txt") && strings.Contains(string(text), `"see `) {
				t.Error("the bundle has the result that was left out")
			}
		})
	}
}

//go:build e2e

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// npmProgram is a program of the published servers.
func npmProgram(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv(npmDir)
	if dir == "" {
		t.Skip(npmDir + " names no directory with the published servers")
	}
	path, err := filepath.Abs(filepath.Join(dir, "node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// tellsRoots answers the next n questions for roots, which belong to no request of the client. It fails for any other message.
func (w *wire) tellsRoots(n int, roots string) {
	w.t.Helper()
	for n > 0 {
		m := w.next()
		id, isRequest := memberOf(w.t, m, "id")
		switch {
		case strings.Contains(m, `list_changed"`):
		case isRequest && strings.Contains(m, `"method":"roots/list"`):
			w.write(`{"jsonrpc":"2.0","id":` + id + `,"result":` + roots + `}`)
			n--
		default:
			w.t.Fatalf("got %s, and not a question for roots", m)
		}
	}
}

// toolsOf are the names of the tools over stdio that begin with prefix, without it.
func (w *wire) toolsOf(prefix string) (names []string) {
	w.t.Helper()
	w.write(rawRequest{id: w.nextID(), method: "tools/list", params: w.params("", "")}.text())
	answer := w.next()
	for !strings.Contains(answer, `"tools":[`) {
		answer = w.next()
	}
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	mustDecode(w.t, answer, &list)
	for _, tool := range list.Result.Tools {
		if name, ok := strings.CutPrefix(tool.Name, prefix); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestServersAskOverStdioFromNPM: what servers ask reaches the one client of a hub over stdio. With a client of 2025 nothing
// is different from direct: roots are asked for while no call is in flight, server-filesystem, which has no arguments, lets it
// read there, and server-everything has the same tools. One of 2026-07-28 is asked by its first call.
func TestServersAskOverStdioFromNPM(t *testing.T) {
	t.Parallel()
	everything, files := npmProgram(t, "mcp-server-everything"), npmProgram(t, "mcp-server-filesystem")
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			at, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(at, "of-ann.txt"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			roots := `{"roots":[{"uri":"file://` + at + `"}]}`
			dir := t.TempDir()
			config := configText(t, map[string]any{
				"everything": map[string]any{"command": everything, "args": []string{"stdio"}, "timeout": "2m"},
				"files":      map[string]any{"command": files, "args": []string{}, "timeout": "2m"},
			}, neverDeferred())
			for _, start := range []string{"first", "second"} { // at the second the hub knows that they ask
				w := wireHubIn(t, dir, config, version).able().open()
				if version == rev2025 {
					w.tellsRoots(2, roots)
				}
				x := &exchange{w: w, answer: func(_ int, q asked) string {
					if q.method == "roots/list" {
						return roots
					}
					return `{"action":"accept","content":{"name":"Ann <é>","check":true}}`
				}}
				eventually(t, "server-filesystem has taken the roots in", func() bool {
					return strings.Contains(x.call("mcp.files.list_directory", `{"path":`+quoted(at)+`}`), "of-ann.txt")
				})
				eventually(t, "server-everything has added its tools", func() bool {
					return slices.Contains(w.toolsOf("mcp.everything."), "trigger-elicitation-request")
				})
				if got := x.call("mcp.everything.trigger-elicitation-request", `{}`); !strings.Contains(got, "Name: Ann <é>") {
					t.Errorf("%s start: server-everything says %s", start, got)
				}
				if version == rev2025 {
					direct := wireProcess(t, exec.Command(everything, "stdio"), version).able().open()
					direct.tellsRoots(1, roots)
					if got, want := w.toolsOf("mcp.everything."), direct.toolsOf(""); !slices.Equal(got, want) {
						t.Errorf("%s start: tools are\n%s\nand direct\n%s", start, got, want)
					}
				}
				w.hangUp()
			}
		})
	}
}

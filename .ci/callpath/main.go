// Command callpath lists the functions of the hub that one trivial call runs, by package:
//
//	go run .ci/callpath/main.go [-v]
//
// A client calls mcp.demo.echo over HTTP, and the demo server answers over stdio. The config is the
// default one. The hub is built with counters, and runs twice: once with a few calls, and once with
// 100 more. A function that ran 100 times more belongs to the call. With -v each one is named.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/mcp-toolhub/mcp-toolhub"

// more is by how many calls the second run exceeds the first one.
const more = 100

func main() {
	if err := run(slices.Contains(os.Args[1:], "-v")); err != nil {
		fmt.Fprintln(os.Stderr, "callpath:", err)
		os.Exit(1)
	}
}

func run(verbose bool) error {
	dir, err := os.MkdirTemp("", "callpath")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	hub, server := filepath.Join(dir, "counted"), filepath.Join(dir, "plain")
	for _, args := range [][]string{
		{"build", "-o", server, "./cmd/mcp-toolhub"},
		{"build", "-cover", "-covermode=count", "-coverpkg=" + module + "/...", "-o", hub, "./cmd/mcp-toolhub"},
	} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("go %q: %w: %s", args, err, out)
		}
	}
	before, err := counts(filepath.Join(dir, "few"), hub, server, 10)
	if err != nil {
		return err
	}
	after, err := counts(filepath.Join(dir, "many"), hub, server, 10+more)
	if err != nil {
		return err
	}
	byPackage, files := map[string][]string{}, map[string]bool{}
	for f, n := range after {
		if n-before[f] >= more {
			byPackage[path.Dir(f.file)] = append(byPackage[path.Dir(f.file)], f.name)
			files[f.file] = true
		}
	}
	sum := 0
	for _, p := range slices.SortedFunc(maps.Keys(byPackage), func(a, b string) int {
		return cmp.Or(len(byPackage[b])-len(byPackage[a]), strings.Compare(a, b))
	}) {
		sum += len(byPackage[p])
		fmt.Printf("%4d %s\n", len(byPackage[p]), p)
		if verbose {
			slices.Sort(byPackage[p])
			fmt.Printf("     %s\n", strings.Join(byPackage[p], ", "))
		}
	}
	fmt.Printf("%d functions in %d files and %d packages\n", sum, len(files), len(byPackage))
	return nil
}

// function is a function of the program. file is its path in the module.
type function struct {
	file, name string
	line       int
}

// counts returns how often each function ran in a hub that has served so many calls.
func counts(dir, hub, server string, calls int) (map[function]int, error) {
	covered := filepath.Join(dir, "covered")
	if err := os.MkdirAll(covered, 0o700); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.json")
	text := fmt.Sprintf(`{"mcpServers":{"demo":{"command":%q,"args":["demo-server"],"trust":true}}}`, server)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(hub, "serve", "--config", config, "--state-dir", filepath.Join(dir, "state"), "--http",
		"127.0.0.1:0")
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+covered)
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	err = serve(log, calls)
	err = errors.Join(err, cmd.Process.Signal(os.Interrupt), cmd.Wait())
	if err != nil {
		return nil, fmt.Errorf("the hub: %w", err)
	}
	profile := filepath.Join(dir, "profile")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+covered,
		"-o="+profile).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go tool covdata: %w: %s", err, out)
	}
	return read(profile)
}

// serve reads the hub's log until it serves, and makes the calls. It goes on reading in the background.
func serve(log io.Reader, calls int) error {
	url, lines := "", bufio.NewScanner(log)
	for ready := false; !ready && lines.Scan(); {
		var line struct{ Msg, URL string }
		_ = json.Unmarshal(lines.Bytes(), &line)
		url = cmp.Or(url, line.URL)
		ready = line.Msg == "server is ready"
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	session, _, err := post(url, "", `{"jsonrpc":"2.0","id":0,"method":"initialize",`+
		`"params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"callpath","version":"1"}}}`)
	if err == nil {
		_, _, err = post(url, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	for n := 1; err == nil && n <= calls; n++ {
		var answer string
		_, answer, err = post(url, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call",`+
			`"params":{"name":"mcp.demo.echo",`+
			`"arguments":{"text":"hello"}}}`, n))
		if err == nil && (!strings.Contains(answer, "hello") || strings.Contains(answer, `"isError":true`)) {
			err = fmt.Errorf("call %d: %s", n, answer)
		}
	}
	return err
}

func post(url, session, body string) (newSession, answer string, err error) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("MCP-Protocol-Version", "2025-11-25")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return resp.Header.Get("Mcp-Session-Id"), string(text), err
}

// read returns for each function how often its first block ran.
func read(profile string) (map[function]int, error) {
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	blocks := map[string]map[int]int{} // by file and first line: the largest count
	for line := range bytes.Lines(text) {
		var from, to, column, toColumn, statements, count int
		file, rest, _ := strings.Cut(string(line), ":")
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &from, &column, &to, &toColumn, &statements, &count); err != nil {
			continue // the first line names the mode
		}
		file = strings.TrimPrefix(file, module+"/")
		if blocks[file] == nil {
			blocks[file] = map[int]int{}
		}
		blocks[file][from] = max(blocks[file][from], count)
	}
	all := map[function]int{}
	for file, ran := range blocks {
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			first := files.Position(f.Body.Pos()).Line
			for line := first; line <= files.Position(f.Body.End()).Line; line++ {
				if count, ok := ran[line]; ok {
					all[function{file, f.Name.Name, first}] = count
					break
				}
			}
		}
	}
	return all, nil
}

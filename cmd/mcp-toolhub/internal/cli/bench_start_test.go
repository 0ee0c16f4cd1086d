//go:build e2e

package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// startCases are the starts that are measured: many servers, and many tools.
var startCases = []struct {
	name           string
	servers, tools int
}{{"50-servers", 50, 3}, {"10000-tools", 10, 1000}}

// BenchmarkStart is the time from the start of the proxy to the first whole list, with nothing known from before, and the
// proxy's CPU time until then. The servers are programs, ready at once. Its cases "cached" start the hub with what it has
// listed before, in front of servers that never answer. All are medians.
func BenchmarkStart(b *testing.B) {
	program := listServer(b)
	for _, c := range startCases {
		servers, names, hang := listServers(b, program, c.servers, c.tools)
		b.Run(c.name+"/direct", func(b *testing.B) {
			reportStarts(b, func() (took, cpu float64) { return startDirect(b, servers), 0 })
		})
		for _, via := range []string{"splice", "sdk", "hub"} {
			b.Run(c.name+"/"+via, func(b *testing.B) {
				reportStarts(b, func() (took, cpu float64) {
					spec := benchSpec{Role: via, Door: "stdio", Servers: servers}
					var args []string
					switch via {
					case "splice":
						spec.Role = "merge"
					case "hub":
						args = hubArgs(b, spec, nil)
					}
					spec.Profile = profileOf(b)
					return firstWholeList(b, spec, names, args...)
				})
			})
		}
		b.Run(c.name+"/cached", func(b *testing.B) {
			spec := benchSpec{Role: "hub", Door: "stdio", Servers: servers}
			args := hubArgs(b, spec, nil)
			_ = os.Remove(hang) // of a run with fewer rounds
			firstWholeList(b, spec, names, args...)
			if err := os.WriteFile(hang, nil, 0o600); err != nil {
				b.Fatal(err)
			}
			spec.Profile = profileOf(b)
			reportStarts(b, func() (took, cpu float64) { return firstWholeList(b, spec, names, args...) })
		})
	}
}

// listServer builds testdata/listserver and returns its path.
func listServer(tb testing.TB) string {
	tb.Helper()
	program := filepath.Join(tb.TempDir(), "listserver")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/listserver").CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return program
}

// listServers are n servers of so many tools, and names that are listed once all are. They hang while the file hang is there.
func listServers(tb testing.TB, program string, n, tools int) (servers []benchSpec, names []string, hang string) {
	tb.Helper()
	dir := tb.TempDir()
	hang = filepath.Join(dir, "hang")
	for i := range n {
		list := filepath.Join(dir, fmt.Sprint("list", i))
		if err := os.WriteFile(list, newRawServer(benchSpec{Tools: tools, First: i * tools}).list, 0o600); err != nil {
			tb.Fatal(err)
		}
		servers = append(servers, benchSpec{Program: []string{program, list, hang}})
		names = append(names, benchToolName(i, "blob_1mib"))
		if tools > 3 {
			names = append(names, benchToolName(i, fmt.Sprintf("tool_%05d", tools-1)))
		}
	}
	return servers, names, hang
}

// reportStarts reports the medians of b.N starts.
func reportStarts(b *testing.B, start func() (took, cpu float64)) {
	var took, cpu []float64
	for range b.N {
		t, c := start()
		took, cpu = append(took, t), append(cpu, c)
	}
	slices.Sort(took)
	slices.Sort(cpu)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took[b.N/2]*1e3, "ms-median")
	b.ReportMetric(took[0]*1e3, "ms-best")
	b.ReportMetric(cpu[b.N/2]*1e3, "cpu-ms")
}

// firstWholeList starts s and lists until the tools of these names are there.
func firstWholeList(b testing.TB, s benchSpec, names []string, args ...string) (took, cpu float64) {
	b.Helper()
	began := time.Now()
	p := launchBenchProcess(b, s, args...)
	t := &benchTarget{tb: b, proxy: p}
	t.reach(p)
	t.await(t.conn.newClient(), slices.Clone(names)...)
	took = time.Since(began).Seconds()
	cpu, _ = p.cpu()
	p.stop(b, s)
	return took, cpu
}

// startDirect starts all servers at once, and returns when the last of them has listed.
func startDirect(b testing.TB, servers []benchSpec) (took float64) {
	began := time.Now()
	m := &merged{}
	if err := m.start(servers); err != nil {
		b.Fatal(err)
	}
	took = time.Since(began).Seconds()
	if err := m.stop(); err != nil {
		b.Fatal(err)
	}
	return took
}

// runMerge serves the joined lists of the servers over stdio, under the names that the hub gives to tools.
func runMerge(spec benchSpec) error {
	in, out := bufio.NewReaderSize(os.Stdin, 64<<10), bufio.NewWriterSize(os.Stdout, 64<<10)
	var m merged
	started := make(chan error, 1)
	go func() { started <- m.start(spec.Servers) }()
	server := newRawServer(benchSpec{})
	for {
		line, err := in.ReadBytes('\n')
		id, member := server.answer(line)
		if method, _ := rawjson.Get(line, "method"); string(method) == `"tools/list"` {
			if err := <-started; err != nil {
				return err
			}
			started <- nil
			member = m.list()
		}
		if id != nil {
			writeAnswer(out, id, member)
			_ = out.WriteByte('\n')
			if err := out.Flush(); err != nil {
				return err
			}
		}
		if err != nil {
			<-started
			return m.stop()
		}
	}
}

// merged is the least that a proxy in front of several servers does at its start: it starts all at once, and joins the bytes of
// their lists.
type merged struct {
	children []*benchChild
	lists    [][]byte // results of tools/list
}

func (m *merged) start(servers []benchSpec) error {
	m.children, m.lists = make([]*benchChild, len(servers)), make([][]byte, len(servers))
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { m.children[i], m.lists[i], errs[i] = startMerged(s) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func startMerged(s benchSpec) (*benchChild, []byte, error) {
	c, err := startBenchChild(s)
	if err != nil {
		return nil, nil, err
	}
	ask := func(text string) ([]byte, error) {
		if _, err := io.WriteString(c.in, text); err != nil {
			return nil, err
		}
		return c.out.ReadBytes('\n')
	}
	if _, err := ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"merge","version":"1"}}}` + "\n"); err != nil {
		return nil, nil, err
	}
	list, err := ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}` + "\n")
	return c, list, err
}

func (m *merged) stop() (err error) {
	for _, c := range m.children {
		_ = c.in.Close()
	}
	for _, c := range m.children {
		if e := c.cmd.Wait(); err == nil {
			err = e
		}
	}
	return err
}

// list joins the lists. What it takes for granted is true of the servers here: a name is a tool's first member.
func (m *merged) list() []byte {
	out := []byte(`"result":{"tools":[`)
	for i, text := range m.lists {
		_, tools, _ := bytes.Cut(text, []byte(`"tools":[`))
		tools, _ = bytes.CutSuffix(bytes.TrimSpace(tools), []byte("]}}"))
		if i > 0 {
			out = append(out, ',')
		}
		mark := []byte(`{"name":"`)
		for at, one := range bytes.Split(tools, mark) {
			if at > 0 {
				out = append(append(append(out, mark...), "mcp."+benchServerID(i)+"."...), one...)
			}
		}
	}
	return append(out, "]}"...)
}

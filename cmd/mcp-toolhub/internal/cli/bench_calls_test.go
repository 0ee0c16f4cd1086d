//go:build e2e

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The benchmarks compare four ways to a server in one run: direct access, a byte-splicing proxy, a pass-through on the
// bare SDK, and the hub with everything on. Each proxy is a process of its own. See docs/performance.md.

const (
	echoArguments = `{"text":"the quick brown fox jumps over the lazy dog","times":3}`
	echoAnswer    = `"structuredContent":{"length":129,"text":"the quick brown fox`
	warmUpCalls   = 50
)

// callVias are benchVias, and the hub with permission: 100 rules, one of which has a condition and allows the call.
func callVias() []string { return append(slices.Clip(benchVias), viaRules) }

// eachTarget runs bench for every mode and way.
func eachTarget(b *testing.B, modes, vias []string, bench func(b *testing.B, mode, via string)) {
	for _, mode := range modes {
		for _, via := range vias {
			b.Run(mode+"/"+via, func(b *testing.B) { bench(b, mode, via) })
		}
	}
}

// callEcho calls the echo tool once.
func callEcho(c benchClient, params string) error {
	answer, err := c.request("tools/call", params)
	if err != nil {
		return err
	}
	if !bytes.Contains(answer, []byte(echoAnswer)) {
		return fmt.Errorf("echo answered %.500s", answer)
	}
	return nil
}

// warmEcho returns a client of t that has called the echo tool for a while, and the params of its calls.
func warmEcho(b testing.TB, t *benchTarget) (benchClient, string) {
	c, name := t.client(), t.tool(0, "echo")
	t.await(c, name)
	params := benchCall(name, echoArguments)
	for range warmUpCalls {
		if err := callEcho(c, params); err != nil {
			b.Fatal(err)
		}
	}
	return c, params
}

// reportCPU reports the CPU time of the proxy since before, for 10,000 calls.
func reportCPU(b *testing.B, t *benchTarget, before float64) {
	if t.proxy == nil {
		return
	}
	if after, ok := t.proxy.cpu(); ok {
		b.ReportMetric((after-before)/float64(b.N)*1e4, "cpu-s/10k-calls")
	}
}

func (t *benchTarget) cpuNow() float64 {
	if t.proxy == nil {
		return 0
	}
	now, _ := t.proxy.cpu()
	return now
}

// BenchmarkCall is the time of one call after the other by one client.
func BenchmarkCall(b *testing.B) {
	eachTarget(b, callModes, callVias(), func(b *testing.B, mode, via string) {
		t := startBenchTarget(b, mode, via, benchSpec{Role: "echo"}, 1)
		c, params := warmEcho(b, t)
		before := t.cpuNow()
		var took []time.Duration
		for b.Loop() {
			start := time.Now()
			if err := callEcho(c, params); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		reportCPU(b, t, before)
		b.ReportMetric(quantile(took, 0.5).Seconds()*1e6, "us-p50")
	})
}

// BenchmarkThroughput is how many calls a second many clients get through. On stdio they share the one connection.
func BenchmarkThroughput(b *testing.B) {
	eachTarget(b, callModes, callVias(), func(b *testing.B, mode, via string) {
		for _, clients := range []int{16, 64} {
			b.Run(fmt.Sprint(clients), func(b *testing.B) { throughput(b, mode, via, clients) })
		}
	})
}

func throughput(b *testing.B, mode, via string, clients int) {
	t := startBenchTarget(b, mode, via, benchSpec{Role: "echo"}, 1)
	first, params := warmEcho(b, t)
	all := []benchClient{first}
	for len(all) < min(clients, b.N) {
		all = append(all, t.client())
	}
	before := t.cpuNow()
	b.ResetTimer()
	took, err := callSideBySide(all, params, b.N)
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(quantile(took, 0.99).Seconds()*1e3, "ms-p99")
	reportCPU(b, t, before)
}

// callSideBySide has the clients make calls in all, each one after the other, and returns how long each call took.
func callSideBySide(clients []benchClient, params string, calls int) ([]time.Duration, error) {
	var taken atomic.Int64
	var done sync.WaitGroup
	took, failed := make([][]time.Duration, len(clients)), make([]error, len(clients))
	for i, c := range clients {
		done.Go(func() {
			for taken.Add(1) <= int64(calls) {
				start := time.Now()
				if failed[i] = callEcho(c, params); failed[i] != nil {
					return
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	done.Wait()
	return slices.Concat(took...), errors.Join(failed...)
}

// quantile is the q-th quantile of took, which it sorts.
func quantile(took []time.Duration, q float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[min(int(q*float64(len(took))), len(took)-1)]
}

// BenchmarkLarge is the time of a call with a large result, also of the fastest one and the median, the proxy's CPU time
// for it, and the most memory that the proxy ever had.
func BenchmarkLarge(b *testing.B) {
	eachTarget(b, benchModes, benchVias, func(b *testing.B, mode, via string) {
		for i, blob := range blobSizes {
			b.Run(fmt.Sprintf("%dMiB", blob.mib), func(b *testing.B) {
				t := startBenchTarget(b, mode, via, benchSpec{Role: "raw"}, 1)
				c, name := t.client(), t.tool(0, blob.tool)
				t.await(c, name)
				params := benchCall(name, rawArguments(i))
				b.SetBytes(int64(blob.mib) << 20)
				before := t.cpuNow()
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					answer, err := c.request("tools/call", params)
					if err != nil || len(answer) < blob.mib<<20*9/10 {
						b.Fatalf("%s answered %.300s, %v", name, answer, err)
					}
					took = append(took, time.Since(start))
				}
				// Where others use the machine, too, the mean says more of them.
				b.ReportMetric(quantile(took, 0).Seconds()*1e3, "ms-best")
				b.ReportMetric(quantile(took, 0.5).Seconds()*1e3, "ms-median")
				if t.proxy != nil {
					b.ReportMetric((t.cpuNow()-before)/float64(b.N)*1e3, "cpu-ms/call")
				}
				reportMemory(b, t, "VmHWM", "MB-peak")
			})
		}
	})
}

// reportMemory reports a value of the proxy's memory.
func reportMemory(b *testing.B, t *benchTarget, key, unit string) {
	if t.proxy == nil {
		return
	}
	if mb, ok := t.proxy.memory(key); ok {
		b.ReportMetric(mb, unit)
	}
}

// BenchmarkList is the time to list everything, all pages of it.
func BenchmarkList(b *testing.B) {
	eachTarget(b, benchModes, []string{"direct", "hub"}, func(b *testing.B, mode, via string) {
		for _, tools := range []int{1000, 10000} {
			b.Run(fmt.Sprint(tools), func(b *testing.B) {
				t := startBenchTarget(b, mode, via, benchSpec{Role: "raw", Tools: tools}, 1)
				c := t.client()
				t.await(c, t.tool(0, blobSizes[0].tool))
				size := 0
				var err error
				for b.Loop() {
					if size, err = drainList(c); err != nil {
						b.Fatal(err)
					}
				}
				b.SetBytes(int64(size))
				reportMemory(b, t, "VmRSS", "MB-rss")
			})
		}
	})
}

// BenchmarkMemory is what is resident with ten stdio servers of fifty tools, the servers apart, after the start is over and
// all of them have been called. The time of the calls says nothing here.
func BenchmarkMemory(b *testing.B) {
	const servers, tools = 10, 50
	for _, door := range []string{"http-stdio", "stdio-stdio"} {
		for _, via := range []string{"sdk", "hub", viaRules} {
			b.Run(door+"/"+via, func(b *testing.B) {
				t := startBenchTarget(b, door, via, benchSpec{Role: "raw", Tools: tools}, servers)
				c := t.client()
				var names []string
				for i := range servers {
					names = append(names, t.tool(i, fmt.Sprintf("tool_%05d", tools-1)))
				}
				t.await(c, append([]string(nil), names...)...)
				t.settle(b)
				for b.Loop() {
					for i, name := range names {
						answer, err := c.request("tools/call", benchCall(name, rawArguments(tools-1)))
						if err != nil || !bytes.Contains(answer, []byte(`"done"`)) {
							b.Fatalf("server %d answered %.300s, %v", i, answer, err)
						}
					}
				}
				reportMemory(b, t, "VmRSS", "MB-rss")
				reportMemory(b, t, "RssAnon", "MB-own")
				reportMemory(b, t, "RssFile", "MB-of-files")
			})
		}
	}
}

// settle waits until what the proxy holds has stayed as it is for longer than the hub takes to call its start over.
func (t *benchTarget) settle(b testing.TB) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last, same := 0.0, 0
	for range 100 {
		<-tick.C
		now, ok := t.proxy.memory("VmRSS")
		if same++; now != last {
			last, same = now, 0
		}
		if !ok || same >= 15 {
			return
		}
	}
	b.Log("the memory of the proxy does not come to rest")
}

// TestBenchmarkTargets checks that every way that the benchmarks compare answers correctly, and ends.
func TestBenchmarkTargets(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: starts three dozen processes")
	}
	t.Parallel()
	for _, mode := range callModes {
		for _, via := range benchVias {
			t.Run(mode+"/"+via, func(t *testing.T) {
				t.Parallel()
				checkEcho(t, mode, via)
				if slices.Contains(benchModes, mode) {
					checkRaw(t, mode, via)
				}
			})
		}
	}
}

func checkEcho(t *testing.T, mode, via string) {
	target := startBenchTarget(t, mode, via, benchSpec{Role: "echo"}, 1)
	c, name := target.client(), target.tool(0, "echo")
	target.await(c, name)
	const many = 8
	var done sync.WaitGroup
	for i := range many {
		c := target.client()
		done.Go(func() {
			params := benchCall(name, fmt.Sprintf(`{"text":"<%d>","times":2}`, i))
			answer, err := c.request("tools/call", params)
			want := fmt.Sprintf(`\u003c%d\u003e\u003c%d\u003e`, i, i)
			if err != nil || bytes.Count(answer, []byte(want)) != 2 {
				t.Errorf("call %d answered %s, %v: want %s twice", i, answer, err, want)
			}
		})
	}
	done.Wait()
	if target.proxy == nil {
		return
	}
	if cpu, ok := target.proxy.cpu(); ok && (cpu <= 0 || cpu > time.Minute.Seconds()) {
		t.Errorf("the proxy used %v seconds of CPU time", cpu)
	}
}

func checkRaw(t *testing.T, mode, via string) {
	target := startBenchTarget(t, mode, via, benchSpec{Role: "raw", Tools: 5}, 1)
	c, name := target.client(), target.tool(0, blobSizes[0].tool)
	target.await(c, name, target.tool(0, "tool_00004"))
	answer, err := c.request("tools/call", benchCall(name, rawArguments(0)))
	if err == nil && !bytes.Contains(answer, []byte("größer")) {
		err = fmt.Errorf("answer %.300s", answer)
	}
	if err != nil {
		t.Error(err)
	}
}

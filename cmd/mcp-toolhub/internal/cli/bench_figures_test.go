//go:build e2e

package cli

import (
	"flag"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every way from client to server in one run, in rounds that take turns.

var figures = flag.String("figures", "", "measure the groups whose name matches this regular expression, and print them")

const (
	figureRounds = 3
	serialCalls  = 1000
	loadCalls    = 4000 // for each number of clients, in each round
)

// figureGroup holds the rows that one measurement fills.
type figureGroup struct {
	name    string
	ways    []string
	measure func(t *testing.T, way string) sample
	rows    []figureRow
	targets []figureTarget
}

// figureRow is a row of the table.
type figureRow struct {
	title string
	key   string // of the sample, for how far the rounds lie apart
	cell  func(s, direct sample) string
}

// figureTarget holds a bound that the hub has to keep.
type figureTarget struct {
	title string
	value func(hub, splice, direct, sdk sample) float64
	limit float64
	least bool // the limit is the least that will do, not the most
}

var figureWays = []string{"direct", "splice", viaTBXark, "sdk", viaBefore, viaBuilt}

func allFigures(t *testing.T) []figureGroup {
	program := listServer(t)
	start := func(n, tools int) func(t *testing.T, way string) sample {
		return func(t *testing.T, way string) sample { return measureStart(t, program, way, n, tools) }
	}
	var all []figureGroup
	for _, mode := range callModes {
		all = append(all, callFigures(mode))
	}
	return append(all,
		figureGroup{name: "large", ways: figureWays, measure: measureLarge, rows: []figureRow{
			{"10 MiB result, HTTP to HTTP: ms, CPU ms", "ms", func(s, _ sample) string { return with1(s, "%.0f", "ms") + with1(s, ", %.0f", "cpu-ms") }}}},
		figureGroup{name: "start", ways: figureWays, measure: start(50, 3),
			rows: []figureRow{{"50 stdio servers, first whole list, cold: s, CPU s", "s", secondsAndCPU}},
			targets: []figureTarget{{"50 stdio servers: time, of direct's", func(hub, _, direct, _ sample) float64 {
				return hub["s"] / direct["s"]
			}, 1.3, false}}},
		figureGroup{name: "tools", ways: figureWays, measure: start(10, 1000),
			rows:    []figureRow{{"10,000 tools of 1 kB from 10 stdio servers, cold: s to the first whole list, CPU s", "s", secondsAndCPU}},
			targets: []figureTarget{{"10,000 tools: time, of sdk's", func(hub, _, _, sdk sample) float64 { return hub["s"] / sdk["s"] }, 1, false}}},
		figureGroup{name: "memory", ways: figureWays[1:], measure: measureIdle,
			rows:    []figureRow{{"10 stdio servers of 50 tools, idle: MB resident", "mb", func(s, _ sample) string { return with1(s, "%.0f", "mb") }}},
			targets: []figureTarget{{"10 servers of 50 tools, idle: MB", func(hub, _, _, _ sample) float64 { return hub["mb"] }, 25, false}}})
}

// callFigures are the rows of calls of one mode.
func callFigures(mode string) figureGroup {
	title := strings.NewReplacer("http", "HTTP", "-2026-07-28", " on 2026-07-28", "-", " to ").Replace(mode)
	g := figureGroup{name: mode, ways: figureWays, measure: func(t *testing.T, way string) sample { return measureCalls(t, mode, way) }}
	// A stdio server is not reached over HTTP without a proxy, so there is nothing that the proxy adds to.
	added := !strings.HasPrefix(mode, "http-stdio")
	g.rows = append(g.rows, figureRow{title + ", serial: p50 µs (added)", "p50", func(s, direct sample) string {
		cell := with1(s, "%.0f", "p50")
		if _, proxied := s["cpu"]; proxied && added && direct != nil {
			cell += fmt.Sprintf(" (%.0f)", s["p50"]-direct["p50"])
		}
		return cell
	}}, figureRow{title + ", serial: CPU s per 10k", "cpu", func(s, _ sample) string { return with1(s, "%.2f", "cpu") }})
	few, most, share := 1.4, 1.6, .75
	if strings.HasPrefix(mode, "stdio") {
		few, most, share = 2, 3, .6
	}
	if added {
		g.targets = append(g.targets, figureTarget{title + ", serial: time added, of splice's", func(hub, splice, direct, _ sample) float64 {
			return (hub["p50"] - direct["p50"]) / (splice["p50"] - direct["p50"])
		}, few, false})
	}
	for _, n := range []int{16, 64} {
		rate, p99, cpu := fmt.Sprint("rate", n), fmt.Sprint("p99-", n), fmt.Sprint("cpu", n)
		at := fmt.Sprintf("%s, %d clients: ", title, n)
		g.rows = append(g.rows, figureRow{at + "calls/s, p99 ms, CPU s per 10k", rate, func(s, _ sample) string {
			return with1(s, "%.0f", rate) + with1(s, ", %.0f", p99) + with1(s, ", %.2f", cpu)
		}})
		of := func(key string) func(hub, splice, direct, sdk sample) float64 {
			return func(hub, splice, _, _ sample) float64 { return hub[key] / splice[key] }
		}
		g.targets = append(g.targets, figureTarget{at + "calls/s, of splice's", of(rate), share, true},
			figureTarget{at + "p99, of splice's", of(p99), 2, false}, figureTarget{at + "CPU, of splice's", of(cpu), most, false})
	}
	return g
}

// with1 is one value in a format, "" where it was not measured.
func with1(s sample, format, key string) string {
	v, ok := s[key]
	if !ok {
		return ""
	}
	return fmt.Sprintf(format, v)
}

func secondsAndCPU(s, _ sample) string { return with1(s, "%.2f", "s") + with1(s, ", %.2f", "cpu-s") }

// measureCalls is one round of calls: serial, with 16 clients and with 64.
func measureCalls(t *testing.T, mode, way string) sample {
	target := startBenchTarget(t, mode, way, benchSpec{Role: "echo"}, 1)
	first, params := warmEcho(t, target)
	clients := []benchClient{first}
	s := sample{}
	run := func(n, calls int) (took []time.Duration, rate, cpu float64) {
		for len(clients) < n {
			clients = append(clients, target.client())
		}
		if _, err := callSideBySide(clients[:n], params, 10*n); err != nil { // connections and pools
			t.Fatal(err)
		}
		before, began := target.cpuNow(), time.Now()
		took, err := callSideBySide(clients[:n], params, calls)
		if err != nil {
			t.Fatal(err)
		}
		return took, float64(calls) / time.Since(began).Seconds(), (target.cpuNow() - before) / float64(calls) * 1e4
	}
	took, _, cpu := run(1, serialCalls)
	s["p50"] = quantile(took, .5).Seconds() * 1e6
	if target.proxy != nil {
		s["cpu"] = cpu
	}
	for _, n := range []int{16, 64} {
		took, rate, cpu := run(n, loadCalls)
		s[fmt.Sprint("rate", n)], s[fmt.Sprint("p99-", n)] = rate, quantile(took, .99).Seconds()*1e3
		if target.proxy != nil {
			s[fmt.Sprint("cpu", n)] = cpu
		}
	}
	return s
}

// measureLarge is one round of large results.
func measureLarge(t *testing.T, way string) sample {
	const calls = 6
	blob := blobSizes[1]
	target := startBenchTarget(t, "http-http", way, benchSpec{Role: "raw"}, 1)
	c, name := target.client(), target.tool(0, blob.tool)
	target.await(c, name)
	params := benchCall(name, rawArguments(1))
	var took []time.Duration
	before := target.cpuNow()
	for range calls {
		start := time.Now()
		answer, err := c.request("tools/call", params)
		if err != nil || len(answer) < blob.mib<<20*9/10 {
			t.Fatalf("%s answered %.300s, %v", name, answer, err)
		}
		took = append(took, time.Since(start))
	}
	s := sample{"ms": quantile(took, .5).Seconds() * 1e3}
	if target.proxy != nil {
		s["cpu-ms"] = (target.cpuNow() - before) / calls * 1e3
	}
	return s
}

// measureStart is one round of a cold start of so many stdio servers, up to a list that holds all their tools.
func measureStart(t *testing.T, program, way string, n, tools int) sample {
	servers, names, _ := listServers(t, program, n, tools)
	spec := benchSpec{Role: way, Door: "stdio", Servers: servers, Program: programOf(way)}
	var args []string
	switch way {
	case "direct":
		return sample{"s": startDirect(t, servers)}
	case "splice":
		spec.Role = "merge"
	case viaBuilt, viaBefore:
		args = hubArgs(t, spec, hundredRules())
	case viaTBXark:
		return startTBXark(t, spec)
	}
	took, cpu := firstWholeList(t, spec, names, args...)
	return sample{"s": took, "cpu-s": cpu}
}

// startTBXark is measureStart where each server has an address of its own.
func startTBXark(t *testing.T, spec benchSpec) sample {
	spec.Door = "http"
	target := &benchTarget{tb: t}
	args, urls := tbxarkArgs(t, spec)
	began := time.Now()
	target.proxy, target.urls = startBenchProcess(t, spec, args...), urls
	listed := make(chan error, len(urls))
	for i := range urls {
		go func() {
			_, err := listAll(target.clientAt(i))
			listed <- err
		}()
	}
	for range urls {
		if err := <-listed; err != nil {
			t.Fatal(err)
		}
	}
	return sample{"s": time.Since(began).Seconds(), "cpu-s": target.cpuNow()}
}

// measureIdle measures the resident memory with ten servers of fifty tools, after the start is over.
func measureIdle(t *testing.T, way string) sample {
	const servers, tools = 10, 50
	target := startBenchTarget(t, "http-stdio", way, benchSpec{Role: "raw", Tools: tools}, servers)
	last := fmt.Sprintf("tool_%05d", tools-1)
	for i := range servers {
		if target.named {
			target.await(target.client(), target.tool(i, last))
			continue
		}
		target.await(target.clientAt(i), last)
	}
	target.settle(t)
	mb, _ := target.proxy.memory("VmRSS")
	return sample{"mb": mb}
}

// has reports whether there is such a way in this mode, on this machine.
func (g *figureGroup) has(way string) bool {
	if way == viaTBXark && (strings.HasPrefix(g.name, "stdio") || strings.Contains(g.name, rev2026)) {
		return false
	}
	return way != viaTBXark && way != viaBefore || programOf(way) != nil
}

// TestFigures measures calls through the hub beside other ways, and prints the tables.
func TestFigures(t *testing.T) {
	if *figures == "" {
		t.Skip("measures for minutes: go test -run '^TestFigures$' -figures . -v ./cmd/mcp-toolhub/internal/cli")
	}
	wanted, err := regexp.Compile(*figures)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "mcp-toolhub")
	if programOf(viaBuilt) == nil {
		if out, err := exec.Command("go", "build", "-o", program, "../..").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Setenv("TOOLHUB_BENCH_BUILT", program)
	}
	var table, reached []string
	for _, g := range allFigures(t) {
		if !wanted.MatchString(g.name) {
			continue
		}
		rounds := map[string][]sample{}
		for round := range figureRounds {
			for _, way := range g.ways {
				if g.has(way) {
					t.Run(fmt.Sprintf("%s/%d/%s", g.name, round+1, way), func(t *testing.T) {
						rounds[way] = append(rounds[way], g.measure(t, way))
					})
				}
			}
		}
		if t.Failed() {
			return
		}
		table = append(table, g.table(rounds)...)
		reached = append(reached, g.reached(rounds)...)
	}
	t.Logf("\n%s\n\n%s", strings.Join(table, "\n"), strings.Join(reached, "\n"))
}

// table are the group's rows: the median of each way's rounds, and how far the hub's lie apart.
func (g *figureGroup) table(rounds map[string][]sample) (rows []string) {
	for _, row := range g.rows {
		line := "| " + row.title
		for _, way := range figureWays {
			cell := ""
			if len(rounds[way]) > 0 {
				var direct sample
				if len(rounds["direct"]) > 0 {
					direct = medians(rounds["direct"])
				}
				cell = row.cell(medians(rounds[way]), direct)
			}
			line += " | " + max(cell, "-")
		}
		least, most := math.Inf(1), math.Inf(-1)
		for _, s := range rounds[viaBuilt] {
			least, most = min(least, s[row.key]), max(most, s[row.key])
		}
		rows = append(rows, fmt.Sprintf("%s | %.0f%% |", line, (most-least)/medians(rounds[viaBuilt])[row.key]*100))
	}
	return rows
}

// reached are the group's targets, and the median of what the rounds have shown of each.
func (g *figureGroup) reached(rounds map[string][]sample) (rows []string) {
	round := func(way string, i int) sample {
		if i < len(rounds[way]) {
			return rounds[way][i]
		}
		return nil
	}
	for _, target := range g.targets {
		var values []float64
		for i, hub := range rounds[viaBuilt] {
			values = append(values, target.value(hub, round("splice", i), round("direct", i), round("sdk", i)))
		}
		if len(values) == 0 {
			continue // -run has left the hub out
		}
		slices.Sort(values)
		sign, met := "≤", values[len(values)/2] <= target.limit
		if target.least {
			sign, met = "≥", values[len(values)/2] >= target.limit
		}
		verdict := "no"
		if met {
			verdict = "yes"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s %.4g | %.2f (%.2f to %.2f) | %s |", target.title, sign, target.limit,
			values[len(values)/2], values[0], values[len(values)-1], verdict))
	}
	return rows
}

// medians is the median of each value.
func medians(rounds []sample) sample {
	all := sample{}
	if len(rounds) == 0 {
		return all
	}
	for key := range rounds[0] {
		var values []float64
		for _, s := range rounds {
			values = append(values, s[key])
		}
		slices.Sort(values)
		all[key] = values[len(values)/2]
	}
	return all
}

// sample holds the values that one round of one way has measured, by their names.
type sample map[string]float64

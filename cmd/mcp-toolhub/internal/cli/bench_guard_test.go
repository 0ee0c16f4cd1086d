//go:build e2e

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// guardVariable names the environment variable that lets TestGuard measure, as .ci/run does.
const guardVariable = "TOOLHUB_GUARD"

// tolerance and cpuTolerance bound a call's cost: 1.10 allows a tenth more than the baseline. Allocations are counted. The ratio of two CPU
// times differs between machines: system calls, which splice mostly makes, are not everywhere equally dear.
const (
	tolerance    = 1.10
	cpuTolerance = 1.20
	measurements = 3 // before a cost that is too high counts; some measure twice as often
)

const (
	guardCalls   = 2000 // whose allocations are counted, one after the other
	guardClients = 16   // whose CPU time is measured: one client leaves the processor idle, and waking up is what costs most then
	guardRounds  = 10   // of CPU time
	guardTurn    = 500  // calls of each way in a round
)

// callCost holds the cost of a call, with permission: counts, and a ratio of two CPU times that were measured in turns. None of these
// depends much on the machine, or on what else it does.
type callCost struct {
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"bytes"`
	CPU         float64 `json:"cpu_of_splice"` // 0 where the system does not tell
}

// TestGuard fails if a call costs more than testdata/baseline.json allows by more than its tolerance, or a batch more than its reads.
// -update writes the file.
func TestGuard(t *testing.T) { // not parallel: it measures
	if os.Getenv(guardVariable) == "" {
		t.Skip("measures for a minute: set " + guardVariable)
	}
	if underRace {
		t.Skip("the race detector allocates")
	}
	file := filepath.Join("testdata", "baseline.json")
	was := map[string]callCost{}
	if text, err := os.ReadFile(file); err == nil {
		mustDecode(t, string(text), &was)
	} else if !*update {
		t.Fatal(err)
	}
	for _, mode := range callModes {
		t.Run(mode, func(t *testing.T) {
			var all []callCost
			var worse []string
			for range 2 * measurements { // two measurements of the same hub differ by up to 8 %, and a busy machine adds to that
				cost := measureCost(t, mode)
				t.Logf("%.1f allocations, %.0f bytes, %.2f times splice's CPU; baseline %.1f, %.0f, %.2f",
					cost.Allocations, cost.Bytes, cost.CPU, was[mode].Allocations, was[mode].Bytes, was[mode].CPU)
				all = append(all, cost)
				if worse = cost.worseThan(was[mode]); len(worse) == 0 && !*update {
					return
				}
			}
			if !*update {
				t.Errorf("a call costs more than %s allows: %s", file, worse)
			}
			slices.SortFunc(all, func(a, b callCost) int { return cmp.Compare(a.CPU, b.CPU) })
			cost := all[len(all)/2]
			was[mode] = callCost{math.Round(cost.Allocations*10) / 10, math.Round(cost.Bytes), math.Round(cost.CPU*100) / 100}
		})
	}
	t.Run("batch", guardBatch)
	if *update && !t.Failed() {
		text, err := json.MarshalIndent(was, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// worseThan says what has become worse than was by more than the tolerance.
func (c callCost) worseThan(was callCost) (worse []string) {
	for _, one := range []struct {
		what                string
		is, was, mayBeTimes float64
	}{
		{"allocations", c.Allocations, was.Allocations, tolerance}, {"bytes", c.Bytes, was.Bytes, tolerance},
		{"CPU of splice's", c.CPU, was.CPU, cpuTolerance},
	} {
		if one.is > one.was*one.mayBeTimes {
			worse = append(worse, fmt.Sprintf("%s %.4g, was %.4g", one.what, one.is, one.was))
		}
	}
	return worse
}

// settledAllocations returns what the hub has allocated once the record store has all calls: that allocates for them, too.
func settledAllocations(t *testing.T, p *probe) (now allocated) {
	t.Helper()
	again := time.NewTicker(3 * time.Second) // the store takes in what has come within two
	defer again.Stop()
	for last := (allocated{}); ; last = now {
		mustDecode(t, p.get(t, "allocated"), &now)
		if now.Objects-last.Objects < guardCalls {
			return now
		}
		<-again.C
	}
}

// measureCost measures the calls of one mode.
func measureCost(t *testing.T, mode string) callCost {
	p, variable := newProbe(t)
	hub := startBenchTarget(t, mode, viaRules, benchSpec{Role: "echo", Probe: variable}, 1)
	splice := startBenchTarget(t, mode, "splice", benchSpec{Role: "echo"}, 1)
	hubClient, hubParams := warmEcho(t, hub)
	spliceClient, spliceParams := warmEcho(t, splice)
	call := func(clients []benchClient, params string, calls int) {
		if _, err := callSideBySide(clients, params, calls); err != nil {
			t.Fatal(err)
		}
	}
	one := []benchClient{hubClient}
	call(one, hubParams, guardTurn) // pools fill
	before := settledAllocations(t, p)
	call(one, hubParams, guardCalls)
	after := settledAllocations(t, p)
	cost := callCost{Allocations: float64(after.Objects-before.Objects) / guardCalls, Bytes: float64(after.Bytes-before.Bytes) / guardCalls}
	if runtime.GOOS != "linux" {
		return cost
	}
	hubClients, spliceClients := one, []benchClient{spliceClient}
	for len(hubClients) < guardClients {
		hubClients, spliceClients = append(hubClients, hub.client()), append(spliceClients, splice.client())
	}
	var ratios []float64
	for range guardRounds {
		began := [2]float64{splice.cpuNow(), hub.cpuNow()}
		call(spliceClients, spliceParams, guardTurn)
		call(hubClients, hubParams, guardTurn)
		ratios = append(ratios, (hub.cpuNow()-began[1])/(splice.cpuNow()-began[0]))
	}
	slices.Sort(ratios)
	cost.CPU = ratios[len(ratios)/2]
	return cost
}

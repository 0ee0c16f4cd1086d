package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// freeGarbage may lie about before it is collected, however little is in use. The runtime's own measure, as much as is in
	// use, makes a small hub collect several times for each thousand calls.
	freeGarbage = 32 << 20

	usualPercent = 100 // the runtime's own measure

	// busyPause passes without a collection before memory that is not in use is given back to the system.
	busyPause = 10 * time.Second
	worthBack = 4 << 20 // less is not given back
)

// collector sets how much garbage may gather before the runtime collects it: freeGarbage, or as much as is in use where that is
// more. It looks again after each collection.
type collector struct {
	percent int

	mu    sync.Mutex
	timer *time.Timer // nil before the first collection
}

// relaxCollector starts a collector for the life of the process, unless GOGC says otherwise.
func relaxCollector() {
	if _, ok := os.LookupEnv("GOGC"); ok {
		return
	}
	c := &collector{percent: usualPercent}
	c.adjust()
	runtime.SetFinalizer(&collected{c}, (*collected).again)
}

// collected is found to be garbage at each collection.
type collected struct{ *collector }

func (o *collected) again() {
	o.adjust()
	o.giveBackLater()
	runtime.SetFinalizer(o, (*collected).again)
}

// adjust is called by one goroutine at a time.
func (c *collector) adjust() {
	counted := readMetrics("/gc/heap/live:bytes", "/gc/scan/globals:bytes", "/gc/scan/stack:bytes")
	percent := max(usualPercent, int(freeGarbage*100/max(counted, 1<<20)))
	if percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// giveBackLater gives memory back unless there is another collection before that.
func (c *collector) giveBackLater() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Reset(busyPause)
		return
	}
	c.timer = time.AfterFunc(busyPause, func() {
		if readMetrics("/memory/classes/heap/free:bytes") > worthBack {
			debug.FreeOSMemory()
			forgetProgram()
		}
	})
}

// readMetrics returns the sum of the runtime's metrics of these names.
func readMetrics(names ...string) (sum uint64) {
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	metrics.Read(samples)
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return sum
}

package hub

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
)

// A hub that has allocated less than restingBytes within restEvery rests. It is worth a collection
// if it has allocated workedBytes before.
const (
	restEvery    = 10 * time.Second
	restingBytes = 4 << 20
	workedBytes  = 16 << 20
)

// rest calls giveBack whenever the hub has worked, or started, and rests again, until ctx is done.
// allocated returns the bytes that the hub has allocated since it was started.
func rest(ctx context.Context, allocated func() uint64, giveBack func()) {
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	var last, given uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := allocated()
		if now-last < restingBytes && now-given >= workedBytes {
			giveBack()
			given = now
		}
		last = now
	}
}

// measured returns what the runtime says of itself.
func measured(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// boundMemory sets Go's memory limit until ctx is done, unless GOMEMLIMIT does: what large messages
// may take, and room for the rest. The garbage that messages leave must not come on top of that. A
// hub that needs more for itself gets it, so that the collector does not run all the time. One that
// rests gives memory back. Unless GOGC says otherwise, a large hub gathers no more garbage than a
// middling one.
func boundMemory(ctx context.Context, messages *budget.Budget) {
	_, bounded := os.LookupEnv("GOMEMLIMIT")
	_, paced := os.LookupEnv("GOGC")
	rest(ctx, func() uint64 {
		const least, spare = 128 << 20, 64 << 20
		live := int64(measured("/gc/heap/live:bytes"))
		if !bounded {
			debug.SetMemoryLimit(messages.Size() + max(least, live+spare))
		}
		if !paced {
			debug.SetGCPercent(int(min(100, max(25, 100*spare/max(live, 1)))))
		}
		return measured("/gc/heap/allocs:bytes")
	}, debug.FreeOSMemory)
}

// RelaxCollector makes a small hub collect its garbage seldom, unless GOGC says otherwise. The
// runtime lets as much garbage gather as is in use, and what it returns counts as in use while the
// caller holds it. It takes no memory: nobody writes to its pages.
func RelaxCollector() (untouched []byte) {
	if _, ok := os.LookupEnv("GOGC"); ok {
		return nil
	}
	return make([]byte, 16<<20)
}

package hub

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
)

// startQuiet passes without news from any server before the start counts as over.
const startQuiet = time.Second

// starting returns memory to the system once a hub has started. Configs, schemas and lists that
// were read are garbage by then, and the runtime would keep their pages until somebody calls. Its
// zero value does nothing. It is safe for concurrent use.
type starting struct {
	mu    sync.Mutex
	timer *time.Timer // nil: not begun, or over
}

// begin begins to wait for the end of the start.
func (s *starting) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(startQuiet, func() {
		s.end()
		debug.FreeOSMemory()
	})
}

// more says that the start goes on.
func (s *starting) more() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Reset(startQuiet)
	}
}

// end ends the waiting.
func (s *starting) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// A hub that has allocated less than restingBytes within restEvery rests. It is worth a collection
// if it has allocated workedBytes before.
const (
	restEvery    = 10 * time.Second
	restingBytes = 4 << 20
	workedBytes  = 16 << 20
)

// rest calls giveBack whenever the hub has worked and rests again, until ctx is done. allocated
// returns the bytes that the hub has allocated since it was started.
func rest(ctx context.Context, allocated func() uint64, giveBack func()) {
	tick := time.NewTicker(restEvery)
	defer tick.Stop()
	last := allocated()
	given := last
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
// rests gives memory back.
func boundMemory(ctx context.Context, messages *budget.Budget) {
	_, bounded := os.LookupEnv("GOMEMLIMIT")
	rest(ctx, func() uint64 {
		if !bounded {
			const least, spare = 128 << 20, 64 << 20
			debug.SetMemoryLimit(messages.Size() + max(least, int64(measured("/gc/heap/live:bytes"))+spare))
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

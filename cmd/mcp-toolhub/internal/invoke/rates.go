package invoke

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// rates counts the calls that policy.Rate bounds. Its zero value is ready.
type rates struct {
	mu      sync.Mutex
	buckets map[bucketKey]*rate.Limiter
}

// bucketKey says what a count is for. A rate that changes begins to count anew.
type bucketKey struct {
	rate   policy.Rate
	actor  caller // without its session
	tool   tool.Name
	server string
}

// maxBuckets is how many counts are kept before those are dropped that bound nothing now.
const maxBuckets = 1000

// take counts the call, or refuses it where that would be one too many.
func (r *rates) take(all []policy.Rate, inv *invocation, now time.Time) error {
	t, actor := inv.listed.Tool, &inv.call.Actor
	r.mu.Lock()
	defer r.mu.Unlock()
	var taken []*rate.Reservation
	for _, one := range all {
		if one.Match != "" && !glob.Match(one.Match, string(t.Name)) || one.Actor != "" &&
			!glob.Match(one.Actor, actor.Name) {
			continue
		}
		key := bucketKey{rate: one}
		if one.PerActor {
			key.actor = caller{door: actor.Door, name: actor.Name}
		}
		if one.PerTool {
			key.tool = t.Name
		}
		if one.PerServer {
			key.server = t.Server
		}
		reserved := r.bucket(key, now).ReserveN(now, 1)
		taken = append(taken, reserved)
		wait := reserved.DelayFrom(now)
		if wait == 0 {
			continue
		}
		for _, r := range taken { // a refused call counts nowhere
			r.CancelAt(now)
		}
		wait = (wait + time.Second - 1).Truncate(time.Second) // no call is refused that comes back then
		return &tool.Failure{Class: tool.ClassRateLimited, Code: "rate_limited", RetryAfter: wait, Message: fmt.Sprintf(
			"%d calls are allowed here at once, and %[1]d more in each %s: nothing ran; call again in %s", one.Calls,
			one.Every, wait)}
	}
	return nil
}

// bucket returns the count for key. r.mu is held.
func (r *rates) bucket(key bucketKey, now time.Time) *rate.Limiter {
	if b := r.buckets[key]; b != nil {
		return b
	}
	if len(r.buckets) >= maxBuckets {
		for old, b := range r.buckets {
			if b.TokensAt(now) >= float64(b.Burst()) {
				delete(r.buckets, old)
			}
		}
	}
	if r.buckets == nil {
		r.buckets = make(map[bucketKey]*rate.Limiter)
	}
	b := rate.NewLimiter(rate.Every(key.rate.Every/time.Duration(key.rate.Calls)), key.rate.Calls)
	r.buckets[key] = b
	return b
}

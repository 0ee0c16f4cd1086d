package invoke

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// TestRates: what is bounded for each actor, tool or server is counted for each, and a refused call says when to come back.
func TestRates(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	var r rates
	call := func(actor, server, name string, all ...policy.Rate) time.Duration {
		inv := &invocation{call: &Call{Actor: tool.Actor{Name: actor}},
			listed: &tool.Listed{Tool: &tool.Tool{Name: tool.Name("mcp." + server + "." + name), Server: server}}}
		err := r.take(all, inv, now)
		var f *tool.Failure
		if errors.As(err, &f) && f.Class == tool.ClassRateLimited {
			return f.RetryAfter
		}
		if err != nil {
			t.Error(err)
		}
		return 0
	}
	perActor := policy.Rate{Match: "mcp.a.*", Calls: 2, Every: time.Minute, PerActor: true}
	ofAnn := policy.Rate{Actor: "an*", Calls: 1, Every: time.Hour}
	perTool := policy.Rate{Calls: 1, Every: time.Hour, PerTool: true, PerServer: true}
	for i, c := range []struct {
		actor, server, name string
		rate                policy.Rate
		wait                time.Duration
	}{
		{"ann", "a", "x", perActor, 0}, {"ann", "a", "y", perActor, 0}, {"ann", "a", "x", perActor, 30 * time.Second},
		{"bob", "a", "x", perActor, 0}, {"ann", "b", "x", perActor, 0},
		{"ann", "a", "x", perTool, 0}, {"ann", "a", "y", perTool, 0}, {"bob", "a", "y", perTool, time.Hour}, {"bob", "b", "y", perTool, 0},
		{"ann", "a", "x", ofAnn, 0}, {"bob", "a", "x", ofAnn, 0}, {"bob", "a", "x", ofAnn, 0}, {"ann", "b", "y", ofAnn, time.Hour},
	} {
		if wait := call(c.actor, c.server, c.name, c.rate); wait != c.wait {
			t.Errorf("call %d: wait %s, want %s", i, wait, c.wait)
		}
	}
	now = now.Add(30 * time.Second)
	both := []policy.Rate{perActor, perTool}
	if call("ann", "a", "y", both...) == 0 {
		t.Error("the second rate does not bound")
	}
	if wait := call("ann", "a", "x", perActor); wait != 0 {
		t.Errorf("a refused call was counted: wait %s", wait)
	}
	now = now.Add(24 * time.Hour)
	if call("cid", "a", "x", perActor); call("cid", "a", "x", perActor) != 0 {
		t.Error("the second call is refused")
	}
	now = now.Add(28700 * time.Millisecond)
	wait := call("cid", "a", "x", perActor)
	if now = now.Add(wait); wait != 2*time.Second || call("cid", "a", "x", perActor) != 0 {
		t.Errorf("told to come back after %s, and refused then", wait)
	}
	now = now.Add(24 * time.Hour)
	for i := range 3 * maxBuckets {
		call(fmt.Sprint(i), "a", "x", perActor)
		now = now.Add(time.Minute)
	}
	if len(r.buckets) > maxBuckets {
		t.Errorf("%d counts are kept", len(r.buckets))
	}
}

package upstream_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestFirstListsAreAwaited: a first list is waited for until it is there, its server has failed, or the time is over.
// Nobody waits for a server that is lazy.
func TestFirstListsAreAwaited(t *testing.T) {
	t.Parallel()
	silent := upstreamtest.Script{Behaviours: []upstreamtest.Behaviour{upstreamtest.NeverInitialises}}
	lazy := stdio("lazy", silent)
	lazy.Lazy = true
	h := startConfig(t, upstream.Config{FirstListWithin: time.Hour, Servers: []upstream.ServerConfig{
		stdio("slow", upstreamtest.Script{Delay: 200 * time.Millisecond}), stdio("silent", silent), lazy,
		stdio("fails", upstreamtest.Script{Behaviours: []upstreamtest.Behaviour{upstreamtest.ExitsAtOnce}}),
	}})
	if !h.AwaitFirstLists(t.Context(), []string{"slow", "fails", "unknown"}) || len(h.catalog("slow").Tools) == 0 {
		t.Error("the slow server was not waited for")
	}
	if h.AwaitFirstLists(t.Context(), []string{"lazy"}) {
		t.Error("a lazy server was waited for")
	}
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		h.AwaitFirstLists(ctx, []string{"silent"})
	}()
	h.ready(t, "slow")
	select {
	case <-returned:
		t.Error("a server that says nothing was not waited for")
	default:
	}
	cancel()
	<-returned
	brief := startConfig(t, upstream.Config{FirstListWithin: time.Millisecond, Servers: []upstream.ServerConfig{stdio("silent", silent)}})
	brief.AwaitFirstLists(t.Context(), []string{"silent"}) // and returns
	if brief.AwaitFirstLists(t.Context(), []string{"silent"}) {
		t.Error("a server was waited for when its time was over")
	}
	late := startConfig(t, upstream.Config{FirstListWithin: time.Millisecond, Servers: []upstream.ServerConfig{
		stdio("slow", upstreamtest.Script{Delay: 200 * time.Millisecond})}})
	if !late.AwaitFirstLists(t.Context(), []string{"slow"}, time.Hour) || len(late.catalog("slow").Tools) == 0 {
		t.Error("the slow server was not waited for as long as the caller says")
	}
}

// TestCallWaitsForARestart: a call that comes when its server has just died is answered by the next process.
func TestCallWaitsForARestart(t *testing.T) {
	t.Parallel()
	h := startConfig(t, upstream.Config{RetryMin: time.Second, RetryMax: 2 * time.Second,
		Servers: []upstream.ServerConfig{stdio("s", upstreamtest.Script{})}})
	h.ready(t, "s")
	if _, err := h.call(t.Context(), "s", "die", `{}`); err == nil {
		t.Fatal("die was answered")
	}
	h.mustCall(t, "s", "echo", `{}`)
}

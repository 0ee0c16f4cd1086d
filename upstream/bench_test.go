package upstream_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// BenchmarkCall measures one small call over each transport, the fake server included.
func BenchmarkCall(b *testing.B) {
	for _, w := range ways() {
		b.Run(w.name, func(b *testing.B) {
			h := start(b, w.config(b, "s"))
			h.ready(b, "s")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.call(b.Context(), "s", "raw", `{"result":{"content":[]}}`); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCalls is BenchmarkCall with 64 callers at once, over the pipes of a child.
func BenchmarkCalls(b *testing.B) {
	for _, w := range ways() {
		if !strings.HasPrefix(w.name, "stdio") {
			continue
		}
		b.Run(w.name, func(b *testing.B) {
			h := start(b, w.config(b, "s"))
			h.ready(b, "s")
			b.ReportAllocs()
			b.SetParallelism(64 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := h.call(b.Context(), "s", "raw", `{"result":{"content":[]}}`); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkLargeResult measures a result of 10 MiB.
func BenchmarkLargeResult(b *testing.B) {
	for _, w := range ways() {
		b.Run(w.name, func(b *testing.B) {
			h := start(b, w.config(b, "s"))
			h.ready(b, "s")
			var reply tool.Reply
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if reply, err = h.call(b.Context(), "s", "big", `{"bytes":10485760}`); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(reply.Result)))
		})
	}
}

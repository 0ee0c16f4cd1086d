package upstream_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestLargeResultsAtOnce checks that large results are unchanged while the memory of others is free again.
func TestLargeResultsAtOnce(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			h := start(t, w.config(t, "s"))
			h.ready(t, "s")
			var calls sync.WaitGroup
			for i := range 4 {
				calls.Go(func() {
					for round := range 5 {
						want := fmt.Sprintf(`{"content":[],"x":"%s"}`, strings.Repeat(fmt.Sprintf(`%d\"%d`, i, round), 40_000*(1+i)))
						reply, err := h.call(t.Context(), "s", "raw", `{"result":`+want+`}`)
						if err != nil || string(reply.Result) != want {
							t.Errorf("result %.100s, %v, want %.100s", reply.Result, err, want)
							return
						}
						if reply.Free != nil {
							reply.Free()
						}
					}
				})
			}
			calls.Wait()
		})
	}
}

package hub

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// lookForKilled is the time between two looks. A hub that runs ends the calls of other hubs that were killed meanwhile.
const lookForKilled = time.Minute

// endKilled writes the last records of calls whose hubs were killed, beside everything else that
// the hub does. The returned function stops that and waits for it: the next hub goes on.
func (h *Hub) endKilled(dir string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background()) // until close
	done := make(chan struct{})
	go func() {
		defer close(done)
		again := time.NewTicker(lookForKilled)
		defer again.Stop()
		said := "" // of what went wrong the last time
		for ctx.Err() == nil {
			ended, err := persist.EndKilled(ctx, dir)
			if ended > 0 {
				h.Logger.Warn("a hub was killed during calls: their records say so now", "calls", ended)
			}
			if err == nil {
				said = ""
			} else if now := err.Error(); now != said && !errors.Is(err, context.Canceled) {
				h.Logger.Warn("calls of a killed hub may have no last record; the hub tries again each minute", "error",
					err)
				said = now
			}
			select {
			case <-again.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

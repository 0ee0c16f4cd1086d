package hub

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
)

// lookForKilled is the time between two looks. A hub that runs ends the calls of other hubs that were killed meanwhile.
const lookForKilled = time.Minute

// endKilled writes the last records of calls whose hubs were killed, beside everything else that
// the hub does. The returned function stops that and waits for it: the next hub goes on.
func (h *Hub) endKilled(dir string) (stop func()) {
	said := "" // of what went wrong the last time
	return beside(func(ctx context.Context) {
		every(ctx, lookForKilled, func() {
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
		})
	})
}

// beside runs do beside everything else that the hub does. The returned function ends that, and waits for it.
func beside(do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background()) // until close
	var running sync.WaitGroup
	running.Go(func() { do(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// Beside calls do at once and after each pause, beside everything else. The returned function ends
// that, and waits for it.
func Beside(pause time.Duration, do func()) (stop func()) {
	return beside(func(ctx context.Context) { every(ctx, pause, do) })
}

// every calls do, and again after each pause, until ctx ends.
func every(ctx context.Context, pause time.Duration, do func()) {
	_ = Poll(ctx, pause, func() (bool, error) { do(); return false, nil })
}

// Poll calls look, and again after each pause, until look has what it wants, or fails, or ctx ends.
// The error is that of look, or of ctx.
func Poll(ctx context.Context, pause time.Duration, look func() (done bool, err error)) error {
	again := time.NewTicker(pause)
	defer again.Stop()
	for ctx.Err() == nil {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// EvidenceKey is the file of the key that signs, in the state directory.
const EvidenceKey = "evidence.key"

// NewKeeper makes the keeper of the evidence of a journal. Its key is in the state directory.
func NewKeeper(state, journal string) *evidence.Keeper {
	return evidence.NewKeeper(journal, filepath.Join(state, EvidenceKey))
}

// extendChains extends the chains of the journal.
func (h *Hub) extendChains() {
	if h.chains == nil {
		return
	}
	err := h.chains.Extend()
	if err == nil || errors.Is(err, os.ErrNotExist) && !errors.Is(err, evidence.ErrDamaged) {
		h.chainProblem.Store(nil)
		return
	}
	problem := "records are in no chain of evidence: " + err.Error()
	if before := h.chainProblem.Swap(&problem); before == nil || *before != problem {
		h.Logger.Error("records are in no chain of evidence", "error", err)
	}
}

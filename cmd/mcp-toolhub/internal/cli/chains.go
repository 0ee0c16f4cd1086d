package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
)

// evidenceKey is the file of the key that signs, in the state directory.
const evidenceKey = "evidence.key"

func newKeeper(state, journal string) *evidence.Keeper {
	return evidence.NewKeeper(journal, filepath.Join(state, evidenceKey))
}

// keepChains extends the chains of the journal until ctx ends.
func (h *hub) keepChains(ctx context.Context) {
	again := time.NewTicker(evidence.Every)
	defer again.Stop()
	for {
		h.extendChains()
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

func (h *hub) extendChains() {
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
		h.logger.Error("records are in no chain of evidence", "error", err)
	}
}

package hub

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
)

// EvidenceKey is the file of the key that signs, in the state directory.
const EvidenceKey = "evidence.key"

// NewKeeper makes the keeper of the evidence of a journal. Its key is in the state directory.
func NewKeeper(state, journal string) *evidence.Keeper {
	return evidence.NewKeeper(journal, filepath.Join(state, EvidenceKey))
}

// keepChains extends the chains of the journal until ctx ends.
func (h *Hub) keepChains(ctx context.Context) {
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

// Package eraser takes what was said in calls out of everything that keeps it. It walks the journal
// with its chains of evidence, the record store, and the stored results.
package eraser

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// Places are what keeps calls.
type Places struct {
	Journal  persist.JournalConfig
	Chains   *evidence.Keeper
	Records  store.Store
	Payloads *payload.Store
}

// Erasure says what is erased, for whom and why.
type Erasure struct {
	Calls      []tool.InvocationID
	Payloads   func(payload.Entry) bool // the stored results, artifacts and inputs that go, too
	By, Reason string                   // Reason may be ""
}

// Erase erases what persist.Erasable means in all places, and returns how many lines of journal and store, and how many
// payloads this has changed. The record of the erasure comes first, then the journal, which the
// store is filled from, then the store and the payloads. After an error it can be repeated.
func (p *Places) Erase(ctx context.Context, e *Erasure) (lines, payloads int, err error) {
	if err := p.record(ctx, e); err != nil {
		return 0, 0, err
	}
	wanted := make(map[tool.InvocationID]bool)
	for _, id := range e.Calls {
		wanted[id] = true
	}
	lines, err = p.Chains.Erase(func(id tool.InvocationID) bool { return wanted[id] })
	if err != nil && !errors.Is(err, evidence.ErrDamaged) { // damage hinders no erasure
		return lines, 0, err
	}
	if err := store.FillUp(ctx, p.Records, p.Journal.Dir); err != nil {
		return lines, 0, err
	}
	inStore, err := p.Records.Erase(ctx, e.Calls)
	if lines += inStore; err != nil {
		return lines, 0, err
	}
	because := strings.TrimSuffix("it was erased: "+e.Reason, ": ")
	payloads, err = p.Payloads.Erase(ctx, because, e.Payloads)
	return lines, payloads, err
}

// record writes the fact into the journal, once for each call.
func (p *Places) record(ctx context.Context, e *Erasure) (err error) {
	cfg := p.Journal
	cfg.MaxFiles, cfg.MaxAge = 1<<20, 0 // no old file is removed for this
	j, err := persist.Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	data := map[string]any{"by": e.By}
	if e.Reason != "" {
		data["reason"] = e.Reason
	}
	for part := range slices.Chunk(e.Calls, 1000) {
		var records []tool.Record
		for _, id := range part {
			lines, err := p.Records.Lines(ctx, id)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(lines, func(l json.RawMessage) bool {
				return rawjson.Text(l, "event_type") == string(tool.EventInvocationErased)
			}) {
				continue // an Erase before this one has begun with that
			}
			records = append(records, tool.Event{Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.NewEventID(),
				EventType: tool.EventInvocationErased,
				Source:    tool.EventSource, Subject: string(id), Time: time.Now().UTC(), InvocationID: id, Data: data})
		}
		if err := j.Commit(ctx, records...); err != nil {
			return err
		}
	}
	return nil
}

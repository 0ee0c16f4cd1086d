package hub

import (
	"context"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// suggestWithin bounds the look at the calls of suggestSince.
const (
	suggestWithin = 20 * time.Second
	suggestSince  = 30 * 24 * time.Hour
)

// suggest finds rules in what was decided lately.
func (p *pageHub) suggest(ctx context.Context) (*history.Suggested, error) {
	ctx, cancel := context.WithTimeout(ctx, suggestWithin)
	defer cancel()
	records, err := p.store(ctx, true)
	if err != nil {
		return nil, err
	}
	now := p.Surfaces.Now()
	l := Look{Settings: now.Settings, Own: now.Own, Table: p.hubTools, Tools: KnownTools(p.Surfaces.catalogs(now),
		p.hubTools)}
	if l.Calls, err = lookup.Past(ctx, records, store.Query{Since: time.Now().Add(-suggestSince)}); err != nil {
		return nil, err
	}
	return history.Suggest(ctx, l.Past())
}

func (p *pageHub) Suggestions(ctx context.Context) (all []history.Suggestion, says string, err error) {
	found, err := p.suggest(ctx)
	if err != nil {
		return nil, "", err
	}
	return found.Suggestions, SumOf(found) + ". Looked at: the calls of 30 days.", nil
}

// TakeRule adds a rule to the config, as it is suggested now. The hub takes it up as it does when a
// person saves the file.
func (p *pageHub) TakeRule(ctx context.Context, id string) error {
	found, err := p.suggest(ctx)
	if err != nil {
		return err
	}
	for i := range found.Suggestions {
		if found.Suggestions[i].Rule.ID != id {
			continue
		}
		return p.configFile.AddRule(p.Settings(), &found.Suggestions[i])
	}
	return console.ErrUnknown
}

// Bounds of the look at earlier answers while a person is about to be asked.
const (
	offerWithin = time.Second
	offerCalls  = 200
)

// offer returns the grant that a question offers, because people have given the same answer to
// calls like r. A hub whose records cannot be read soon offers none.
func (p *pageHub) offer(ctx context.Context, r *policy.Request) *policy.SuggestedGrant {
	if !history.MayOffer(r, p.Surfaces.Now().Gate) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, offerWithin)
	defer cancel()
	records, err := p.store(ctx, true)
	if err != nil {
		return nil
	}
	calls, err := lookup.Past(ctx, records, store.Query{Since: time.Now().Add(-suggestSince), Limit: offerCalls,
		Is: map[store.Column]string{store.Tool: string(r.Tool.Name), store.Actor: r.Actor.Ref()}})
	if err != nil {
		p.Logger.Debug("a question offers no rule, because earlier answers cannot be read", "error", err)
		return nil
	}
	return history.Offer(ctx, calls, r, p.Surfaces.Now().Gate, homeDir())
}

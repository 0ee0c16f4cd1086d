package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

// keepArtifacts stores what the call has made beside its result, and says in the result for the
// caller where it is. It stores what the result names, too, as far as the rule has it. Each
// decision about it is recorded. ours says that no hook says what is kept of the result. It reports
// whether the result changed.
func (inv *invocation) keepArtifacts(ctx context.Context, o *Options, rule tool.ResultRule, ours bool) (changed bool) {
	c := inv.call
	if rules := c.Surface.Results; rules != nil && rules.For(inv.toolID()).Strategy == tool.StrategyNeverPersist {
		return false
	}
	// A hook has seen the result, and not the artifacts.
	ours = ours && (inv.failure == nil || inv.reply.Result == nil) && (inv.hooks == nil || !inv.hooks.changed)
	if rule.Artifacts != nil {
		inv.reply.Artifacts = append(inv.reply.Artifacts, taker{o.Sources, rule.Artifacts, inv}.takeIn(ctx, ours)...)
	}
	var refs []tool.PersistedRef
	for i, a := range inv.reply.Artifacts {
		d := &tool.ResultPersistence{Strategy: tool.StrategyDropWithReason, OriginalSize: len(a.Bytes)}
		if !ours {
			a.Err = errors.New("the caller does not get the result as the tool has made it")
		}
		if a.Err != nil {
			d.Reason = fmt.Sprintf("the artifact %q is not stored: %v", a.Name, a.Err)
			inv.record.PersistResult(d, time.Now())
			continue
		}
		e, err := o.put(payload.Entry{ID: tool.ArtifactOf(inv.id, i+1), Name: a.Name, MediaType: a.MediaType,
			Tool:  inv.toolID(),
			Actor: c.Actor.Ref(), Created: time.Now()}, a.Bytes)
		text, link := fmt.Sprintf("%s could not be stored.", a.Name), json.RawMessage(nil)
		if err != nil {
			o.Logger.Warn("an artifact could not be stored", "tool", e.Tool, "name", a.Name, "bytes", len(a.Bytes),
				"error", err)
			d.Reason = fmt.Sprintf("the artifact %q could not be stored: %v", a.Name, err)
		} else {
			d.Strategy, d.OriginalSize, d.Persisted = tool.StrategyRefOnly, int(e.Size), e.Ref()
			refs = append(refs, *d.Persisted)
			inv.outcome.Artifacts = refs
			text = fmt.Sprintf("%s is stored, %s: %s", a.Name, a.About, howToRead(e.ID, c.Surface.Reader()))
			link = linkTo(d.Persisted, a.Name, "An artifact of this call: "+a.About+".", c.Actor)
		}
		inv.record.PersistResult(d, time.Now())
		if a.About == "" {
			continue // the result passes as it is
		}
		changed = inv.addBlocks(textBlock(text, metaPreview, []byte("true")), link) || changed
	}
	return changed
}

// put stores a result or an artifact.
func (o *Options) put(e payload.Entry, raw []byte) (payload.Entry, error) {
	if o.Results == nil {
		return e, errors.New("there is no store")
	}
	return o.Results.Put(e, raw)
}

// addBlocks adds content blocks to the result, where it has content; those that are nil are left out.
func (inv *invocation) addBlocks(blocks ...json.RawMessage) bool {
	content, ok := rawjson.Get(inv.outcome.Result, "content")
	if !ok || !isArray(content) {
		return false
	}
	for _, b := range blocks {
		if b != nil {
			content = withBlock(content, b)
		}
	}
	result, err := rawjson.Set(inv.outcome.Result, "content", content)
	if err == nil {
		inv.setResult(tool.Reply{Result: result})
	}
	return err == nil
}

// withBlock is an array of content blocks with one more.
func withBlock(content, block []byte) json.RawMessage {
	content = bytes.TrimSpace(content)
	inside := content[:len(content)-1]
	out := append(make([]byte, 0, len(content)+len(block)+1), inside...)
	if len(bytes.TrimSpace(inside)) > 1 {
		out = append(out, ',')
	}
	return append(append(out, block...), ']')
}

// textBlock is a text of the hub as a content block. mark below key in its _meta tells it from the tool's own.
func textBlock(text, key string, mark []byte) json.RawMessage {
	out := append([]byte(`{"type":"text","text":`), rawjson.Quote(text)...)
	out = append(append(append(out, `,"_meta":{`...), rawjson.Quote(key)...), ':')
	return append(append(out, mark...), "}}"...)
}

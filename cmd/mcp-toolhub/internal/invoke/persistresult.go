package invoke

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/persist/preview"
)

// persistResult decides what the caller gets of a large result, and what of the result stands in
// the journal: small results whole, large ones by reference.
func (p *Pipeline) persistResult(ctx context.Context, inv *invocation) error {
	defer inv.redactRecord()
	native := inv.outcome.Result
	r, object := p.keptResult(ctx, inv)
	ours := len(r) > 0 && len(r) == len(native) && &r[0] == &native[0]
	rule := inv.resultRule()
	if inv.reply.Unkept { // neither a part of it as an artifact
		rule.Strategy, rule.Artifacts = tool.StrategyNeverPersist, nil
	}
	inv.outcome.Unkept = inv.outcome.Unkept || native != nil && !ours || rule.Strategy == tool.StrategyNeverPersist
	if (len(inv.reply.Artifacts) > 0 || rule.Artifacts != nil) && inv.keepArtifacts(ctx, &p.opts, rule, ours) {
		native, r, object = inv.outcome.Result, inv.outcome.Result, inv.outcome.Object
	}
	if k := inv.reply.Kept; k != nil && ours {
		r = k
		object, _ = rawjson.ReadObject(k)
	}
	if rule.MaxChars > 0 && len(native) > rule.MaxChars {
		inv.limitResult(&p.opts, rule, ours)
	}
	if r == nil {
		return nil
	}
	if rule.Strategy == tool.StrategyNeverPersist {
		inv.end.ContentRef, inv.end.Summary = persist.KeyedRef(seal.Digest(inv.key, "inputs", r), len(r)), ""
		inv.record.PersistResult(&tool.ResultPersistence{Strategy: rule.Strategy, OriginalSize: len(native)}, time.Now())
		return nil
	}
	if len(r) > persist.InlineLimit {
		inv.end.ContentRef = persist.RefOf(tool.Digest(r), len(r))
		// what the caller gets in its place
		if part := inv.outcome.Result; len(part) < len(native) && len(part) <= persist.InlineLimit {
			content, _ := inv.outcome.Object.Get("content")
			inv.end.Content = objects(content)
		}
		return nil
	}
	inv.outcome.Free = nil // the record that is about to be written reads it
	if f := inv.failure; f != nil && f.Private != "" {
		inv.end.Content = fmt.Appendf(nil, `[{"type":"text","text":%s}]`, rawjson.Quote(f.Message))
		return nil
	}
	if content, ok := object.Get("content"); ok && !rawjson.IsNull(content) {
		inv.end.Content = objects(content)
	}
	if structured, ok := object.Get("structuredContent"); ok && rawjson.Valid(structured) {
		inv.end.Structured = structured
	}
	return nil
}

// resultRule is the rule for the result of the tool; the zero value where nothing is to be decided: the usual case.
func (inv *invocation) resultRule() tool.ResultRule {
	rules := inv.call.Surface.Results
	if rules == nil && !inv.isLongLine() || inv.listed == nil || inv.failure != nil || inv.outcome.Task != nil {
		return tool.ResultRule{}
	}
	if h := inv.listed.Tool.Hub; h != nil && h.Whole {
		return tool.ResultRule{}
	}
	rule := tool.ResultRule{Strategy: tool.StrategyPreviewAndPersist}
	if rules != nil {
		rule = rules.For(inv.listed.Tool.Name)
	}
	if inv.call.Request != nil { // its result is no content for a model
		return tool.ResultRule{Strategy: rule.Strategy}
	}
	if inv.isLongLine() && rule.Strategy == tool.StrategyPreviewAndPersist {
		rule.MaxChars = cmp.Or(rule.MaxChars, maxLine)
	}
	return rule
}

// maxLine bounds the bytes of a result over stdio. Clients in TypeScript drop the whole connection at a line of 10 MB.
const maxLine = 8_000_000

// isLongLine reports whether the result, images included, is longer than that.
func (inv *invocation) isLongLine() bool {
	return inv.call.Actor.Door == "stdio" && len(inv.outcome.Result) > maxLine
}

// limitError cuts a server's JSON-RPC error that is larger than a result may be for the caller.
// Nothing is stored of it: it is no result.
func limitError(inv *invocation) {
	e, rules := inv.outcome.Err, inv.call.Surface.Results
	if e == nil || rules == nil || inv.listed == nil {
		return
	}
	most := rules.For(inv.listed.Tool.Name).MaxChars
	size := max(utf8.RuneCount(e.Raw), utf8.RuneCountInString(e.Message)+utf8.RuneCount(e.Data))
	if most == 0 || size <= most {
		return
	}
	said := fmt.Sprintf("%.*s … (the hub cut this error: it has %d characters, and at most %d are passed on: %s)",
		previewChars(most), e.Message, size, most, rules.Because)
	inv.outcome.Err = &tool.RPCError{Code: e.Code, Message: said, Data: fmt.Appendf(nil, `{%q:{"invocation_id":%q}}`,
		metaInvocation, inv.id)}
}

// limitResult decides about a result that may be too large for the caller. ours says that a store
// may hold it: a hook may have said that something else is kept.
func (inv *invocation) limitResult(o *Options, rule tool.ResultRule, ours bool) {
	d, part := inv.decideResult(o, rule, ours)
	if d == nil {
		return
	}
	switch { // results.redact has had its say
	case inv.end.Redacted > 0:
		d.Redaction = tool.Redacted
	case inv.end.Detected > 0:
		d.Redaction = tool.Detected
	}
	if part != nil {
		if inv.call.Cut != nil && inv.final == tool.StatusSucceeded {
			inv.call.Cut.Whole(inv.outcome.Object)
		}
		inv.setResult(tool.Reply{Result: part})
	}
	if chars, _ := d.Threshold["result_chars"].(int); d.PreviewSize > 0 {
		inv.kept = max(0, chars-d.PreviewSize)
	}
	inv.record.PersistResult(d, time.Now())
}

// decideResult returns what is decided about the result, and what the caller gets in its place; nil
// where it is within the limit, and where the caller gets it whole.
func (inv *invocation) decideResult(o *Options, rule tool.ResultRule, ours bool) (d *tool.ResultPersistence,
	part json.RawMessage) {
	native := inv.outcome.Object.Text()
	size, rules := shownSize(native), inv.call.Surface.Results
	if rules == nil || size <= rule.MaxChars && inv.isLongLine() {
		size, rules = len(native), &tool.ResultRules{Usual: rule, Because: "what clients take in one line"}
	}
	if size <= rule.MaxChars || rule.Strategy == tool.StrategyNeverPersist {
		return nil, nil
	}
	d = &tool.ResultPersistence{Strategy: rule.Strategy, OriginalSize: len(native), Threshold: map[string]any{
		"max_inline_chars": rule.MaxChars, "result_chars": size, "because": rules.Because}}
	var said pieceOfResult
	switch {
	case rule.Strategy == tool.StrategyDropWithReason:
		said.text = fmt.Sprintf("The tool has run, and its result of %d bytes is dropped: results of more than %d "+
			"characters are not passed on "+
			"here, so ask it for less.", len(native), rule.MaxChars)
		d.Reason = said.text
	case !rule.Cuts():
	case !ours:
		d.Strategy, d.Reason = tool.StrategyInline,
			"a hook says what is kept of the result, so it is not stored, and the caller gets it whole"
	default:
		storeResult(o, inv, native, d, &said)
	}
	if said.text == "" {
		return d, nil
	}
	said.blocks = make([]json.RawMessage, 0)
	if d.Strategy == tool.StrategyPreviewAndPersist {
		said.blocks = preview.Of(native, previewFor(rules, rule))
	}
	part = said.in(inv.outcome.Object)
	d.PreviewSize = len(part)
	return d, part
}

// storeResult stores the native result, and makes what the caller is told of that. If it cannot be
// stored, the caller gets it whole: nothing is lost.
func storeResult(o *Options, inv *invocation, native []byte, d *tool.ResultPersistence, said *pieceOfResult) {
	id, actor := tool.ResultOf(inv.id), inv.call.Actor
	e := payload.Entry{ID: id, MediaType: "application/json", Tool: inv.toolID(), Actor: actor.Ref(), Created: time.Now()}
	if actor.Door == "stdio" {
		e.Text = preview.Text(native)
	}
	e, err := o.put(e, native)
	if err != nil {
		o.Logger.Warn("a large result could not be stored: its caller gets it whole", "invocation", inv.id, "tool",
			inv.toolID(), "bytes", len(native), "error", err)
		d.Strategy, d.Reason = tool.StrategyInline, "the result could not be stored, so the caller gets it whole: "+
			err.Error()
		return
	}
	d.Persisted = e.Ref()
	what := "This is a part of the result"
	if d.Strategy == tool.StrategyRefOnly {
		what = "The result is not shown here"
	}
	said.text = fmt.Sprintf("%s: all of its %d bytes are stored; %s", what, e.Size,
		howToRead(id, inv.call.Surface.Reader()))
	if e.File != "" {
		said.text += fmt.Sprintf(" It is also in the file %s.", e.File)
	}
	said.link = linkTo(d.Persisted, string(id), "The whole result of this call.", actor)
}

// howToRead says how to read what is stored under the id. reader is the tool of the hub that reads
// it; "" where none is listed.
func howToRead(id tool.ResultID, reader tool.Name) string {
	how := fmt.Sprintf("read the resource %s.", tool.ResultURI(id))
	if reader != "" {
		how = fmt.Sprintf("read on with %s and {\"id\":%q}, or %s", reader, id, how)
	}
	return how
}

// linkTo is a content block that links to what is stored; nil for a caller that takes none.
func linkTo(ref *tool.PersistedRef, name, what string, to tool.Actor) json.RawMessage {
	if v := to.Client.ProtocolVersion; v != "" && v < linksSince {
		return nil // older clients refuse a block of an unknown type
	}
	return fmt.Appendf(nil, `{"type":"resource_link","uri":%s,"name":%s,"description":%s,"mimeType":%s,"size":%d,`+
		`"_meta":{"toolhub/sha256":%q}}`, rawjson.Quote(ref.URI), rawjson.Quote(name), rawjson.Quote(what),
		rawjson.Quote(ref.MediaType),
		ref.Size, ref.SHA256)
}

// linksSince is the first protocol revision with resource links in results.
const linksSince = "2025-06-18"

// pieceOfResult takes the place of a large result in the answer to its caller.
type pieceOfResult struct {
	blocks []json.RawMessage // of the preview
	text   string            // what the hub says of it; "": nothing takes its place
	link   json.RawMessage   // nil: none
}

// metaPreview marks the block in which the hub speaks.
const metaPreview = "toolhub/preview"

// in is the result for the caller: native with other content, and without large members.
func (s *pieceOfResult) in(native rawjson.Object) json.RawMessage {
	out := []byte(`{"content":[`)
	for _, b := range s.blocks {
		out = append(append(out, b...), ',')
	}
	out = append(out, textBlock(s.text, metaPreview, []byte("true"))...)
	if s.link != nil {
		out = append(append(out, ','), s.link...)
	}
	out = append(out, ']')
	for _, m := range native.Members() {
		if name := m.Name(); name != "content" && name != "structuredContent" && len(m.Value) <= preview.SmallMember {
			out = append(append(append(append(out, ',', '"'), m.Key...), `":`...), m.Value...)
		}
	}
	return append(out, '}')
}

// imageChars bounds the characters that one image adds to a result's size. Clients show an image to
// their model as an image, and that takes about 1,600 tokens.
const imageChars = 6400

// maxImage is the largest image that counts as imageChars, in characters of base64: 3.75 MB of
// data. Models refuse larger images.
const maxImage = 5_000_000

// shownSize counts the characters of a result. An image that models take adds imageChars at most.
func shownSize(result []byte) int {
	size := utf8.RuneCount(result)
	content, _ := rawjson.Get(result, "content")
	_ = rawjson.Elements(content, func(block []byte) bool {
		if kind, _ := rawjson.GetString(block, "type"); kind == "image" {
			if data, _ := rawjson.Get(block, "data"); len(data) <= maxImage+len(`""`) {
				size -= max(0, len(data)-imageChars)
			}
		}
		return true
	})
	return size
}

// besidePreview is the room around a preview, in characters: for the hub's own words and the link.
const besidePreview = 1000

// previewFor returns the largest size of a preview, in characters, under one of the rules.
func previewFor(rules *tool.ResultRules, rule tool.ResultRule) int {
	usual := previewChars(rule.MaxChars)
	if rule.MaxChars != rules.Usual.MaxChars {
		return usual
	}
	return max(usual, rules.Preview-besidePreview)
}

// previewChars returns the largest size of a preview, in characters, where results have this limit.
func previewChars(limit int) int { return min(limit/2, 8000) }

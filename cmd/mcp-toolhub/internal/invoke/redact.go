package invoke

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// redact does with the secrets in what the caller is about to get what results.redact says. Where
// the result is withheld, it is too late for another status than that of a failure: the tool has
// run.
func (inv *invocation) redact(log *slog.Logger) {
	rules := inv.call.Surface.Results
	if rules == nil || inv.listed == nil || inv.outcome.Task != nil || inv.call.Request != nil {
		return
	}
	mode := rules.For(inv.listed.Tool.Name).Redact
	if mode == "" || mode == tool.RedactOff {
		return
	}
	result, n := inv.withoutSecrets(inv.outcome.Result)
	rpc := inv.outcome.Err
	if rpc != nil && inv.outcome.Result == nil {
		rpc, n = inv.errorWithoutSecrets(rpc)
	}
	switch {
	case n == 0:
	case mode == tool.RedactDetect:
		inv.end.Detected = n
		log.Warn("the result of a tool has secrets, and its caller gets them", "tool", inv.toolID(), "invocation",
			inv.id, "secrets", n)
	case mode == tool.RedactRedact && inv.outcome.Result == nil:
		inv.outcome.Err, inv.end.Redacted = rpc, n
	case mode == tool.RedactRedact:
		inv.record.PersistResult(&tool.ResultPersistence{Strategy: tool.StrategyRedact, Redaction: tool.Redacted,
			OriginalSize: len(inv.outcome.Result), PreviewSize: len(result)}, time.Now())
		inv.setResult(tool.Reply{Result: result})
		inv.end.Redacted = n
	default:
		inv.failure, inv.rpcErr, inv.outcome.Err = nil, nil, nil
		inv.fail(&tool.Failure{Class: tool.ClassResultRedacted,
			Message: fmt.Sprintf("the tool has run, and its result is withheld, because "+
				"secrets are in it (%d): results.redact is block for this tool. Go on without it, or ask for a part "+
				"without secrets", n)})
		inv.mapFailure()
	}
}

// withoutSecrets is a result with marks in the place of its secrets, and how many those are.
// Pointers of the facts lead into structuredContent, and into the texts that say the same.
func (inv *invocation) withoutSecrets(result json.RawMessage) (masked json.RawMessage, n int) {
	if result == nil {
		return nil, 0
	}
	var at []string
	if inv.facts != nil {
		for _, p := range inv.facts.SensitiveResult {
			at = append(at, "/structuredContent"+p)
		}
		if content, ok := rawjson.Get(result, "content"); ok && len(at) > 0 {
			if texts, k := inv.textsWithoutSecrets(content); k > 0 {
				if with, err := rawjson.Set(result, "content", texts); err == nil {
					result, n = with, k
				}
			}
		}
	}
	masked, k := inv.record.Learned().JSON(result, at...)
	return masked, n + k
}

// textsWithoutSecrets masks what the pointers of the facts lead to in those texts of content that are JSON.
func (inv *invocation) textsWithoutSecrets(content []byte) (masked []byte, n int) {
	out, err := rawjson.Map(content, func(block []byte) []byte {
		if text, ok := rawjson.GetString(block, "text"); ok && rawjson.Valid([]byte(text)) {
			if inner, k := inv.record.Learned().JSON([]byte(text), inv.facts.SensitiveResult...); k > 0 {
				if with, err := rawjson.Set(block, "text", rawjson.Quote(string(inner))); err == nil {
					block, n = with, n+k
				}
			}
		}
		return block
	})
	if err != nil || n == 0 {
		return content, 0
	}
	return out, n
}

// errorWithoutSecrets is a server's error with marks in the place of its secrets.
func (inv *invocation) errorWithoutSecrets(e *tool.RPCError) (masked *tool.RPCError, n int) {
	out := *e
	var k int
	out.Message, n = inv.record.Learned().Text(e.Message)
	for _, text := range []*json.RawMessage{&out.Data, &out.Raw} {
		if rawjson.Valid(*text) {
			*text, k = inv.record.Learned().JSON(*text)
			n += k
		}
	}
	return &out, n
}

// redactRecord masks what the pointers of the facts lead to in what the records keep of the result.
func (inv *invocation) redactRecord() {
	if inv.facts == nil || len(inv.facts.SensitiveResult) == 0 {
		return
	}
	var n, k int
	if len(inv.end.Structured) > 0 {
		inv.end.Structured, n = inv.record.Learned().JSON(inv.end.Structured, inv.facts.SensitiveResult...)
	}
	if len(inv.end.Content) > 0 {
		inv.end.Content, k = inv.textsWithoutSecrets(inv.end.Content)
	}
	inv.end.Redacted += n + k
}

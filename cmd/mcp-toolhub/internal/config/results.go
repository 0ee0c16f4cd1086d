package config

import (
	"cmp"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/limit"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

// results is the key results of the file.
type results struct {
	limit.Settings
	tools []shape.Located[limit.Rule]
}

// storedResults is the key persist.results.
type storedResults struct {
	payload.Config
	dir shape.Located[string]
}

func resultsKeys(f *results) []shape.Field {
	return append(resultKeys(&f.Settings),
		shape.Key("tools", "What is otherwise for some tools. The first that sets a field counts.",
			shape.ListAt(shape.ObjectOf(toolResultsKeys)), &f.tools))
}

func resultKeys(s *limit.Settings) []shape.Field {
	return limitKeys(&s.MaxInlineTokens, &s.Strategy, &s.Redact)
}

// limitKeys are the keys that a profile, the file and an entry of results.tools have.
func limitKeys(most *int, strategy *tool.Strategy, redact *tool.Redaction) []shape.Field {
	return []shape.Field{
		shape.Key("max_inline_tokens",
			"A larger result is not sent whole; a token counts as 4 characters. Default: what the client takes "+
				"(Claude Code 50000 characters, Gemini CLI 40000, Codex 12000, others no limit).",
			shape.Integer[int]{Min: 250, Max: 100_000_000}, most),
		shape.Key("strategy", strategyMeans, shape.OneOf(tool.StrategyPreviewAndPersist,
			tool.StrategyRefOnly, tool.StrategyInline, tool.StrategyDropWithReason, tool.StrategyNeverPersist), strategy),
		shape.Key("redact", redactMeans,
			shape.OneOf(tool.RedactOff, tool.RedactDetect, tool.RedactRedact, tool.RedactBlock), redact),
	}
}

func toolResultsKeys(f *limit.Rule) []shape.Field {
	return append(limitKeys(&f.MaxInlineTokens, &f.Strategy, &f.Redact),
		matchKey(&f.Match),
		shape.Key("artifacts", "What of that which a result names is stored beside it. Default: nothing.",
			optional[tool.TakeIn]{shape.ObjectOf(takeInKeys)}, &f.Artifacts))
}

func takeInKeys(f *tool.TakeIn) []shape.Field {
	return []shape.Field{
		shape.Key("resources", "What resource links name, read from the tool's server (default false).",
			shape.Boolean{}, &f.Resources),
		shape.Key("files",
			"Directories: files below them that a result names by a file URI. Relative to ${workspaceFolder}.",
			shape.List[string]{Of: expanded}, &f.Files),
	}
}

const strategyMeans = "What happens to a larger result. preview_and_persist (default): it is stored; the caller " +
	"gets a preview and a link. ref_only: the link alone. inline: the caller gets it whole. drop_with_reason: it " +
	"is dropped, and the caller is told. never_persist: the caller gets it whole; the hub keeps size and a keyed " +
	"digest, also of small ones."

const redactMeans = "What happens to secrets in results for the caller. off (default): they pass. detect: they " +
	"pass, and record and log say so. redact: marks stand in their place. block: the result is withheld. Records " +
	"never hold them."

func storedResultsKeys(f *storedResults) []shape.Field {
	return []shape.Field{
		shape.KeyAt("dir",
			"Where: a directory, relative to ${workspaceFolder}, or a bucket such as s3://NAME?region=eu-west-1, "+
				"gs://NAME or azblob://NAME, in a build with -tags clouds (default: results in the state "+
				"directory).",
			expanded, &f.dir),
		shape.Key("key",
			"A secret that encrypts stored results, by reference: ${env:NAME} or ${file:path}; 16 bytes at least "+
				"(default: no encryption).", outside{}, &f.Key),
		shape.Key("max_age", `Older results are removed (default "30d", at least "1m").`, keptAge(), &f.MaxAge),
		shape.Key("max_bytes",
			"What all results together may take (default 2 GiB). Beyond that the oldest of the caller with most "+
				"go first.", shape.Size[int64]{Min: 1 << 20, Max: maxBytes}, &f.MaxBytes),
	}
}

// stored makes the settings of the store of results, which is in usual where the file says nothing.
func (r *reader) stored(f *storedResults, usual string) payload.Config {
	c := f.Config
	at := f.dir.Value
	if !strings.Contains(at, "://") {
		c.Dir = cmp.Or(r.vars.path(at), usual)
		return c
	}
	c.URL = at
	if err := payload.CheckURL(at); err != nil {
		shape.FaultOf(r.Reader, f.dir, err.Error(),
			"name a directory, or a bucket as docs/results.md says, in a build with -tags clouds")
	}
	return c
}

// keptAge is how long something is kept.
func keptAge() shape.Duration {
	return shape.Duration{Min: time.Minute, Max: 100 * 365 * 24 * time.Hour, Days: true}
}

// results makes the settings of the file.
func (r *reader) results(f *results) limit.Settings {
	s := f.Settings
	for _, t := range f.tools {
		rule := t.Value
		if t.OK && rule == (limit.Rule{Match: rule.Match}) {
			shape.FaultOf(r.Reader, t, "changes nothing", "add strategy, max_inline_tokens, redact or artifacts")
		}
		if rule.Artifacts != nil {
			r.vars.paths(rule.Artifacts.Files)
		}
		s.Tools = append(s.Tools, rule)
	}
	return s
}

// resultsOver makes the settings of a profile: what it does not say is as in usual.
func resultsOver(own, usual limit.Settings) limit.Settings {
	return limit.Settings{MaxInlineTokens: cmp.Or(own.MaxInlineTokens, usual.MaxInlineTokens),
		Strategy: cmp.Or(own.Strategy, usual.Strategy), Redact: cmp.Or(own.Redact, usual.Redact), Tools: usual.Tools}
}

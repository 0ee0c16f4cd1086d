package config

import (
	"cmp"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/limit"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

// results is the key results of the file.
type results struct {
	resultRule
	tools []shape.Located[toolResults]
}

// resultRule is what the file, a profile and an entry of results.tools say of results.
type resultRule struct {
	max      int
	strategy tool.Strategy
	redact   tool.Redaction
}

// toolResults is an entry of results.tools.
type toolResults struct {
	resultRule
	match     shape.Located[string]
	artifacts shape.Located[takeIn]
}

type takeIn struct {
	resources bool
	files     []shape.Located[string]
}

// storedResults is the key persist.results.
type storedResults struct {
	dir      shape.Located[string]
	key      string
	maxAge   time.Duration
	maxBytes int64
}

func resultsKeys(f *results) []shape.Field {
	return append(resultKeys(&f.resultRule),
		shape.Key("tools", "What is otherwise for some tools. The first that sets a field counts.",
			shape.ListAt(shape.ObjectOf(toolResultsKeys)), &f.tools))
}

func resultKeys(f *resultRule) []shape.Field {
	return []shape.Field{
		shape.Key("max_inline_tokens",
			"A larger result is not sent whole; a token is taken for 4 characters. Default: what the client takes "+
				"before it cuts results itself (Claude Code 50000 characters, Gemini CLI 40000, Codex 12000); no limit "+
				"for other clients.",
			shape.Integer[int]{Min: 250, Max: 100_000_000}, &f.max),
		shape.Key("strategy", strategyMeans, oneStrategy(), &f.strategy),
		shape.Key("redact", redactMeans,
			shape.OneOf(tool.RedactOff, tool.RedactDetect, tool.RedactRedact, tool.RedactBlock), &f.redact),
	}
}

func toolResultsKeys(f *toolResults) []shape.Field {
	return append(resultKeys(&f.resultRule),
		shape.Must(shape.KeyAt("match", "Which tools, as a glob over canonical names.", shape.Text{Check: nameGlob},
			&f.match)),
		shape.KeyAt("artifacts", "What of that which a result names is stored beside it. Default: nothing.",
			shape.ObjectOf(takeInKeys), &f.artifacts))
}

func takeInKeys(f *takeIn) []shape.Field {
	return []shape.Field{
		shape.Key("resources", "What resource links name, read from the tool's server (default false).",
			shape.Boolean{}, &f.resources),
		shape.Key("files",
			"Directories: files below them that a result names by a file URI. Relative to ${workspaceFolder}.",
			shape.ListAt(expanded), &f.files),
	}
}

const strategyMeans = "What becomes of a larger result. preview_and_persist (default): it is stored, and the caller " +
	"gets a preview and a link. ref_only: the link alone. inline: the caller gets it whole. drop_with_reason: it is " +
	"gone, and the caller is told. never_persist: the caller gets it whole, and the hub keeps its size and a keyed " +
	"digest, of a small one, too."

const redactMeans = "What becomes of secrets in results, on their way to the caller. off (default): results pass byte " +
	"for byte. detect: they pass, and record and log say that there are some. redact: marks stand in their place. " +
	"block: the result is withheld. Records never hold them."

// strategy is a strategy, but for redact.
type strategy struct{ shape.As[tool.Strategy] }

func oneStrategy() strategy {
	return strategy{shape.OneOf(tool.StrategyPreviewAndPersist, tool.StrategyRefOnly, tool.StrategyInline,
		tool.StrategyDropWithReason,
		tool.StrategyNeverPersist)}
}

// Read implements shape.Shape.
func (s strategy) Read(r *shape.Reader, n *textfile.Node) (tool.Strategy, bool) {
	if n.Kind == textfile.Text && n.Text == string(tool.StrategyRedact) {
		r.Fault(n.Position,
			"secrets are redacted whatever the size of a result is, so this is no strategy for large ones",
			"write results.redact: redact")
		return "", false
	}
	return s.As.Read(r, n)
}

func storedResultsKeys(f *storedResults) []shape.Field {
	return []shape.Field{
		shape.KeyAt("dir",
			"Where: a directory, relative to ${workspaceFolder}, or a bucket by its URL, such as "+
				"s3://NAME?region=eu-west-1, "+
				"gs://NAME or azblob://NAME, in a build with -tags clouds (default: results in the state directory).",
			expanded, &f.dir),
		shape.Key("key",
			"A secret that stored results are encrypted with, by reference: ${env:NAME} or ${file:path}; 16 bytes at "+
				"least. With another key they cannot be read. Default: they are not encrypted.", outside{}, &f.key),
		shape.Key("max_age", `Older results are removed (default "30d", at least "1m").`, keptAge(), &f.maxAge),
		shape.Key("max_bytes",
			"What all results together may take where they are stored (default 2 GiB). Beyond that the oldest of the "+
				"caller that has most go first.", shape.Size[int64]{Min: 1 << 20, Max: maxBytes}, &f.maxBytes),
	}
}

// stored makes the settings of the store of results, which is in usual where the file says nothing.
func (r *reader) stored(f storedResults, usual string) payload.Config {
	c := payload.Config{Key: f.key, MaxAge: f.maxAge, MaxBytes: f.maxBytes}
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
func (r *reader) results(f results) limit.Settings {
	s := limit.Settings{MaxInlineTokens: f.max, Strategy: f.strategy, Redact: f.redact}
	for _, t := range f.tools {
		v := t.Value
		r.canonical(v.match)
		if t.OK && v.resultRule == (resultRule{}) && !v.artifacts.Present {
			shape.FaultOf(r.Reader, t, "changes nothing", "add strategy, max_inline_tokens, redact or artifacts")
		}
		rule := limit.Rule{Match: v.match.Value, MaxInlineTokens: v.max, Strategy: v.strategy, Redact: v.redact}
		if v.artifacts.Present {
			rule.Artifacts = &tool.TakeIn{Resources: v.artifacts.Value.resources}
			for _, dir := range v.artifacts.Value.files {
				rule.Artifacts.Files = append(rule.Artifacts.Files, r.vars.path(dir.Value))
			}
		}
		s.Tools = append(s.Tools, rule)
	}
	return s
}

// over makes the settings of a profile: what it does not say is as in usual.
func (f resultRule) over(usual limit.Settings) limit.Settings {
	return limit.Settings{MaxInlineTokens: cmp.Or(f.max, usual.MaxInlineTokens),
		Strategy: cmp.Or(f.strategy, usual.Strategy), Redact: cmp.Or(f.redact, usual.Redact), Tools: usual.Tools}
}

package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/embed"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
)

// deferral is the key deferred, of the file or of a profile.
type deferral struct {
	mode       deferred.Mode
	budget     int
	alwaysLoad []shape.Located[string]
	tools      []shape.Located[hint]
	embeddings shape.Located[embed.Config]
}

func embeddingsKeys(e *embed.Config) []shape.Field {
	return []shape.Field{
		shape.Must(shape.Key("url", `An OpenAI-compatible endpoint: "http://127.0.0.1:11434/v1/embeddings".`,
			shape.Text{Expand: true, Check: webURL}, &e.URL)),
		shape.Must(shape.Key("model", "The model, by the name that the endpoint gives it.", expanded, &e.Model)),
		shape.Key("key", "The endpoint's key, by reference: ${env:NAME} or ${file:path}. Default: none.", outside{},
			&e.Key),
		shape.Key("timeout", "How long a search waits for it (default 300ms); then it goes by words alone.", timeout(),
			&e.Timeout),
	}
}

type hint struct {
	match, text shape.Located[string]
}

// deferralKeys are the keys that the file and its profiles have.
func deferralKeys(d *deferral) []shape.Field {
	return []shape.Field{
		shape.Key("mode",
			`"auto" (default): when the tools cost more than budget_tokens, or are more than the client takes; "always" or "never".`,
			shape.OneOf(deferred.ModeAuto, deferred.ModeAlways, deferred.ModeNever), &d.mode),
		shape.Key("budget_tokens", "What the listed tools may cost a model, estimated (default 10000).",
			shape.Integer[int]{Min: 1, Max: 10_000_000}, &d.budget),
		shape.Key("always_load", `Tools that are never held back, as globs over canonical names: "mcp.github.get_*".`,
			shape.ListAt(shape.Text{Check: nameGlob}), &d.alwaysLoad),
	}
}

func hintKeys(h *hint) []shape.Field {
	return []shape.Field{
		shape.Must(shape.KeyAt("match", "Which tools, as a glob over canonical names.", shape.Text{Check: nameGlob},
			&h.match)),
		shape.Must(shape.KeyAt("hint", "Words to find them by.", plainText, &h.text)),
	}
}

func deferredKeys(d *deferral) []shape.Field {
	return append(deferralKeys(d),
		shape.Key("tools", "What tools are found by besides what they say themselves. All that match count.",
			shape.ListAt(shape.Object[hint]{Fields: hintKeys, Gone: gone("write them in hint", "aliases")}), &d.tools),
		shape.KeyAt("embeddings",
			"Finds tools by meaning, too: names, descriptions and questions are sent there. Off where this key "+
				"is absent.",
			shape.ObjectOf(embeddingsKeys), &d.embeddings),
	)
}

// deferred makes the settings of deferred loading, but for those of profiles.
func (r *reader) deferred(d deferral) deferred.Config {
	return deferred.Config{Default: r.deferral(d, deferred.Settings{}), Profiles: make(map[string]deferred.Settings),
		Hints: r.hints(d.tools)}
}

// foundByOverrides has tools found by what profiles say of them, too.
func foundByOverrides(hints []deferred.Hint, overrides []namespace.Override) []deferred.Hint {
	for _, o := range overrides {
		text := strings.TrimSpace(strings.Join([]string{o.Name, o.Title, o.Description}, " "))
		known := func(h deferred.Hint) bool { return h.Match == o.Match && h.Text == text }
		if text != "" && !slices.ContainsFunc(hints, known) {
			hints = append(hints, deferred.Hint{Match: o.Match, Text: text})
		}
	}
	return hints
}

// deferral makes the settings of one profile: what it does not say is as in usual, and its patterns come on top.
func (r *reader) deferral(d deferral, usual deferred.Settings) deferred.Settings {
	s := usual
	s.AlwaysLoad = slices.Clone(usual.AlwaysLoad)
	s.Mode, s.Budget = cmp.Or(d.mode, usual.Mode), cmp.Or(d.budget, usual.Budget)
	for _, p := range d.alwaysLoad {
		r.canonical(p)
		s.AlwaysLoad = append(s.AlwaysLoad, p.Value)
	}
	return s
}

func (r *reader) hints(tools []shape.Located[hint]) (hints []deferred.Hint) {
	for _, t := range tools {
		r.canonical(t.Value.match)
		hints = append(hints, deferred.Hint{Match: t.Value.match.Value, Text: t.Value.text.Value})
	}
	return hints
}

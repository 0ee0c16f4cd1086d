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
	deferred.Settings
	hints      []deferred.Hint
	learn      shape.Located[bool]
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

// deferralKeys are the keys that the file and its profiles have.
func deferralKeys(d *deferred.Settings) []shape.Field {
	return []shape.Field{
		shape.Key("mode",
			`"auto" (default): when the tools cost more than budget_tokens, or are more than the client takes; "always" or `+
				`"never".`,
			shape.OneOf(deferred.ModeAuto, deferred.ModeAlways, deferred.ModeNever), &d.Mode),
		shape.Key("budget_tokens", "What the listed tools may cost a model, estimated (default 10000).",
			shape.Integer[int]{Min: 1, Max: 10_000_000}, &d.Budget),
		shape.Key("list_found",
			"Whether a session up to 2025-11-25 lists the tools whose declarations a search has given it (default "+
				"false: no search changes a list).", shape.Boolean{}, &d.ListFound),
		shape.Key("always_load", `Tools that are never held back, as globs over canonical names: "mcp.github.get_*".`,
			shape.List[string]{Of: toolGlob}, &d.AlwaysLoad),
	}
}

func hintKeys(h *deferred.Hint) []shape.Field {
	return []shape.Field{
		matchKey(&h.Match),
		shape.Must(shape.Key("hint", "Words to find them by.", plainText, &h.Text)),
	}
}

func deferredKeys(d *deferral) []shape.Field {
	return append(deferralKeys(&d.Settings),
		shape.Key("tools", "What tools are found by besides what they say themselves. All that match count.",
			shape.List[deferred.Hint]{Of: shape.Object[deferred.Hint]{Fields: hintKeys,
				Gone: gone("write them in hint", "aliases")}}, &d.hints),
		shape.KeyAt("learn",
			"Whether a search finds better what the same caller has found and called before (default: true, or "+
				"false where hub.auth.tokens has more than one).", shape.Boolean{}, &d.learn),
		shape.KeyAt("embeddings",
			"Finds tools by meaning, too: names, descriptions and questions are sent there. Off without this key.",
			shape.ObjectOf(embeddingsKeys), &d.embeddings),
	)
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

// deferralOver makes the settings of a profile: what it does not say is as in usual, and its
// patterns come on top.
func deferralOver(own, usual deferred.Settings) deferred.Settings {
	return deferred.Settings{Mode: cmp.Or(own.Mode, usual.Mode), Budget: cmp.Or(own.Budget, usual.Budget),
		ListFound:  own.ListFound || usual.ListFound,
		AlwaysLoad: slices.Concat(usual.AlwaysLoad, own.AlwaysLoad)}
}

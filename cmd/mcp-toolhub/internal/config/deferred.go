package config

import (
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
)

// deferral is the key deferred, of the file or of a profile.
type deferral struct {
	mode       string
	budget     int
	alwaysLoad []located[string]
	tools      []located[hint]

	refTTL     time.Duration
	keys       []located[string]
	embeddings located[embeddings]
}

type embeddings struct {
	url, model, key string
	timeout         time.Duration
}

func embeddingsKeys(e *embeddings) []field {
	return []field{
		must(key("url", `An OpenAI-compatible endpoint: "http://127.0.0.1:11434/v1/embeddings".`,
			text{expand: true, check: webURL}, &e.url)),
		must(key("model", "The model, by the name that the endpoint gives it.", expanded, &e.model)),
		key("key", "The endpoint's key, by reference: ${env:NAME} or ${file:path}. Default: none.", secret{}, &e.key),
		key("timeout", "How long a search waits for it (default 300ms); then it goes by words alone.", timeout, &e.timeout),
	}
}

type hint struct {
	match, text located[string]
	aliases     []located[string]
}

// deferralKeys are the keys that the file and its profiles have.
func deferralKeys(d *deferral) []field {
	return []field{
		key("mode", `"auto" (default): when the tools cost more than budget_tokens, or are more than the client takes; "always" or "never".`,
			oneOf(deferred.ModeAuto, deferred.ModeAlways, deferred.ModeNever), &d.mode),
		key("budget_tokens", "What the listed tools may cost a model, estimated (default 10000).",
			number{1, 10_000_000}, &d.budget),
		key("always_load", `Tools that are never held back, as globs over canonical names: "mcp.github.get_*".`,
			listAt(text{check: nameGlob}), &d.alwaysLoad),
		key("tools", "What tools are found by besides what they say themselves. All that match count.",
			listAt(objectOf(hintKeys)), &d.tools),
	}
}

func hintKeys(h *hint) []field {
	return []field{
		must(keyAt("match", "Which tools, as a glob over canonical names.", text{check: nameGlob}, &h.match)),
		keyAt("hint", "Words to find them by.", plainText, &h.text),
		key("aliases", "Further names, for searches and calls. match must then be one tool.",
			listAt(text{pattern: shownName, want: "letters, digits and _ . -, 64 at most"}), &h.aliases),
	}
}

func deferredKeys(d *deferral) []field {
	return append(deferralKeys(d),
		key("ref_ttl", `How long a selection_ref is good: "24h" (default), "7d".`,
			duration{min: time.Minute, max: 366 * 24 * time.Hour, days: true}, &d.refTTL),
		key("keys", "Keys of selection_refs, by reference: ${env:NAME} or ${file:path}; 16 bytes at least. The first signs, all are "+
			"good: put a new one first and leave the old one for as long as ref_ttl. Hubs that serve the same clients share "+
			"them. Default: a key in the state directory.",
			listAt(secret{}), &d.keys),
		keyAt("embeddings", "Finds tools by meaning, too: names, descriptions and questions are sent there. Off where this key is absent.",
			objectOf(embeddingsKeys), &d.embeddings),
	)
}

// deferred makes the settings of deferred loading, but for those of profiles.
func (r *reader) deferred(d deferral) deferred.Config {
	return deferred.Config{Default: r.deferral(d, deferred.Settings{}), Profiles: make(map[string]deferred.Settings),
		RefTTL: d.refTTL, Keys: values(d.keys)}
}

// foundByOverrides has tools found by what a profile says of them, too.
func foundByOverrides(s deferred.Settings, overrides []namespace.Override) deferred.Settings {
	for _, o := range overrides {
		if text := strings.TrimSpace(strings.Join([]string{o.Name, o.Title, o.Description}, " ")); text != "" && !o.Hide {
			s.Hints = append(s.Hints, deferred.Hint{Match: o.Match, Text: text})
		}
	}
	return s
}

// deferral makes the settings of one profile: what it does not say is as in usual, and its patterns come on top.
func (r *reader) deferral(d deferral, usual deferred.Settings) deferred.Settings {
	s := usual
	s.AlwaysLoad, s.Hints = slices.Clone(usual.AlwaysLoad), slices.Clone(usual.Hints)
	if d.mode != "" {
		s.Mode = deferred.Mode(d.mode)
	}
	if d.budget != 0 {
		s.Budget = d.budget
	}
	for _, p := range d.alwaysLoad {
		r.canonical(p)
		s.AlwaysLoad = append(s.AlwaysLoad, p.value)
	}
	for _, t := range d.tools {
		h := deferred.Hint{Match: t.value.match.value, Text: t.value.text.value, Aliases: values(t.value.aliases)}
		r.canonical(t.value.match)
		switch {
		case !t.ok:
		case len(h.Aliases) > 0 && wildcard(h.Match):
			faultOf(r, t.value.match, "aliases for a match with wildcards", "let match be the canonical name of one tool")
		case h.Text == "" && len(h.Aliases) == 0:
			faultOf(r, t, "adds nothing", "add hint or aliases")
		}
		s.Hints = append(s.Hints, h)
	}
	return s
}

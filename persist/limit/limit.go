// Package limit says how large a result may be for a client, and what becomes of a larger one.
//
// A setting holds for all clients. Without one the limit is what the client is known to take before
// it cuts a result itself; there is none for a client that is not known. Nothing of a direct view
// is ever cut: it shows one server as it is.
package limit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// CharsPerToken is how many characters a token of a limit stands for.
const CharsPerToken = 4

// Settings are those of a profile. The zero value is the limit that the client is known to have, and a preview.
type Settings struct {
	MaxInlineTokens int            // 0: it depends on the client
	Strategy        tool.Strategy  // "": preview_and_persist
	Redact          tool.Redaction // "" is off
	Tools           []Rule         // the first that sets a field counts
}

// Rule is what is otherwise for some tools.
type Rule struct {
	Match           string // a glob over canonical names
	MaxInlineTokens int
	Strategy        tool.Strategy
	Artifacts       *tool.TakeIn
	Redact          tool.Redaction
}

// Config is that of all profiles.
type Config struct {
	Default  Settings
	Profiles map[string]Settings
}

// clientLimit is how many characters of a result a client takes before it cuts the rest.
type clientLimit struct {
	name    string // see tool.Client.Is
	chars   int
	preview int // characters that it shows of a longer one; 0: fewer than the hub
}

// clientLimits returns the known clients.
func clientLimits() []clientLimit {
	return []clientLimit{
		{"claude-code", 50_000, 0}, // it writes what is longer to a file and shows its model 2,300 characters
		{"codex", 12_000, 12_000},  // 12,000 to 48,000, by the model: the hub does not know which it is
		{"gemini-cli", 40_000, 40_000},
	}
}

// Clients returns the names of the clients that are known to cut results.
func Clients() (names []string) {
	for _, c := range clientLimits() {
		names = append(names, c.name)
	}
	return names
}

// Policy gives surfaces their rules for results. It is safe for concurrent use.
type Policy struct {
	cfg     Config
	clients []clientLimit

	mu   sync.Mutex
	seen map[viewer]seen
}

type viewer struct{ profile, style, audience, client string }

type seen struct{ full, out *tool.Surface }

// maxSeen bounds the surfaces that are kept.
const maxSeen = 1000

// New returns the policy of c.
func New(c Config) *Policy { return &Policy{cfg: c, clients: clientLimits()} }

// redaction is what holds of s for a direct view, of which nothing is cut.
func (s Settings) redaction() Settings {
	only := Settings{Redact: s.Redact, Strategy: tool.StrategyInline}
	for _, r := range s.Tools {
		if r.Redact != "" {
			only.Tools = append(only.Tools, Rule{Match: r.Match, Redact: r.Redact})
		}
	}
	return only
}

// Surface returns full, which is not split yet, with the rules for results of the client: full
// itself where none apply. The same surface is returned as long as nothing changes.
func (p *Policy) Surface(full *tool.Surface, client tool.Client) *tool.Surface {
	settings, ok := p.cfg.Profiles[full.Profile]
	if !ok {
		settings = p.cfg.Default
	}
	var of clientLimit
	if strings.HasPrefix(full.Profile, tool.DirectPrefix) {
		settings = settings.redaction()
	} else if settings.MaxInlineTokens == 0 {
		if i := slices.IndexFunc(p.clients, func(c clientLimit) bool { return client.Is(c.name) }); i >= 0 {
			of = p.clients[i]
		}
	}
	if of.chars == 0 && settings.MaxInlineTokens == 0 && settings.Redact == "" && len(settings.Tools) == 0 {
		return full
	}
	key := viewer{full.Profile, full.Style, full.Audience, of.name}
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, ok := p.seen[key]; ok && before.full == full {
		return before.out
	}
	out := full
	if rules := rulesOf(settings, of, full); rules != nil {
		out = full.WithResults(rules, digest(rules))
	}
	if p.seen == nil || len(p.seen) >= maxSeen {
		p.seen = make(map[viewer]seen)
	}
	p.seen[key] = seen{full, out}
	return out
}

// digest differs between rules that differ.
func digest(r *tool.ResultRules) string {
	text, _ := json.Marshal(r) // it holds nothing that JSON has not
	return tool.Digest(text)
}

// TakesIn reports whether what results of a tool name becomes an artifact, for some caller.
func (c Config) TakesIn(name tool.Name) bool {
	rules := slices.Clone(c.Default.Tools)
	for _, s := range c.Profiles {
		rules = append(rules, s.Tools...)
	}
	return slices.ContainsFunc(rules, func(r Rule) bool {
		return r.Artifacts != nil && (r.Artifacts.Resources || len(r.Artifacts.Files) > 0) &&
			glob.Match(r.Match, string(name))
	})
}

// rulesOf returns the rules for the tools of full; nil where nothing is limited.
func rulesOf(s Settings, of clientLimit, full *tool.Surface) *tool.ResultRules {
	rules := &tool.ResultRules{Usual: tool.ResultRule{MaxChars: of.chars,
		Strategy: cmp.Or(s.Strategy, tool.StrategyPreviewAndPersist),
		Redact:   s.Redact},
		ByTool: make(map[tool.Name]tool.ResultRule), Preview: of.preview, Because: "what " + of.name + " takes"}
	if s.MaxInlineTokens > 0 {
		rules.Usual.MaxChars, rules.Because = s.MaxInlineTokens*CharsPerToken, "results.max_inline_tokens"
	}
	says := func(r tool.ResultRule) bool {
		return r.Cuts() || r.Strategy == tool.StrategyNeverPersist || r.Artifacts != nil || r.Redact != "" &&
			r.Redact != tool.RedactOff
	}
	effect := says(rules.Usual)
	for _, l := range full.Listed {
		var own Rule
		for _, r := range s.Tools {
			if glob.Match(r.Match, string(l.Tool.Name)) {
				own.MaxInlineTokens, own.Strategy = cmp.Or(own.MaxInlineTokens, r.MaxInlineTokens),
					cmp.Or(own.Strategy, r.Strategy)
				own.Artifacts, own.Redact = cmp.Or(own.Artifacts, r.Artifacts), cmp.Or(own.Redact, r.Redact)
			}
		}
		rule := tool.ResultRule{MaxChars: cmp.Or(own.MaxInlineTokens*CharsPerToken, rules.Usual.MaxChars),
			Strategy: cmp.Or(own.Strategy, rules.Usual.Strategy), Artifacts: own.Artifacts,
			Redact: cmp.Or(own.Redact, rules.Usual.Redact)}
		if rule != rules.Usual {
			rules.ByTool[l.Tool.Name] = rule
			effect = effect || says(rule)
		}
	}
	if !effect {
		return nil
	}
	return rules
}

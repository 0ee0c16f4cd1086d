package deferred

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Mode says when a surface holds tools back.
type Mode string

const (
	ModeAuto   Mode = "auto"   // when its tools cost more than the budget, or are more than the client takes (default)
	ModeAlways Mode = "always" // whenever there is a tool that may be held back
	ModeNever  Mode = "never"
)

// defaultBudget says how many tokens the tools of a surface may cost before mode auto holds them back.
const defaultBudget = 10000

// refTTL says how long a selection_ref is good.
const refTTL = 24 * time.Hour

// Settings are the settings of one profile. The zero value is useful.
type Settings struct {
	Mode   Mode // default auto
	Budget int  // tokens, estimated; default 10,000

	// ListFound puts the tools whose declarations a session has been given on its list, and tells
	// the client to read that again. Only sessions have lists of their own: see tool.Surface.
	ListFound bool

	// AlwaysLoad are globs over canonical names of tools that are always listed.
	AlwaysLoad []string
}

// Hint adds words by which the tools that match it are found. All hints that match a tool count.
type Hint struct {
	Match string // glob over canonical names
	Text  string // words to find it by: the standard's search_hint
}

func (s Settings) withDefaults() Settings {
	s.Mode = cmp.Or(s.Mode, ModeAuto)
	if s.Budget <= 0 {
		s.Budget = defaultBudget
	}
	return s
}

// pinned reports whether the settings keep a tool on the list.
func (s Settings) pinned(name tool.Name) bool {
	return slices.ContainsFunc(s.AlwaysLoad, func(p string) bool { return glob.Match(p, string(name)) })
}

// Config holds the settings of a Loader. Its maker checks it.
type Config struct {
	Default  Settings            // of profiles that Profiles does not name
	Profiles map[string]Settings // whole: what a profile takes over from the default stands here, too
	Hints    []Hint              // they count in all profiles
	Learn    bool                // searches learn from what the same caller found before: see Past
}

func (c Config) withDefaults() Config {
	c.Default, c.Profiles = c.Default.withDefaults(), maps.Clone(c.Profiles)
	for name, s := range c.Profiles {
		c.Profiles[name] = s.withDefaults()
	}
	return c
}

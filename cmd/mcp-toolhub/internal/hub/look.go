package hub

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// Look is what the commands that look back at decisions need. No server is started for it: tools
// are those of an earlier start.
type Look struct {
	Settings *config.Settings
	Own      *builtins
	Table    []*tool.HubTool
	Gate     *gate.Gate // of settings, without remembered answers
	Catalogs []tool.Catalog
	Tools    history.Tools
	Calls    []history.Call // oldest first
}

// ConfiguredBy makes what settings configure, with a gate that remembers no answers.
func ConfiguredBy(s *config.Settings) (*Configured, error) {
	logger := slog.New(slog.DiscardHandler)
	return configure(s, nil, Tools(&Hub{}), command.NewRunner("", logger), logger)
}

// KnownTools finds the tools of catalogs, and those of the hub itself.
func KnownTools(catalogs []tool.Catalog, own []*tool.HubTool) history.Tools {
	all := byName(catalogs)
	for _, t := range own {
		all[t.Name] = &tool.Tool{Name: t.Name, Server: tool.OwnServer, Native: string(t.Name), Hub: t,
			Declaration: json.RawMessage(`{"annotations":` + t.Annotations + `}`)}
	}
	return func(name tool.Name) *tool.Tool { return all[name] }
}

// Past is the history with the policy in force.
func (l *Look) Past() history.Past {
	return history.Past{Calls: l.Calls, Tools: l.Tools,
		Gate: func(more []policy.Rule) (*gate.Gate, error) {
			s := *l.Settings
			s.Policy.Sets = append(slices.Clip(s.Policy.Sets), policy.Set{Source: policy.CommandLine, Rules: more})
			return (&Configured{Settings: &s, Own: l.Own}).newGate(nil, l.Table)
		}}
}

// Readers are the tools of one server that look as if they only read.
type Readers struct {
	Server string      `json:"server"`
	Tools  []tool.Name `json:"tools"`
}

// Readers returns them sorted by server, then by tool.
func (l *Look) Readers() []Readers {
	byServer := make(map[string][]tool.Name)
	for _, c := range l.Catalogs {
		for _, t := range c.Tools {
			if l.Gate.Facts(t).LooksReadOnly() {
				byServer[t.Server] = append(byServer[t.Server], t.Name)
			}
		}
	}
	all := []Readers{}
	for _, server := range slices.Sorted(maps.Keys(byServer)) {
		all = append(all, Readers{server, slices.Sorted(slices.Values(byServer[server]))})
	}
	return all
}

// homeDir is the user's directory; "" where that is not known: then no path is taken for it.
func homeDir() string {
	home, _ := os.UserHomeDir()
	return home
}

// SumOf says in one line what the rules come to.
func SumOf(found *history.Suggested) string {
	text := fmt.Sprintf("People allowed %s and denied %d. With %s, %d of those allowed would run unasked, and none "+
		"of those denied",
		textfile.Count(found.Allowed, "call"), found.Denied, textfile.Count(len(found.Suggestions), "new rule"),
		found.Spared)
	if found.Untold > 0 {
		text += fmt.Sprintf("; %s cannot be decided about again and count for nothing",
			textfile.Count(found.Untold, "call"))
	}
	return text
}

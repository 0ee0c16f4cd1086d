package cli

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// look is what the commands that look back at decisions need. No server is started for it: tools
// are those of an earlier start.
type look struct {
	settings *config.Settings
	own      *builtins
	table    []*tool.HubTool
	gate     *gate.Gate // of settings, without remembered answers
	tools    history.Tools
	calls    []history.Call // oldest first
}

// configuredBy makes what settings configure, with a gate that remembers no answers.
func configuredBy(s *config.Settings) (*configured, error) {
	logger := slog.New(slog.DiscardHandler)
	c, err := configure(s, nil, hubTools(&hub{}), command.NewRunner("", logger), logger)
	if err != nil {
		return nil, &exitError{exitConfig, err}
	}
	return c, nil
}

// knownTools finds the tools of catalogs, and those of the hub itself.
func knownTools(catalogs []tool.Catalog, own []*tool.HubTool) history.Tools {
	all := make(map[tool.Name]*tool.Tool)
	for _, c := range catalogs {
		for _, t := range c.Tools {
			all[t.Name] = t
		}
	}
	for _, t := range own {
		all[t.Name] = &tool.Tool{Name: t.Name, Server: tool.OwnServer, Native: string(t.Name), Hub: t,
			Declaration: json.RawMessage(`{"annotations":` + t.Annotations + `}`)}
	}
	return func(name tool.Name) *tool.Tool { return all[name] }
}

// past is the history with the policy in force.
func (l *look) past() history.Past {
	return history.Past{Calls: l.calls, Tools: l.tools, Home: homeDir(),
		Gate: func(more []policy.Rule) (*gate.Gate, error) {
			s := *l.settings
			s.Policy.Sets = append(slices.Clip(s.Policy.Sets), policy.Set{Source: policy.CommandLine, Rules: more})
			return (&configured{settings: &s, own: l.own}).newGate(nil, l.table)
		}}
}

// homeDir is the user's directory; "" where that is not known: then there is none to keep out of rules.
func homeDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return home
}

// sumOf says in one line what the rules come to.
func sumOf(found *history.Suggested) string {
	text := fmt.Sprintf("People allowed %s and denied %d. With %s, %d of those allowed would run unasked, and none "+
		"of those denied",
		count(found.Allowed, "call"), found.Denied, count(len(found.Suggestions), "new rule"), found.Spared)
	if found.Untold > 0 {
		text += fmt.Sprintf("; %s cannot be decided about again and count for nothing", count(found.Untold, "call"))
	}
	return text
}

const shownEvidence = 5

// throughText is a call that nobody allowed and a rule would.
func throughText(t *history.Through) string {
	was := "was " + string(t.Was)
	if t.Answer != "" {
		was = string(t.Answer)
	}
	return fmt.Sprintf("%s %s %s (%s)", t.ID, t.Tool, summary(t.Arguments, 200), was)
}

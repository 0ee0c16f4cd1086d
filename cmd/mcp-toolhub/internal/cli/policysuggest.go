package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

const policySuggestHelp = `Suggest the fewest rules that allow what people allowed.

Each rule comes with the calls behind it, and with what else it would have let through. A rule
is about the tools, callers, directories, hosts, programs and ids that people allowed at least
three times. No rule lets a recorded call through that a person denied.

-o yaml can be pasted into the config. --apply asks about each rule at the terminal, and adds
those that you take to policy.rules of the config; all else there stays as it is.`

func (c policyCmd) suggestCommand() *cobra.Command {
	var since, format string
	var apply bool
	cmd := &cobra.Command{
		Use: "suggest", Short: "Suggest rules that allow what people allowed", Long: policySuggestHelp,
		Args:    cobra.NoArgs,
		Example: "  mcp-toolhub policy suggest --since 30d\n  mcp-toolhub policy suggest --apply",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.suggest(cmd.Context(), since, format, apply)
		},
	}
	sinceFlag(cmd, &since, "30d")
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text, yaml or json")
	cmd.Flags().Lookup("output").Annotations = map[string][]string{"formats": {"text", "yaml", "json"}}
	cmd.Flags().BoolVar(&apply, "apply", false, "ask about each rule, and add those that you take to the config")
	cmd.MarkFlagsMutuallyExclusive("apply", "output")
	return cmd
}

// suggestion is what suggest -o json prints of a rule.
type suggestion struct {
	Rule struct {
		ID     string        `json:"id"`
		Match  []string      `json:"match"`
		Actor  []string      `json:"actor"`
		When   string        `json:"when"`
		Then   tool.Behavior `json:"then"`
		Reason string        `json:"reason"`
	} `json:"rule"`
	Calls []tool.InvocationID `json:"calls"`
	Else  []history.Through   `json:"else"`
}

func (c policyCmd) suggest(ctx context.Context, since, format string, apply bool) error {
	l, err := c.lookBack(ctx, since)
	if err != nil {
		return err
	}
	found, err := history.Suggest(ctx, l.Past())
	if err != nil {
		return failed(err)
	}
	switch {
	case apply:
		return c.applyRules(ctx, found)
	case format == "yaml":
		text, err := rulesAsYAML(found.Suggestions)
		if err != nil {
			return failed(err)
		}
		return c.print(text)
	case format == "json":
		return c.printJSON(suggestedJSON(found))
	}
	for i := range found.Suggestions {
		if err := c.print([]byte(suggestionText(&found.Suggestions[i]) + "\n")); err != nil {
			return err
		}
	}
	return c.print([]byte(hub.SumOf(found)))
}

func suggestedJSON(found *history.Suggested) any {
	all := []suggestion{}
	for _, s := range found.Suggestions {
		one := suggestion{Calls: s.Calls, Else: s.Else}
		r := &one.Rule
		r.ID, r.Match, r.Actor, r.When, r.Then, r.Reason = s.Rule.ID, s.Rule.Match, s.Rule.Actor, s.Rule.When,
			s.Rule.Then, s.Rule.Reason
		all = append(all, one)
	}
	return map[string]any{"suggestions": all, "allowed": found.Allowed, "spared": found.Spared, "denied": found.Denied,
		"untold": found.Untold}
}

// suggestionText is a rule with its evidence, for people.
func suggestionText(s *history.Suggestion) string {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "  %-9s %s\n", label, printable(text)) }
	fmt.Fprintf(&b, "%s: %s that people allowed\n", s.Rule.ID, textfile.Count(len(s.Calls), "call"))
	line("tools", strings.Join(s.Rule.Match, ", "))
	line("callers", strings.Join(s.Rule.Actor, ", "))
	line("reason", s.Rule.Reason)
	line("when", s.Rule.When)
	line("behind it", fewOf(s.Calls))
	for _, t := range s.Else[:min(len(s.Else), hub.ShownEvidence)] {
		line("and also", hub.ThroughText(&t))
	}
	if more := len(s.Else) - hub.ShownEvidence; more > 0 {
		line("and also", fmt.Sprintf("%d more that nobody allowed", more))
	}
	return b.String()
}

// fewOf names the newest of some calls.
func fewOf(ids []tool.InvocationID) string {
	var newest []string
	for _, id := range ids[max(0, len(ids)-hub.ShownEvidence):] {
		newest = append([]string{string(id)}, newest...)
	}
	text := strings.Join(newest, ", ")
	if more := len(ids) - len(newest); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// rulesPlace is where the config has its rules.
func rulesPlace() splice.Place {
	return splice.Place{Path: []string{"policy", "rules"}, List: true, Key: "id"}
}

// putRule adds a rule to a config, below a comment that says where it comes from.
func putRule(f *splice.File, s *history.Suggestion) (*splice.File, error) {
	r := s.Rule
	said := fmt.Sprintf("from %s that people allowed, such as %s", textfile.Count(len(s.Calls), "call"),
		s.Calls[len(s.Calls)-1])
	if len(s.Else) > 0 {
		said += fmt.Sprintf("; %s more would have run, such as %s", textfile.Count(len(s.Else), "call"),
			s.Else[len(s.Else)-1].ID)
	}
	return f.Put(rulesPlace(), r.ID, splice.Object{{Key: "match", Value: r.Match}, {Key: "actor", Value: r.Actor},
		{Key: "when", Value: r.When},
		{Key: "then", Value: string(r.Then)}, {Key: "reason", Value: r.Reason}}, said)
}

// rulesAsYAML is a part of a config with the rules.
func rulesAsYAML(all []history.Suggestion) ([]byte, error) {
	f, err := splice.Read(splice.YAML, nil)
	for i := range all {
		if err == nil {
			f, err = putRule(f, &all[i])
		}
	}
	if err != nil || len(all) == 0 {
		return []byte("# no rule\n"), err
	}
	return f.Bytes(), nil
}

// applyRules asks about each rule, and adds those that the person takes to the config.
func (c policyCmd) applyRules(ctx context.Context, found *history.Suggested) error {
	if c.terminal() == nil {
		return &exitError{exitUsage,
			errors.New("nobody can be asked here: --apply asks about each rule at the terminal; -o yaml prints them all")}
	}
	e := configEdit{app: c.app}
	if err := e.find(false); err != nil {
		return err
	}
	taken := 0
	for i := range found.Suggestions {
		s := &found.Suggestions[i]
		fmt.Fprintln(c.std.err, suggestionText(s))
		yes, err := c.confirm(ctx, printable(fmt.Sprintf("Add it to %s? [y/n]: ", e.target)))
		if err != nil {
			return err
		}
		if !yes {
			continue
		}
		if err := e.addRule(s); err != nil {
			return err
		}
		taken++
	}
	return c.print(fmt.Appendf(nil, "%s: %s added, %d left out", e.target, textfile.Count(taken, "rule"),
		len(found.Suggestions)-taken))
}

// addRule adds a rule to the config as it stands now.
func (e *configEdit) addRule(s *history.Suggestion) error {
	if err := e.open(); err != nil {
		return err
	}
	after, err := putRule(e.file, s)
	if err != nil {
		return failed(fmt.Errorf("%s: add rule %s: %w", e.target, s.Rule.ID, err))
	}
	if _, err := e.check(after, nil); err != nil {
		return &exitError{exitConfig,
			fmt.Errorf("%w\nnothing was changed: these are the faults that the config would have", err)}
	}
	return failed(e.store(after, nil))
}

// configRules adds rules to the config of a hub that runs.
type configRules struct{}

func (configRules) Add(s *config.Settings, rule *history.Suggestion) error {
	if s.Path == "" {
		return errors.New("there is no config file that rules could be added to")
	}
	e := &configEdit{app: &app{std: streams{getenv: os.LookupEnv}, stateDir: s.StateDir}, target: s.Path,
		trusted: s.TrustFile != ""}
	return e.addRule(rule)
}

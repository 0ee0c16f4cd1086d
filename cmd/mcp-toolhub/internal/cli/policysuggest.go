package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

const policySuggestHelp = `Suggest rules that allow what people allowed, and tools that may be taken for read-only.

A rule names the tools of one server that people allowed a caller at least three times, and never
denied. It comes with the calls behind it, and with what else it would have let through.

Then come the tools that look as if they only read. Nothing vouches for that: look at the list.

-o yaml can be pasted into the config. --apply asks about each suggestion, and adds what you take
to policy.rules and policy.tools.`

func (c policyCmd) suggestCommand() *cobra.Command {
	var format string
	var apply bool
	cmd := leaf("suggest", "Suggest rules that allow what people allowed, and tools that only read", policySuggestHelp,
		func(ctx context.Context) error { return c.suggest(ctx, format, apply) },
		"mcp-toolhub policy suggest --since 30d", "mcp-toolhub policy suggest --apply")
	c.sinceFlag(cmd, "30d")
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text, yaml or json")
	cmd.Flags().Lookup("output").Annotations = map[string][]string{"formats": {"text", "yaml", "json"}}
	cmd.Flags().BoolVar(&apply, "apply", false, "ask about each suggestion, and add those that you take to the config")
	cmd.MarkFlagsMutuallyExclusive("apply", "output")
	return cmd
}

func (c *policyCmd) suggest(ctx context.Context, format string, apply bool) error {
	l, err := c.lookBack(ctx)
	if err != nil {
		return err
	}
	found, err := history.Suggest(ctx, l.Past())
	if err != nil {
		return err
	}
	reads := l.Readers()
	all := additions(found.Suggestions, reads)
	switch {
	case apply:
		return c.apply(ctx, all)
	case format == "yaml":
		text, err := suggestedYAML(all)
		if err != nil {
			return err
		}
		return c.std.print(text)
	case format == "json":
		return c.printJSON(suggestedJSON(found, reads))
	}
	for _, one := range all {
		if err := c.std.print([]byte(one.text + "\n")); err != nil {
			return err
		}
	}
	return c.std.print([]byte(hub.SumOf(found)))
}

// addition is a rule, or some tools that only read. A person may add it to the config. text shows the
// evidence.
type addition struct {
	text string
	put  func(*splice.File) (*splice.File, error)
}

// additions are rules, and tools that may be taken for read-only.
func additions(rules []history.Suggestion, reads []hub.Readers) (all []addition) {
	for i := range rules {
		all = append(all, addition{suggestionText(&rules[i]),
			func(f *splice.File) (*splice.File, error) { return putRule(f, &rules[i]) }})
	}
	for i := range reads {
		all = append(all, addition{readersText(&reads[i]),
			func(f *splice.File) (*splice.File, error) { return putReaders(f, &reads[i]) }})
	}
	return all
}

func suggestedJSON(found *history.Suggested, reads []hub.Readers) any {
	all := []map[string]any{}
	for _, s := range found.Suggestions {
		rule := map[string]any{"id": s.Rule.ID, "match": s.Rule.Match, "actor": s.Rule.Actor, "then": s.Rule.Then,
			"reason": s.Rule.Reason}
		if s.Rule.When != "" {
			rule["when"] = s.Rule.When
		}
		all = append(all, map[string]any{"rule": rule, "calls": s.Calls, "else": s.Else})
	}
	return map[string]any{"suggestions": all, "allowed": found.Allowed, "spared": found.Spared, "denied": found.Denied,
		"untold": found.Untold, "read_only": reads}
}

// suggestionText is a rule with its evidence, for people.
func suggestionText(s *history.Suggestion) string {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "  %-9s %s\n", label, printable(text)) }
	fmt.Fprintf(&b, "%s: %s that people allowed\n", s.Rule.ID, textfile.Count(len(s.Calls), "call"))
	line("tools", strings.Join(s.Rule.Match, ", "))
	line("callers", strings.Join(s.Rule.Actor, ", "))
	line("reason", s.Rule.Reason)
	if s.Rule.When != "" {
		line("when", s.Rule.When)
	}
	line("behind it", fewOf(s.Calls))
	for _, t := range s.Else[:min(len(s.Else), console.ShownEvidence)] {
		line("and also", console.ThroughText(&t))
	}
	if more := len(s.Else) - console.ShownEvidence; more > 0 {
		line("and also", fmt.Sprintf("%d more that nobody allowed", more))
	}
	return b.String()
}

// readersText is the tools of a server that look as if they only read, for people.
func readersText(r *hub.Readers) string {
	var b strings.Builder
	look := "look as if they only read"
	if len(r.Tools) == 1 {
		look = "looks as if it only reads"
	}
	fmt.Fprintf(&b, "%s: %s of this server %s\n", printable(r.Server), textfile.Count(len(r.Tools), "tool"), look)
	for _, name := range r.Tools {
		fmt.Fprintf(&b, "  %s\n", printable(string(name)))
	}
	return b.String()
}

// fewOf names the newest of some calls.
func fewOf(ids []tool.InvocationID) string {
	var newest []string
	for _, id := range ids[max(0, len(ids)-console.ShownEvidence):] {
		newest = append([]string{string(id)}, newest...)
	}
	text := strings.Join(newest, ", ")
	if more := len(ids) - len(newest); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
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
	value := splice.Object{{Key: "match", Value: r.Match}, {Key: "actor", Value: r.Actor}}
	if r.When != "" {
		value = append(value, splice.Member{Key: "when", Value: r.When})
	}
	value = append(value, splice.Member{Key: "then", Value: string(r.Then)},
		splice.Member{Key: "reason", Value: r.Reason})
	return f.Put(splice.Place{Path: []string{"policy", "rules"}, List: true, Key: "id"}, r.ID, value, said)
}

// offerReaders asks whether tools of these servers that look as if they only read may run unasked.
func (e *configEdit) offerReaders(ctx context.Context, r control.Report, servers ...string) error {
	if e.app.terminal() == nil {
		return nil
	}
	var reads []hub.Readers
	for _, id := range servers {
		if len(r.Readers[id]) > 0 {
			reads = append(reads, hub.Readers{Server: id, Tools: r.Readers[id]})
		}
	}
	all := additions(nil, reads)
	for _, one := range all {
		fmt.Fprint(e.std.err, one.text)
	}
	if len(all) == 0 {
		return nil
	}
	if ok, err := e.confirm(ctx, "Let them run unasked? [y/N]: "); err != nil || !ok {
		return err
	}
	return e.change(func(f *splice.File) (_ *splice.File, err error) {
		for _, one := range all {
			if f, err = one.put(f); err != nil {
				return nil, err
			}
		}
		return f, nil
	}, nil)
}

// putReaders says in a config that tools only read. An entry that is there already stays as it is.
func putReaders(f *splice.File, r *hub.Readers) (_ *splice.File, err error) {
	place := splice.Place{Path: []string{"policy", "tools"}, List: true, Key: "match"}
	for _, name := range r.Tools {
		if f.Entry(place, string(name)) != nil {
			continue
		}
		if f, err = f.Put(place, string(name), splice.Object{{Key: "read_only", Value: true}}); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// suggestedYAML is a part of a config with all that may be added.
func suggestedYAML(all []addition) ([]byte, error) {
	f, err := splice.Read(splice.YAML, nil)
	for _, one := range all {
		if err == nil {
			f, err = one.put(f)
		}
	}
	if err != nil || len(all) == 0 {
		return []byte("# no rule\n"), err
	}
	return f.Bytes(), nil
}

// apply asks about each suggestion, and adds those that the person takes to the config.
func (c policyCmd) apply(ctx context.Context, all []addition) error {
	if c.terminal() == nil {
		return exitUsage.errorf(
			"nobody can be asked here: --apply asks about each rule at the terminal; -o yaml prints them all")
	}
	e := configEdit{app: c.app}
	if err := e.find(false); err != nil {
		return err
	}
	taken := 0
	for _, one := range all {
		fmt.Fprintln(c.std.err, one.text)
		yes, err := c.confirm(ctx, printable(fmt.Sprintf("Add it to %s? [y/N]: ", e.target)))
		if err == nil && yes {
			taken++
			err = e.change(one.put, nil)
		}
		if err != nil {
			return err
		}
	}
	c.std.say("%s: %s added, %d left out", e.target, textfile.Count(taken, "suggestion"), len(all)-taken)
	return nil
}

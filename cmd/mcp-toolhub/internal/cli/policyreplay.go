package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

const policyReplayHelp = `Show which past decisions a changed policy would change, call by call. Nothing is called.

RULES is a config file, or a file with rules alone: {rules: […]} or {policy: {rules: […]}}.
Rules alone are added to those of the config, as serve --rules does.

Each recorded call is decided about anew, with tools and files as they are now, and without
remembered answers. Calls with an unknown decision, for instance masked ones, are listed, too.

Exit code 1 if something that was denied would be allowed; calls that nobody answered count
as denied.`

func (c policyCmd) replayCommand() *cobra.Command {
	cmd := leaf("replay RULES", "Show which past decisions a changed policy would change", policyReplayHelp, c.replay,
		"mcp-toolhub policy replay new-rules.yaml --since 30d")
	c.sinceFlag(cmd, "30d")
	return cmd
}

// sinceFlag adds --since.
func (c *policyCmd) sinceFlag(cmd *cobra.Command, otherwise string) {
	cmd.Flags().StringVar(&c.since, "since", otherwise,
		"calls that began at this `time` or later: 30d, yesterday, 2026-11-22 …")
}

func (c *policyCmd) replay(ctx context.Context, rules string) error {
	next, err := c.changedPolicy(ctx, rules)
	if err != nil {
		return err
	}
	l, err := c.lookBack(ctx)
	if err != nil {
		return err
	}
	changed, err := hub.ConfiguredBy(next)
	if err != nil {
		return exitConfig.of(err)
	}
	out, err := history.Replay(ctx, l.Calls, l.Gate, changed.Gate, l.Tools)
	if err != nil {
		return err
	}
	if c.json() {
		err = c.printJSON(out)
	} else {
		err = c.printReplayed(out)
	}
	if err == nil && out.Loosened > 0 {
		err = fmt.Errorf("%s that was denied would be allowed", textfile.Count(out.Loosened, "call"))
	}
	return err
}

// changedPolicy returns the settings with the policy of a file: of a config, or of one with rules alone.
func (c policyCmd) changedPolicy(ctx context.Context, path string) (*config.Settings, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	root, faults := textfile.Parse(path, data)
	if len(faults) > 0 {
		for i := range faults {
			faults[i].File = path
		}
		return nil, exitConfig.of(faults)
	}
	var set policy.Set
	switch {
	case holdsOnly(root, "rules"):
		set, err = policy.ParseRules(policy.CommandLine, path, data)
	case holdsOnly(root, "policy") && holdsOnly(root.Member("policy"), "rules"):
		var alone *config.Settings
		if alone, err = c.app.read(config.Found{Path: path}); err == nil {
			for _, one := range alone.Policy.Sets {
				if one.Source == policy.User {
					set.Rules = append(set.Rules, one.Rules...)
				}
			}
		}
	default:
		return c.app.read(config.Found{Path: path})
	}
	if err != nil {
		return nil, exitConfig.of(err)
	}
	s, err := c.load(ctx)
	if err == nil {
		s.Policy.Sets = append(slices.Clip(s.Policy.Sets), policy.Set{Source: policy.CommandLine, Rules: set.Rules})
	}
	return s, err
}

// holdsOnly reports whether n is a mapping with that key and no other.
func holdsOnly(n *textfile.Node, key string) bool {
	return n != nil && n.Kind == textfile.Mapping && len(n.Members) == 1 && n.Members[0].Key == key
}

func (c policyCmd) printReplayed(r *history.Replayed) error {
	t := newTable("WAS", "NOW", "ANSWER", "TOOL", "CALLER", "STARTED", "ID", "BECAUSE", "ARGUMENTS")
	for _, all := range [][]history.Change{r.Changes, r.Untold} {
		for i := range all {
			ch := &all[i]
			now := cmp.Or(string(ch.Now), "unknown")
			if ch.Loosened {
				now += "!"
			}
			because := ch.Because
			if len(ch.NowBy) > 0 {
				because = ch.NowBy[0] + ": " + because
			}
			t.add(string(ch.Was), now, cmp.Or(string(ch.Answer), "-"), printable(string(ch.Tool)), printable(ch.Actor),
				ch.At.Local().Format("2006-01-02 15:04:05"), string(ch.ID), printable(because),
				hidden.Summary(ch.Arguments, 200))
		}
	}
	if len(t.rows) > 1 {
		if err := c.std.printTable(t); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%s, of which %d would be decided otherwise", textfile.Count(r.Calls, "call"), len(r.Changes))
	if n := len(r.Untold); n > 0 {
		text += fmt.Sprintf("; of %d that cannot be told", n)
	}
	if r.Loosened > 0 {
		text += fmt.Sprintf("; %d were denied and would be allowed (!)", r.Loosened)
	}
	return c.std.print([]byte(strings.TrimSpace(text)))
}

// lookBack reads the config, and what was decided since then.
func (c *policyCmd) lookBack(ctx context.Context) (l *hub.Look, err error) {
	from, err := lookup.ParseWhen(c.since, time.Now())
	if err != nil {
		return nil, exitUsage.of(err)
	}
	s, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	l = &hub.Look{Settings: s, Table: hub.Tools(&hub.Hub{})}
	now, err := hub.ConfiguredBy(s)
	if err != nil {
		return nil, exitConfig.of(err)
	}
	l.Gate, l.Own = now.Gate, now.Own
	if l.Catalogs, err = knownCatalogs(s); err != nil {
		return nil, err
	}
	l.Tools = hub.KnownTools(l.Catalogs, l.Table)
	records, err := c.openRecords(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	l.Calls, err = lookup.Past(ctx, records, store.Query{Since: from})
	return l, err
}

package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// evidence writes the bundle.
func (c *exportCmd) evidence(ctx context.Context, out io.Writer, s store.Store, from *config.Settings,
	flags []string) (err error) {
	keeper := hub.NewKeeper(from.StateDir, from.Journal.Dir)
	if err := keeper.Extend(); err != nil && !errors.Is(err, evidence.ErrDamaged) { // the bundle shows what is damaged
		return err
	}
	wanted := func([]byte) bool { return true }
	if len(flags) > 0 {
		if wanted, err = c.linesOf(ctx, s); err != nil {
			return err
		}
	}
	return keeper.Write(out, evidence.Selection{Line: wanted, Without: c.without, Hub: "mcp-toolhub/" + hub.Version(),
		Query: strings.Join(flags, " "), Policy: policyInForce(from)})
}

// linesOf returns which lines of the journal are of the calls that the flags mean, or of the
// surfaces and tools that these name.
func (c *exportCmd) linesOf(ctx context.Context, s store.Store) (func(line []byte) bool, error) {
	q, filter, err := c.query()
	if err != nil {
		return nil, err
	}
	calls, named := make(map[tool.InvocationID]bool), make(map[string]bool)
	err = eachCall(ctx, s, q, filter, func(call *store.Call) error {
		lines, err := s.Lines(ctx, call.ID)
		for _, line := range lines {
			named[rawjson.Text(line, "surface_id")] = true
		}
		calls[call.ID], named[call.Tool] = true, true
		return err
	})
	return func(line []byte) bool {
		if rawjson.Text(line, "object") != string(persist.ObjectStanding) {
			return calls[tool.InvocationID(rawjson.Text(line, "invocation_id"))]
		}
		found := named[rawjson.Text(line, "key")]
		records, _ := rawjson.Get(line, "records")
		_ = rawjson.Elements(records, func(r []byte) bool {
			kind := tool.Object(rawjson.Text(r, "object"))
			found = found || named[rawjson.Text(r, "tool_id")] || kind == tool.ObjectNamespace ||
				kind == tool.ObjectPolicy
			return !found
		})
		return found
	}, err
}

// policyInForce is the policy of the config that there is now; nil where none was read.
func policyInForce(s *config.Settings) any {
	if s.Path == "" {
		return nil
	}
	engine, err := policy.Compile(policy.Settings{Mode: s.Policy.Mode, Sets: s.Policy.Sets})
	if err != nil {
		return nil
	}
	sets := make(map[policy.Source][]policy.Rule)
	for _, set := range s.Policy.Sets {
		for _, rule := range set.Rules {
			rule.Place = ""
			sets[set.Source] = append(sets[set.Source], rule)
		}
	}
	modes := make(map[string]policy.Mode)
	for _, door := range []string{"stdio", "http", "cli"} {
		modes[door] = s.Policy.Mode.Of(door)
	}
	return map[string]any{"modes": modes, "rules": sets, "version": engine.Version()}
}

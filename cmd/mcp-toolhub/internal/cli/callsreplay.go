package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

const replayHelp = `Make a call again: the same tool, with the arguments that its caller sent, in the same profile.

It is a new call of yours, under hooks and policy. What may write is asked about in any case. A
call whose arguments are masked or gone cannot be made again. --dry-run runs no hook.`

// replayCmd runs the command "calls replay".
type replayCmd struct {
	*callsCmd
	dry bool
}

func replayCommand(calls *callsCmd) *cobra.Command {
	c := &replayCmd{callsCmd: calls}
	cmd := leaf("replay ID", "Make a call again", replayHelp, c.replay, "mcp-toolhub calls replay inv_… --dry-run")
	cmd.Flags().BoolVar(&c.dry, "dry-run", false, "show what would be sent and decided, and send nothing")
	return cmd
}

// find returns a call of the store.
func (c *replayCmd) find(ctx context.Context, id tool.InvocationID) (call *tool.Invocation, err error) {
	r, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if id, err = lookup.Whole(ctx, r, id); err != nil {
		return nil, err
	}
	told, err := lookup.ReadStory(ctx, r, id)
	if err != nil {
		return nil, err
	}
	return &told.Invocation, nil
}

func (c *replayCmd) replay(ctx context.Context, word string) error {
	id := tool.InvocationID(word)
	call, err := c.find(ctx, id)
	if err != nil {
		return err
	}
	name := call.ToolID
	if name == "" || name == tool.UnknownTool {
		return fmt.Errorf("replay %s: it named no tool of the hub: there is nothing to call", id)
	}
	return c.withHub(ctx, hub.Want{Tool: string(name), Profile: call.Profile, Change: askBeforeWrites},
		func(h *hub.Hub) error {
			if own := h.HubTool(name); own != nil && own.Batches {
				return fmt.Errorf("replay %s: the records of its calls have the arguments: replay those that "+
					"name it as parent_invocation_id", id)
			}
			args, err := sentArguments(call, h.Results)
			if err != nil {
				return fmt.Errorf("replay %s: %w", id, err)
			}
			if c.dry {
				return c.foresee(ctx, h, call, args)
			}
			tools := toolsCmd{app: c.app, profile: call.Profile}
			return tools.call(ctx, hub.OwnTools{Hub: h, Profile: call.Profile, Ask: c.asker(), Meta: c.callMeta(),
				Replays: id},
				string(name), args)
		})
}

// sentArguments are those that the caller sent, where the records or the store has them as they were.
func sentArguments(i *tool.Invocation, stored *payload.Store) (args json.RawMessage, err error) {
	switch {
	case persist.IsErased(rawjson.Quote(i.ModelInputRef)):
		return nil, errors.New("its arguments were erased; call the tool anew")
	case i.ModelInputRef != "":
		digest, _, _ := persist.ParseRef(i.ModelInputRef)
		e, err := stored.Entry(tool.InputOf(i.InvocationID, digest))
		if err == nil {
			err = stored.Read(e, func(raw []byte) error {
				args = bytes.Clone(raw)
				return nil
			})
		}
		if err != nil {
			err = fmt.Errorf("its arguments are gone: they were too large for the records, which have their "+
				"digest (%s)", i.ModelInputRef)
		}
		return args, err
	case bytes.Contains(i.ModelInput, []byte(secret.MarkStart)):
		return nil, fmt.Errorf("its arguments are masked: %s…] stands for what the records do not keep; call "+
			"the tool anew", secret.MarkStart)
	case bytes.Contains(i.ModelInput, []byte(persist.Erased)):
		return nil, errors.New("its arguments were erased; call the tool anew")
	case rawjson.IsNull(i.ModelInput) || len(i.ModelInput) == 0:
		return json.RawMessage(`{}`), nil
	}
	return i.ModelInput, nil
}

// askBeforeWrites makes the policy ask about every call that may write, each time.
func askBeforeWrites(s *config.Settings) {
	rules := []policy.Rule{{ID: "replay", When: "!tool.read_only || targets.exists(t, t.write)", Then: tool.Ask,
		EveryTime: true,
		Reason:    "a call that is made again is asked about where it may write"}}
	if s.Policy.Mode == policy.ModeAcceptAll || s.Policy.Mode == policy.ModeClient { // modes that leave out questions
		if s.Policy.Mode == policy.ModeAcceptAll {
			rules = append(rules, policy.Rule{ID: "accept_all", Match: []string{"*"}, Then: tool.Allow})
		}
		s.Policy.Mode = policy.ModeDefault
	}
	s.Policy.Sets = append(s.Policy.Sets, policy.Set{Source: policy.CommandLine, Rules: rules})
}

// foresee prints what would be sent, and what would be decided about it.
func (c *replayCmd) foresee(ctx context.Context, h *hub.Hub, call *tool.Invocation, args json.RawMessage) error {
	r := policy.Request{Actor: hub.LocalActor(), Profile: call.Profile, Input: args}
	if err := hub.Known(ctx, h, call.ToolID, &r); err != nil {
		return err
	}
	x := h.Surfaces.Now().Gate.Engine.Explain(ctx, r)
	if c.json() {
		return c.printJSON(map[string]any{"replays": call.InvocationID, "arguments": args, "explanation": &x})
	}
	text := fmt.Sprintf("%s would be called with %s\n", printable(string(call.ToolID)), printable(string(args)))
	if err := c.std.print([]byte(text)); err != nil {
		return err
	}
	return x.WriteText(c.std.out)
}

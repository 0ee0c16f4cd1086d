package target

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

func resolve(_ context.Context, p *Plan, arguments json.RawMessage, _ Root) ([]Target, error) {
	if !rawjson.IsObject(arguments) {
		return nil, fmt.Errorf("resolve targets: the arguments are no JSON object: send one")
	}
	var targets []Target
	for _, a := range p.arguments {
		value, ok := rawjson.Get(arguments, a.Pointer[1:])
		text, isText := rawjson.String(value)
		if ok && isText && a.Kind != facts.ArgumentNone {
			targets = append(targets, Target{Kind: Kind(a.Kind), Argument: a.Pointer, Given: text, Resolved: text, Write: a.Write})
		}
	}
	return targets, nil
}

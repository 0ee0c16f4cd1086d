package gate

import (
	"encoding/json"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// Mask replaces the secrets in the arguments of a call, for people who are asked about it.
func Mask(arguments json.RawMessage, f *facts.Facts) json.RawMessage {
	arguments, _ = Learn(secret.New(nil), arguments, f)
	return arguments
}

// Learn is Learn of m for arguments of a tool: what its facts call sensitive is secret, too. With
// nil facts any text may be a command.
func Learn(m *secret.Masker, arguments json.RawMessage, f *facts.Facts) (json.RawMessage, *secret.Masker) {
	if f == nil {
		return m.Learn(arguments, true)
	}
	runs := f.Command.Value || slices.ContainsFunc(f.Arguments, func(a facts.Argument) bool {
		return a.Kind == facts.ArgumentCommand || a.Kind == facts.ArgumentCode
	})
	return m.Learn(arguments, runs, f.Sensitive...)
}

package facts

import (
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// derivation is what is gathered of one tool on the way to its Facts.
type derivation struct {
	tool    *tool.Tool
	options Options
	trusted bool
	hints   hints
}

// hints are the tool's annotations; nil where it says nothing.
type hints struct{ readOnly, destructive, idempotent, openWorld *bool }

func (d *derivation) read() {
	annotations, _ := rawjson.Get(d.tool.Declaration, "annotations")
	hint := func(name string) *bool {
		value, ok := rawjson.Get(annotations, name)
		if !ok || string(value) != "true" && string(value) != "false" {
			return nil
		}
		b := string(value) == "true"
		return &b
	}
	d.hints = hints{hint("readOnlyHint"), hint("destructiveHint"), hint("idempotentHint"), hint("openWorldHint")}
}

func (d *derivation) derive(f *Facts) {
	f.ReadOnly = Fact[bool]{false, Inferred, "nothing says that it only reads"}
	if d.trusted && isTrue(d.hints.readOnly) {
		f.ReadOnly = Fact[bool]{true, Declared, "readOnlyHint"}
	}
	f.Destructive = Fact[bool]{!f.ReadOnly.Value, Inferred, "nothing says that it destroys nothing"}
	f.OpenWorld = Fact[bool]{true, Inferred, "nothing bounds it"}
	f.Risk = Fact[string]{RiskMedium, Inferred, ""}
	f.Kind = Fact[string]{"mcp_tool", Inferred, ""}
	f.Lifecycle = Fact[string]{Available, Inferred, ""}
	f.Tags = append(f.Tags, d.tool.Tags...)
	if f.ReadOnly.Value {
		f.Tags = append(f.Tags, tagReadOnly)
	} else {
		f.Tags = append(f.Tags, tagWrite)
	}
	slices.Sort(f.Tags)
	f.Tags = slices.Compact(f.Tags)
}

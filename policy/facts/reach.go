package facts

import (
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func (d *derivation) network(f *Facts) Fact[bool] {
	if slices.Contains(d.tool.Tags, tagNetwork) {
		return Fact[bool]{true, Configured, "tag network"}
	}
	for _, a := range f.Arguments {
		if a.Kind == ArgumentURL || a.Kind == ArgumentHost {
			return Fact[bool]{true, a.Origin, "the argument " + a.Pointer + " is an address"}
		}
	}
	against, why := d.blockers()
	switch {
	case d.name.network || d.prose.network:
		return Fact[bool]{true, Inferred, "its name or description speaks of the network"}
	case d.name.browser || d.prose.browser:
		return Fact[bool]{true, Inferred, "its name or description speaks of a browser"}
	case against.has(sends):
		return Fact[bool]{true, Inferred, why}
	case f.Command.Value && !f.ReadOnly.Value:
		return Fact[bool]{true, Inferred, "what it runs may reach anything"}
	}
	return Fact[bool]{false, Inferred, "nothing shows that it reaches other machines"}
}

func (d *derivation) filesystem(f *Facts) Fact[bool] {
	if slices.Contains(d.tool.Tags, tagFilesystem) {
		return Fact[bool]{true, Configured, "tag filesystem"}
	}
	inStore := false
	for _, a := range f.Arguments {
		switch a.Kind {
		case ArgumentPath:
			return Fact[bool]{true, a.Origin, "the argument " + a.Pointer + " is a path"}
		case ArgumentResource:
			inStore = inStore || a.Why == whyStore
		}
	}
	switch {
	case d.name.files && !inStore && !d.remoteFiles():
		return Fact[bool]{true, Inferred, "its name speaks of files"}
	case f.Command.Value && !f.ReadOnly.Value:
		return Fact[bool]{true, Inferred, "what it runs may touch any file"}
	}
	return Fact[bool]{false, Inferred, "no argument is a path"}
}

// remoteFiles reports whether the files that the name speaks of are kept by another system, as ids in the schema show.
func (d *derivation) remoteFiles() bool { return d.has(ArgumentResource) }

func (d *derivation) openWorld(f *Facts) Fact[bool] {
	switch {
	case isTrue(d.hints.openWorld):
		return Fact[bool]{true, Declared, "openWorldHint"}
	case d.trusted && d.hints.openWorld != nil:
		return Fact[bool]{false, Declared, "openWorldHint is false"}
	case f.Network.Value:
		return Fact[bool]{true, f.Network.Origin, f.Network.Why}
	case f.Command.Value && !f.ReadOnly.Value:
		return Fact[bool]{true, Inferred, "what it runs may reach anything"}
	case f.Filesystem.Value && d.has(ArgumentPath):
		return Fact[bool]{false, Inferred, "all that it names are files"}
	}
	return Fact[bool]{true, Inferred, "nothing bounds what it deals with"}
}

func (d *derivation) risk(f *Facts) Fact[string] {
	if d.calledDangerous() && !(f.Command.Value && !f.ReadOnly.Value) {
		return Fact[string]{RiskHigh, Configured, "tag " + tagDangerous}
	}
	switch {
	case f.ReadOnly.Value && f.Command.Value:
		return Fact[string]{RiskMedium, Inferred, f.Command.Why}
	case f.ReadOnly.Value:
		return Fact[string]{RiskLow, f.ReadOnly.Origin, "it is read-only"}
	case f.Command.Value:
		return Fact[string]{RiskCritical, f.Command.Origin, f.Command.Why}
	case d.shown(f):
		return Fact[string]{RiskHigh, f.Destructive.Origin, f.Destructive.Why}
	case !d.known():
		return Fact[string]{RiskHigh, Inferred, "nothing shows what it does"}
	}
	return Fact[string]{RiskMedium, f.ReadOnly.Origin, f.ReadOnly.Why}
}

// calledDangerous reports whether the operator tags the tool dangerous.
func (d *derivation) calledDangerous() bool {
	return slices.Contains(d.tool.Tags, tagDangerous) ||
		slices.ContainsFunc(d.overrides, func(o Override) bool { return slices.Contains(o.Tags, tagDangerous) })
}

func (d *derivation) access(f *Facts) Fact[[]string] {
	against, _ := d.blockers()
	kinds := []string{"read"}
	add := func(is bool, kind string) {
		if is {
			kinds = append(kinds, kind)
		}
	}
	add(!f.ReadOnly.Value, "write")
	add(d.shown(f), "delete")
	add(f.Command.Value || d.declares() || !f.ReadOnly.Value && against.has(executes), "execute")
	add(f.Network.Value, "network")
	add(f.Filesystem.Value, "filesystem")
	add(d.name.browser || d.prose.browser, "browser")
	add(!f.ReadOnly.Value && against.has(sends), "message")
	return Fact[[]string]{kinds, Inferred, ""}
}

func (d *derivation) writeEffects(f *Facts) Fact[[]string] {
	if f.ReadOnly.Value {
		return Fact[[]string]{nil, f.ReadOnly.Origin, "it is read-only"}
	}
	against, why := d.blockers()
	var effects []string
	for e := creates; e <= executes; e++ {
		if against.has(e) || e == destroys && d.shown(f) || e == executes && f.Command.Value {
			effects = append(effects, e.name())
		}
	}
	if len(effects) == 0 {
		return Fact[[]string]{[]string{"unknown"}, Inferred, "nothing shows what it does"}
	}
	return Fact[[]string]{effects, Inferred, why}
}

// kind is how the tool is executed, which for a tool of an MCP server is by MCP whatever it does there.
func (d *derivation) kind(f *Facts) Fact[string] {
	kind := "native_tool"
	switch source := d.tool.Name.Source(); {
	case source == tool.SourceMCP:
		kind = "mcp_tool"
	case f.Command.Value || d.declares():
		kind = "shell_command"
	case d.tool.Hub != nil && d.tool.Hub.Kind != "":
		kind = d.tool.Hub.Kind
	case f.Filesystem.Value:
		kind = "file_operation"
	}
	return Fact[string]{kind, Inferred, "its canonical name"}
}

// tags are the operator's, the origin's first word, and what the facts say. readonly and write exclude each other.
func (d *derivation) tags(f *Facts) []string {
	tags := make([]string, 0, 8+len(d.tool.Tags))
	add := func(is bool, tag string) {
		if is {
			tags = append(tags, tag)
		}
	}
	for _, t := range d.tool.Tags {
		add(t != tagReadOnly && t != tagWrite && t != "", t)
	}
	for _, o := range d.overrides {
		tags = append(tags, o.Tags...)
	}
	dangerous := !f.ReadOnly.Value && (f.Command.Value || d.shown(f))
	add(f.ReadOnly.Value, tagReadOnly)
	add(!f.ReadOnly.Value, tagWrite)
	add(!f.ReadOnly.Value && f.ReadOnly.Origin == Inferred && !d.known(), tagUnknown)
	add(dangerous, tagDangerous)
	add(f.Destructive.Value, tagDestructive)
	add(f.Network.Value, tagNetwork)
	add(f.Filesystem.Value, tagFilesystem)
	add(f.Command.Value, tagCommand)
	add(f.OpenWorld.Value, tagOpenWorld)
	add(d.name.browser || d.prose.browser, tagBrowser)
	tags = append(tags, d.tool.Name.Source())
	slices.Sort(tags)
	return slices.Compact(tags)
}

package facts

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// derivation gathers the evidence about one tool, and makes its Facts.
type derivation struct {
	tool      *tool.Tool
	options   Options
	trusted   bool
	overrides []Override // those that match

	hints      struct{ readOnly, destructive, idempotent, openWorld *bool } // annotations; nil where it says nothing
	deprecated bool                                                         // the declaration says so
	words      wordEvidence
	schema     schemaEvidence
}

func (d *derivation) read() {
	for _, o := range d.options.Overrides {
		name := string(d.tool.Name)
		if glob.Match(o.Match, name) && !slices.ContainsFunc(o.Except,
			func(pattern string) bool { return glob.Match(pattern, name) }) {
			d.overrides = append(d.overrides, o)
		}
	}
	d.annotations()
	d.words = readWords(d.tool)
	schema, _ := d.tool.RuntimeSchema()
	d.schema = readSchema(schema)
	if d.words.database && d.words.query {
		d.schema.queriesAreCode()
	}
	if d.words.files {
		d.schema.endsArePaths()
	}
}

func (d *derivation) annotations() {
	var annotations []byte
	_ = rawjson.Members(d.tool.Declaration, func(m rawjson.Member) bool {
		switch {
		case m.Is("annotations"):
			annotations = m.Value
		case m.Is("deprecated"):
			d.deprecated = string(m.Value) == "true"
		}
		return true
	})
	if annotations == nil {
		return
	}
	_ = rawjson.Members(annotations, func(m rawjson.Member) bool {
		value := bytes.Equal(m.Value, []byte("true"))
		if !value && !bytes.Equal(m.Value, []byte("false")) {
			return true // no boolean says nothing
		}
		switch m.Name() {
		case "readOnlyHint":
			d.hints.readOnly = &value
		case "destructiveHint":
			d.hints.destructive = &value
		case "idempotentHint":
			d.hints.idempotent = &value
		case "openWorldHint":
			d.hints.openWorld = &value
		case "deprecated":
			d.deprecated = value
		}
		return true
	})
}

// configured returns the value of the first override that sets the fact, and inferred where none does.
func configured[T any](d *derivation, inferred Fact[T], pick func(*Override) (value T, set bool)) Fact[T] {
	for i := range d.overrides {
		if v, ok := pick(&d.overrides[i]); ok {
			return Fact[T]{v, Configured, d.overrides[i].Match}
		}
	}
	return inferred
}

func (d *derivation) configuredBool(inferred Fact[bool], pick func(*Override) *bool) Fact[bool] {
	return configured(d, inferred, func(o *Override) (bool, bool) { return isTrue(pick(o)), pick(o) != nil })
}

func (d *derivation) configuredText(inferred Fact[string], pick func(*Override) string) Fact[string] {
	return configured(d, inferred, func(o *Override) (string, bool) { return pick(o), pick(o) != "" })
}

func (d *derivation) derive(f *Facts) {
	f.Arguments = d.arguments()
	f.pointers = d.pointers()
	f.Command = d.configuredBool(d.command(f), func(o *Override) *bool { return o.Command })
	f.ReadOnly = d.configuredBool(d.readOnly(), func(o *Override) *bool { return o.ReadOnly })
	if f.ReadOnly.Value && f.Command.Value && f.Command.Origin == Configured {
		f.ReadOnly = Fact[bool]{false, Configured, f.Command.Why}
	}
	f.Destructive = d.configuredBool(d.destructive(f), func(o *Override) *bool { return o.Destructive })
	if f.Destructive.Value && f.Destructive.Origin == Configured {
		f.ReadOnly = Fact[bool]{false, Configured, f.Destructive.Why}
	}
	for i := range f.Arguments {
		f.Arguments[i].Write = f.Arguments[i].Write || !f.ReadOnly.Value
	}
	f.Idempotent = d.configuredBool(d.idempotent(f), func(o *Override) *bool { return o.Idempotent })
	f.Network = d.configuredBool(d.network(f), func(o *Override) *bool { return o.Network })
	f.Filesystem, f.OpenWorld = d.filesystem(f), d.openWorld(f)
	f.Concurrency = d.configuredText(d.concurrency(f), func(o *Override) string { return o.Concurrency })
	f.Interrupt = d.configuredText(Fact[string]{InterruptCancel, Inferred, "a cancellation is sent on"},
		func(o *Override) string { return o.Interrupt })
	f.Sensitive, f.SensitiveResult = d.schema.sensitive, declaredSecrets(d.tool.OutputSchema, "", 0, nil)
	for _, o := range d.overrides {
		f.Sensitive = append(f.Sensitive[:len(f.Sensitive):len(f.Sensitive)], o.Sensitive...)
		f.SensitiveResult = append(f.SensitiveResult, o.SensitiveResult...)
	}
	f.Risk, f.Access, f.WriteEffects, f.Kind = d.risk(f), d.access(f), d.writeEffects(f), d.kind(f)
	f.Lifecycle = configured(d, d.lifecycle(), func(o *Override) (string, bool) { return Disabled, o.Disabled })
	f.Tags = d.tags(f)
}

// against is the evidence of an effect; "" where there is none. No words are read of the hub's own
// tools, whose annotations are right.
func (d *derivation) against(e effect) string {
	if d.builtIn() {
		return ""
	}
	return cmp.Or(d.words.name[e], d.schema.evidence[e], d.words.opening[e])
}

// builtIn reports whether the tool is the hub's own. Such a tool has destructiveHint if it removes
// anything that a person would miss.
func (d *derivation) builtIn() bool {
	return d.tool.Name.Source() != tool.SourceMCP && !d.declares()
}

// declares reports whether the tool is a command that a file of the user's declares.
func (d *derivation) declares() bool { return d.tool.Name.Source() == "declarative" }

// readOnly is true only where an annotation of a trusted origin says so. Words outweigh it.
func (d *derivation) readOnly() Fact[bool] {
	if slices.Contains(d.tool.Tags, tagWrite) {
		return Fact[bool]{false, Configured, "tag write"}
	}
	switch {
	case d.hints.readOnly != nil && !*d.hints.readOnly:
		return Fact[bool]{false, Declared, "readOnlyHint is false"}
	case isTrue(d.hints.destructive):
		return Fact[bool]{false, Declared, "destructiveHint"}
	case d.hints.readOnly == nil:
		return Fact[bool]{false, Inferred, cmp.Or(d.evident(), "nothing says that it only reads")}
	case !d.trusted:
		return Fact[bool]{false, Inferred, "its server says that it only reads, and is not trusted"}
	}
	if why, contradicted := d.contradiction(); contradicted {
		return Fact[bool]{false, Inferred, "readOnlyHint, but " + why}
	}
	return Fact[bool]{true, Declared, "readOnlyHint"}
}

// contradiction outweighs the readOnlyHint of a trusted server: a name that destroys, or an
// argument that is run. An override outweighs the contradiction.
func (d *derivation) contradiction() (string, bool) {
	if d.builtIn() {
		return "", false
	}
	if why := d.words.name[destroys]; why != "" {
		return why, true
	}
	return "it runs what its caller writes", (d.schema.code || d.schema.command) &&
		d.tool.Name.Source() == tool.SourceMCP
}

// evident is the gravest effect that words show; "" for none.
func (d *derivation) evident() string {
	return cmp.Or(d.against(destroys), d.against(sends), d.against(executes))
}

// known reports whether anything shows the effects of a tool that is not read-only.
func (d *derivation) known() bool {
	return d.evident() != "" || d.hints.readOnly != nil || d.hints.destructive != nil
}

func (d *derivation) destructive(f *Facts) Fact[bool] {
	why := d.against(destroys)
	switch {
	case f.ReadOnly.Value:
		return Fact[bool]{false, f.ReadOnly.Origin, "it is read-only"}
	case isTrue(d.hints.destructive):
		return Fact[bool]{true, Declared, "destructiveHint"}
	case d.trusted && d.hints.destructive != nil:
		return Fact[bool]{false, Declared, "destructiveHint is false"}
	case why != "" || f.Command.Value:
		return Fact[bool]{true, Inferred, cmp.Or(why, f.Command.Why)}
	}
	return Fact[bool]{true, Inferred, "nothing says that it destroys nothing"}
}

// shown reports whether there is evidence that the tool destroys. To be destructive by default is none.
func (d *derivation) shown(f *Facts) bool {
	return f.Destructive.Value && (f.Destructive.Origin != Inferred || d.against(destroys) != "" || f.Command.Value)
}

func (d *derivation) idempotent(f *Facts) Fact[bool] {
	switch {
	case d.hints.idempotent != nil && !*d.hints.idempotent:
		return Fact[bool]{false, Declared, "idempotentHint is false"}
	case d.trusted && d.hints.idempotent != nil:
		return Fact[bool]{true, Declared, "idempotentHint"}
	case f.ReadOnly.Value:
		return Fact[bool]{true, f.ReadOnly.Origin, "it is read-only"}
	}
	return Fact[bool]{false, Inferred, "nothing says that a second call changes nothing"}
}

// concurrency: "Concurrency-safe is not the same as read-only." A reader with a browser or a program text shares state.
func (d *derivation) concurrency(f *Facts) Fact[string] {
	if f.ReadOnly.Value && !f.Command.Value && !d.words.browser {
		return Fact[string]{ConcurrencySafe, f.ReadOnly.Origin, "it is read-only"}
	}
	return Fact[string]{ConcurrencyByTarget, Inferred, "nothing says that two calls can run side by side"}
}

func (d *derivation) has(kind string) bool {
	return slices.ContainsFunc(d.schema.arguments, func(a Argument) bool { return a.Kind == kind })
}

func (d *derivation) command(f *Facts) Fact[bool] {
	for _, a := range f.Arguments {
		if a.Kind == ArgumentCommand || a.Kind == ArgumentCode {
			return Fact[bool]{true, a.Origin, "the argument " + a.Pointer + " is run"}
		}
	}
	return Fact[bool]{false, Inferred, "no argument is run"}
}

func (d *derivation) network(f *Facts) Fact[bool] {
	if slices.Contains(d.tool.Tags, tagNetwork) {
		return Fact[bool]{true, Configured, "tag network"}
	}
	for _, a := range f.Arguments {
		if a.Kind == ArgumentURL || a.Kind == ArgumentHost {
			return Fact[bool]{true, a.Origin, "the argument " + a.Pointer + " is an address"}
		}
	}
	switch {
	case d.words.network:
		return Fact[bool]{true, Inferred, "its name or description speaks of the network"}
	case d.words.browser:
		return Fact[bool]{true, Inferred, "its name or description speaks of a browser"}
	case d.against(sends) != "":
		return Fact[bool]{true, Inferred, d.against(sends)}
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
	// ids in the schema show that another system keeps the files
	case d.words.files && !inStore && !d.has(ArgumentResource):
		return Fact[bool]{true, Inferred, "its name speaks of files"}
	case f.Command.Value && !f.ReadOnly.Value:
		return Fact[bool]{true, Inferred, "what it runs may touch any file"}
	}
	return Fact[bool]{false, Inferred, "no argument is a path"}
}

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
	kinds := []string{"read"}
	add := func(is bool, kind string) {
		if is {
			kinds = append(kinds, kind)
		}
	}
	add(!f.ReadOnly.Value, "write")
	add(d.shown(f), "delete")
	add(f.Command.Value || d.declares() || !f.ReadOnly.Value && d.against(executes) != "", "execute")
	add(f.Network.Value, "network")
	add(f.Filesystem.Value, "filesystem")
	add(d.words.browser, "browser")
	add(!f.ReadOnly.Value && d.against(sends) != "", "message")
	return Fact[[]string]{kinds, Inferred, ""}
}

func (d *derivation) writeEffects(f *Facts) Fact[[]string] {
	if f.ReadOnly.Value {
		return Fact[[]string]{nil, f.ReadOnly.Origin, "it is read-only"}
	}
	var effects []string
	for e := destroys; e <= executes; e++ {
		if d.against(e) != "" || e == destroys && d.shown(f) || e == executes && f.Command.Value {
			effects = append(effects, names[e])
		}
	}
	switch {
	case len(effects) > 0:
	case d.has(ArgumentPath):
		return Fact[[]string]{[]string{"create", "update"}, Inferred, "it may write to the files that it names"}
	default:
		return Fact[[]string]{[]string{"unknown"}, Inferred, "nothing shows what it does"}
	}
	return Fact[[]string]{effects, Inferred, d.evident()}
}

// kind tells how the tool is executed. A tool of an MCP server is executed by MCP, whatever it does there.
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

// tags are the operator's tags, the tool's source, and a tag for each fact. readonly and write exclude each other.
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
	add(d.words.browser, tagBrowser)
	tags = append(tags, d.tool.Name.Source())
	slices.Sort(tags)
	return slices.Compact(tags)
}

// arguments are those that the operator describes, then the other ones of the schema.
func (d *derivation) arguments() []Argument {
	var out []Argument
	said := make(map[string]bool)
	for _, o := range d.overrides {
		for _, pointer := range slices.Sorted(maps.Keys(o.Arguments)) {
			if said[pointer] {
				continue
			}
			said[pointer] = true
			if kind := o.Arguments[pointer]; kind != ArgumentNone {
				out = append(out, Argument{Pointer: pointer, Kind: kind, Origin: Configured, Why: o.Match})
			}
		}
	}
	for _, a := range d.schema.arguments {
		if !said[a.Pointer] {
			out = append(out, a)
		}
	}
	return out
}

// pointers are those of the arguments that the schema or the operator describes.
func (d *derivation) pointers() map[string]bool {
	all := make(map[string]bool, len(d.schema.declared))
	for _, p := range d.schema.declared {
		all[p] = true
	}
	for _, o := range d.overrides {
		for p := range o.Arguments {
			all[p] = true
		}
	}
	return all
}

package facts

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

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

	hints       struct{ readOnly, destructive, idempotent, openWorld *bool } // annotations; nil where it says nothing
	deprecated  bool                                                         // the declaration says so
	name        nameEvidence
	description descriptionEvidence
	schema      schemaEvidence
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
	d.name = readName(d.tool.Native, d.tool.Server)
	d.description = readDescription(d.tool.Description, d.name.lead == reads || d.name.lead == inspects)
	schema, _ := d.tool.RuntimeSchema()
	d.schema = readSchema(schema)
	if d.name.readLast && (d.description.lead.effect == reads || d.description.saysReadOnly) {
		d.name.soft, d.name.lead = 0, reads
	}
	if d.name.query && (d.name.database || d.description.database) {
		d.schema.queriesAreCode()
	}
	if d.name.files {
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

func configuredText[T ~string | ~[]string](d *derivation, inferred Fact[T], pick func(*Override) T) Fact[T] {
	return configured(d, inferred, func(o *Override) (T, bool) { return pick(o), len(pick(o)) > 0 })
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
	f.Filesystem = d.configuredBool(d.filesystem(f), func(o *Override) *bool { return o.Filesystem })
	f.OpenWorld = d.configuredBool(d.openWorld(f), func(o *Override) *bool { return o.OpenWorld })
	f.Interactive = d.configuredBool(Fact[bool]{false, Inferred, "nothing says that it needs a person"},
		func(o *Override) *bool { return o.Interactive })
	f.Concurrency = configuredText(d, d.concurrency(f), func(o *Override) string { return o.Concurrency })
	f.Interrupt = configuredText(d, Fact[string]{InterruptCancel, Inferred, "a cancellation is sent on"},
		func(o *Override) string { return o.Interrupt })
	f.Sensitive, f.SensitiveResult = d.schema.sensitive, declaredSecrets(d.tool.OutputSchema, "", 0, nil)
	for _, o := range d.overrides {
		f.Sensitive = append(f.Sensitive[:len(f.Sensitive):len(f.Sensitive)], o.Sensitive...)
		f.SensitiveResult = append(f.SensitiveResult, o.SensitiveResult...)
	}
	f.Risk = configuredText(d, d.risk(f), func(o *Override) string { return o.Risk })
	f.Access = configuredText(d, d.access(f), func(o *Override) []string { return o.Access })
	f.WriteEffects = configuredText(d, d.writeEffects(f), func(o *Override) []string { return o.WriteEffects })
	f.Kind = configuredText(d, d.kind(f), func(o *Override) string { return o.Kind })
	f.Lifecycle = configuredText(d, d.lifecycle(), func(o *Override) string { return o.Lifecycle })
	f.Tags = d.tags(f)
}

// blockers are the effects that keep the tool from being inferred read-only, and the reason.
func (d *derivation) blockers() (mask, string) {
	hard := d.name.hard | d.description.hard | d.schema.hard
	soft := d.name.soft | d.description.soft
	why := cmp.Or(d.name.why, d.schema.why, d.description.why)
	if hard.has(destroys) && d.builtIn() {
		hard = hard&^(1<<destroys) | 1<<updates // an argument like overwrite is one more way to write
	}
	says := d.description.saysReadOnly || d.name.saysReadOnly
	inspected := d.name.lead == inspects
	switch {
	case says:
		// "Run a read-only SQL query": what it runs is said to change nothing.
		hard, soft = hard&^(1<<executes), 0
	case d.schema.command, d.schema.code && !inspected:
		hard |= 1 << executes
		why = cmp.Or(why, "it runs what its caller writes")
	}
	if d.schema.command && says {
		hard |= 1 << executes // a command line is no query
		why = "it runs a command"
	}
	return hard | soft, why
}

// builtIn reports whether the tool is the hub's own. Such a tool has destructiveHint if it removes
// anything that a person would miss.
func (d *derivation) builtIn() bool {
	return d.tool.Name.Source() != tool.SourceMCP && !d.declares()
}

// declares reports whether the tool is a command that a file of the user's declares.
func (d *derivation) declares() bool { return d.tool.Name.Source() == "declarative" }

func (d *derivation) readOnly() Fact[bool] {
	if slices.Contains(d.tool.Tags, tagWrite) {
		return Fact[bool]{false, Configured, "tag write"}
	}
	switch {
	case d.hints.readOnly != nil && !*d.hints.readOnly:
		return Fact[bool]{false, Declared, "readOnlyHint is false"}
	case isTrue(d.hints.destructive):
		return Fact[bool]{false, Declared, "destructiveHint"}
	case d.trusted && isTrue(d.hints.readOnly):
		if why, contradicted := d.contradiction(); contradicted {
			return Fact[bool]{false, Inferred, "readOnlyHint, but " + why}
		}
		return Fact[bool]{true, Declared, "readOnlyHint"}
	}
	return d.inferReadOnly()
}

// contradiction outweighs the readOnlyHint of a trusted origin: a name that destroys, or a program
// text that nobody calls harmless. An override outweighs the contradiction.
func (d *derivation) contradiction() (string, bool) {
	says := d.description.saysReadOnly || d.name.saysReadOnly
	switch {
	case d.name.hard.has(destroys):
		return d.name.why, true
	case (d.schema.code || d.schema.command) && !says && d.name.lead != inspects &&
		d.tool.Name.Source() == tool.SourceMCP:
		return "it runs what its caller writes", true
	}
	return "", false
}

func (d *derivation) inferReadOnly() Fact[bool] {
	no := func(why string) Fact[bool] { return Fact[bool]{false, Inferred, why} }
	yes := func(why string) Fact[bool] { return Fact[bool]{true, Inferred, why} }
	if against, why := d.blockers(); against.any() {
		return no(why)
	}
	if d.schema.beyond || d.description.tooLong {
		return no("there is more of its declaration than was read")
	}
	if d.name.foreign || d.description.foreign {
		return no("its name or description is in a language that is not read here")
	}
	lead, where := d.name.lead, "its name begins with a verb that reads"
	if d.name.verbless {
		lead, where = d.description.lead.effect, "its description begins with a verb that reads"
	}
	switch {
	case d.description.saysReadOnly || d.name.saysReadOnly:
		return yes("it is said to be read-only")
	case lead == reads || lead == inspects:
		return yes(where)
	case lead == produces && d.name.derivative && !d.has(ArgumentPath):
		return yes("it hands back what it makes")
	}
	return no("nothing shows that it only reads")
}

// known reports whether anything shows the effects of a tool that is not read-only.
func (d *derivation) known() bool {
	against, _ := d.blockers()
	return against.any() || d.hints.readOnly != nil || d.hints.destructive != nil
}

func (d *derivation) destructive(f *Facts) Fact[bool] {
	if f.ReadOnly.Value {
		return Fact[bool]{false, f.ReadOnly.Origin, "it is read-only"}
	}
	against, why := d.blockers()
	switch {
	case isTrue(d.hints.destructive):
		return Fact[bool]{true, Declared, "destructiveHint"}
	case d.trusted && d.hints.destructive != nil:
		return Fact[bool]{false, Declared, "destructiveHint is false"}
	case against.has(destroys) || f.Command.Value:
		return Fact[bool]{true, Inferred, cmp.Or(why, f.Command.Why)}
	case against.any() && against&(1<<updates|1<<executes) == 0 && d.name.hard.any():
		return Fact[bool]{false, Inferred, "it only adds: " + why}
	}
	return Fact[bool]{true, Inferred, "nothing says that it destroys nothing"}
}

// shown reports whether there is evidence that the tool destroys. To be destructive by default is none.
func (d *derivation) shown(f *Facts) bool {
	against, _ := d.blockers()
	return f.Destructive.Value && (f.Destructive.Origin != Inferred || against.has(destroys) || f.Command.Value)
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
	if f.ReadOnly.Value && !f.Command.Value && !f.Interactive.Value && !d.name.browser && !d.description.browser {
		return Fact[string]{ConcurrencySafe, f.ReadOnly.Origin, "it is read-only"}
	}
	return Fact[string]{ConcurrencyByTarget, Inferred, "nothing says that two calls can run side by side"}
}

func (d *derivation) has(kind string) bool {
	return slices.ContainsFunc(d.schema.arguments, func(a Argument) bool { return a.Kind == kind })
}

func (d *derivation) command(f *Facts) Fact[bool] {
	for _, a := range f.Arguments {
		if a.Kind == ArgumentCommand || a.Kind == ArgumentCode && d.name.lead != inspects {
			return Fact[bool]{true, a.Origin, "the argument " + a.Pointer + " is run"}
		}
	}
	if d.description.hard.has(executes) && strings.Contains(d.description.why, "arbitrary") {
		return Fact[bool]{true, Inferred, d.description.why}
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
	against, why := d.blockers()
	switch {
	case d.name.network || d.description.network:
		return Fact[bool]{true, Inferred, "its name or description speaks of the network"}
	case d.name.browser || d.description.browser:
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
	// ids in the schema show that another system keeps the files
	case d.name.files && !inStore && !d.has(ArgumentResource):
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
	add(d.name.browser || d.description.browser, "browser")
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
	add(d.name.browser || d.description.browser, tagBrowser)
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

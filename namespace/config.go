package namespace

// Style says how a surface writes the names of tools and prompts.
type Style string

const (
	// by the client: short or safe where names with dots or of that length are refused, canonical
	// otherwise (default)
	StyleAuto      Style = "auto"
	StyleCanonical Style = "canonical" // mcp.github.search_issues
	StyleSafe      Style = "safe"      // mcp__github__search_issues
	StyleShort     Style = "short"     // github__search_issues
	StyleNative    Style = "native"    // search_issues; two servers with the same name are a fault of the profile
)

// DefaultProfile is the name of the profile that a client gets when it names none.
const DefaultProfile = "default"

// Profile selects what one surface shows, and overrides texts of its tools. The zero value shows
// everything in style auto. Its maker checks it: New takes it as it is.
//
// Patterns of Include and Exclude select prompts, too. Resources, templates, instructions and
// abilities are those of the servers of which Servers, Include and Exclude leave anything: a tool
// or prompt that there is, or that there could be.
//
// Patterns are globs over canonical names ("mcp.github.*", "code.*", "mcp.*.delete_*"): * is any
// run of characters, dots included, and ? one character.
type Profile struct {
	Name    string
	Style   Style
	Servers []string // server ids and toolset names, as globs; empty means all
	Include []string // empty means all of those servers
	Exclude []string // wins over Include
	Tools   []Override
}

// Override changes how the tools that match it are shown. The first override that sets a field counts for that field.
type Override struct {
	Match       string
	Name        string // shown instead of the tool's own name part; Match must then select one tool
	Title       string
	Description string
}

package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Bounds of texts for people, in bytes.
const (
	maxShownArguments = 400
	maxShownDoes      = 120
	maxShownWords     = 300
	maxShownTarget    = 300
	maxShownTargets   = 10

	// Of the line that shortens the arguments: bounds of an argument that is a target, of any
	// other, and of all of them.
	maxBriefAim   = 100
	maxBriefValue = 40
	maxBrief      = 160
)

// MaxTwinLookups bounds the targets of one call that Target.Twins is called for.
const MaxTwinLookups = 32

// Choices are the answers that may be given where d asks, in their usual order.
func Choices(d *tool.PermissionDecision) []policy.Choice {
	given := []policy.Choice{policy.AllowOnce, policy.DenyOnce}
	for _, suggested := range d.SuggestedUpdates {
		if s, ok := suggested.(policy.SuggestedGrant); ok {
			given = append(given, s.Choice)
		}
	}
	return slices.DeleteFunc(policy.Choices(), func(c policy.Choice) bool { return !slices.Contains(given, c) })
}

// Suggest returns the answer that the hub suggests where d asks about r, and the reason for people.
// It suggests to deny a call that a limit or a hook objects to, that could not be judged, or whose
// tool is tagged dangerous, and to allow once a call that only reads and reaches nothing beyond its
// server. It returns "" for all others. The suggestion decides nothing.
func Suggest(r *policy.Request, d *tool.PermissionDecision) (choice policy.Choice, why string) {
	kind, _ := d.Reason["type"].(string)
	_, failed := d.Reason["condition_error"]
	f := r.Facts
	switch {
	case kind == "limit":
		return policy.DenyOnce, "it goes beyond a limit that the operator has set"
	case kind == "hook":
		return policy.DenyOnce, "a hook did not allow it"
	case failed:
		return policy.DenyOnce, "the condition of a rule could not be evaluated"
	case f == nil:
		return policy.DenyOnce, "nothing is known of the tool"
	case f.Has("dangerous"):
		return policy.DenyOnce, "its tool is tagged dangerous"
	case f.ReadOnly.Value && f.Risk.Value == facts.RiskLow && !f.Network.Value && !f.OpenWorld.Value:
		return policy.AllowOnce, "it only reads, and reaches nothing beyond its server"
	}
	return "", ""
}

// Why is why a person is asked, without secrets; "" where no reason says so.
func Why(d *tool.PermissionDecision) string {
	message, _ := d.Reason["message"].(string)
	return secret.Text(message, false)
}

// Suggested is Suggest for people, on one line; "" where nothing is suggested.
func Suggested(r *policy.Request, d *tool.PermissionDecision) string {
	switch choice, why := Suggest(r, d); choice {
	case policy.AllowOnce:
		return "allow once: " + why
	case policy.DenyOnce:
		return "deny, unless you expect this very call: " + why
	}
	return ""
}

// Message is the question about a call, in plain text. Some clients show its beginning and some its
// end, so the first three lines are short and say what matters most (the tool and its server, the
// arguments, and why a person is asked), and a usual question fits a terminal of 24 lines together
// with its answers. All the rest is shown by the queue.
//
// What the hub says stands at the beginning of a line; what a stranger wrote stands in one line
// behind it, quoted, cut, and with everything invisible made visible, so that none of it can be
// taken for the hub's words.
func Message(a Asked) string {
	r, d, times := a.Request, a.Decision, ""
	if a.Times > 1 {
		times = fmt.Sprintf(" %d times", a.Times)
	}
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "%s: %s\n", label, text) }
	fmt.Fprintf(&b, "mcp-toolhub asks: may %s (server %s) run%s?\n", ToolName(r.Tool.Name),
		Plain(r.Tool.Server, maxShownWords), times)
	arguments := Mask(r.Input, r.Facts)
	brief, whole := shortened(arguments, r.Targets)
	line("Arguments", brief)
	if why := Why(d); why != "" {
		line("Why", Plain(why, maxShownWords))
	}
	if f := r.Facts; f != nil {
		line("Risk", f.Risk.Value+"; "+effect(f)+"; tags: "+Plain(strings.Join(f.Tags, " "), maxShownWords))
	}
	if suggested := Suggested(r, d); suggested != "" {
		line("Suggested", suggested)
	}
	if a, _ := tool.AgentOf(r.Meta); a != nil {
		line(callersWords, AgentLine(a))
	}
	for _, t := range r.Targets[:min(len(r.Targets), maxShownTargets)] {
		t.Twins()
		line("Aimed at", TargetLine(&t))
	}
	if more := len(r.Targets) - maxShownTargets; more > 0 {
		line("Aimed at", fmt.Sprintf("%d more", more))
	}
	if r.CWD != "" {
		line("Runs in", Plain(r.CWD, maxShownTarget))
	}
	if len(r.Env) > 0 {
		line("Gets of the environment", Plain(strings.Join(r.Env, " "), maxShownWords))
	}
	if !whole {
		line("All arguments", Plain(string(arguments), maxShownArguments))
	}
	switch does := quoted(secret.Text(r.Tool.Description, false), maxShownDoes); {
	case r.Tool.Description == "":
	case r.Tool.Name.Source() == tool.SourceMCP:
		line("The server's own words, which nobody has checked", does)
	default:
		line("What it does", does)
	}
	if c := Remembered(d); c != "" {
		line("An answer that is remembered covers", c)
	}
	if o := Offer(d); o != nil {
		line("Offered", fmt.Sprintf("%s (you have answered so %d times)", OfferTitle(o), o.Answers))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shortened writes masked arguments on one short line: first those with targets, then the others,
// each of them cut. whole reports whether nothing is missing.
func shortened(arguments json.RawMessage, targets []target.Target) (brief string, whole bool) {
	aimed := func(name string) bool {
		return slices.ContainsFunc(targets, func(t target.Target) bool {
			first, _, _ := strings.Cut(strings.TrimPrefix(t.Argument, "/"), "/")
			return rawjson.PointerName(first) == name
		})
	}
	var aims, others []string
	whole = true
	_ = rawjson.Members(arguments, func(m rawjson.Member) bool {
		list, limit := &others, maxBriefValue
		if aimed(m.Name()) {
			list, limit = &aims, maxBriefAim
		}
		part := briefName(m.Name()) + ": " + briefValue(m.Value, limit)
		whole = whole && !strings.Contains(part, cutMark)
		*list = append(*list, part)
		return true
	})
	all := append(aims, others...)
	if len(all) == 0 {
		return "none", true
	}
	brief = all[0]
	for i, part := range all[1:] {
		if len(brief)+len(part) > maxBrief {
			return brief + fmt.Sprintf(" … (%d more, see below)", len(all)-1-i), false
		}
		brief += ", " + part
	}
	return brief, whole
}

// briefName is the name of an argument: between quotes where it holds more than names usually do.
func briefName(name string) string {
	if isOdd(name, "_-") || name == "" || len(name) > maxBriefValue {
		return quoted(name, maxBriefValue)
	}
	return name
}

// isOdd reports whether a name holds more than letters and digits in ASCII and the characters of also.
func isOdd(name, also string) bool {
	return strings.ContainsFunc(name, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune(also, c)
	})
}

// briefValue is the value of an argument. A text is read first, so that its escapes hide nothing.
func briefValue(value []byte, limit int) string {
	if text, ok := rawjson.String(value); ok {
		return quoted(text, limit)
	}
	return Plain(string(value), limit)
}

// DescriptionLine is the description of a tool as one line between quotes, cut; "" where there is none.
func DescriptionLine(t *tool.Tool) string {
	if t.Description == "" {
		return ""
	}
	return quoted(secret.Text(t.Description, false), maxShownWords)
}

// callersWords stands before an AgentLine in a question.
const callersWords = "The caller's own words of itself, which nobody has checked"

// AgentLine is what a caller says of itself, for people; "" where it says nothing.
func AgentLine(a *tool.Agent) string {
	if a == nil {
		return ""
	}
	var said []string
	for _, one := range [...]struct{ label, text string }{{"role", a.Role}, {"agent", a.Name}, {"run", a.Run},
		{"parent", a.Parent}} {
		if one.text != "" {
			said = append(said, one.label+" "+quoted(one.text, maxShownDoes))
		}
	}
	return strings.Join(said, ", ")
}

// ToolName is the name of a tool for people: between quotes where it holds more than names usually
// do, because the server has chosen it.
func ToolName(name tool.Name) string {
	if !isOdd(string(name), "._-/") && len(name) <= maxShownWords {
		return string(name)
	}
	return quoted(string(name), maxShownWords)
}

// TargetLine is one target for people.
func TargetLine(t *target.Target) string {
	text := string(t.Kind) + " " + quoted(secret.Text(t.Resolved, t.Kind == target.Command), maxShownTarget)
	if t.Write {
		text += " (may write)"
	}
	if t.Has(target.CaseTwin) || t.Has(target.UnicodeTwin) {
		text += " (is not there; a name is that looks almost the same)"
	}
	if t.Fault != "" {
		text += " (" + Plain(t.Fault, maxShownTarget) + ")"
	}
	return text
}

// Remembered says which calls a remembered answer to the question of d would cover; "" where none is remembered.
func Remembered(d *tool.PermissionDecision) string {
	for _, suggested := range d.SuggestedUpdates {
		if s, ok := suggested.(policy.SuggestedGrant); ok && s.Choice == policy.AllowSession {
			return Covers(&s)
		}
	}
	return ""
}

// Offer returns the grant that the question of d offers because of earlier answers; nil where it offers none.
func Offer(d *tool.PermissionDecision) *policy.SuggestedGrant {
	for _, suggested := range d.SuggestedUpdates {
		if s, ok := suggested.(policy.SuggestedGrant); ok && s.Answers > 0 {
			return &s
		}
	}
	return nil
}

// OfferTitle says what an offered grant does, as the title of an answer: always allow reads below
// "/home/ann/projects" by this tool.
func OfferTitle(s *policy.SuggestedGrant) string {
	does := Covers(s)
	if i := slices.IndexFunc(s.Targets, func(t policy.Scope) bool { return t.Kind != target.Path }); i < 0 &&
		len(s.Targets) > 0 {
		verb := "reads"
		var dirs []string
		for _, t := range s.Targets {
			if t.Write {
				verb = "writes"
			}
			dirs = append(dirs, quoted(secret.Text(t.Under, false), maxShownTarget))
		}
		does = verb + " below " + strings.Join(dirs, ", ") + " by this tool"
	}
	return "Always " + string(s.Behavior) + " " + does
}

// Covers says which calls the grant s would cover.
func Covers(s *policy.SuggestedGrant) string {
	switch {
	case s.Exact != "":
		return "this tool with exactly these arguments"
	case len(s.Targets) == 0:
		return "this tool, which is aimed at nothing outside"
	}
	var parts []string
	for _, scope := range s.Targets[:min(len(s.Targets), maxShownTargets)] {
		part := string(scope.Kind)
		switch scope.Kind {
		case target.Path:
			part += " " + quoted(secret.Text(scope.Under, false), maxShownTarget) + " and what is beneath it"
		case target.URL:
			part += " on host " + quoted(scope.Host, maxShownTarget)
		case target.Command:
			part += " " + quoted(scope.Executable, maxShownTarget)
			if scope.As != "" {
				part += ", called " + quoted(scope.As, maxShownTarget) + ","
			}
			part += " in " + quoted(scope.CWD, maxShownTarget)
		case target.Resource:
			part += " " + quoted(secret.Text(scope.Resource, false), maxShownTarget)
		}
		parts = append(parts, part)
	}
	if more := len(s.Targets) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return "this tool, aimed at " + strings.Join(parts, "; ")
}

// quoted is one line of a stranger's text between quotes, which it cannot end itself.
func quoted(text string, limit int) string {
	return `"` + Plain(strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(text), limit) + `"`
}

// cutMark ends a text that was cut.
const cutMark = " bytes more)"

// Plain is one line of a stranger's text, cut after limit bytes: what does not print, and what
// would change the direction of the line, stands as its code point.
func Plain(text string, limit int) string {
	var b strings.Builder
	escaped := false // c belongs to the backslash before it
	for i, c := range text {
		if b.Len() >= limit && !escaped {
			fmt.Fprintf(&b, "… (%d"+cutMark, len(text)-i)
			break
		}
		escaped = c == '\\' && !escaped
		if c == utf8.RuneError || c != ' ' && !unicode.IsPrint(c) || hidden.Is(c) {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// Form is the requestedSchema of an elicitation for one of the choices, in their order. It has
// nothing but that one choice, because there are clients that cannot submit an optional text that
// is empty; and it has no default, because there are clients that fill defaults in without showing
// them. revision is the client's: a list of words with titles is written differently from
// 2025-11-25 on. offer is what the question offers; nil for nothing.
func Form(choices []policy.Choice, offer *policy.SuggestedGrant, revision string) json.RawMessage {
	titles := map[policy.Choice]string{policy.AllowOnce: "Allow once", policy.AllowSession: "Allow for this session",
		policy.AllowAlways: "Always allow in this scope", policy.DenyOnce: "Deny once",
		policy.DenyAlways: "Always deny in this scope"}
	if offer != nil {
		titles[offer.Choice] = OfferTitle(offer)
	}
	all := make([]choice, len(choices))
	for i, c := range choices {
		all[i] = choice{string(c), titles[c]}
	}
	return form(revision, all)
}
